// Matrix products of integers, which wrap around. Those of at most 16 bits are multiplied in pairs along k.
#include "vt/gemm_micro.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace vt {

namespace {

// Unsigned, since signed overflow is undefined.
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

#if defined(__SSE2__)

// Sums modulo 2^32 are right modulo 2^16 and 2^8 too.
struct WordPairs {
  using Unit = uint32_t;
  using Acc = uint32_t;
  using AccVector = Lanes<uint32_t>::type;
  using UnitVector = Lanes<uint32_t>::type;
  static constexpr int depth = 2;
  static inline __attribute__((always_inline)) void step(AccVector& acc, Unit a, const UnitVector& b) {
#if defined(__AVX512BW__)
    acc += AccVector(_mm512_madd_epi16(_mm512_set1_epi32(int(a)), __m512i(b)));
#elif defined(__AVX2__)
    acc += AccVector(_mm256_madd_epi16(_mm256_set1_epi32(int(a)), __m256i(b)));
#else
    acc += AccVector(_mm_madd_epi16(_mm_set1_epi32(int(a)), __m128i(b)));
#endif
  }
};
using Small = WordPairs;

template <class S>
void pack_small(char* to, int64_t width, const char* src, int64_t s_item, int64_t s_k, int64_t items, int64_t k) {
  uint32_t* dst = reinterpret_cast<uint32_t*>(to);
  const auto word = [](const char* p) { return uint32_t(uint16_t(int16_t(*reinterpret_cast<const S*>(p)))); };
  for (int64_t j = 0; j < k; j += 2, dst += width, src += 2 * s_k) {
    const bool pair = j + 1 < k;
    if (pair && s_item == int64_t(sizeof(S))) {
      const S *low = reinterpret_cast<const S*>(src), *high = reinterpret_cast<const S*>(src + s_k);
      for (int64_t i = 0; i < items; ++i)
        dst[i] = uint32_t(uint16_t(int16_t(low[i]))) | uint32_t(uint16_t(int16_t(high[i]))) << 16;
    } else {
      for (int64_t i = 0; i < items; ++i) {
        const char* p = src + i * s_item;
        dst[i] = word(p) | (pair ? word(p + s_k) << 16 : 0);
      }
    }
    for (int64_t i = items; i < width; ++i) dst[i] = 0;
  }
}
constexpr Dtype SMALL = Dtype::i16;

#else

using Small = Plain<uint32_t>;
template <class S>
void pack_small(char* to, int64_t width, const char* src, int64_t s_item, int64_t s_k, int64_t items, int64_t k) {
  pack_as<S, uint32_t>(to, width, src, s_item, s_k, items, k);
}
constexpr Dtype SMALL = Dtype::i32;

#endif

template <class P> const Engine& engine() {
  static const Engine e = make_engine<P>();
  return e;
}

template <class S> void small(int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C) {
  const CastFn row = cast_fn(dtype_of<S>, SMALL);
  const bool native = dtype_of<S> == SMALL;
  const Factor a{A.data, A.row, A.col, sizeof(S), pack_small<S>, row, native};
  const Factor b{B.data, B.col, B.row, sizeof(S), pack_small<S>, row, native};
  multiply(engine<Small>(), M, N, K, a, b, C);
}

template <class S, class U> void large(int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C) {
  const CastFn copy = cast_fn(dtype_of<S>, dtype_of<S>);
  const Factor a{A.data, A.row, A.col, sizeof(S), pack_as<S, U>, copy, true};
  const Factor b{B.data, B.col, B.row, sizeof(S), pack_as<S, U>, copy, true};
  multiply(engine<Plain<U>>(), M, N, K, a, b, C);
}

}  // namespace

void product_integers(Dtype from, int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C) {
  switch (from) {
    case Dtype::i8: return small<int8_t>(M, N, K, A, B, C);
    case Dtype::u8: return small<uint8_t>(M, N, K, A, B, C);
    case Dtype::i16: return small<int16_t>(M, N, K, A, B, C);
    case Dtype::i32: return large<int32_t, uint32_t>(M, N, K, A, B, C);
    default: return large<int64_t, uint64_t>(M, N, K, A, B, C);
  }
}

}  // namespace vt
