// The codes of block formats as vectors of 64 unsigned bytes, and their scales, 256 elements at a time. For processors
// with AVX-512; local to the including file.
//
// x = a u - m with codes u from 0 to 255: codes with sign are shifted up, by what the minimum makes good.
#pragma once
#include <immintrin.h>

#include "quantized_list.h"

namespace vt::blocks {
namespace {

#if !defined(VT_LANES)
#define VT_LANES inline __attribute__((always_inline))
#endif

VT_LANES __m512i all(int v) { return _mm512_set1_epi8(char(v)); }
VT_LANES __m512i bytes64(Bytes p) { return _mm512_loadu_si512(p); }
// The same 32 bytes in both halves.
VT_LANES __m512i twice32(Bytes p) {
  return _mm512_maskz_broadcast_i64x4(0xff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
// 16 bytes twice, then other 16 bytes twice.
VT_LANES __m512i twice16(Bytes p, Bytes other) {
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(other));
  return _mm512_mask_broadcast_i32x4(_mm512_maskz_broadcast_i32x4(0xffff, a), 0xff00, b);
}
// Shifts each quarter down by so many bits, and keeps the lowest.
template <int A, int B, int C, int D> VT_LANES __m512i fields(__m512i v, int keep) {
  constexpr auto four = [](int n) { return int64_t(0x0001000100010001) * n; };
  const __m512i by = _mm512_set_epi64(four(D), four(D), four(C), four(C), four(B), four(B), four(A), four(A));
  return _mm512_and_si512(_mm512_maskz_srlv_epi16(~__mmask32(0), v, by), all(keep));
}
VT_LANES __m512i halves_of_bytes(__m512i v) { return fields<0, 4, 0, 4>(v, 15); }

template <int OFFSET> VT_LANES __m512i look_up(__m512i v, const int8_t* table) {
  const __m128i t = _mm_add_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)), _mm_set1_epi8(char(OFFSET)));
  return _mm512_maskz_shuffle_epi8(~__mmask64(0), _mm512_maskz_broadcast_i32x4(0xffff, t), v);
}
VT_LANES __m512i add_where(__m512i v, __mmask64 where, int value) {
  return _mm512_mask_add_epi8(v, where, v, all(value));
}

// Eight halves, `step` bytes apart, in the lower half.
VT_LANES __m512 eight(Bytes p, int step) {
  const auto at = [&](int k) { return short(word_at<uint16_t>(p + k * step)); };
  const __m128i h = _mm_set_epi16(at(7), at(6), at(5), at(4), at(3), at(2), at(1), at(0));
  return _mm512_zextps256_ps512(_mm256_cvtph_ps(h));
}
VT_LANES __m512 lower(__m512 v) { return _mm512_maskz_mov_ps(0xff, v); }
VT_LANES __m512 upper(__m512 v) { return _mm512_maskz_shuffle_f32x4(0xff, v, v, 0x0e); }
VT_LANES __m512 floats(__m512i v) { return _mm512_maskz_cvtepi32_ps(0xffff, v); }
VT_LANES __m512 signed16(Bytes p) {
  return floats(_mm512_maskz_cvtepi8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

// Any format: expanded as numbers are, then shifted up.
template <class F> struct Codes {
  alignas(64) int8_t q[256];
  alignas(64) float scale[16] = {}, least[16] = {};
  __m512 a, m;
  VT_LANES explicit Codes(Bytes b) {
    constexpr int IN_BLOCK = F::SIZE / F::SUB;
    for (int e = 0; e < 256 / F::SIZE; ++e)
      F::expand(b + e * F::BYTES, q + e * F::SIZE, scale + e * IN_BLOCK, least + e * IN_BLOCK);
    a = _mm512_load_ps(scale);
    m = _mm512_load_ps(least) + a * 128.0f;
  }
  VT_LANES __m512i get(int j) const { return bytes64(Bytes(q) + 64 * j) ^ all(0x80); }
};

template <> struct Codes<Q4_0> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(eight(p, 18)), m(a * 8.0f) {}
  VT_LANES __m512i get(int j) const { return halves_of_bytes(twice16(b + 36 * j + 2, b + 36 * j + 20)); }
};

template <> struct Codes<Q4_1> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(eight(p, 20)), m(-eight(p + 2, 20)) {}
  VT_LANES __m512i get(int j) const { return halves_of_bytes(twice16(b + 40 * j + 4, b + 40 * j + 24)); }
};

VT_LANES __mmask64 bits_at(Bytes p, Bytes other) {
  return __mmask64(word_at<uint32_t>(p)) | __mmask64(word_at<uint32_t>(other)) << 32;
}

