// Groups of codes with a scale of single precision, as files of Hugging Face store them: one struct for each kind, by
// the number of elements. Knows no threads and no views.
//
// `numbers` computes in the order of the library that defines a kind; `expand` is for products of integers.
#pragma once
#include "quantized_formats.h"
#include "quantized_values.h"

namespace vt::blocks {
namespace {

// x = d (q - z) with codes of 2, 4 or 8 bits and a zero point of half precision.
template <int BITS, int N> struct Whole {
  static constexpr int SIZE = N, SUB = 32, BYTES = 6 + N * BITS / 8;
  static constexpr int UP = BITS == 8 ? 128 : 0;  // codes of eight bits are moved to fit with a sign
  static void codes(Bytes b, int8_t* q) {
    if constexpr (BITS == 8)
      for (int k = 0; k < N; ++k) q[k] = int8_t(b[6 + k] ^ 0x80);
    else
      planes<BITS, N * BITS / 8>(q, b + 6, N * BITS / 8);
  }
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    codes(b, q);
    const float d = word_at<float>(b), least = d * (half_at(b + 4) - float(UP));
    for (int s = 0; s < N / 32; ++s) {
      a[s] = d;
      m[s] = least;
    }
  }
  static void numbers(Bytes b, float* to) {
    int8_t q[N];
    codes(b, q);
    const float d = word_at<float>(b), z = half_at(b + 4);
    for (int k = 0; k < N; ++k) to[k] = (float(q[k] + UP) - z) * d;
  }
};

// x = (q d) / 127, the division by a product as bitsandbytes has it.
template <int N> struct Absmax8 {
  static constexpr int SIZE = N, SUB = 32, BYTES = 4 + N;
  static constexpr float STEP = 7.874015718698502e-3f;
  static void expand(Bytes b, int8_t* q, float* a, float* m) {
    std::memcpy(q, b + 4, N);
    for (int s = 0; s < N / 32; ++s) {
      a[s] = word_at<float>(b) * STEP;
      m[s] = 0;
    }
  }
  static void numbers(Bytes b, float* to) {
    const float d = word_at<float>(b);
    for (int k = 0; k < N; ++k) to[k] = float(int8_t(b[4 + k])) * d * STEP;
  }
};

// What follows stands for numbers that are no small integers; products are of single precision and the input is not
// rounded.
// Quantiles of the normal distribution (QLoRA, appendix E), and the four-bit numbers of bitsandbytes.
constexpr float NF4_VALUES[16] = {
    -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,
    -0.18477343022823334f,
    -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
    0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f};
constexpr float FP4_VALUES[16] = {0.0f,  0.0625f / 12,  8.0f / 12,  1.0f,  4.0f / 12,  0.5f,  2.0f / 12,  0.25f,
                                  -0.0f, -0.0625f / 12, -8.0f / 12, -1.0f, -4.0f / 12, -0.5f, -2.0f / 12, -0.25f};

// x = d values[q].
template <const float (&VALUES)[16], int N> struct Table {
  static constexpr int SIZE = N, BYTES = 4 + N / 2;
  static constexpr bool FLOATS = true;
  static constexpr const float* values = VALUES;
  static void numbers(Bytes b, float* to) {
    const float d = word_at<float>(b);
#if defined(VT_FLOAT_LANES)
    const Values values(VALUES);
    for (int k = 0; k < N / 2; k += LANES) {
      Floats low, high;
      values.both(b + 4 + k, low, high);
      store(to + k, low * every(d));
      store(to + N / 2 + k, high * every(d));
    }
#else
    float scaled[16];
    for (int k = 0; k < 16; ++k) scaled[k] = VALUES[k] * d;
    for (int k = 0; k < N / 2; ++k) {
      to[k] = scaled[b[4 + k] & 15];
      to[N / 2 + k] = scaled[b[4 + k] >> 4];
    }
#endif
  }
};

// x = d q with q of FP8 E4M3 without infinities.
template <int N> struct Fp8 {
  static constexpr int SIZE = N, BYTES = 4 + N;
  static constexpr bool FLOATS = true;
  static float value(uint32_t code) {
    const uint32_t magnitude = code & 0x7f, sign = (code & 0x80) << 24;
    const float normal = std::bit_cast<float>((magnitude << 20) + (120u << 23));
    const float small = float(int(magnitude)) * 0x1p-9f;
    const uint32_t bits = std::bit_cast<uint32_t>(magnitude < 8 ? small : normal);
    return std::bit_cast<float>(magnitude == 0x7f ? 0x7fc00000u : bits | sign);
  }
  static void numbers(Bytes b, float* to) {
    const float d = word_at<float>(b);
    for (int k = 0; k < N; ++k) to[k] = value(b[4 + k]) * d;
  }
};

template <class F> constexpr bool in_floats = requires { F::FLOATS; };

using INT2_G32 = Whole<2, 32>;
using INT2_G64 = Whole<2, 64>;
using INT2_G128 = Whole<2, 128>;
using INT4_G32 = Whole<4, 32>;
using INT4_G64 = Whole<4, 64>;
using INT4_G128 = Whole<4, 128>;
using INT8_G32 = Whole<8, 32>;
using INT8_G64 = Whole<8, 64>;
using INT8_G128 = Whole<8, 128>;
using ABSMAX8_G32 = Absmax8<32>;
using ABSMAX8_G64 = Absmax8<64>;
using ABSMAX8_G128 = Absmax8<128>;
using NF4_G32 = Table<NF4_VALUES, 32>;
using NF4_G64 = Table<NF4_VALUES, 64>;
using NF4_G128 = Table<NF4_VALUES, 128>;
using FP4_G32 = Table<FP4_VALUES, 32>;
using FP4_G64 = Table<FP4_VALUES, 64>;
using FP4_G128 = Table<FP4_VALUES, 128>;
using FP8_G32 = Fp8<32>;
using FP8_G64 = Fp8<64>;
using FP8_G128 = Fp8<128>;

}  // namespace
}  // namespace vt::blocks
