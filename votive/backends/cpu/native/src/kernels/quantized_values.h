// Sixteen numbers by codes of four bits, and the bits of FP8, as vectors of single precision; for processors that have
// such. Local to the including file.
#pragma once
#include "quantized_formats.h"

#if defined(__AVX2__) && defined(__F16C__)
#define VT_FLOAT_LANES
#include <immintrin.h>

namespace vt::blocks {
namespace {

#if !defined(VT_LANES)
#define VT_LANES inline __attribute__((always_inline))
#endif

#if defined(__AVX512BW__)

constexpr int LANES = 16;
using Floats = __m512;
VT_LANES Floats zero() { return _mm512_setzero_ps(); }
VT_LANES Floats every(float v) { return _mm512_set1_ps(v); }
VT_LANES Floats load(const float* p) { return _mm512_loadu_ps(p); }
VT_LANES void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
VT_LANES Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
VT_LANES float total(Floats v) { return _mm512_reduce_add_ps(v); }

// Sixteen numbers by four bits each.
struct Values {
  Floats table;
  explicit Values(const float* v) : table(load(v)) {}
  VT_LANES void both(Bytes p, Floats& low, Floats& high) const {
    const __m512i v = _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    low = _mm512_maskz_permutexvar_ps(0xffff, v, table);
    high = _mm512_maskz_permutexvar_ps(0xffff, _mm512_maskz_srli_epi32(0xffff, v, 4), table);
  }
};

// The bits of E4M3 in the places of a half number stand for 2^-8 times as much.
VT_LANES void halves(Bytes p, Floats& low, Floats& high) {
  const __m512i v = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  const __m512i h = _mm512_and_si512(_mm512_slli_epi16(v, 7), _mm512_set1_epi16(short(0xbfff)));
  low = _mm512_maskz_cvtph_ps(0xffff, _mm512_castsi512_si256(h));
  high = _mm512_maskz_cvtph_ps(0xffff, _mm512_maskz_extracti64x4_epi64(0xff, h, 1));
}

#else

constexpr int LANES = 8;
using Floats = __m256;
VT_LANES Floats zero() { return _mm256_setzero_ps(); }
VT_LANES Floats every(float v) { return _mm256_set1_ps(v); }
VT_LANES Floats load(const float* p) { return _mm256_loadu_ps(p); }
VT_LANES void store(float* p, Floats v) { _mm256_storeu_ps(p, v); }
VT_LANES Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
VT_LANES float total(Floats v) {
  float part[8];
  _mm256_storeu_ps(part, v);
  return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

struct Values {
  Floats first, second;
  explicit Values(const float* v) : first(load(v)), second(load(v + 8)) {}
  VT_LANES Floats of(__m256i v) const {
    const Floats chosen = _mm256_castsi256_ps(_mm256_slli_epi32(v, 28));  // the fourth bit as a sign
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(first, v), _mm256_permutevar8x32_ps(second, v), chosen);
  }
  VT_LANES void both(Bytes p, Floats& low, Floats& high) const {
    const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    low = of(v);
    high = of(_mm256_srli_epi32(v, 4));
  }
};

VT_LANES void halves(Bytes p, Floats& low, Floats& high) {
  const __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i h = _mm256_and_si256(_mm256_slli_epi16(v, 7), _mm256_set1_epi16(short(0xbfff)));
  low = _mm256_cvtph_ps(_mm256_castsi256_si128(h));
  high = _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1));
}

#endif

}  // namespace
}  // namespace vt::blocks

#endif
