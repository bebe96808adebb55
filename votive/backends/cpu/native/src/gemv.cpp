// Products with few rows: the time goes into reading the large factor once.
#include <algorithm>

#include "vt/gemm_load.h"
#include "vt/parallel.h"
#include "vt/scratch.h"

namespace vt {

namespace {

// The sums of R vectors, each in the same order whatever R is.
template <class T, int R> inline void sums(const Vec<T>* v, T* to) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float> && (R == 1 || R == 4)) {
    // Four at once: pairs of vectors are interleaved and added until a quarter holds one part of each sum.
    const auto low = [](__m512 a, __m512 b) { return _mm512_maskz_unpacklo_ps(0xffff, a, b); };
    const auto high = [](__m512 a, __m512 b) { return _mm512_maskz_unpackhi_ps(0xffff, a, b); };
    const __m512 a = __m512(v[0]), b = __m512(v[R > 1 ? 1 : 0]), c = __m512(v[R > 2 ? 2 : 0]), d = __m512(v[R - 1]);
    const __m512d ab = _mm512_castps_pd(low(a, b) + high(a, b)), cd = _mm512_castps_pd(low(c, d) + high(c, d));
    const __m512 quarters = _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, ab, cd)) +
                            _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, ab, cd));
    float part[16];
    _mm512_storeu_ps(part, quarters);
    const auto quarter = [&](int q) { return _mm_loadu_ps(part + 4 * q); };
    const __m128 total = (quarter(0) + quarter(2)) + (quarter(1) + quarter(3));
    if constexpr (R == 1) to[0] = _mm_cvtss_f32(total);
    else _mm_storeu_ps(to, total);
    return;
  }
#endif
  for (int r = 0; r < R; ++r) {
    T s[Lanes<T>::count];
    *reinterpret_cast<typename Lanes<T>::loose*>(s) = v[r];
    for (int half = Lanes<T>::count / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) s[i] += s[i + half];
    to[r] = s[0];
  }
}

constexpr int64_t AHEAD = 1024;  // elements that are on their way from memory

// y[m][r] = x[m, :] . w[r, :] for R rows that are dense along k.
template <class S, class T, int M, int R>
void dots(const T* x, int64_t x_row, const char* w, int64_t w_row, int64_t K, T* y, int64_t ld) {
  constexpr int L = Lanes<T>::count;
  constexpr int U = M * R <= 4 ? 2 : 1;  // more sums where there are too few to hide the latency
  Vec<T> acc[U][M][R] = {};
  const S* row[R];
  for (int r = 0; r < R; ++r) row[r] = reinterpret_cast<const S*>(w + r * w_row);
  int64_t k = 0;
  for (; k + U * L <= K; k += U * L) {
#pragma GCC unroll 2
    for (int u = 0; u < U; ++u) {
      Vec<T> v[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) v[r] = load(row[r] + k + u * L);
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) {
        const Vec<T> a = load(x + m * x_row + k + u * L);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) acc[u][m][r] += a * v[r];
      }
    }
  }
  for (; k + L <= K; k += L)
    for (int m = 0; m < M; ++m) {
      const Vec<T> a = load(x + m * x_row + k);
      for (int r = 0; r < R; ++r) acc[0][m][r] += a * load(row[r] + k);
    }
  if (k < K)
    for (int m = 0; m < M; ++m) {
      const Vec<T> a = load_part<T>(x + m * x_row + k, K - k);
      for (int r = 0; r < R; ++r) acc[0][m][r] += a * load_part<T>(row[r] + k, K - k);
    }
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m) {
    if constexpr (U == 2)
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[0][m][r] += acc[U - 1][m][r];
    sums<T, R>(acc[0][m], y + m * ld);
  }
}

constexpr int64_t SHORT = 8;  // sums of so few terms are made side by side

// Every `step`-th of the values from p on.
template <class T> inline Vec<T> every(const T* p, int64_t step) {
  Vec<T> v;
#pragma GCC unroll 16
  for (int i = 0; i < Lanes<T>::count; ++i) v[i] = p[i * step];
  return v;
}

