// Vectors of the compute type from and to memory of the element types, whole or the first few. Local to the including
// file, as micro-kernels are.
#pragma once
#include "gemm_micro.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace vt {
namespace {

template <class T> using Vec = typename Lanes<T>::type;

// One vector of the compute type from memory of the element type.
inline Vec<float> load(const float* p) { return *reinterpret_cast<const Lanes<float>::loose*>(p); }
inline Vec<double> load(const double* p) { return *reinterpret_cast<const Lanes<double>::loose*>(p); }
inline Vec<float> load(const bf16* p) {
  typedef uint16_t Half __attribute__((vector_size(VECTOR / 2), aligned(2), may_alias));
  return Vec<float>(__builtin_convertvector(*reinterpret_cast<const Half*>(p), Vec<uint32_t>) << 16);
}
inline Vec<float> load(const f16* p) {
#if defined(__AVX512F__)
  return Vec<float>(_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__F16C__)
  return Vec<float>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  Vec<float> v{};
  for (int i = 0; i < Lanes<float>::count; ++i) v[i] = to_float(p[i]);
  return v;
#endif
}

// The first n elements, and zeros.
template <class T, class S> inline Vec<T> load_part(const S* p, int64_t n) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const uint32_t bits = uint32_t((uint64_t(1) << n) - 1);
  if constexpr (std::is_same_v<S, float>) return Vec<T>(_mm512_maskz_loadu_ps(__mmask16(bits), p));
  if constexpr (std::is_same_v<S, double>) return Vec<T>(_mm512_maskz_loadu_pd(__mmask8(bits), p));
  if constexpr (is_narrow<S>) {
    const __m256i half = _mm256_maskz_loadu_epi16(__mmask16(bits), p);
    if constexpr (std::is_same_v<S, f16>) return Vec<T>(_mm512_maskz_cvtph_ps(0xffff, half));
    else return Vec<T>(_mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, half), 16));
  }
#endif
  T part[Lanes<T>::count] = {};
  for (int64_t i = 0; i < n; ++i) part[i] = convert<T>(p[i]);
  return *reinterpret_cast<const typename Lanes<T>::loose*>(part);
}

// The first n values of a vector to memory, rounded to D.
template <class D, class T> inline void put(D* to, const T* from, int64_t n) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const uint32_t bits = uint32_t((uint64_t(1) << n) - 1);
  const bool whole = n == Lanes<T>::count;  // stores without a mask are faster
  if constexpr (std::is_same_v<T, float> && std::is_same_v<D, float>)
    return whole ? _mm512_storeu_ps(to, _mm512_loadu_ps(from)) : _mm512_mask_storeu_ps(to, __mmask16(bits), _mm512_loadu_ps(from));
  if constexpr (std::is_same_v<T, double> && std::is_same_v<D, double>)
    return whole ? _mm512_storeu_pd(to, _mm512_loadu_pd(from)) : _mm512_mask_storeu_pd(to, __mmask8(bits), _mm512_loadu_pd(from));
  if constexpr (std::is_same_v<T, float> && is_narrow<D>) {
    const __m512 v = _mm512_loadu_ps(from);
    __m256i half;
    if constexpr (std::is_same_v<D, f16>) half = _mm512_maskz_cvtps_ph(0xffff, v, _MM_FROUND_TO_NEAREST_INT);
    else {  // as to_bf16
      const __m512i u = _mm512_castps_si512(v), high = _mm512_maskz_srli_epi32(0xffff, u, 16);
      const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
      const __m512i up = 
          _mm512_maskz_srli_epi32(0xffff, _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
      const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
      half = _mm512_maskz_cvtepi32_epi16(0xffff, _mm512_mask_or_epi32(up, nan, high, _mm512_set1_epi32(0x40)));
    }
    return whole ? _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), half) : _mm256_mask_storeu_epi16(to, __mmask16(bits), half);
  }
#endif
  for (int64_t i = 0; i < n; ++i) to[i] = convert<D>(from[i]);
}

}  // namespace
}  // namespace vt
