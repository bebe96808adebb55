// Products of bfloat16 with a weight for all steps, in pairs, where the processor multiplies those at once.
#include "recurrent.h"

#include <algorithm>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace vt::recurrent {

#if defined(__AVX512F__)

namespace {

#define VT_PAIRS __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

constexpr int MOST_ROWS = 12;
constexpr int panels_for(int rows) { return rows <= 2 ? 4 : rows <= 4 ? 3 : rows <= 6 ? 2 : 1; }
constexpr int64_t WIDE = 32;

// R rows of a times P panels, of which the first `cols` columns are wanted; K counts pairs.
template <int R, int P>
VT_PAIRS void tile(int64_t K, const uint32_t* a, int64_t lda, const uint32_t* b, float* c, int64_t ldc, int64_t cols,
                   bool add) {
  __m512 acc[R][P][2];
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) acc[r][p][0] = acc[r][p][1] = _mm512_setzero_ps();
  const int64_t panel = K * WIDE;
  for (int64_t k = 0; k < K; ++k, b += WIDE) {
    __m512bh bv[P][2];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      bv[p][0] = __m512bh(_mm512_loadu_si512(b + p * panel));
      bv[p][1] = __m512bh(_mm512_loadu_si512(b + p * panel + 16));
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const __m512bh x = __m512bh(_mm512_set1_epi32(int(a[r * lda + k])));
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        acc[r][p][0] = _mm512_dpbf16_ps(acc[r][p][0], x, bv[p][0]);
        acc[r][p][1] = _mm512_dpbf16_ps(acc[r][p][1], x, bv[p][1]);
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const int64_t from = p * WIDE + v * 16, left = std::clamp<int64_t>(cols - from, 0, 16);
        const __mmask16 mask = __mmask16((1u << left) - 1);
        float* to = c + r * ldc + from;
        const __m512 sum = add ? _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), acc[r][p][v]) : acc[r][p][v];
        _mm512_mask_storeu_ps(to, mask, sum);
      }
}

template <int R>
void columns(const Pairs& w, int64_t begin, int64_t end, const uint32_t* a, int64_t lda, float* c, int64_t ldc,
             bool add) {
  constexpr int P = panels_for(R);
  int64_t p = begin;
  const auto at = [&](auto count) {
    constexpr int n = decltype(count)::value;
    const int64_t j = p * WIDE;
    tile<R, n>(w.pairs(), a, lda, w.data + p * w.pairs() * WIDE, c + j, ldc, std::min<int64_t>(n * WIDE, w.N - j), add);
    p += n;
  };
  while (p + P <= end) at(std::integral_constant<int, P>{});
  while (p < end) at(std::integral_constant<int, 1>{});
}

template <int R = 1>
void rows_of(int64_t rows, const Pairs& w, int64_t begin, int64_t end, const uint32_t* a, int64_t lda, float* c,
             int64_t ldc, bool add) {
  if constexpr (R < MOST_ROWS)
    if (rows > R) return rows_of<R + 1>(rows, w, begin, end, a, lda, c, ldc, add);
  columns<R>(w, begin, end, a, lda, c, ldc, add);
}

inline uint32_t joined(float low, float high) {
  return uint32_t(to_bf16(low).bits) | uint32_t(to_bf16(high).bits) << 16;
}

}  // namespace

bool has_pairs() {
  static const bool has = __builtin_cpu_supports("avx512bf16");
  return has;
}

void Pairs::pack(const Panels<float>& w) {
  K = w.K;
  N = w.N;
  for (int64_t p = 0; p < (N + WIDE - 1) / WIDE; ++p) {
    const float* from = w.data + p * K * WIDE;
    uint32_t* to = data + p * pairs() * WIDE;
    for (int64_t k = 0; k < K; k += 2)
      for (int64_t j = 0; j < WIDE; ++j)
        to[k / 2 * WIDE + j] = joined(from[k * WIDE + j], k + 1 < K ? from[(k + 1) * WIDE + j] : 0.0f);
  }
}

void pair_rows(uint32_t* to, const float* from, int64_t ld, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows; ++i, from += ld, to += (n + 1) / 2) {
    for (int64_t j = 0; j < n / 2; ++j) to[j] = joined(from[2 * j], from[2 * j + 1]);
    if (n % 2) to[n / 2] = joined(from[n - 1], 0.0f);
  }
}

void multiply(const Pairs& w, int64_t rows, const uint32_t* a, float* c, int64_t ldc, bool add) {
  const int64_t panels = (w.N + WIDE - 1) / WIDE, tiles = (rows + MOST_ROWS - 1) / MOST_ROWS, lda = w.pairs();
  constexpr int64_t NEAR = 256 << 10;
  const int64_t few = std::max<int64_t>(4, NEAR / (lda * WIDE * 4) / 4 * 4);
  parallel_for(panels, std::max<int64_t>(4, grain_for(rows * lda * WIDE / 8)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p += few)
      for (int64_t i = 0; i < tiles; ++i) {
        const int64_t from = i * rows / tiles, to = (i + 1) * rows / tiles;
        rows_of(to - from, w, p, std::min(end, p + few), a + from * lda, lda, c + from * ldc, ldc, add);
      }
  });
}

#else

bool has_pairs() { return false; }
void Pairs::pack(const Panels<float>&) {}
void pair_rows(uint32_t*, const float*, int64_t, int64_t, int64_t) {}
void multiply(const Pairs&, int64_t, const uint32_t*, float*, int64_t, bool) {}

#endif

}  // namespace vt::recurrent
