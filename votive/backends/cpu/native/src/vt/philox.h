// Philox4x32-10: counters in, 32-bit words out, many counters at a time.
//
// Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Word i of a draw
// is output word i % 4 of counter first + i / 4; sixty-four bits are two words, the first the lower half.
#pragma once
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // in the header of the intrinsics
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#endif

namespace vt {

namespace philox {

constexpr uint32_t M0 = 0xD2511F53, M1 = 0xCD9E8D57, W0 = 0x9E3779B9, W1 = 0xBB67AE85;

inline void one(uint64_t key, uint64_t low, uint64_t high, uint32_t* out) {
  uint32_t c0 = uint32_t(low), c1 = uint32_t(low >> 32), c2 = uint32_t(high), c3 = uint32_t(high >> 32);
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int r = 0; r < 10; ++r) {
    const uint64_t p = uint64_t(M0) * c0, q = uint64_t(M1) * c2;
    c0 = uint32_t(q >> 32) ^ c1 ^ k0;
    c1 = uint32_t(q);
    c2 = uint32_t(p >> 32) ^ c3 ^ k1;
    c3 = uint32_t(p);
    k0 += W0;
    k1 += W1;
  }
  out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

#if defined(__AVX512F__)
#define VT_PHILOX_WIDTH 8
using V = __m512i;
inline V product(V a, V b) { return _mm512_mul_epu32(a, b); }
inline V upper(V a) { return _mm512_srli_epi64(a, 32); }
inline V raised(V a) { return _mm512_slli_epi64(a, 32); }
inline V both(V a, V b) { return _mm512_xor_si512(a, b); }
inline V either(V a, V b) { return _mm512_or_si512(a, b); }
inline V plus(V a, V b) { return _mm512_add_epi64(a, b); }
inline V lower(V a) { return _mm512_and_si512(a, _mm512_set1_epi64(0xffffffff)); }
inline V spread(uint64_t x) { return _mm512_set1_epi64(int64_t(x)); }
inline V even(V a, V b) { return _mm512_unpacklo_epi64(a, b); }
inline V odd(V a, V b) { return _mm512_unpackhi_epi64(a, b); }
inline void put(uint32_t* p, V a) { _mm512_storeu_si512(p, a); }
// Even lanes hold the first half of the counters, so that `even` and `odd` give them in order.
inline V steps() { return _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0); }
#elif defined(__AVX2__)
#define VT_PHILOX_WIDTH 4
using V = __m256i;
inline V product(V a, V b) { return _mm256_mul_epu32(a, b); }
inline V upper(V a) { return _mm256_srli_epi64(a, 32); }
inline V raised(V a) { return _mm256_slli_epi64(a, 32); }
inline V both(V a, V b) { return _mm256_xor_si256(a, b); }
inline V either(V a, V b) { return _mm256_or_si256(a, b); }
inline V plus(V a, V b) { return _mm256_add_epi64(a, b); }
inline V lower(V a) { return _mm256_and_si256(a, _mm256_set1_epi64x(0xffffffff)); }
inline V spread(uint64_t x) { return _mm256_set1_epi64x(int64_t(x)); }
inline V even(V a, V b) { return _mm256_unpacklo_epi64(a, b); }
inline V odd(V a, V b) { return _mm256_unpackhi_epi64(a, b); }
inline void put(uint32_t* p, V a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a); }
inline V steps() { return _mm256_set_epi64x(3, 1, 2, 0); }
#elif defined(__SSE2__)
#define VT_PHILOX_WIDTH 2
using V = __m128i;
inline V product(V a, V b) { return _mm_mul_epu32(a, b); }
inline V upper(V a) { return _mm_srli_epi64(a, 32); }
inline V raised(V a) { return _mm_slli_epi64(a, 32); }
inline V both(V a, V b) { return _mm_xor_si128(a, b); }
inline V either(V a, V b) { return _mm_or_si128(a, b); }
inline V plus(V a, V b) { return _mm_add_epi64(a, b); }
inline V lower(V a) { return _mm_and_si128(a, _mm_set1_epi64x(0xffffffff)); }
inline V spread(uint64_t x) { return _mm_set1_epi64x(int64_t(x)); }
inline V even(V a, V b) { return _mm_unpacklo_epi64(a, b); }
inline V odd(V a, V b) { return _mm_unpackhi_epi64(a, b); }
inline void put(uint32_t* p, V a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), a); }
inline V steps() { return _mm_set_epi64x(1, 0); }
#endif

#if defined(VT_PHILOX_WIDTH)
// Each word has a lane of 64 bits, of which only the lower half counts: a product needs no masking then.
template <int N> inline void several(uint64_t key, uint64_t low, uint64_t high, uint32_t* out) {
  constexpr int W = VT_PHILOX_WIDTH;
  const V m0 = spread(M0), m1 = spread(M1);
  V c0[N], c1[N], c2[N], c3[N];
  for (int i = 0; i < N; ++i) {
    c0[i] = plus(spread(low + uint64_t(i) * W), steps());
    c1[i] = upper(c0[i]);
    c2[i] = spread(high);
    c3[i] = spread(high >> 32);
  }
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int r = 0; r < 10; ++r) {
    const V a = spread(k0), b = spread(k1);
    for (int i = 0; i < N; ++i) {
      const V p = product(m0, c0[i]), q = product(m1, c2[i]);
      c0[i] = both(both(upper(q), c1[i]), a);
      c1[i] = q;
      c2[i] = both(both(upper(p), c3[i]), b);
      c3[i] = p;
    }
    k0 += W0;
    k1 += W1;
  }
  for (int i = 0; i < N; ++i) {
    const V first = either(lower(c0[i]), raised(c1[i])), second = either(lower(c2[i]), raised(c3[i]));
    put(out + i * W * 4, even(first, second));
    put(out + i * W * 4 + W * 2, odd(first, second));
  }
}
#endif

}  // namespace philox

// The words of `count` counters from low + high * 2^64 on; no carry into the high half.
inline void philox_words(uint64_t key, uint64_t low, int64_t count, uint32_t* out, uint64_t high = 0) {
  int64_t i = 0;
#if defined(VT_PHILOX_WIDTH)
  constexpr int W = VT_PHILOX_WIDTH;
  for (; i + 4 * W <= count; i += 4 * W) philox::several<4>(key, low + uint64_t(i), high, out + 4 * i);
  for (; i + W <= count; i += W) philox::several<1>(key, low + uint64_t(i), high, out + 4 * i);
#endif
  for (; i < count; ++i) philox::one(key, low + uint64_t(i), high, out + 4 * i);
}

}  // namespace vt
