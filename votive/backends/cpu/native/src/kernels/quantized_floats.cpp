// Products of blocks whose codes stand for numbers of no grid (NF4, FP4, FP8) with rows of single precision.
//
// A block gives the sums of its products first, which are then multiplied by its scale.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "quantized.h"
#include "quantized_list.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace vt::blocks {
namespace {

#define VT_LANES inline __attribute__((always_inline))

#if defined(__AVX512BW__)

constexpr int LANES = 16;
using Floats = __m512;
VT_LANES Floats zero() { return _mm512_setzero_ps(); }
VT_LANES Floats every(float v) { return _mm512_set1_ps(v); }
VT_LANES Floats load(const float* p) { return _mm512_loadu_ps(p); }
VT_LANES Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
VT_LANES float total(Floats v) { return _mm512_reduce_add_ps(v); }

// Sixteen numbers by four bits each.
struct Values {
  Floats table;
  explicit Values(const float* v) : table(load(v)) {}
  VT_LANES void both(Bytes p, Floats& low, Floats& high) const {
    const __m512i v = _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    low = _mm512_maskz_permutexvar_ps(0xffff, v, table);
    high = _mm512_maskz_permutexvar_ps(0xffff, _mm512_maskz_srli_epi32(0xffff, v, 4), table);
  }
};

// The bits of E4M3 in the places of a half number stand for 2^-8 times as much.
VT_LANES void halves(Bytes p, Floats& low, Floats& high) {
  const __m512i v = _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  const __m512i h = _mm512_and_si512(_mm512_slli_epi16(v, 7), _mm512_set1_epi16(short(0xbfff)));
  low = _mm512_maskz_cvtph_ps(0xffff, _mm512_castsi512_si256(h));
  high = _mm512_maskz_cvtph_ps(0xffff, _mm512_maskz_extracti64x4_epi64(0xff, h, 1));
}

#elif defined(__AVX2__) && defined(__F16C__)

constexpr int LANES = 8;
using Floats = __m256;
VT_LANES Floats zero() { return _mm256_setzero_ps(); }
VT_LANES Floats every(float v) { return _mm256_set1_ps(v); }
VT_LANES Floats load(const float* p) { return _mm256_loadu_ps(p); }
VT_LANES Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
VT_LANES float total(Floats v) {
  float part[8];
  _mm256_storeu_ps(part, v);
  return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
}

struct Values {
  Floats first, second;
  explicit Values(const float* v) : first(load(v)), second(load(v + 8)) {}
  VT_LANES Floats of(__m256i v) const {
    const Floats chosen = _mm256_castsi256_ps(_mm256_slli_epi32(v, 28));  // the fourth bit as a sign
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(first, v), _mm256_permutevar8x32_ps(second, v), chosen);
  }
  VT_LANES void both(Bytes p, Floats& low, Floats& high) const {
    const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    low = of(v);
    high = of(_mm256_srli_epi32(v, 4));
  }
};

VT_LANES void halves(Bytes p, Floats& low, Floats& high) {
  const __m256i v = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i h = _mm256_and_si256(_mm256_slli_epi16(v, 7), _mm256_set1_epi16(short(0xbfff)));
  low = _mm256_cvtph_ps(_mm256_castsi256_si128(h));
  high = _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1));
}

#else

constexpr int LANES = 0;

#endif

#if defined(__AVX2__)

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
