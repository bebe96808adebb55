// Blocks of 256 whose numbers are points of a codebook, with signs and small scales beside them. Knows no threads and
// no views.
//
// The codebooks are printed at build time from votive/backends/common/blocks/codebooks.py.
#pragma once
#include <array>

#include "quantized_formats.h"

namespace vt::blocks {

// Points of eight bytes and of four. Those of IQ1 are 128 + 8 p, so that an eighth more or less is one.
extern const uint64_t POINTS_IQ2_XXS[256], POINTS_IQ2_XS[512], POINTS_IQ2_S[1024], POINTS_IQ1[2048];
extern const uint32_t POINTS_IQ3_XXS[256], POINTS_IQ3_S[512];

namespace {

constexpr uint64_t ONES = 0x0101010101010101, TOPS = 0x8080808080808080;

// Bytes that are all ones where the bit of a byte of signs is set.
constexpr std::array<uint64_t, 256> SIGNS = [] {
  std::array<uint64_t, 256> t{};
  for (int i = 0; i < 256; ++i)
    for (int k = 0; k < 8; ++k)
      if (i >> k & 1) t[size_t(i)] |= uint64_t(255) << (8 * k);
  return t;
}();

// Seven bits of signs as eight: the last one makes their number even.
constexpr std::array<uint8_t, 128> EVEN = [] {
  std::array<uint8_t, 128> t{};
  for (int i = 0; i < 128; ++i) t[size_t(i)] = uint8_t(i | (std::popcount(unsigned(i)) & 1) << 7);
  return t;
}();

// Eight magnitudes with their signs; none of them is zero, so nothing is carried from byte to byte.
inline void put_signed(int8_t* q, uint64_t point, uint8_t signs) {
  const uint64_t s = SIGNS[signs], v = (point ^ s) + (s & ONES);
  std::memcpy(q, &v, 8);
}
inline uint64_t joined(uint32_t low, uint32_t high) { return low | uint64_t(high) << 32; }

// An eighth is added to points of IQ1, or taken off them.
inline uint64_t moved(uint64_t point, bool down) { return down ? point - ONES : point + ONES; }

inline float half_of_bits(uint16_t bits) { return half_at(reinterpret_cast<Bytes>(&bits)); }
inline int nibble(Bytes p, int i) { return p[i / 2] >> (i % 2 * 4) & 15; }

// What all of them are as codes with sign.
template <class F, int PART> struct Points : Super<PART> {
  static uint64_t magnitudes(Bytes b, int i) {
    if constexpr (sizeof(F::POINTS[0]) == 8)
      return F::POINTS[F::index(b, i)];
    else
      return joined(F::POINTS[F::index(b, 2 * i)], F::POINTS[F::index(b, 2 * i + 1)]);
  }
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    for (int i = 0; i < 32; ++i)
      if constexpr (requires { F::POINTS; }) {
        put_signed(q + 8 * i, magnitudes(b, i), F::signs(b, i));
      } else {
        const uint64_t v = F::point(b, i) ^ TOPS;
        std::memcpy(q + 8 * i, &v, 8);
      }
    for (int s = 0; s < 256 / PART; ++s) {
      a[s] = F::scale(b, s);
      m[s] = 0;
    }
  }
};

// Which point a block takes at place i, which signs, and its scales.
struct IQ2_XXS : Points<IQ2_XXS, 32> {
  static constexpr int BYTES = 66;
  static constexpr const uint64_t* POINTS = POINTS_IQ2_XXS;
  static int index(Bytes b, int i) { return b[2 + i / 4 * 8 + i % 4]; }
  static uint32_t word(Bytes b, int s) { return word_at<uint32_t>(b + 6 + 8 * s); }
  static uint8_t signs(Bytes b, int i) { return EVEN[word(b, i / 4) >> (7 * (i % 4)) & 127]; }
  static float scale(Bytes b, int s) { return half_at(b) * (0.5f + float(int(word(b, s) >> 28))) * 0.25f; }
};

struct IQ2_XS : Points<IQ2_XS, 16> {
  static constexpr int BYTES = 74;
  static constexpr const uint64_t* POINTS = POINTS_IQ2_XS;
  static int index(Bytes b, int i) { return word_at<uint16_t>(b + 2 + 2 * i) & 511; }
  static uint8_t signs(Bytes b, int i) { return EVEN[word_at<uint16_t>(b + 2 + 2 * i) >> 9]; }
  static float scale(Bytes b, int s) { return half_at(b) * (0.5f + float(nibble(b + 66, s))) * 0.25f; }
};

struct IQ2_S : Points<IQ2_S, 16> {
  static constexpr int BYTES = 82;
  static constexpr const uint64_t* POINTS = POINTS_IQ2_S;
  static int index(Bytes b, int i) { return b[2 + i] | (b[66 + i / 4] >> (2 * (i % 4)) & 3) << 8; }
  static uint8_t signs(Bytes b, int i) { return b[34 + i]; }
  static float scale(Bytes b, int s) { return half_at(b) * (0.5f + float(nibble(b + 74, s))) * 0.25f; }
};

struct IQ3_XXS : Points<IQ3_XXS, 32> {
  static constexpr int BYTES = 98;
  static constexpr const uint32_t* POINTS = POINTS_IQ3_XXS;
  static int index(Bytes b, int i) { return b[2 + i]; }
  static uint32_t word(Bytes b, int s) { return word_at<uint32_t>(b + 66 + 4 * s); }
  static uint8_t signs(Bytes b, int i) { return EVEN[word(b, i / 4) >> (7 * (i % 4)) & 127]; }
  static float scale(Bytes b, int s) { return half_at(b) * (0.5f + float(int(word(b, s) >> 28))) * 0.5f; }
};

struct IQ3_S : Points<IQ3_S, 32> {
  static constexpr int BYTES = 110;
  static constexpr const uint32_t* POINTS = POINTS_IQ3_S;
  static int index(Bytes b, int i) { return b[2 + i] | (b[66 + i / 8] >> (i % 8) & 1) << 8; }
  static uint8_t signs(Bytes b, int i) { return b[74 + i]; }
  static float scale(Bytes b, int s) { return half_at(b) * float(1 + 2 * nibble(b + 106, s)); }
};

// Eighths of d (2 s + 1), since points are kept eightfold.
struct IQ1_S : Points<IQ1_S, 32> {
  static constexpr int BYTES = 50;
  static int word(Bytes b, int s) { return word_at<uint16_t>(b + 34 + 2 * s); }
  static int index(Bytes b, int i) { return b[2 + i] | (word(b, i / 4) >> (3 * (i % 4)) & 7) << 8; }
  static uint64_t point(Bytes b, int i) { return moved(POINTS_IQ1[index(b, i)], word(b, i / 4) >> 15); }
  static float scale(Bytes b, int s) { return half_at(b) * float(2 * (word(b, s) >> 12 & 7) + 1) * 0.125f; }
};

struct IQ1_M : Points<IQ1_M, 16> {
  static constexpr int BYTES = 56;
  static int word(Bytes b, int s) { return word_at<uint16_t>(b + 48 + 2 * s); }
  static int index(Bytes b, int i) { return b[i] | (nibble(b + 32, i) & 7) << 8; }
  static uint64_t point(Bytes b, int i) { return moved(POINTS_IQ1[index(b, i)], nibble(b + 32, i) & 8); }
  // The half number is spread over the highest bits of four words.
  static float whole(Bytes b) {
    return half_of_bits(
        uint16_t(word(b, 0) >> 12 | (word(b, 1) >> 8 & 0xf0) | (word(b, 2) >> 4 & 0xf00) | (word(b, 3) & 0xf000)));
  }
  static float scale(Bytes b, int s) {
    return whole(b) * float(2 * (word(b, s / 4) >> (3 * (s % 4)) & 7) + 1) * 0.125f;
  }
};

}  // namespace
}  // namespace vt::blocks
