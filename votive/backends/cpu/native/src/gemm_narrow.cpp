// Matrix products of narrow floats, which are widened while they are packed.
#include "vt/gemm_micro.h"
#include "vt/scratch.h"

namespace vt {

namespace {

// Widened row by row where that is dense, then packed as floats.
template <class S>
void pack_widened(char* dst, int64_t width, const char* src, int64_t s_item, int64_t s_k, int64_t items, int64_t k) {
  constexpr int64_t size = sizeof(S);
  const CastFn widen = cast_fn(dtype_of<S>, Dtype::f32);
  if (s_k == size && s_item != size) {
    Scratch<float> rows(items * k);
    for (int64_t i = 0; i < items; ++i)
      widen(reinterpret_cast<char*>(rows + i * k), 4, src + i * s_item, size, k);
    return pack_units<float>(dst, width, reinterpret_cast<const char*>(rows.get()), k * 4, 4, items, k);
  }
  float* d = reinterpret_cast<float*>(dst);
  for (int64_t j = 0; j < k; ++j, d += width) {
    widen(reinterpret_cast<char*>(d), 4, src + j * s_k, s_item, items);
    std::fill(d + items, d + width, 0.0f);
  }
}

template <class S> void widened(int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C) {
  const CastFn widen = cast_fn(dtype_of<S>, Dtype::f32);
  const Factor a{A.data, A.row, A.col, sizeof(S), pack_widened<S>, widen, false};
  const Factor b{B.data, B.col, B.row, sizeof(S), pack_widened<S>, widen, false};
  multiply(float_engine(), M, N, K, a, b, C);
}

}  // namespace

void product_narrow(Dtype from, int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C) {
  if (from == Dtype::f16) widened<f16>(M, N, K, A, B, C);
  else if (!product_pairs(M, N, K, A, B, C)) widened<bf16>(M, N, K, A, B, C);
}

}  // namespace vt
