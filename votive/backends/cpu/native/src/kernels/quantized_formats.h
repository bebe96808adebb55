// Block formats: what the bytes of a block stand for, one small struct each. Knows no threads and no views.
//
// A block is SIZE numbers in BYTES bytes. Each SUB of them share a scale a and a minimum m: x = a q - m with codes q of
// eight bits with sign. Products of halves with codes are exact in float, so the order of operations does not show in
// results.
#pragma once
#include <cstdint>
#include <cstring>

#include "vt/dtype.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace vt::blocks {
namespace {

using Bytes = const uint8_t*;

inline float half_at(Bytes p) {
  f16 h;
  std::memcpy(&h, p, 2);
#if defined(__F16C__)
  return _cvtsh_ss(h.bits);
#else
  return to_float(h);
#endif
}

template <class T> inline T word_at(Bytes p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// The values of four bits: ggml's non-linear table, and twice the numbers of FP4 E2M1.
constexpr int8_t IQ4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int8_t FP4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// Fields of BITS bits of `n` bytes, in planes of RUN bytes; the lowest come first.
template <int BITS, int RUN> inline void planes(int8_t* q, Bytes p, int n) {
  for (int i = 0; i < n; i += RUN)
    for (int plane = 0; plane < 8 / BITS; ++plane, q += RUN)
      for (int k = 0; k < RUN; ++k) q[k] = int8_t((p[i + k] >> (BITS * plane)) & ((1 << BITS) - 1));
}

// Adds `value` where the field of one bit is set, in planes of 32 bytes.
inline void add_planes(int8_t* q, Bytes p, int value) {
  for (int plane = 0; plane < 8; ++plane, q += 32)
    for (int k = 0; k < 32; ++k) q[k] = int8_t(q[k] + ((p[k] >> plane) & 1) * value);
}

inline void shift(int8_t* q, int n, int by) {
  for (int k = 0; k < n; ++k) q[k] = int8_t(q[k] - by);
}

inline void look_up(int8_t* q, int n, const int8_t* table) {
  for (int k = 0; k < n; ++k) q[k] = table[q[k]];
}

inline void fifth_bits(int8_t* q, Bytes p) {
  const uint32_t bits = word_at<uint32_t>(p);
  for (int k = 0; k < 32; ++k) q[k] = int8_t(q[k] | ((bits >> k) & 1) << 4);
}

// Blocks of 32 with one scale.
struct Short {
  static constexpr int SIZE = 32, SUB = 32;
};
// Blocks of 256, in parts of 16 or 32.
template <int PART> struct Super {
  static constexpr int SIZE = 256, SUB = PART;
};

struct Q4_0 : Short {
  static constexpr int BYTES = 18;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 16>(q, b + 2, 16);
    shift(q, 32, 8);
    *a = half_at(b);
    *m = 0;
  }
};

struct Q4_1 : Short {
  static constexpr int BYTES = 20;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 16>(q, b + 4, 16);
    *a = half_at(b);
    *m = -half_at(b + 2);
  }
};

struct Q5_0 : Short {
  static constexpr int BYTES = 22;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 16>(q, b + 6, 16);
    fifth_bits(q, b + 2);
    shift(q, 32, 16);
    *a = half_at(b);
    *m = 0;
  }
};

struct Q5_1 : Short {
  static constexpr int BYTES = 24;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 16>(q, b + 8, 16);
    fifth_bits(q, b + 4);
    *a = half_at(b);
    *m = -half_at(b + 2);
  }
};

struct Q8_0 : Short {
  static constexpr int BYTES = 34;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    std::memcpy(q, b + 2, 32);
    *a = half_at(b);
    *m = 0;
  }
};

struct Q2_K : Super<16> {
  static constexpr int BYTES = 84;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<2, 32>(q, b + 16, 64);
    const float d = half_at(b + 80), least = half_at(b + 82);
    for (int s = 0; s < 16; ++s) {
      a[s] = d * float(b[s] & 15);
      m[s] = least * float(b[s] >> 4);
    }
  }
};

struct Q3_K : Super<16> {
  static constexpr int BYTES = 110;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<2, 32>(q, b + 32, 64);
    add_planes(q, b, 4);
    shift(q, 256, 4);
    int8_t s[16];
    scales(b + 96, s);
    const float d = half_at(b + 108);
    for (int i = 0; i < 16; ++i) {
      a[i] = d * float(s[i]);
      m[i] = 0;
    }
  }
  // Four low bits of each in eight bytes, two high bits in four.
  static void scales(Bytes p, int8_t* s) {
    for (int i = 0; i < 16; ++i) {
      const int low = (p[i % 8] >> (i / 8 * 4)) & 15, high = (p[8 + i % 4] >> (i / 4 * 2)) & 3;
      s[i] = int8_t((low | high << 4) - 32);
    }
  }
};

// Eight scales, then eight minima, of six bits each in twelve bytes.
inline void six_bits(Bytes p, uint8_t* s) {
  const uint32_t a = word_at<uint32_t>(p), b = word_at<uint32_t>(p + 4), c = word_at<uint32_t>(p + 8);
  constexpr uint32_t SIX = 0x3f3f3f3f, FOUR = 0x0f0f0f0f, TOP = 0x30303030;
  const uint32_t out[4] = {a & SIX, (c & FOUR) | ((a >> 2) & TOP), b & SIX, ((c >> 4) & FOUR) | ((b >> 2) & TOP)};
  std::memcpy(s, out, 16);
}