// The same as `dots` for n short rows that follow each other in memory: a vector holds the sums of as many rows.
template <class S, class T, int M>
void short_dots(const T* x, int64_t x_row, const char* w, int64_t K, int64_t n, T* y, int64_t ld) {
  constexpr int64_t L = Lanes<T>::count;
  using Loose = typename Lanes<T>::loose;
  const S* from = reinterpret_cast<const S*>(w);
  alignas(64) T wide[SHORT * L];
  for (int64_t j = 0; j < n; j += L, from += L * K) {
    const int64_t count = std::min(L, n - j) * K;
    for (int64_t i = 0; i < count; i += L) {
      const Vec<T> v = i + L <= count ? load(from + i) : load_part<T>(from + i, count - i);
      *reinterpret_cast<Loose*>(wide + i) = v;
    }
    Vec<T> acc[M] = {};
    for (int64_t k = 0; k < K; ++k) {
      const Vec<T> v = every(wide + k, K);
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) acc[m] += x[m * x_row + k] * v;
    }
    for (int m = 0; m < M; ++m) {
      alignas(64) T sums[L];
      *reinterpret_cast<Loose*>(sums) = acc[m];
      std::copy(sums, sums + std::min(L, n - j), y + m * ld + j);
    }
  }
}

#if defined(__AVX512F__)
// Products of bfloat16 pairs in one instruction, where the processor has it: it takes both factors as
// they lie in memory. Their sums are float32 as above; numbers below the normal range count as zero.
bool has_pair_products() {
  static const bool has = __builtin_cpu_supports("avx512bf16");
  return has;
}

// One row after the other: memory is then read as a single stream, which short rows side by side are not.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"))) float
dot_of_pairs(const bf16* x, const bf16* w, int64_t K) {
  constexpr int64_t STEP = 32;
  constexpr int U = 4;
  __m512 acc[U];
  for (int u = 0; u < U; ++u) acc[u] = _mm512_setzero_ps();
  const auto at = [](const bf16* p) __attribute__((always_inline)) { return __m512bh(_mm512_loadu_si512(p)); };
  int64_t k = 0;
  for (; k + U * STEP <= K; k += U * STEP)
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      __builtin_prefetch(w + k + u * STEP + AHEAD);
      acc[u] = _mm512_dpbf16_ps(acc[u], at(x + k + u * STEP), at(w + k + u * STEP));
    }
  for (int u = 0; k < K; k += STEP, ++u) {
    // What is missing from the last step reads as zeros.
    const int64_t left = std::min<int64_t>(K - k, STEP);
    const __mmask32 mask = left == STEP ? ~__mmask32(0) : (__mmask32(1) << left) - 1;
    acc[u] = _mm512_dpbf16_ps(acc[u], __m512bh(_mm512_maskz_loadu_epi16(mask, x + k)),
                              __m512bh(_mm512_maskz_loadu_epi16(mask, w + k)));
  }
  return _mm512_reduce_add_ps((acc[0] + acc[1]) + (acc[2] + acc[3]));
}

void pairs(const bf16* x, Place w, int64_t K, int64_t n, float* y) {
  for (int64_t j = 0; j < n; ++j) y[j] = dot_of_pairs(x, reinterpret_cast<const bf16*>(w.data + j * w.row), K);
}
#else
bool has_pair_products() { return false; }
void pairs(const bf16*, Place, int64_t, int64_t, float*) {}
#endif

