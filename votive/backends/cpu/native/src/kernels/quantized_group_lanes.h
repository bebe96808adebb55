// Groups of codes with a scale of single precision as vectors of 64 unsigned bytes. See quantized_lanes.h.
#pragma once
#include "quantized_lanes.h"

namespace vt::blocks {
namespace {

// Scales and zero points of 256 elements, each as often as there are 32 elements in a block.
template <int N> VT_LANES __m512 scales_of(Bytes p, int step) {
  const auto at = [&](int k) { return word_at<float>(p + k * 32 / N * step); };
  if constexpr (N == 128)
    return _mm512_zextps256_ps512(_mm256_set_m128(_mm_set1_ps(at(4)), _mm_set1_ps(at(0))));
  else
    return _mm512_zextps256_ps512(_mm256_setr_ps(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)));
}
template <int N> VT_LANES __m512 zeros_of(Bytes p, int step) {
  const auto at = [&](int k) { return short(word_at<uint16_t>(p + k * 32 / N * step)); };
  const __m128i h = _mm_setr_epi16(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
  return _mm512_zextps256_ps512(_mm256_cvtph_ps(h));
}

// 64 bytes of codes of eight bits; `step` bytes from block to block of N.
template <int N> VT_LANES __m512i whole_bytes(Bytes p, int step, int j) {
  if constexpr (N == 128) return bytes64(p + step * (j / 2) + 64 * (j % 2));
  if constexpr (N == 64) return bytes64(p + step * j);
  const __m256i next = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + step * (2 * j + 1)));
  return _mm512_mask_broadcast_i64x4(twice32(p + step * 2 * j), 0xf0, next);
}
// 64 codes of four bits.
template <int N> VT_LANES __m512i half_bytes(Bytes p, int step, int j) {
  if constexpr (N == 128) {
    const __m512i v = bytes64(p + step * (j / 2));
    return j % 2 ? fields<4, 4, 4, 4>(v, 15) : _mm512_and_si512(v, all(15));
  }
  if constexpr (N == 64) return fields<0, 0, 4, 4>(twice32(p + step * j), 15);
  return halves_of_bytes(twice16(p + step * 2 * j, p + step * (2 * j + 1)));
}
// 64 codes of two bits.
template <int N> VT_LANES __m512i quarter_bytes(Bytes p, int step, int j) {
  if constexpr (N == 128) {
    const __m512i v = twice32(p + step * (j / 2));
    return j % 2 ? fields<4, 4, 6, 6>(v, 3) : fields<0, 0, 2, 2>(v, 3);
  }
  if constexpr (N == 64) return fields<0, 2, 4, 6>(twice16(p + step * j, p + step * j), 3);
  const __m512i a = _mm512_set1_epi64(word_at<int64_t>(p + step * 2 * j));
  const __m512i v = _mm512_mask_set1_epi64(a, 0xf0, word_at<int64_t>(p + step * (2 * j + 1)));
  constexpr auto four = [](int n) { return int64_t(0x0001000100010001) * n; };
  const __m512i by = _mm512_setr_epi64(0, four(2), four(4), four(6), 0, four(2), four(4), four(6));
  return _mm512_and_si512(_mm512_maskz_srlv_epi16(~__mmask32(0), v, by), all(3));
}

template <int BITS, int N> struct Codes<Whole<BITS, N>> {
  static constexpr int STEP = Whole<BITS, N>::BYTES;
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(scales_of<N>(p, STEP)), m(a * zeros_of<N>(p + 4, STEP)) {}
  VT_LANES __m512i get(int j) const {
    if constexpr (BITS == 8) return whole_bytes<N>(b + 6, STEP, j);
    if constexpr (BITS == 4) return half_bytes<N>(b + 6, STEP, j);
    return quarter_bytes<N>(b + 6, STEP, j);
  }
};

template <int N> struct Codes<Absmax8<N>> {
  static constexpr int STEP = Absmax8<N>::BYTES;
  Bytes b;
  __m512 a, m;
  VT_LANES explicit Codes(Bytes p) : b(p), a(scales_of<N>(p, STEP) * Absmax8<N>::STEP), m(a * 128.0f) {}
  VT_LANES __m512i get(int j) const { return whole_bytes<N>(b + 4, STEP, j) ^ all(0x80); }
};

}  // namespace
}  // namespace vt::blocks