template <> struct Codes<Q5_0> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(eight(p, 22)), m(a * 16.0f) {}
  VT_LANES __m512i get(int j) const {
    const Bytes p = b + 44 * j;
    return add_where(halves_of_bytes(twice16(p + 6, p + 28)), bits_at(p + 2, p + 24), 16);
  }
};

template <> struct Codes<Q5_1> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(eight(p, 24)), m(-eight(p + 2, 24)) {}
  VT_LANES __m512i get(int j) const {
    const Bytes p = b + 48 * j;
    return add_where(halves_of_bytes(twice16(p + 8, p + 32)), bits_at(p + 4, p + 28), 16);
  }
};

template <> struct Codes<Q8_0> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(eight(p, 34)), m(a * 128.0f) {}
  VT_LANES __m512i get(int j) const {
    const __m256i next = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 68 * j + 36));
    return _mm512_mask_broadcast_i64x4(twice32(b + 68 * j + 2), 0xf0, next) ^ all(0x80);
  }
};

// Which of the 32 bytes have bit 2j set, then which have the next.
VT_LANES __mmask64 bits_of(Bytes p, int j) {
  const __m256i low = _mm256_set1_epi8(char(1 << (2 * j))), high = _mm256_set1_epi8(char(2 << (2 * j)));
  const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  return _mm512_test_epi8_mask(twice32(p), both);
}
// Fields of two bits, in planes of 32 bytes.
VT_LANES __m512i two_bits(Bytes p, int j) {
  const __m512i v = twice32(p + 32 * (j / 2));
  return j % 2 ? fields<4, 4, 6, 6>(v, 3) : fields<0, 0, 2, 2>(v, 3);
}

template <> struct Codes<Q2_K> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p) {
    const __m512i s = _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    a = floats(_mm512_and_si512(s, _mm512_set1_epi32(15))) * half_at(p + 80);
    m = floats(_mm512_maskz_srli_epi32(0xffff, s, 4)) * half_at(p + 82);
  }
  VT_LANES __m512i get(int j) const { return two_bits(b + 16, j); }
};

template <> struct Codes<Q3_K> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p) {
    const int64_t low = word_at<int64_t>(p + 96);
    const uint32_t high = word_at<uint32_t>(p + 104);
    const __m128i four = _mm_and_si128(_mm_set_epi64x(low >> 4, low), _mm_set1_epi8(15));
    const __m128i places = _mm_setr_epi32(int(high), int(high >> 2), int(high >> 4), int(high >> 6));
    const __m128i two = _mm_and_si128(places, _mm_set1_epi8(3));
    const __m128i s = _mm_or_si128(four, _mm_slli_epi16(two, 4));
    a = floats(_mm512_sub_epi32(_mm512_maskz_cvtepu8_epi32(0xffff, s), _mm512_set1_epi32(32))) * half_at(p + 108);
    m = a * 4.0f;
  }
  VT_LANES __m512i get(int j) const { return add_where(two_bits(b + 32, j), bits_of(b, j), 4); }
};

// d times eight scales, and the other half times eight minima.
struct SixBits {
  __m512 a, m;
  VT_LANES explicit SixBits(Bytes p) {
    // In registers: what is stored in pieces cannot be loaded as a whole before the stores are done.
    const uint32_t low = word_at<uint32_t>(p + 4), middle = word_at<uint32_t>(p + 8), high = word_at<uint32_t>(p + 12);
    constexpr uint32_t SIX = 0x3f3f3f3f, FOUR = 0x0f0f0f0f, TOP = 0x30303030;
    const __m128i v = _mm_setr_epi32(int(low & SIX), int((high & FOUR) | ((low >> 2) & TOP)), int(middle & SIX),
                                     int(((high >> 4) & FOUR) | ((middle >> 2) & TOP)));
    const __m512 by = _mm512_mask_mov_ps(_mm512_set1_ps(half_at(p)), 0xff00, _mm512_set1_ps(half_at(p + 2)));
    const __m512 both = floats(_mm512_maskz_cvtepu8_epi32(0xffff, v)) * by;
    a = lower(both);
    m = upper(both);
  }
};

template <> struct Codes<Q4_K> : SixBits {
  Bytes b;
  VT_LANES explicit Codes(Bytes p) : SixBits(p), b(p) {}
  VT_LANES __m512i get(int j) const { return fields<0, 0, 4, 4>(twice32(b + 16 + 32 * j), 15); }
};

