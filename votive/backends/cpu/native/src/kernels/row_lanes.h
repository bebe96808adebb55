// Blocks of 32 numbers, and codes of eight bits, to single precision by vectors, for processors with AVX2 and AVX-512;
// local to the including file.
#pragma once
#include <immintrin.h>

#include "quantized_formats.h"

namespace vt::rows {
namespace {

#define VT_LANES inline __attribute__((always_inline))

// Sixteen codes q as a q - m; products of halves with codes are exact, so adding on the way rounds once.
VT_LANES void put16(__m128i q, float a, float m, float* to) {
#if defined(__AVX512F__)
  const __m512 x = _mm512_maskz_cvtepi32_ps(0xffff, _mm512_maskz_cvtepi8_epi32(0xffff, q));
  _mm512_storeu_ps(to, _mm512_fmsub_ps(x, _mm512_set1_ps(a), _mm512_set1_ps(m)));
#else
  const __m256 by = _mm256_set1_ps(a), less = _mm256_set1_ps(m);
  const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q));
  const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(q, 8)));
  _mm256_storeu_ps(to, _mm256_fmsub_ps(low, by, less));
  _mm256_storeu_ps(to + 8, _mm256_fmsub_ps(high, by, less));
#endif
}

VT_LANES __m128i load16(const void* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

struct Nibbles {
  __m128i low, high;
  VT_LANES explicit Nibbles(blocks::Bytes p) {
    const __m128i v = load16(p), keep = _mm_set1_epi8(15);
    low = _mm_and_si128(v, keep);
    high = _mm_and_si128(_mm_srli_epi16(v, 4), keep);
  }
  VT_LANES void less(int by) {
    low = _mm_sub_epi8(low, _mm_set1_epi8(char(by)));
    high = _mm_sub_epi8(high, _mm_set1_epi8(char(by)));
  }
  // 16 where a bit of the two halves of `bits` is set.
  VT_LANES void fifths(uint32_t bits) {
    const __m128i each = _mm_set1_epi64x(int64_t(0x8040201008040201ull)), sixteen = _mm_set1_epi8(16);
    const auto spread = [&](uint32_t half) {
      const __m128i two = _mm_shuffle_epi8(_mm_cvtsi32_si128(int(half)), _mm_set_epi64x(0x0101010101010101ll, 0));
      return _mm_and_si128(_mm_cmpeq_epi8(_mm_and_si128(two, each), each), sixteen);
    };
    low = _mm_or_si128(low, spread(bits & 0xffff));
    high = _mm_or_si128(high, spread(bits >> 16));
  }
  VT_LANES void put(float a, float m, float* to) const {
    put16(low, a, m, to);
    put16(high, a, m, to + 16);
  }
};

template <class F> VT_LANES void read_block(blocks::Bytes b, float* to);

template <> VT_LANES void read_block<blocks::Q4_0>(blocks::Bytes b, float* to) {
  Nibbles q(b + 2);
  q.less(8);
  q.put(blocks::half_at(b), 0, to);
}
template <> VT_LANES void read_block<blocks::Q4_1>(blocks::Bytes b, float* to) {
  Nibbles(b + 4).put(blocks::half_at(b), -blocks::half_at(b + 2), to);
}
template <> VT_LANES void read_block<blocks::Q5_0>(blocks::Bytes b, float* to) {
  Nibbles q(b + 6);
  q.fifths(blocks::word_at<uint32_t>(b + 2));
  q.less(16);
  q.put(blocks::half_at(b), 0, to);
}
template <> VT_LANES void read_block<blocks::Q5_1>(blocks::Bytes b, float* to) {
  Nibbles q(b + 8);
  q.fifths(blocks::word_at<uint32_t>(b + 4));
  q.put(blocks::half_at(b), -blocks::half_at(b + 2), to);
}
template <> VT_LANES void read_block<blocks::Q8_0>(blocks::Bytes b, float* to) {
  const float a = blocks::half_at(b);
  put16(load16(b + 2), a, 0, to);
  put16(load16(b + 18), a, 0, to + 16);
}
template <> VT_LANES void read_block<blocks::IQ4_NL>(blocks::Bytes b, float* to) {
  Nibbles q(b + 2);
  const __m128i table = load16(blocks::IQ4);
  q.low = _mm_shuffle_epi8(table, q.low);
  q.high = _mm_shuffle_epi8(table, q.high);
  q.put(blocks::half_at(b), 0, to);
}

// Sixteen numbers of FP8 E4M3 times d: as halves with seven bits of mantissa, whose exponents are 8 too small.
VT_LANES void put_fp8(const uint8_t* c, float d, float* to) {
  const __m256i wide = _mm256_cvtepu8_epi16(load16(c));
  const __m256i rest = _mm256_and_si256(wide, _mm256_set1_epi16(0x7f));
  const __m256i none = _mm256_cmpeq_epi16(rest, _mm256_set1_epi16(0x7f));
  const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x80)), 8);
  const __m256i h = _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi16(rest, 7), sign),
                                    _mm256_and_si256(none, _mm256_set1_epi16(0x7e00)));
#if defined(__AVX512F__)
  _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_mul_ps(_mm512_maskz_cvtph_ps(0xffff, h), _mm512_set1_ps(256.0f)),
                                     _mm512_set1_ps(d)));
#else
  for (int k = 0; k < 2; ++k) {
    const __m128i part = k ? _mm256_extracti128_si256(h, 1) : _mm256_castsi256_si128(h);
    _mm256_storeu_ps(to + 8 * k, _mm256_mul_ps(_mm256_mul_ps(_mm256_cvtph_ps(part), _mm256_set1_ps(256.0f)),
                                               _mm256_set1_ps(d)));
  }
#endif
}

#undef VT_LANES

}  // namespace
}  // namespace vt::rows
