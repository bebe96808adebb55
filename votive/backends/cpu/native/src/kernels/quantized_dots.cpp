// Numbers of blocks, and products of blocks with rows that are rounded to eight bits: what every level has.
#include <algorithm>
#include <cmath>
#include <limits>

#include "quantized.h"
#include "quantized_list.h"
#include "vt/kernel.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace vt::blocks {
namespace {

template <class F> void decode(const uint8_t* b, int64_t n, float* to) {
  if constexpr (requires { F::numbers(b, to); }) {
    for (; n > 0; --n, b += F::BYTES, to += F::SIZE) F::numbers(b, to);
  } else {
    alignas(64) int8_t q[F::SIZE];
    float a[F::SIZE / F::SUB], m[F::SIZE / F::SUB];
    for (; n > 0; --n, b += F::BYTES, to += F::SIZE) {
      F::expand(b, q, a, m);
      for (int s = 0; s < F::SIZE / F::SUB; ++s)
        for (int k = 0; k < F::SUB; ++k) to[s * F::SUB + k] = a[s] * float(q[s * F::SUB + k]) - m[s];
    }
  }
}

// The sums of the products of 32 codes, by halves of 16.
inline void halves(const int8_t* q, const int8_t* x, int32_t* to) {
  for (int h = 0; h < 2; ++h) {
    int32_t s = 0;
    for (int k = 0; k < 16; ++k) s += int32_t(int16_t(q[16 * h + k]) * int16_t(x[16 * h + k]));
    to[h] = s;
  }
}

template <class F>
void dots(const uint8_t* w, int64_t blocks, int64_t, const Rounded& x, int64_t row, int64_t count, float* y) {
  constexpr int EACH = WHOLE / F::SIZE, SUBS = WHOLE / F::SUB, IN_BLOCK = F::SIZE / F::SUB;
  alignas(64) int8_t q[WHOLE];
  float a[SUBS], m[SUBS];
#if defined(__AVX2__)
  __m256 sum[MOST_ROWS];
  for (auto& s : sum) s = _mm256_setzero_ps();
#endif
  float rest[MOST_ROWS] = {};
  for (int64_t i = 0; i < x.wholes; ++i) {
    const int have = int(std::min<int64_t>(EACH, blocks - i * EACH));
    for (int e = 0; e < have; ++e, w += F::BYTES) F::expand(w, q + e * F::SIZE, a + e * IN_BLOCK, m + e * IN_BLOCK);
    const int subs = have * IN_BLOCK;
    for (int64_t r = 0; r < count; ++r) {
      const int8_t* codes = x.codes(row + r, i);
      const float* scale = x.scales(row + r, i);
      const float* sums = F::SUB == 32 ? x.sums32(row + r, i) : x.sums16(row + r, i);
      float less = 0;
      for (int s = 0; s < subs; ++s) less += m[s] * sums[s];
      rest[r] -= less;
      for (int k = 0; k < subs * F::SUB / 32; ++k) {
        const float low = scale[k] * a[F::SUB == 32 ? k : 2 * k], high = scale[k] * a[F::SUB == 32 ? k : 2 * k + 1];
#if defined(__AVX2__)
        // |q| as unsigned and the sign given to x: 2 * 128 * 127 fits into 16 bits.
        const __m256i c = _mm256_load_si256(reinterpret_cast<const __m256i*>(q + 32 * k));
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + 32 * k));
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(c), _mm256_sign_epi8(v, c));
        const __m256 products = _mm256_cvtepi32_ps(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        const __m256 by = F::SUB == 32 ? _mm256_set1_ps(low) : _mm256_set_m128(_mm_set1_ps(high), _mm_set1_ps(low));
        sum[r] = _mm256_fmadd_ps(products, by, sum[r]);
#else
        int32_t part[2];
        halves(q + 32 * k, codes + 32 * k, part);
        rest[r] += F::SUB == 32 ? low * float(part[0] + part[1]) : low * float(part[0]) + high * float(part[1]);
#endif
      }
    }
  }
  for (int64_t r = 0; r < count; ++r) {
    y[r] = rest[r];
#if defined(__AVX2__)
    float part[8];
    _mm256_storeu_ps(part, sum[r]);
    y[r] += ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
#endif
  }
}

template <class F> constexpr Dots integer_dots() {
  if constexpr (in_floats<F>)
    return nullptr;
  else
    return dots<F>;
}

#define VT_FORMAT(F) {#F, F::SIZE, F::BYTES, decode<F>, integer_dots<F>()},
const Format FORMATS[] = {VT_BLOCK_FORMATS(VT_FORMAT)};
#undef VT_FORMAT

// 32 numbers as codes; what is beyond n counts as zero.
void round32(const float* x, int64_t n, int8_t* codes, float* scale, float* sum32, float* sum16) {
  float v[32];
  if (n < 32) {
    std::copy(x, x + n, v);
    std::fill(v + n, v + 32, 0.0f);
    x = v;
  }
  // As bits, NaN is larger than infinity and that than all numbers.
  uint32_t most = 0;
  for (int k = 0; k < 32; ++k) most = std::max(most, std::bit_cast<uint32_t>(x[k]) & 0x7fffffffu);
  const float largest = std::bit_cast<float>(most);
  const bool finite = most < 0x7f800000u;
  // Below 2^-100 the inverse might overflow: such numbers count as zero.
  const float inverse = finite && largest >= 0x1p-100f ? 127.0f / largest : 0.0f;
  *scale = finite ? largest / 127.0f : std::numeric_limits<float>::quiet_NaN();
  if (inverse == 0.0f && finite) *scale = 0;
  int32_t sums[2] = {};
  for (int h = 0; h < 2; ++h)
    for (int k = 16 * h; k < 16 * h + 16; ++k) {
      // Adding 1.5 * 2^23 rounds to the nearest, ties to even, and leaves the integer in the lowest bits.
      const float shifted = (finite ? x[k] * inverse : 0.0f) + 12582912.0f;
      const int32_t code = std::bit_cast<int32_t>(shifted) - 0x4b400000;
      codes[k] = int8_t(code);
      sums[h] += code;
    }
  sum16[0] = *scale * float(sums[0]);
  sum16[1] = *scale * float(sums[1]);
  *sum32 = *scale * float(sums[0] + sums[1]);
}

}  // namespace

int64_t formats() { return std::ssize(FORMATS); }

const Format& format(int64_t code) {
  if (code < 0 || code >= formats())
    throw ValueError("linear: there is no block format with the number " + std::to_string(code) + ".");
  return FORMATS[code];
}

Rounded::Rounded(const float* x, int64_t rows_, int64_t K, bool to_codes)
    : rows(rows_), wholes((K + WHOLE - 1) / WHOLE), width(K), x_(x), codes_(to_codes ? rows * wholes * WHOLE : 0),
      numbers_(to_codes ? rows * wholes * 32 : 0) {
  if (!to_codes) return;
  int8_t* to = codes_;
  float* numbers = numbers_;
  parallel_for(rows, grain_for(K * 4), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      for (int64_t i = 0; i < wholes; ++i) {
        float* at = numbers + (r * wholes + i) * 32;
        for (int64_t s = 0; s < 8; ++s) {
          const int64_t k = i * WHOLE + 32 * s;
          round32(x + r * K + std::min(k, K), std::clamp<int64_t>(K - k, 0, 32), to + (r * wholes + i) * WHOLE + 32 * s,
                  at + s, at + 8 + s, at + 16 + 2 * s);
        }
      }
  });
}

}  // namespace vt::blocks