template <> struct Codes<Q5_K> : SixBits {
  Bytes b;
  VT_LANES explicit Codes(Bytes p) : SixBits(p), b(p) {}
  VT_LANES __m512i get(int j) const {
    return add_where(fields<0, 0, 4, 4>(twice32(b + 48 + 32 * j), 15), bits_of(b + 16, j), 16);
  }
};

template <> struct Codes<Q6_K> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(signed16(p + 192) * half_at(p + 208)), m(a * 32.0f) {}
  VT_LANES __m512i get(int j) const {
    const __m512i v = bytes64(b + 64 * (j / 2));
    const __m512i low = j % 2 ? fields<4, 4, 4, 4>(v, 15) : _mm512_and_si512(v, all(15));
    return _mm512_or_si512(low, _mm512_maskz_slli_epi16(~__mmask32(0), two_bits(b + 128, j), 4));
  }
};

template <> struct Codes<IQ4_NL> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(eight(p, 18)), m(a * 128.0f) {}
  VT_LANES __m512i get(int j) const {
    return look_up<128>(halves_of_bytes(twice16(b + 36 * j + 2, b + 36 * j + 20)), IQ4);
  }
};

template <> struct Codes<IQ4_XS> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p) {
    const __m256i place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i low = _mm256_srlv_epi32(_mm256_set1_epi32(int(word_at<uint32_t>(p + 4))), _mm256_slli_epi32(place, 2));
    const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(word_at<uint16_t>(p + 2)), _mm256_slli_epi32(place, 1));
    const __m256i s = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                      _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));
    const __m256 v = _mm256_cvtepi32_ps(_mm256_sub_epi32(s, _mm256_set1_epi32(32))) * half_at(p);
    a = _mm512_zextps256_ps512(v);
    m = a * 128.0f;
  }
  VT_LANES __m512i get(int j) const {
    return look_up<128>(halves_of_bytes(twice16(b + 8 + 32 * j, b + 24 + 32 * j)), IQ4);
  }
};

template <> struct Codes<MXFP4> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p) {
    const auto at = [&](int k) { return MXFP4::scale(p[17 * k]); };
    a = _mm512_zextps256_ps512(_mm256_setr_ps(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)));
    m = a * 12.0f;
  }
  VT_LANES __m512i get(int j) const {
    return look_up<12>(halves_of_bytes(twice16(b + 34 * j + 1, b + 34 * j + 18)), FP4);
  }
};

template <> struct Codes<TQ1_0> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(lower(_mm512_set1_ps(half_at(p + 52)))), m(a) {}
  // A byte times a power of 3 is a fraction of 256; three times that has the digit above.
  VT_LANES static __m256i digits(__m256i bytes, int low, int high) {
    const __m512i power = _mm512_inserti64x4(_mm512_set1_epi16(short(low)), _mm256_set1_epi16(short(high)), 1);
    return digits(bytes, power);
  }
  VT_LANES static __m256i digits(__m256i bytes, __m512i power) {
    const __m512i up = _mm512_maskz_slli_epi16(~__mmask32(0), _mm512_cvtepu8_epi16(bytes), 8);
    const __m512i part = _mm512_maskz_mullo_epi16(~__mmask32(0), up, power);
    const __m512i above = _mm512_maskz_mulhi_epu16(~__mmask32(0), part, _mm512_set1_epi16(3));
    return _mm512_maskz_cvtepi16_epi8(~__mmask32(0), above);
  }
  VT_LANES __m512i get(int j) const {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
    const __m128i then = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + 32));
    const __m256i twice = _mm256_broadcastsi128_si256(then);
    __m256i low, high;
    if (j < 2) {
      low = digits(first, j ? 9 : 1, j ? 9 : 1);
      high = digits(first, j ? 27 : 3, j ? 27 : 3);
    } else if (j == 2) {
      low = digits(first, 81, 81);
      high = digits(twice, 1, 3);
    } else {
      constexpr auto four = [](int n) { return int64_t(0x0001000100010001) * n; };
      const int64_t last = four(81);
      low = digits(twice, 9, 27);
      high = digits(_mm256_inserti128_si256(twice, _mm_set1_epi32(word_at<int32_t>(b + 48)), 1),
                    _mm512_setr_epi64(last, last, last, last, four(1), four(3), four(9), four(27)));
    }
    return _mm512_inserti64x4(_mm512_zextsi256_si512(low), high, 1);
  }
};

template <> struct Codes<TQ2_0> {
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(lower(_mm512_set1_ps(half_at(p + 64)))), m(a) {}
  VT_LANES __m512i get(int j) const { return two_bits(b, j); }
};

}  // namespace
}  // namespace vt::blocks
