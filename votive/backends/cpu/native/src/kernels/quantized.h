// What the blocks of each format hold: codes of 8 bits or fewer, and a scale for each 16 or 32 of them.
//
// A format says how many elements a block has, its bytes, for how many elements a scale holds (`sub`), and what is
// subtracted from a code before it is scaled (`zero`): an element is a * (u - zero), plus m where there are minima.
#pragma once
#include <cstring>

#include "vt/dtype.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace vt::quantized {

inline float half(const uint8_t* p) {
  f16 h;
  std::memcpy(&h.bits, p, 2);
#if defined(__F16C__)
  return _cvtsh_ss(h.bits);
#else
  return to_float(h);
#endif
}

// Fields of `BITS` bits of N bytes in planes of RUN: the lowest fields of RUN bytes first, then the next higher ones.
template <int BITS, int RUN, int N> inline void planes(const uint8_t* from, uint8_t* u) {
  constexpr int COUNT = 8 / BITS, MASK = (1 << BITS) - 1;
  for (int r = 0; r < N / RUN; ++r)
    for (int k = 0; k < COUNT; ++k)
      for (int l = 0; l < RUN; ++l) u[(r * COUNT + k) * RUN + l] = uint8_t((from[r * RUN + l] >> (k * BITS)) & MASK);
}

// The same, put above what is there already.
template <int BITS, int RUN, int N, int SHIFT> inline void planes_above(const uint8_t* from, uint8_t* u) {
  constexpr int COUNT = 8 / BITS, MASK = (1 << BITS) - 1;
  for (int r = 0; r < N / RUN; ++r)
    for (int k = 0; k < COUNT; ++k)
      for (int l = 0; l < RUN; ++l)
        u[(r * COUNT + k) * RUN + l] |= uint8_t(((from[r * RUN + l] >> (k * BITS)) & MASK) << SHIFT);
}

// The fifth bits of 32 codes, in order.
inline void fifth(const uint8_t* from, uint8_t* u) {
  uint32_t bits;
  std::memcpy(&bits, from, 4);
  for (int l = 0; l < 32; ++l) u[l] |= uint8_t(((bits >> l) & 1) << 4);
}

// Codes that index a table of 16 values, shifted to be positive.
template <int N> inline void look_up(const uint8_t (&table)[16], uint8_t* u) {
#if defined(__SSSE3__)
  const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  for (int l = 0; l < N; l += 16) {
    __m128i* at = reinterpret_cast<__m128i*>(u + l);
    _mm_storeu_si128(at, _mm_shuffle_epi8(t, _mm_loadu_si128(at)));
  }
#else
  for (int l = 0; l < N; ++l) u[l] = table[u[l]];
#endif
}

template <int SIZE, int BYTES, int SUB, int ZERO, bool MIN> struct Layout {
  static constexpr int size = SIZE, bytes = BYTES, sub = SUB, zero = ZERO;
  static constexpr bool min = MIN;
};

struct Q4_0 : Layout<32, 18, 32, 8, false> {
  static void codes(const uint8_t* p, uint8_t* u) { planes<4, 16, 16>(p + 2, u); }
  static void scales(const uint8_t* p, float* a, float*) { a[0] = half(p); }
};

struct Q4_1 : Layout<32, 20, 32, 0, true> {
  static void codes(const uint8_t* p, uint8_t* u) { planes<4, 16, 16>(p + 4, u); }
  static void scales(const uint8_t* p, float* a, float* m) {
    a[0] = half(p);
    m[0] = half(p + 2);
  }
};

struct Q5_0 : Layout<32, 22, 32, 16, false> {
  static void codes(const uint8_t* p, uint8_t* u) {
    planes<4, 16, 16>(p + 6, u);
    fifth(p + 2, u);
  }
  static void scales(const uint8_t* p, float* a, float*) { a[0] = half(p); }
};

struct Q5_1 : Layout<32, 24, 32, 0, true> {
  static void codes(const uint8_t* p, uint8_t* u) {
    planes<4, 16, 16>(p + 8, u);
    fifth(p + 4, u);
  }
  static void scales(const uint8_t* p, float* a, float* m) { Q4_1::scales(p, a, m); }
};

