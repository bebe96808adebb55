// Vectors of floats from and to elements of half types.
#pragma once
#include "lanes.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace vt {

typedef uint16_t HalfBits __attribute__((vector_size(VECTOR_BYTES / 2)));
typedef uint32_t WideBits __attribute__((vector_size(VECTOR_BYTES)));

template <class H> VT_INLINE Lanes<float> load_half(const H* p) {
  Lanes<float> v;
  if constexpr (std::is_same_v<H, bf16>) {
    HalfBits bits;
    std::memcpy(&bits, p, sizeof bits);
    const WideBits wide = __builtin_convertvector(bits, WideBits) << 16;
    std::memcpy(&v, &wide, sizeof v);
  } else {
#if defined(__AVX512F__)
    // Without a mask, GCC 12 warns of the values of lanes that are not left out.
    v = Lanes<float>(_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__F16C__)
    v = Lanes<float>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
    for (int i = 0; i < WIDTH<float>; ++i) v[i] = to_float(p[i]);
#endif
  }
  return v;
}

template <class H> VT_INLINE void store_bits(H* p, WideBits bits) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(0xffff, __m512i(bits)));
#else
  const HalfBits half = __builtin_convertvector(bits, HalfBits);
  std::memcpy(p, &half, sizeof half);
#endif
}

template <class H> VT_INLINE void store_half(H* p, Lanes<float> v) {
  if constexpr (std::is_same_v<H, bf16>) {
    // As `to_bf16` does: to the nearest, ties to even; NaN stays NaN.
    WideBits u;
    std::memcpy(&u, &v, sizeof u);
    const WideBits rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16, quiet = (u >> 16) | 0x40u;
    store_bits(p, v != v ? quiet : rounded);
  } else {
#if defined(__AVX512F__)
    const __m256i bits = _mm512_maskz_cvtps_ph(0xffff, __m512(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bits);
#elif defined(__F16C__)
    const __m128i bits = _mm256_cvtps_ph(__m256(v), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bits);
#else
    for (int i = 0; i < WIDTH<float>; ++i) p[i] = to_f16(v[i]);
#endif
  }
}

// Floats that are such elements already.
template <class H> VT_INLINE void store_exact(H* p, Lanes<float> v) {
  if constexpr (std::is_same_v<H, bf16>) {
    WideBits u;
    std::memcpy(&u, &v, sizeof u);
    store_bits(p, u >> 16);
  } else store_half<H>(p, v);
}

}  // namespace vt
