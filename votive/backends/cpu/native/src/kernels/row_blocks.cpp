// Numbers to blocks and back, where each block is rounded by itself: the codes of the reference, bit for bit.
//
// Compiled without fused multiply-adds, which would round products differently from the reference. A block that holds
// NaN or infinity has a scale that is no number: nothing in it reads as one.
#include "row_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quantized_formats.h"
#include "vt/cast.h"
#include "vt/kernel.h"
#if defined(__AVX2__) && defined(__F16C__)
#define VT_ROW_LANES 1
#include "row_lanes.h"
#else
#define VT_ROW_LANES 0
#endif

namespace vt::rows {
namespace {

using namespace blocks;

constexpr float NONE = std::numeric_limits<float>::quiet_NaN();

inline void put_half(uint8_t* to, float x) {
  const f16 h = to_f16(x);
  std::memcpy(to, &h, 2);
}

// The number with the largest magnitude, the first of equals; NaN where one is not finite.
inline float largest(const float* x, int n) {
  uint32_t most = 0;
  for (int k = 0; k < n; ++k) most = std::max(most, std::bit_cast<uint32_t>(x[k]) & 0x7fffffffu);
  if (most >= 0x7f800000u) return NONE;
  for (int k = 0; k < n; ++k)
    if ((std::bit_cast<uint32_t>(x[k]) & 0x7fffffffu) == most) return x[k];
  return 0;
}

inline float inverse(float scale) {
  const float y = 1.0f / scale;
  return std::isfinite(y) ? y : 0.0f;
}

// Codes of four or five bits as the formats lay them: halves of 16 bytes, fifth bits apart.
inline void put_nibbles(uint8_t* to, const int* q) {
  for (int k = 0; k < 16; ++k) to[k] = uint8_t((q[k] & 15) | (q[k + 16] & 15) << 4);
}
inline void put_fifths(uint8_t* to, const int* q) {
  uint32_t bits = 0;
  for (int k = 0; k < 32; ++k) bits |= uint32_t(q[k] >> 4 & 1) << k;
  std::memcpy(to, &bits, 4);
}

// The largest number gets the code 0, which stands for -levels.
inline float symmetric(const float* x, int levels, int* q) {
  const float top = largest(x, 32);
  std::fill(q, q + 32, 0);
  if (std::isnan(top)) return NONE;
  const float d = top / float(-levels), by = inverse(d);
  for (int k = 0; k < 32; ++k)
    q[k] = int(std::clamp(std::trunc(x[k] * by + (float(levels) + 0.5f)), 0.0f, float(2 * levels - 1)));
  return d;
}

// Codes 0..top from the smallest to the largest number.
inline float affine(const float* x, int top, int* q, float* least) {
  std::fill(q, q + 32, 0);
  *least = NONE;
  if (std::isnan(largest(x, 32))) return NONE;
  const float m = *std::min_element(x, x + 32), d = (*std::max_element(x, x + 32) - m) / float(top), by = inverse(d);
  for (int k = 0; k < 32; ++k) q[k] = int(std::clamp(std::trunc((x[k] - m) * by + 0.5f), 0.0f, float(top)));
  *least = m;
  return d;
}

template <class F> void write(const float* x, uint8_t* b);

template <> void write<Q4_0>(const float* x, uint8_t* b) {
  int q[32];
  put_half(b, symmetric(x, 8, q));
  put_nibbles(b + 2, q);
}

template <> void write<Q4_1>(const float* x, uint8_t* b) {
  int q[32];
  float m;
  put_half(b, affine(x, 15, q, &m));
  put_half(b + 2, m);
  put_nibbles(b + 4, q);
}

template <> void write<Q5_0>(const float* x, uint8_t* b) {
  int q[32];
  put_half(b, symmetric(x, 16, q));
  put_fifths(b + 2, q);
  put_nibbles(b + 6, q);
}

template <> void write<Q5_1>(const float* x, uint8_t* b) {
  int q[32];
  float m;
  put_half(b, affine(x, 31, q, &m));
  put_half(b + 2, m);
  put_fifths(b + 4, q);
  put_nibbles(b + 8, q);
}

template <> void write<Q8_0>(const float* x, uint8_t* b) {
  const float top = std::fabs(largest(x, 32)), d = top / 127.0f, by = std::isnan(top) ? 0.0f : inverse(d);
  put_half(b, d);
  for (int k = 0; k < 32; ++k) {
    const float p = by == 0.0f ? 0.0f : x[k] * by, whole = std::trunc(p);
    b[2 + k] = uint8_t(int8_t(whole + std::trunc(2.0f * (p - whole))));  // ties away from zero
  }
}

// Codes by the scale of the largest number, then the scale with the smallest error, weighed by squares.
template <> void write<IQ4_NL>(const float* x, uint8_t* b) {
  const float top = largest(x, 32);
  int q[32] = {};
  float d = top / float(IQ4[0]);
  if (!std::isnan(top)) {
    const float by = inverse(d);
    double qx = 0, qq = 0;
    for (int k = 0; k < 32; ++k) {
      const float at = x[k] * by;
      for (int i = 0; i < 15; ++i) q[k] += at > 0.5f * float(IQ4[i] + IQ4[i + 1]);
      const double v = IQ4[q[k]], w = double(x[k]) * double(x[k]);
      qx += w * v * double(x[k]);
      qq += w * v * v;
    }
    if (qq > 0) d = float(qx / qq);
  }
  put_half(b, d);
  put_nibbles(b + 2, q);
}

template <class F> void write_blocks(const float* x, int64_t n, uint8_t* b) {
  for (; n > 0; --n, x += F::SIZE, b += F::BYTES) write<F>(x, b);
}

template <class F> void read_blocks(const uint8_t* b, int64_t n, float* to) {
  for (; n > 0; --n, b += F::BYTES, to += F::SIZE) {
#if VT_ROW_LANES
    read_block<F>(b, to);
#else
    alignas(64) int8_t q[F::SIZE];
    float a, m;
    F::expand(b, q, &a, &m);
    for (int k = 0; k < F::SIZE; ++k) to[k] = a * float(q[k]) - m;
#endif
  }
}

// Codes of eight bits behind a scale in single precision, for N neighbours.
inline float single_at(const uint8_t* b) { return word_at<float>(b); }

template <int N> struct Absmax8 {
  static constexpr int SIZE = N, BYTES = N + 4;
  static constexpr float STEP = 7.874015718698502e-3f;  // one 127th, as the format has it
  static void read(const uint8_t* b, int64_t n, float* to) {
    for (; n > 0; --n, b += BYTES, to += N) {
      const float d = single_at(b);
      for (int k = 0; k < N; ++k) to[k] = float(int8_t(b[4 + k])) * d * STEP;
    }
  }
  static void write(const float* x, int64_t n, uint8_t* b) {
    for (; n > 0; --n, b += BYTES, x += N) {
      const float d = std::fabs(largest(x, N)), step = 127.0f / d, by = std::isfinite(step) ? step : 0.0f;
      std::memcpy(b, &d, 4);
      for (int k = 0; k < N; ++k)
        b[4 + k] = uint8_t(int8_t(by == 0.0f ? 0.0f : std::clamp(std::nearbyint(x[k] * by), -127.0f, 127.0f)));
    }
  }
};

#if !VT_ROW_LANES
// FP8 E4M3 to single precision.
inline float from_fp8(uint8_t c) {
  const uint32_t rest = uint32_t(c & 0x7f) << 20, sign = uint32_t(c & 0x80) << 24;
  const float normal = std::bit_cast<float>(rest + (120u << 23));
  const float small = 2.0f * (normal - 0x1p-7f);  // without the implicit one
  const float none = std::bit_cast<float>(0x7fc00000u);
  const float x = (c & 0x7f) == 0x7f ? none : (c & 0x78) ? normal : small;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) | sign);
}
inline void put_fp8(const uint8_t* c, float d, float* to) {
  for (int k = 0; k < 16; ++k) to[k] = from_fp8(c[k]) * d;
}
#endif