inline void six_bit_scales(Bytes b, float* a, float* m) {
  uint8_t s[16];
  six_bits(b + 4, s);
  const float d = half_at(b), least = half_at(b + 2);
  for (int i = 0; i < 8; ++i) {
    a[i] = d * float(s[i]);
    m[i] = least * float(s[8 + i]);
  }
}

struct Q4_K : Super<32> {
  static constexpr int BYTES = 144;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 32>(q, b + 16, 128);
    six_bit_scales(b, a, m);
  }
};

struct Q5_K : Super<32> {
  static constexpr int BYTES = 176;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 32>(q, b + 48, 128);
    add_planes(q, b + 16, 16);
    six_bit_scales(b, a, m);
  }
};

struct Q6_K : Super<16> {
  static constexpr int BYTES = 210;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    int8_t high[256];
    planes<4, 64>(q, b, 128);
    planes<2, 32>(high, b + 128, 64);
    for (int k = 0; k < 256; ++k) q[k] = int8_t((q[k] | high[k] << 4) - 32);
    const float d = half_at(b + 208);
    for (int s = 0; s < 16; ++s) {
      a[s] = d * float(int8_t(b[192 + s]));
      m[s] = 0;
    }
  }
};

struct IQ4_NL : Short {
  static constexpr int BYTES = 18;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 16>(q, b + 2, 16);
    look_up(q, 32, IQ4);
    *a = half_at(b);
    *m = 0;
  }
};

struct IQ4_XS : Super<32> {
  static constexpr int BYTES = 136;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 16>(q, b + 8, 128);
    look_up(q, 256, IQ4);
    scales(b, a);
    for (int s = 0; s < 8; ++s) m[s] = 0;
  }
  static void scales(Bytes b, float* a) {
    const float d = half_at(b);
    const uint32_t high = word_at<uint16_t>(b + 2), low = word_at<uint32_t>(b + 4);
    for (int s = 0; s < 8; ++s) {
      const int bits = int(((low >> (4 * s)) & 15) | ((high >> (2 * s)) & 3) << 4);
      a[s] = d * float(bits - 32);
    }
  }
};

struct MXFP4 : Short {
  static constexpr int BYTES = 17;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 16>(q, b + 1, 16);
    look_up(q, 32, FP4);
    *a = scale(b[0]);
    *m = 0;
  }
  // 2^(e - 128), half of what is meant because the table is doubled; the smallest two are subnormal.
  static float scale(uint32_t e) { return std::bit_cast<float>(e < 2 ? 0x00200000u << e : (e - 1) << 23); }
};

struct TQ1_0 : Super<32> {
  static constexpr int BYTES = 54;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    q = digits(q, b, 32, 5);
    q = digits(q, b + 32, 16, 5);
    digits(q, b + 48, 4, 4);
    const float d = half_at(b + 52);
    for (int s = 0; s < 8; ++s) {
      a[s] = d;
      m[s] = 0;
    }
  }
  // Digits of base 3, the first ones first: a byte is a fraction of 256, and 3 times it gives the next digit above.
  static int8_t* digits(int8_t* q, Bytes p, int run, int count) {
    for (int n = 0, power = 1; n < count; ++n, power *= 3, q += run)
      for (int k = 0; k < run; ++k) q[k] = int8_t((uint8_t(p[k] * power) * 3 >> 8) - 1);
    return q;
  }
};

struct TQ2_0 : Super<32> {
  static constexpr int BYTES = 66;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<2, 32>(q, b, 64);
    shift(q, 256, 1);
    const float d = half_at(b + 64);
    for (int s = 0; s < 8; ++s) {
      a[s] = d;
      m[s] = 0;
    }
  }
};

// What activations are rounded to; as weights they are codes of eight bits.
struct Q8_1 : Short {
  static constexpr int BYTES = 36;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    std::memcpy(q, b + 4, 32);
    *a = half_at(b);
    *m = 0;
  }
};

struct Q8_K : Super<32> {
  static constexpr int BYTES = 292;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    std::memcpy(q, b + 4, 256);
    for (int s = 0; s < 8; ++s) {
      a[s] = word_at<float>(b);
      m[s] = 0;
    }
  }
};

struct NVFP4 {
  static constexpr int SIZE = 64, SUB = 16, BYTES = 36;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    planes<4, 8>(q, b + 4, 32);
    look_up(q, 64, FP4);
    for (int s = 0; s < 4; ++s) {
      a[s] = scale(b[s]);
      m[s] = 0;
    }
  }
  // E4M3 without a sign, halved because the table is doubled: the bits of a half number, whose exponent is moved; 127
  // is zero.
  static float scale(uint32_t e) {
    const uint16_t bits = uint16_t(e == 127 ? 0 : (e & 127) << 7);
    return half_at(reinterpret_cast<Bytes>(&bits)) * 128.0f;
  }
};

struct Q1_0 {
  static constexpr int SIZE = 128, SUB = 32, BYTES = 18;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    for (int k = 0; k < 128; ++k) q[k] = int8_t((b[2 + k / 8] >> (k % 8) & 1) * 2 - 1);
    for (int s = 0; s < 4; ++s) {
      a[s] = half_at(b);
      m[s] = 0;
    }
  }
};

struct Q2_0 {
  static constexpr int SIZE = 64, SUB = 32, BYTES = 18;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    for (int k = 0; k < 64; ++k) q[k] = int8_t((b[2 + k / 4] >> (k % 4 * 2) & 3) - 1);
    a[0] = a[1] = half_at(b);
    m[0] = m[1] = 0;
  }
};

}  // namespace
}  // namespace vt::blocks
