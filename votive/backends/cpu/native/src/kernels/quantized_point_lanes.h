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
    const __m512i place = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3);
    const __m512i v = _mm512_maskz_permutexvar_epi64(0xff, place, twice32(b + 36 * j + 4));
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
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 18 * j + 2));
    const __m512i v = _mm512_maskz_cvtepu8_epi32(0xffff, bytes);
    const __m512i two = v | _mm512_maskz_slli_epi32(0xffff, v, 12);
    return _mm512_and_si512(two | _mm512_maskz_slli_epi32(0xffff, two, 6), all(3));
  }
};

// Seven bits of signs in each byte, and an eighth that makes their number even.
VT_LANES uint64_t even(uint64_t s) {
  uint64_t parity = s ^ (s >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return s | (parity & ONES) << 7;
}
// Four such fields in the low bits of each of two words.
VT_LANES uint64_t even_words(uint32_t low, uint32_t high) {
  return even(_pdep_u64((low & 0xfffffff) | uint64_t(high & 0xfffffff) << 28, ~TOPS));
}
// Eight bytes as sixteen numbers of four bits, the low ones first.
VT_LANES __m512 nibbles(uint64_t v) {
  const __m128i wide = _mm_cvtepu8_epi16(_mm_cvtsi64_si128(int64_t(v)));
  const __m128i both = _mm_and_si128(_mm_or_si128(wide, _mm_slli_epi16(wide, 4)), _mm_set1_epi8(15));
  return floats(_mm512_maskz_cvtepu8_epi32(0xffff, both));
}

// The eight bytes of signs of part j, and all scales.
VT_LANES uint64_t signs_of(IQ2_XXS, Bytes b, int j) {
  return even_words(IQ2_XXS::word(b, 2 * j), IQ2_XXS::word(b, 2 * j + 1));
}
VT_LANES __m512 scales_of(IQ2_XXS, Bytes b) {
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 1, 3, 5, 7, 9, 11, 13, 15);
  const __m512i words = _mm512_maskz_permutexvar_epi32(0xff, odd, bytes64(b + 2));
  return lower((floats(_mm512_maskz_srli_epi32(0xff, words, 28)) + 0.5f) * (half_at(b) * 0.25f));
}

VT_LANES uint64_t signs_of(IQ2_XS, Bytes b, int j) {
  const __m128i q = _mm_srli_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 2 + 16 * j)), 9);
  return even(uint64_t(_mm_cvtsi128_si64(_mm_packus_epi16(q, q))));
}
VT_LANES __m512 scales_of(IQ2_XS, Bytes b) {
  return (nibbles(word_at<uint64_t>(b + 66)) + 0.5f) * (half_at(b) * 0.25f);
}

VT_LANES uint64_t signs_of(IQ2_S, Bytes b, int j) { return word_at<uint64_t>(b + 34 + 8 * j); }
VT_LANES __m512 scales_of(IQ2_S, Bytes b) { return (nibbles(word_at<uint64_t>(b + 74)) + 0.5f) * (half_at(b) * 0.25f); }

VT_LANES uint64_t signs_of(IQ3_XXS, Bytes b, int j) {
  return even_words(IQ3_XXS::word(b, 2 * j), IQ3_XXS::word(b, 2 * j + 1));
}
VT_LANES __m512 scales_of(IQ3_XXS, Bytes b) {
  const __m512i words = _mm512_maskz_srli_epi32(0xff, twice32(b + 66), 28);
  return lower((floats(words) + 0.5f) * (half_at(b) * 0.5f));
}

VT_LANES uint64_t signs_of(IQ3_S, Bytes b, int j) { return word_at<uint64_t>(b + 74 + 8 * j); }
VT_LANES __m512 scales_of(IQ3_S, Bytes b) {
  return lower((nibbles(word_at<uint32_t>(b + 106)) * 2.0f + 1.0f) * half_at(b));
}