struct Q8_0 : Layout<32, 34, 32, 128, false> {
  static void codes(const uint8_t* p, uint8_t* u) {
    for (int l = 0; l < 32; ++l) u[l] = uint8_t(p[2 + l] ^ 0x80);
  }
  static void scales(const uint8_t* p, float* a, float*) { a[0] = half(p); }
};

struct Q2_K : Layout<256, 84, 16, 0, true> {
  static void codes(const uint8_t* p, uint8_t* u) { planes<2, 32, 64>(p + 16, u); }
  static void scales(const uint8_t* p, float* a, float* m) {
    const float d = half(p + 80), least = half(p + 82);
    for (int s = 0; s < 16; ++s) {
      a[s] = d * float(p[s] & 15);
      m[s] = -(least * float(p[s] >> 4));
    }
  }
};

struct Q3_K : Layout<256, 110, 16, 4, false> {
  static void codes(const uint8_t* p, uint8_t* u) {
    planes<2, 32, 64>(p + 32, u);
    planes_above<1, 32, 32, 2>(p, u);
  }
  static void scales(const uint8_t* p, float* a, float*) {
    const float d = half(p + 108);
    uint8_t s[16];
    planes<4, 8, 8>(p + 96, s);
    planes_above<2, 4, 4, 4>(p + 104, s);
    for (int k = 0; k < 16; ++k) a[k] = d * float(int(s[k]) - 32);
  }
};

// Eight scales and eight minima of six bits in 12 bytes.
inline void k_scales(const uint8_t* p, float* a, float* m) {
  const float d = half(p), least = half(p + 2);
  uint32_t low, middle, high;
  std::memcpy(&low, p + 4, 4);
  std::memcpy(&middle, p + 8, 4);
  std::memcpy(&high, p + 12, 4);
  const uint32_t parts[4] = {low & 0x3f3f3f3fu, (high & 0x0f0f0f0fu) | ((low >> 2) & 0x30303030u),
                             middle & 0x3f3f3f3fu, ((high >> 4) & 0x0f0f0f0fu) | ((middle >> 2) & 0x30303030u)};
  uint8_t s[16];
  std::memcpy(s, parts, 16);
  for (int k = 0; k < 8; ++k) a[k] = d * float(s[k]);
  for (int k = 0; k < 8; ++k) m[k] = -(least * float(s[8 + k]));
}

struct Q4_K : Layout<256, 144, 32, 0, true> {
  static void codes(const uint8_t* p, uint8_t* u) { planes<4, 32, 128>(p + 16, u); }
  static void scales(const uint8_t* p, float* a, float* m) { k_scales(p, a, m); }
};

struct Q5_K : Layout<256, 176, 32, 0, true> {
  static void codes(const uint8_t* p, uint8_t* u) {
    planes<4, 32, 128>(p + 48, u);
    planes_above<1, 32, 32, 4>(p + 16, u);
  }
  static void scales(const uint8_t* p, float* a, float* m) { k_scales(p, a, m); }
};

struct Q6_K : Layout<256, 210, 16, 32, false> {
  static void codes(const uint8_t* p, uint8_t* u) {
    planes<4, 64, 128>(p, u);
    planes_above<2, 32, 64, 4>(p + 128, u);
  }
  static void scales(const uint8_t* p, float* a, float*) {
    const float d = half(p + 208);
    for (int s = 0; s < 16; ++s) a[s] = d * float(int8_t(p[192 + s]));
  }
};

