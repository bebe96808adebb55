// Matrix products of narrow floats, which are widened while they are packed.
#include "vt/gemm.h"
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

template <class S>
void widened(int64_t M, int64_t N, int64_t K, Matrix<const S> A, Matrix<const S> B, Matrix<float> C, bool accumulate) {
  constexpr int64_t size = sizeof(S);
  const CastFn widen = cast_fn(dtype_of<S>, Dtype::f32);
  const auto bytes = [](const S* p) { return reinterpret_cast<const char*>(p); };
  const Factor a{bytes(A.data), A.row * size, A.col * size, size, pack_widened<S>, widen, false};
  const Factor b{bytes(B.data), B.col * size, B.row * size, size, pack_widened<S>, widen, false};
  Result c{reinterpret_cast<char*>(C.data), C.row * 4, C.col * 4, 4, true};
  c.finish = finish<float, float>;
  if (accumulate) {
    c.x = c.data;
    c.x_row = c.row;
    c.x_col = c.col;
    c.beta = 1;
  }
  multiply(float_engine(), M, N, K, a, b, c);
}

}  // namespace

void gemm(int64_t M, int64_t N, int64_t K, Matrix<const bf16> A, Matrix<const bf16> B, Matrix<float> C, bool accumulate) {
  widened(M, N, K, A, B, C, accumulate);
}
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const f16> A, Matrix<const f16> B, Matrix<float> C, bool accumulate) {
  widened(M, N, K, A, B, C, accumulate);
}

}  // namespace vt