// y[m][j] += sum over B steps of k of x[m, k] * w[k, j], j dense.
template <class S, class T, int M, int B>
void outers(const T* x, int64_t x_row, const char* w, int64_t w_k, int64_t n, T* y, int64_t ld) {
  constexpr int L = Lanes<T>::count;
  using Loose = typename Lanes<T>::loose;
  T a[M][B];
  for (int m = 0; m < M; ++m)
    for (int b = 0; b < B; ++b) a[m][b] = x[m * x_row + b];
  const S* row[B];
  for (int b = 0; b < B; ++b) row[b] = reinterpret_cast<const S*>(w + b * w_k);
  int64_t j = 0;
  for (; j + L <= n; j += L) {
    Vec<T> acc[M];
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) acc[m] = *reinterpret_cast<const Loose*>(y + m * ld + j);
#pragma GCC unroll 8
    for (int b = 0; b < B; ++b) {
      const Vec<T> v = load(row[b] + j);
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) acc[m] += a[m][b] * v;
    }
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) *reinterpret_cast<Loose*>(y + m * ld + j) = acc[m];
  }
  for (; j < n; ++j)
    for (int m = 0; m < M; ++m) {
      T s = y[m * ld + j];
      for (int b = 0; b < B; ++b) s += a[m][b] * convert<T>(row[b][j]);
      y[m * ld + j] = s;
    }
}

// Sums of rows anywhere: terms are gathered by their place in the sum, along which memory is passed over.
template <class S, class T, int M>
void gathered_dots(const T* x, int64_t x_row, Place w, int64_t K, int64_t n, T* y, int64_t ld) {
  constexpr int64_t MANY = 256;
  const CastFn to = cast_fn(dtype_of<S>, dtype_of<T>);
  alignas(64) T terms[MANY];
  for (int64_t j = 0; j < n; j += MANY) {
    const int64_t count = std::min(MANY, n - j);
    for (int m = 0; m < M; ++m) std::fill(y + m * ld + j, y + m * ld + j + count, T(0));
    for (int64_t k = 0; k < K; ++k) {
      to(reinterpret_cast<char*>(terms), sizeof(T), w.data + j * w.row + k * w.col, w.row, count);
      for (int m = 0; m < M; ++m) {
        const T a = x[m * x_row + k];
        T* line = y + m * ld + j;
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) line[i] += a * terms[i];
      }
    }
  }
}

constexpr int64_t CHUNK = 1024;  // results that wait in the first cache

template <class S, class T, int M>
void piece(const T* x, int64_t x_row, Place w, int64_t K, int64_t n, T* y, int64_t ld) {
  if (w.col == int64_t(sizeof(S)) && K <= SHORT && w.row == K * w.col) {
    short_dots<S, T, M>(x, x_row, w.data, K, n, y, ld);
  } else if (w.row != int64_t(sizeof(S)) && (K <= SHORT || (w.col != int64_t(sizeof(S)) && std::abs(w.row) < std::abs(w.col)))) {
    gathered_dots<S, T, M>(x, x_row, w, K, n, y, ld);
  } else if (w.col == int64_t(sizeof(S))) {
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) dots<S, T, M, 4>(x, x_row, w.data + j * w.row, w.row, K, y + j, ld);
    for (; j < n; ++j) dots<S, T, M, 1>(x, x_row, w.data + j * w.row, w.row, K, y + j, ld);
  } else if (w.row == int64_t(sizeof(S))) {
    for (int m = 0; m < M; ++m) std::fill(y + m * ld, y + m * ld + n, T(0));
    constexpr int B = M == 1 ? 8 : 4;
    int64_t k = 0;
    for (; k + B <= K; k += B) outers<S, T, M, B>(x + k, x_row, w.data + k * w.col, w.col, n, y, ld);
    for (; k < K; ++k) outers<S, T, M, 1>(x + k, x_row, w.data + k * w.col, w.col, n, y, ld);
  } else {
    const CastFn to = cast_fn(dtype_of<S>, dtype_of<T>);
    Scratch<T> row(K);
    for (int64_t j = 0; j < n; ++j) {
      to(reinterpret_cast<char*>(row.get()), sizeof(T), w.data + j * w.row, w.col, K);
      dots<T, T, M, 1>(x, x_row, reinterpret_cast<const char*>(row.get()), 0, K, y + j, ld);
    }
  }
}

