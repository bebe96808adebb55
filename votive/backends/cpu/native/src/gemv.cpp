// Products with few rows: the time goes into reading the large factor once.
#include <algorithm>

#include "vt/gemm_micro.h"
#include "vt/parallel.h"
#include "vt/scratch.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace vt {

namespace {

template <class T> using Vec = typename Lanes<T>::type;

// One vector of the compute type from memory of the element type.
inline Vec<float> load(const float* p) { return *reinterpret_cast<const Lanes<float>::loose*>(p); }
inline Vec<double> load(const double* p) { return *reinterpret_cast<const Lanes<double>::loose*>(p); }
inline Vec<float> load(const bf16* p) {
  typedef uint16_t Half __attribute__((vector_size(VECTOR / 2), aligned(2), may_alias));
  return Vec<float>(__builtin_convertvector(*reinterpret_cast<const Half*>(p), Vec<uint32_t>) << 16);
}
inline Vec<float> load(const f16* p) {
#if defined(__AVX512F__)
  return Vec<float>(_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__F16C__)
  return Vec<float>(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  Vec<float> v{};
  for (int i = 0; i < Lanes<float>::count; ++i) v[i] = to_float(p[i]);
  return v;
#endif
}

template <class T> inline T sum(const Vec<T>& v) {
  T s[Lanes<T>::count];
  *reinterpret_cast<typename Lanes<T>::loose*>(s) = v;
  for (int half = Lanes<T>::count / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) s[i] += s[i + half];
  return s[0];
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
#pragma GCC unroll 4
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      T s = sum<T>(U == 2 ? acc[0][m][r] + acc[U - 1][m][r] : acc[0][m][r]);
      for (int64_t j = k; j < K; ++j) s += x[m * x_row + j] * convert<T>(row[r][j]);
      y[m * ld + r] = s;
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

constexpr int64_t CHUNK = 1024;  // results that wait in the first cache

template <class S, class T, int M>
void piece(const T* x, int64_t x_row, Place w, int64_t K, int64_t n, T* y, int64_t ld) {
  if (w.col == int64_t(sizeof(S))) {
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
  const bool paired = std::is_same_v<S, bf16> && M == 1 && w.col == half && x.col == half && has_pair_products();
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
