// Matrix products of integers, which wrap around.
#include "vt/gemm_micro.h"

namespace vt {

namespace {

// Unsigned, since signed overflow is undefined; sums modulo 2^32 are right for all narrower types too.
template <class S, class U>
void pack_as(char* to, int64_t width, const char* src, int64_t s_item, int64_t s_k, int64_t items, int64_t k) {
  U* dst = reinterpret_cast<U*>(to);
  for (int64_t j = 0; j < k; ++j, dst += width, src += s_k) {
    if (s_item == int64_t(sizeof(S)))
      for (int64_t i = 0; i < items; ++i) dst[i] = U(reinterpret_cast<const S*>(src)[i]);
    else
      for (int64_t i = 0; i < items; ++i) dst[i] = U(*reinterpret_cast<const S*>(src + i * s_item));
    for (int64_t i = items; i < width; ++i) dst[i] = 0;
  }
}

template <class P> const Engine& engine() {
  static const Engine e = make_engine<P>();
  return e;
}

template <class S, class U> void integers(int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C) {
  const CastFn row = cast_fn(dtype_of<S>, sizeof(U) == 4 ? Dtype::i32 : Dtype::i64);
  const bool native = sizeof(S) == sizeof(U);
  const Factor a{A.data, A.row, A.col, sizeof(S), pack_as<S, U>, row, native};
  const Factor b{B.data, B.col, B.row, sizeof(S), pack_as<S, U>, row, native};
  multiply(engine<Plain<U>>(), M, N, K, a, b, C);
}

}  // namespace

void product_integers(Dtype from, int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C) {
  switch (from) {
    case Dtype::i8: return integers<int8_t, uint32_t>(M, N, K, A, B, C);
    case Dtype::u8: return integers<uint8_t, uint32_t>(M, N, K, A, B, C);
    case Dtype::i16: return integers<int16_t, uint32_t>(M, N, K, A, B, C);
    case Dtype::i32: return integers<int32_t, uint32_t>(M, N, K, A, B, C);
    default: return integers<int64_t, uint64_t>(M, N, K, A, B, C);
  }
}

}  // namespace vt