// ggml's table of values that four bits stand for, plus 128.
constexpr uint8_t IQ4[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
// The numbers of FP4 E2M1, doubled, plus 16.
constexpr uint8_t FP4[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

struct IQ4_NL : Layout<32, 18, 32, 128, false> {
  static void codes(const uint8_t* p, uint8_t* u) {
    planes<4, 16, 16>(p + 2, u);
    look_up<32>(IQ4, u);
  }
  static void scales(const uint8_t* p, float* a, float*) { a[0] = half(p); }
};

struct IQ4_XS : Layout<256, 136, 32, 128, false> {
  static void codes(const uint8_t* p, uint8_t* u) {
    planes<4, 16, 128>(p + 8, u);
    look_up<256>(IQ4, u);
  }
  static void scales(const uint8_t* p, float* a, float*) {
    const float d = half(p);
    uint16_t high;
    std::memcpy(&high, p + 2, 2);
    for (int s = 0; s < 8; ++s) {
      const int low = (p[4 + s / 2] >> (4 * (s % 2))) & 15;
      a[s] = d * float((low | (((high >> (2 * s)) & 3) << 4)) - 32);
    }
  }
};

struct MXFP4 : Layout<32, 17, 32, 16, false> {
  static void codes(const uint8_t* p, uint8_t* u) {
    planes<4, 16, 16>(p + 1, u);
    look_up<32>(FP4, u);
  }
  static void scales(const uint8_t* p, float* a, float*) {
    // Halved, because the table is doubled; the two smallest exponents give subnormal numbers.
    const uint32_t e = p[0], bits = e < 2 ? 0x00200000u << e : (e - 1) << 23;
    a[0] = std::bit_cast<float>(bits);
  }
};

struct TQ1_0 : Layout<256, 54, 32, 1, false> {
  // Digits of base 3: a byte is a fraction of 256, and 3 times it gives the next digit above and the rest below.
  template <int RUN, int COUNT> static void digits(const uint8_t* from, uint8_t* u) {
    uint8_t power = 1;
    for (int k = 0; k < COUNT; ++k, power = uint8_t(power * 3))
      for (int l = 0; l < RUN; ++l) u[k * RUN + l] = uint8_t((uint32_t(uint8_t(from[l] * power)) * 3) >> 8);
  }
  static void codes(const uint8_t* p, uint8_t* u) {
    digits<32, 5>(p, u);
    digits<16, 5>(p + 32, u + 160);
    digits<4, 4>(p + 48, u + 240);
  }
  static void scales(const uint8_t* p, float* a, float*) {
    for (int s = 0; s < 8; ++s) a[s] = half(p + 52);
  }
};

struct TQ2_0 : Layout<256, 66, 32, 1, false> {
  static void codes(const uint8_t* p, uint8_t* u) { planes<2, 32, 64>(p, u); }
  static void scales(const uint8_t* p, float* a, float*) {
    for (int s = 0; s < 8; ++s) a[s] = half(p + 64);
  }
};

// Calls f(Format{}) with the format of a number; `native/quantized.py` lists them in this order.
template <class F> void for_format(int64_t code, F&& f) {
  switch (code) {
    case 0: return f(Q4_0{});
    case 1: return f(Q4_1{});
    case 2: return f(Q5_0{});
    case 3: return f(Q5_1{});
    case 4: return f(Q8_0{});
    case 5: return f(Q2_K{});
    case 6: return f(Q3_K{});
    case 7: return f(Q4_K{});
    case 8: return f(Q5_K{});
    case 9: return f(Q6_K{});
    case 10: return f(IQ4_NL{});
    case 11: return f(IQ4_XS{});
    case 12: return f(MXFP4{});
    case 13: return f(TQ1_0{});
    default: return f(TQ2_0{});
  }
}

// The numbers of `count` blocks.
template <class F> void decode(const uint8_t* p, int64_t count, float* out) {
  uint8_t u[F::size];
  float a[F::size / F::sub], m[F::size / F::sub];
  for (int64_t i = 0; i < count; ++i, p += F::bytes, out += F::size) {
    F::codes(p, u);
    F::scales(p, a, m);
    for (int s = 0; s < F::size / F::sub; ++s)
      for (int l = 0; l < F::sub; ++l) {
        const float x = a[s] * float(int(u[s * F::sub + l]) - F::zero);
        if constexpr (F::min) out[s * F::sub + l] = x + m[s];
        else out[s * F::sub + l] = x;
      }
  }
}

}  // namespace vt::quantized