// Where points are moved down, by eight bytes; and the scales.
VT_LANES __mmask8 down(IQ1_S, Bytes b, int j) {
  return __mmask8((IQ1_S::word(b, 2 * j) >> 15 ? 0x0f : 0) | (IQ1_S::word(b, 2 * j + 1) >> 15 ? 0xf0 : 0));
}
VT_LANES __m512 scales_of(IQ1_S, Bytes b) {
  const __m256i h = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 34)));
  const __m256i s = _mm256_and_si256(_mm256_srli_epi32(h, 12), _mm256_set1_epi32(7));
  return lower((floats(_mm512_zextsi256_si512(s)) * 2.0f + 1.0f) * (half_at(b) * 0.125f));
}
VT_LANES __mmask8 down(IQ1_M, Bytes b, int j) {
  return __mmask8(_pext_u64(word_at<uint32_t>(b + 32 + 4 * j), 0x88888888));
}
VT_LANES __m512 scales_of(IQ1_M, Bytes b) {
  // Three bits of each of four 16-bit words, four times.
  const __m512i by = _mm512_setr_epi32(0, 3, 6, 9, 16, 19, 22, 25, 0, 3, 6, 9, 16, 19, 22, 25);
  const __m512i first = _mm512_set1_epi32(word_at<int32_t>(b + 48));
  const __m512i words = _mm512_mask_set1_epi32(first, 0xff00, word_at<int32_t>(b + 52));
  const __m512i s = _mm512_and_si512(_mm512_maskz_srlv_epi32(0xffff, words, by), _mm512_set1_epi32(7));
  return (floats(s) * 2.0f + 1.0f) * (IQ1_M::whole(b) * 0.125f);
}

// The 64 magnitudes of part j.
template <class F> VT_LANES __m512i magnitudes_of(F, Bytes b, int j) {
  const auto at = [&](int i) { return int64_t(F::magnitudes(b, 8 * j + i)); };
  return _mm512_set_epi64(at(7), at(6), at(5), at(4), at(3), at(2), at(1), at(0));
}
// Here the places are made sixteen at a time.
VT_LANES __m512i magnitudes_of(IQ3_S, Bytes b, int j) {
  const __m256i low = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 2 + 16 * j)));
  alignas(32) uint16_t place[16];
  _mm256_store_si256(reinterpret_cast<__m256i*>(place),
                     _mm256_mask_add_epi16(low, word_at<uint16_t>(b + 66 + 2 * j), low, _mm256_set1_epi16(256)));
  const auto at = [&](int i) { return int64_t(joined(POINTS_IQ3_S[place[2 * i]], POINTS_IQ3_S[place[2 * i + 1]])); };
  return _mm512_set_epi64(at(7), at(6), at(5), at(4), at(3), at(2), at(1), at(0));
}

template <class F>
  requires requires { F::POINTS; }
struct Codes<F> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(scales_of(F(), p)), m(a * 128.0f) {}
  VT_LANES __m512i get(int j) const {
    const __m512i v = magnitudes_of(F(), b, j);
    const __m512i up = all(0x80);
    return _mm512_mask_sub_epi8(_mm512_add_epi8(up, v), signs_of(F(), b, j), up, v);
  }
};

template <class F>
  requires requires(Bytes b) { F::point(b, 0); }
struct Codes<F> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(scales_of(F(), p)), m(a * 16.0f) {}  // small, as codes are
  VT_LANES __m512i get(int j) const {
    const auto at = [&](int i) { return int64_t(POINTS_IQ1[F::index(b, 8 * j + i)]); };
    const __m512i v = _mm512_set_epi64(at(7), at(6), at(5), at(4), at(3), at(2), at(1), at(0));
    return _mm512_add_epi8(v, _mm512_mask_blend_epi64(down(F(), b, j), all(1 - 112), all(-1 - 112)));
  }
};

}  // namespace
}  // namespace vt::blocks
