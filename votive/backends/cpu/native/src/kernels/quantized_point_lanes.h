// Points of codebooks, and other blocks with small scales, as vectors of 64 unsigned bytes. See quantized_lanes.h.
#pragma once
#include "quantized_lanes.h"

namespace vt::blocks {
namespace {

// Codes of eight bits with sign, as they are.
template <> struct Codes<Q8_1> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(eight(p, 36)), m(a * 128.0f) {}
  VT_LANES __m512i get(int j) const {
    const __m256i next = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 72 * j + 40));
    return _mm512_mask_broadcast_i64x4(twice32(b + 72 * j + 4), 0xf0, next) ^ all(0x80);
  }
};

template <> struct Codes<Q8_K> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(lower(_mm512_set1_ps(word_at<float>(p)))), m(a * 128.0f) {}
  VT_LANES __m512i get(int j) const { return bytes64(b + 4 + 64 * j) ^ all(0x80); }
};

template <> struct Codes<NVFP4> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p) {
    const auto at = [&](int k) { return word_at<int32_t>(p + 36 * k); };
    const __m128i e = _mm_setr_epi32(at(0), at(1), at(2), at(3));
    const __m128i known = _mm_andnot_si128(_mm_cmpeq_epi8(e, _mm_set1_epi8(127)), _mm_and_si128(e, _mm_set1_epi8(127)));
    const __m256i bits = _mm256_slli_epi16(_mm256_cvtepu8_epi16(known), 7);
    a = _mm512_maskz_cvtph_ps(0xffff, bits) * 128.0f;
    m = a * 12.0f;
  }
  // Eight bytes hold sixteen neighbours, the first eight in the low bits.
  VT_LANES __m512i get(int j) const {
    const __m512i v = _mm512_maskz_permutexvar_epi64(0xff, _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), twice32(b + 36 * j + 4));
    const __m512i q = _mm512_mask_srli_epi16(v, 0xf0f0f0f0, v, 4);  // each second eight bytes
    return look_up<12>(_mm512_and_si512(q, all(15)), FP4);
  }
};

template <> struct Codes<Q1_0> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p)
      : b(p), a(_mm512_zextps256_ps512(_mm256_set_m128(_mm_set1_ps(half_at(p + 18)), _mm_set1_ps(half_at(p))))), m(a) {}
  VT_LANES __m512i get(int j) const {
    return _mm512_maskz_mov_epi8(word_at<uint64_t>(b + 18 * (j / 2) + 2 + 8 * (j % 2)), all(2));
  }
};

template <> struct Codes<Q2_0> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p) {
    const auto at = [&](int k) { return short(word_at<uint16_t>(p + 18 * k)); };
    const __m128i h = _mm_setr_epi16(at(0), at(0), at(1), at(1), at(2), at(2), at(3), at(3));
    a = m = _mm512_zextps256_ps512(_mm256_cvtph_ps(h));
  }
  // Four neighbours lie in a byte: each moves to a byte of its own.
  VT_LANES __m512i get(int j) const {
    const __m512i v = _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 18 * j + 2)));
    const __m512i two = v | _mm512_maskz_slli_epi32(0xffff, v, 12);
    return _mm512_and_si512(two | _mm512_maskz_slli_epi32(0xffff, two, 6), all(3));
  }
};

}  // namespace
}  // namespace vt::blocks
