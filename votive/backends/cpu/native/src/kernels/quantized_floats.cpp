// Products of blocks whose codes stand for numbers of no grid (NF4, FP4, FP8) with rows of single precision.
//
// A block gives the sums of its products first, which are then multiplied by its scale.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "quantized.h"
#include "quantized_list.h"
#include "quantized_values.h"

namespace vt::blocks {
namespace {

#if defined(VT_FLOAT_LANES)

constexpr int64_t AHEAD = 2048;  // bytes that are on their way from memory

// The sums of the products of one block with R rows, without its scale.
template <class F, int R> struct Sums {
  Values values{F::values};
  static constexpr float unit = 1;
  VT_LANES void operator()(Bytes b, const float* const (&x)[R], Floats (&low)[R], Floats (&high)[R]) {
#pragma GCC unroll 8
    for (int k = 0; k < F::SIZE / 2; k += LANES) {
      Floats v, w;
      values.both(b + 4 + k, v, w);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        low[r] = multiply_add(v, load(x[r] + k), low[r]);
        high[r] = multiply_add(w, load(x[r] + F::SIZE / 2 + k), high[r]);
      }
    }
  }
  bool broken() const { return false; }
};

template <int N, int R> struct Sums<Fp8<N>, R> {
  static constexpr float unit = 256;
  __m256i found = _mm256_setzero_si256();  // codes that are no number
  VT_LANES void operator()(Bytes b, const float* const (&x)[R], Floats (&low)[R], Floats (&high)[R]) {
    const __m256i all = _mm256_set1_epi8(0x7f);
#pragma GCC unroll 8
    for (int k = 0; k < N; k += 32) {
      const __m256i c = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b + 4 + k));
      found = _mm256_or_si256(found, _mm256_cmpeq_epi8(_mm256_and_si256(c, all), all));
#pragma GCC unroll 2
      for (int i = k; i < k + 32; i += 2 * LANES) {
        Floats v, w;
        halves(b + 4 + i, v, w);
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          low[r] = multiply_add(v, load(x[r] + i), low[r]);
          high[r] = multiply_add(w, load(x[r] + i + LANES), high[r]);
        }
      }
    }
  }
  bool broken() const { return !_mm256_testz_si256(found, found); }
};

template <class F, int R> void dots_of(Bytes w, int64_t blocks, const Rounded& x, int64_t row, float* y) {
  Sums<F, R> sums;
  Floats all[R];
  const float* at[R];
  for (int r = 0; r < R; ++r) {
    all[r] = zero();
    at[r] = x.row(row + r);
  }
  for (; blocks > 0; --blocks, w += F::BYTES) {
    for (int line = 0; line < F::BYTES; line += 64) __builtin_prefetch(w + AHEAD + line);
    Floats low[R], high[R];
    for (int r = 0; r < R; ++r) low[r] = high[r] = zero();
    sums(w, at, low, high);
    const Floats d = every(word_at<float>(w));
    for (int r = 0; r < R; ++r) {
      all[r] = multiply_add(d, low[r] + high[r], all[r]);
      at[r] += F::SIZE;
    }
  }
  for (int r = 0; r < R; ++r)
    y[r] = sums.broken() ? std::numeric_limits<float>::quiet_NaN() : total(all[r]) * Sums<F, R>::unit;
}

#else

template <class F, int R> void dots_of(Bytes w, int64_t blocks, const Rounded& x, int64_t row, float* y) {
  float all[R] = {}, to[F::SIZE];
  for (int64_t i = 0; i < blocks; ++i, w += F::BYTES) {
    F::numbers(w, to);
    for (int r = 0; r < R; ++r) {
      const float* at = x.row(row + r) + i * F::SIZE;
      float part[8] = {};
      for (int k = 0; k < F::SIZE; k += 8)
        for (int l = 0; l < 8; ++l) part[l] += to[k + l] * at[k + l];
      all[r] += ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    }
  }
  std::copy(all, all + R, y);
}

#endif

template <class F>
void dots(Bytes w, int64_t blocks, int64_t, const Rounded& x, int64_t row, int64_t count, float* y) {
  if (count == 4) return dots_of<F, 4>(w, blocks, x, row, y);
  for (; count >= 2; count -= 2, row += 2, y += 2) dots_of<F, 2>(w, blocks, x, row, y);
  if (count) dots_of<F, 1>(w, blocks, x, row, y);
}

template <class F> constexpr Dots products() {
  if constexpr (in_floats<F>)
    return dots<F>;
  else
    return nullptr;
}

#define VT_FORMAT(F) products<F>(),
constexpr Dots PRODUCTS[] = {VT_BLOCK_FORMATS(VT_FORMAT)};
#undef VT_FORMAT

}  // namespace

Dots float_dots(int64_t code) { return PRODUCTS[code]; }

}  // namespace vt::blocks