// To the nearest, ties to even; |x| is at most 448 but for rounding.
inline uint8_t to_fp8(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x), a = u & 0x7fffffffu, sign = u >> 24 & 0x80;
  const uint32_t normal = ((a + 0x7ffffu + (a >> 20 & 1)) >> 20) - (120u << 3);
  const uint32_t small = uint32_t(std::nearbyint(std::bit_cast<float>(a) * 512.0f));
  return uint8_t(sign | std::min(a < 0x3c800000u ? small : normal, 0x7eu));
}

template <int N> struct Fp8 {
  static constexpr int SIZE = N, BYTES = N + 4;
  static void read(const uint8_t* b, int64_t n, float* to) {
    for (; n > 0; --n, b += BYTES, to += N) {
      const float d = single_at(b);
      for (int k = 0; k < N; k += 16) put_fp8(b + 4 + k, d, to + k);
    }
  }
  static void write(const float* x, int64_t n, uint8_t* b) {
    for (; n > 0; --n, b += BYTES, x += N) {
      const float d = std::fabs(largest(x, N)) / 448.0f, by = std::isnan(d) ? 0.0f : inverse(d);
      std::memcpy(b, &d, 4);
      for (int k = 0; k < N; ++k) b[4 + k] = by == 0.0f ? 0 : to_fp8(x[k] * by);
    }
  }
};

template <class F> constexpr Format of() { return {F::SIZE, F::BYTES, read_blocks<F>, write_blocks<F>}; }
template <class F> constexpr Format grouped() { return {F::SIZE, F::BYTES, F::read, F::write}; }

// In the order of native/row_blocks.py.
const Format FORMATS[] = {
    of<Q4_0>(), of<Q4_1>(), of<Q5_0>(), of<Q5_1>(), of<Q8_0>(), of<IQ4_NL>(),
    grouped<Absmax8<32>>(), grouped<Absmax8<64>>(), grouped<Absmax8<128>>(),
    grouped<Fp8<32>>(), grouped<Fp8<64>>(), grouped<Fp8<128>>(),
};

// x, out; format: rows of numbers to rows of blocks
VT_KERNEL(block_encode) {
  const View &x = c.view(0), &out = c.view(1);
  if (out.numel() == 0) return;
  const Format& f = format(c.i(0));
  const int64_t cols = x.size(-1), blocks = cols / f.size, rows = x.numel() / cols, last = x.ndim - 1;
  const CastFn fn = cast_fn(x.dtype, Dtype::f32);
  parallel_for(rows, grain_for(cols * 8), [&](int64_t begin, int64_t end) {
    Scratch<float> line(cols);
    for (int64_t r = begin; r < end; ++r) {
      const char* from = x.data;
      for (int64_t d = last - 1, rest = r; d >= 0; rest /= x.shape[d], --d) from += rest % x.shape[d] * x.strides[d];
      fn(reinterpret_cast<char*>(line.get()), 4, from, x.strides[last], cols);
      f.write(line, blocks, reinterpret_cast<uint8_t*>(out.data) + r * blocks * f.bytes);
    }
  });
}

}  // namespace

const Format& format(int64_t code) {
  if (code < 0 || code >= int64_t(std::size(FORMATS)))
    throw ValueError("caches: there is no block format with the number " + std::to_string(code) + ".");
  return FORMATS[code];
}

}  // namespace vt::rows
