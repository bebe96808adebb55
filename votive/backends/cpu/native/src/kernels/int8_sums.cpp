// Sums of products of bytes: by instructions that multiply and add four bytes, by those that do it for two words, and
// without any.
#include <cstring>

#include "int8_product.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace vt::int8 {
namespace {

void plain(const uint8_t* x, int64_t step, int64_t rows, const int8_t* w, int64_t panels, int64_t quads, int32_t* y) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t p = 0; p < panels; ++p) {
      uint32_t sum[PANEL] = {};  // signed overflow is undefined
      const uint8_t* a = x + r * step;
      const int8_t* b = w + p * quads * 64;
      for (int64_t k = 0; k < quads; ++k, a += 4, b += 64)
        for (int n = 0; n < PANEL; ++n)
          for (int j = 0; j < 4; ++j) sum[n] += uint32_t(int(a[j]) * int(b[4 * n + j]));
      std::memcpy(y + r * WIDE + p * PANEL, sum, sizeof sum);
    }
}

inline int quad_at(const uint8_t* p) {
  int v;
  std::memcpy(&v, p, 4);
  return v;
}

#if defined(__AVX2__)

// Bytes become words first: sums of two products of bytes do not fit in 16 bits.
template <int R> void words_of(const uint8_t* x, int64_t step, const int8_t* w, int64_t quads, int32_t* y) {
  __m256i sum[R][4];
  for (int r = 0; r < R; ++r)
    for (int q = 0; q < 4; ++q) sum[r][q] = _mm256_setzero_si256();
  for (int64_t k = 0; k < quads; ++k, w += 64) {
    __m256i b[4];
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q)
      b[q] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w + 16 * q)));
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
      const __m256i a = _mm256_cvtepu8_epi16(_mm_set1_epi32(quad_at(x + r * step + 4 * k)));
#pragma GCC unroll 4
      for (int q = 0; q < 4; ++q) sum[r][q] = _mm256_add_epi32(sum[r][q], _mm256_madd_epi16(a, b[q]));
    }
  }
  for (int r = 0; r < R; ++r)
    for (int q = 0; q < 4; ++q) {
      uint32_t pairs[8];
      std::memcpy(pairs, &sum[r][q], sizeof pairs);
      for (int n = 0; n < 4; ++n) y[r * WIDE + 4 * q + n] = int32_t(pairs[2 * n] + pairs[2 * n + 1]);
    }
}

void words(const uint8_t* x, int64_t step, int64_t rows, const int8_t* w, int64_t panels, int64_t quads, int32_t* y) {
  for (int64_t p = 0; p < panels; ++p, w += quads * 64, y += PANEL) {
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2) words_of<2>(x + r * step, step, w, quads, y + r * WIDE);
    if (r < rows) words_of<1>(x + r * step, step, w, quads, y + r * WIDE);
  }
}

#endif

#if defined(__AVX512BW__)

// All that follows is local to this file, so other files do not get code with these instructions.
#pragma GCC push_options
#pragma GCC target("avx512vnni")

template <int R, int P> void bytes_of(const uint8_t* x, int64_t step, const int8_t* w, int64_t quads, int32_t* y) {
  __m512i sum[R][P];
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) sum[r][p] = _mm512_setzero_si512();
  for (int64_t k = 0; k < quads; ++k) {
    __m512i b[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      b[p] = _mm512_loadu_si512(w + (p * quads + k) * 64);
      if (R == 1) __builtin_prefetch(w + (p * quads + k) * 64 + 1024);
    }
#pragma GCC unroll 6
    for (int r = 0; r < R; ++r) {
      const __m512i a = _mm512_set1_epi32(quad_at(x + r * step + 4 * k));
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) sum[r][p] = _mm512_dpbusd_epi32(sum[r][p], a, b[p]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) _mm512_storeu_si512(y + r * WIDE + p * PANEL, sum[r][p]);
}

template <int P>
void bytes_rows(const uint8_t* x, int64_t step, int64_t rows, const int8_t* w, int64_t quads, int32_t* y) {
  switch (rows) {
    case 6: return bytes_of<6, P>(x, step, w, quads, y);
    case 5: return bytes_of<5, P>(x, step, w, quads, y);
    case 4: return bytes_of<4, P>(x, step, w, quads, y);
    case 3: return bytes_of<3, P>(x, step, w, quads, y);
    case 2: return bytes_of<2, P>(x, step, w, quads, y);
    default: return bytes_of<1, P>(x, step, w, quads, y);
  }
}

void bytes(const uint8_t* x, int64_t step, int64_t rows, const int8_t* w, int64_t panels, int64_t quads, int32_t* y) {
  switch (panels) {
    case 4: return bytes_rows<4>(x, step, rows, w, quads, y);
    case 3: return bytes_rows<3>(x, step, rows, w, quads, y);
    case 2: return bytes_rows<2>(x, step, rows, w, quads, y);
    default: return bytes_rows<1>(x, step, rows, w, quads, y);
  }
}

#pragma GCC pop_options
#endif

}  // namespace

Sums sums(int64_t way) {
#if defined(__AVX512BW__)
  static const bool there = __builtin_cpu_supports("avx512vnni");
  if (there && (way == 0 || way >= 3)) return bytes;
#endif
#if defined(__AVX2__)
  if (way != 1) return words;
#endif
  (void)way;
  return plain;
}

}  // namespace vt::int8