template <class S, class T, int M>
void rows(int64_t N, int64_t K, Place x, Place w, const Result& C) {
  // x dense and wide.
  const bool ready = std::is_same_v<S, T> && x.col == int64_t(sizeof(S)) && x.row % int64_t(sizeof(S)) == 0;
  Scratch<T> copy(ready ? 0 : M * K);
  const T* xs = ready ? reinterpret_cast<const T*>(x.data) : copy.get();
  const int64_t x_row = ready ? x.row / int64_t(sizeof(T)) : K;
  if (!ready) {
    const CastFn to = cast_fn(dtype_of<S>, dtype_of<T>);
    for (int m = 0; m < M; ++m)
      to(reinterpret_cast<char*>(copy + m * K), sizeof(T), x.data + m * x.row, x.col, K);
  }
  // Few results of long sums: threads take stretches of k, of a length that does not depend on their number.
  constexpr int64_t STRETCH = 8192;
  const bool narrow = N <= 32 || (N <= 512 && w.row == int64_t(sizeof(S)));
  if (narrow && K >= 4 * STRETCH) {
    const int64_t pieces = (K + STRETCH - 1) / STRETCH;
    Scratch<T> partial((pieces + 1) * M * N);
    parallel_for(pieces, grain_for(STRETCH * N / 16), [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        const int64_t k = p * STRETCH, n = std::min(STRETCH, K - k);
        piece<S, T, M>(xs + k, x_row, {w.data + k * w.col, w.row, w.col}, n, N, partial + p * M * N, N);
      }
    });
    T* total = partial + pieces * M * N;
    for (int64_t i = 0; i < M * N; ++i) {
      double s = 0;
      for (int64_t p = 0; p < pieces; ++p) s += double(partial[p * M * N + i]);
      total[i] = T(s);
    }
    return C.finish(C, reinterpret_cast<const char*>(total), N, 0, 0, M, N);
  }
  constexpr int64_t GROUP = 16;
  constexpr int64_t half = sizeof(bf16);
  const bool paired = std::is_same_v<S, bf16> && M == 1 && w.col == half && x.col == half && has_pair_products() &&
                      K > SHORT;
  parallel_for((N + GROUP - 1) / GROUP, grain_for(GROUP * K / 8), [&](int64_t begin, int64_t end) {
    alignas(64) T y[M * CHUNK];
    for (int64_t j = begin * GROUP; j < std::min(N, end * GROUP); j += CHUNK) {
      const int64_t n = std::min({CHUNK, N - j, end * GROUP - j});
      if constexpr (std::is_same_v<S, bf16> && M == 1)
        if (paired) {
          pairs(reinterpret_cast<const bf16*>(x.data), {w.data + j * w.row, w.row, w.col}, K, n, y);
          C.finish(C, reinterpret_cast<const char*>(y), CHUNK, 0, j, M, n);
          continue;
        }
      piece<S, T, M>(xs, x_row, {w.data + j * w.row, w.row, w.col}, K, n, y, CHUNK);
      C.finish(C, reinterpret_cast<const char*>(y), CHUNK, 0, j, M, n);
    }
  });
}

template <class S, class T> void by_rows(int64_t m, int64_t N, int64_t K, Place x, Place w, const Result& C) {
  switch (m) {
    case 1: return rows<S, T, 1>(N, K, x, w, C);
    case 2: return rows<S, T, 2>(N, K, x, w, C);
    case 3: return rows<S, T, 3>(N, K, x, w, C);
    default: return rows<S, T, 4>(N, K, x, w, C);
  }
}

}  // namespace

void few_rows(Dtype from, int64_t m, int64_t N, int64_t K, Place x, Place w, const Result& C) {
  switch (from) {
    case Dtype::f32: return by_rows<float, float>(m, N, K, x, w, C);
    case Dtype::f64: return by_rows<double, double>(m, N, K, x, w, C);
    case Dtype::bf16: return by_rows<bf16, float>(m, N, K, x, w, C);
    default: return by_rows<f16, float>(m, N, K, x, w, C);
  }
}

}  // namespace vt
