// What kernels of linear algebra share: batches of matrices as dense copies, LU factors, substitution.
#pragma once
#include <algorithm>
#include <cmath>

#include "vt/cast.h"
#include "vt/gemm_core.h"
#include "vt/kernel.h"

namespace vt::linalg {

// Matrices of a batch, and where each one lies; what broadcasts is found again and again.
struct Matrices {
  const View& v;
  int lead;  // dimensions of the batch it is part of
  explicit Matrices(const View& v, int lead, int inner = 2) : v(v), lead(lead), inner(inner) {}

  char* at(int64_t index, const int64_t* batch) const {
    char* p = v.data;
    const int own = v.ndim - inner;
    for (int d = lead - 1; d >= 0; --d) {
      const int64_t i = index % batch[d];
      index /= batch[d];
      const int mine = d - (lead - own);
      if (mine >= 0 && v.shape[mine] != 1) p += i * v.strides[mine];
    }
    return p;
  }

 private:
  int inner;
};

// A dense copy of rows x cols elements of any strides, and the way back.
template <class T> void fetch(T* to, const View& v, const char* from, int64_t rows, int64_t cols) {
  const int64_t row = v.strides[v.ndim - 2], col = v.strides[v.ndim - 1];
  const CastFn copy = cast_fn(dtype_of<T>, dtype_of<T>);
  for (int64_t i = 0; i < rows; ++i)
    copy(reinterpret_cast<char*>(to + i * cols), sizeof(T), from + i * row, col, cols);
}
template <class T> void put(const View& v, char* to, const T* from, int64_t rows, int64_t cols) {
  const int64_t row = v.strides[v.ndim - 2], col = v.strides[v.ndim - 1];
  const CastFn copy = cast_fn(dtype_of<T>, dtype_of<T>);
  for (int64_t i = 0; i < rows; ++i)
    copy(to + i * row, col, reinterpret_cast<const char*>(from + i * cols), sizeof(T), cols);
}

// C -= A B, all dense along their rows.
template <class T>
void subtract(int64_t M, int64_t N, int64_t K, const T* a, int64_t lda, const T* b, int64_t ldb, T* c, int64_t ldc) {
  if (M == 0 || N == 0 || K == 0) return;
  if (M * N * K <= 4096) {
    for (int64_t i = 0; i < M; ++i)
      for (int64_t k = 0; k < K; ++k) {
        const T f = a[i * lda + k];
        T* to = c + i * ldc;
        const T* from = b + k * ldb;
#pragma GCC ivdep
        for (int64_t j = 0; j < N; ++j) to[j] -= f * from[j];
      }
    return;
  }
  constexpr int64_t item = sizeof(T);
  Result r{};
  r.data = reinterpret_cast<char*>(c);
  r.row = r.x_row = ldc * item;
  r.col = r.x_col = item;
  r.x = r.data;
  r.alpha = -1;
  r.beta = 1;
  product(dtype_of<T>, dtype_of<T>, M, N, K, {reinterpret_cast<const char*>(a), lda * item, item},
          {reinterpret_cast<const char*>(b), ldb * item, item}, r);
}

template <class T> T dot(const T* a, const T* b, int64_t n) {
  constexpr int64_t L = 16;
  T part[L] = {};
  int64_t i = 0;
  for (; i + L <= n; i += L)
    for (int64_t q = 0; q < L; ++q) part[q] += a[i + q] * b[i + q];
  T sum = 0;
  for (; i < n; ++i) sum += a[i] * b[i];
  for (int64_t half = L / 2; half > 0; half /= 2)
    for (int64_t q = 0; q < half; ++q) part[q] += part[q + half];
  return sum + part[0];
}

// X of n x m becomes A^-1 X, reading one triangle of A; `unit` takes its diagonal as 1.
template <class T>
void substitute(const T* a, int64_t lda, T* x, int64_t ldx, int64_t n, int64_t m, bool upper, bool unit) {
  if (n > (m < 8 ? 96 : 32)) {  // in two halves, so that a product does most of the work
    const int64_t half = n / 2, rest = n - half;
    const T *top = a, *low = a + half * lda + half;
    T *x0 = x, *x1 = x + half * ldx;
    if (upper) {
      substitute(low, lda, x1, ldx, rest, m, upper, unit);
      subtract(half, m, rest, a + half, lda, x1, ldx, x0, ldx);
      substitute(top, lda, x0, ldx, half, m, upper, unit);
    } else {
      substitute(top, lda, x0, ldx, half, m, upper, unit);
      subtract(rest, m, half, a + half * lda, lda, x0, ldx, x1, ldx);
      substitute(low, lda, x1, ldx, rest, m, upper, unit);
    }
    return;
  }
  if (m < 8 && n > 8) {  // too few columns for vectors, which then lie along the rows of A
    Scratch<T> columns(n * m);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t q = 0; q < m; ++q) columns[q * n + i] = x[i * ldx + q];
    for (int64_t s = 0; s < n; ++s) {
      const int64_t i = upper ? n - 1 - s : s, begin = upper ? i + 1 : 0, end = upper ? n : i;
      for (int64_t q = 0; q < m; ++q) {
        T& v = columns[q * n + i];
        v -= dot(a + i * lda + begin, columns + q * n + begin, end - begin);
        if (!unit) v /= a[i * lda + i];
        x[i * ldx + q] = v;
      }
    }
    return;
  }
  for (int64_t s = 0; s < n; ++s) {
    const int64_t i = upper ? n - 1 - s : s, begin = upper ? i + 1 : 0, end = upper ? n : i;
    T* row = x + i * ldx;
    for (int64_t j = begin; j < end; ++j) {
      const T f = a[i * lda + j];
      const T* done = x + j * ldx;
#pragma GCC ivdep
      for (int64_t q = 0; q < m; ++q) row[q] -= f * done[q];
    }
    if (!unit) {
      const T by = a[i * lda + i];
#pragma GCC ivdep
      for (int64_t q = 0; q < m; ++q) row[q] /= by;
    }
  }
}

// L below the diagonal (ones on it) and U above, in place of A of m x n; swaps[k] is the row that row k was exchanged
// with. Gives the number of the first zero pivot, counted from 1, or 0.
template <class T> int64_t factor(T* a, int64_t m, int64_t n, int64_t* swaps) {
  constexpr int64_t PANEL = 32;
  const int64_t k = std::min(m, n);
  int64_t info = 0;
  const auto exchange = [&](int64_t i, int64_t j, int64_t begin, int64_t end) {
    if (i != j) std::swap_ranges(a + i * n + begin, a + i * n + end, a + j * n + begin);
  };
  for (int64_t j0 = 0; j0 < k; j0 += PANEL) {
    const int64_t j1 = std::min(k, j0 + PANEL);
    for (int64_t j = j0; j < j1; ++j) {
      int64_t best = j;
      T most = std::abs(a[j * n + j]);
      for (int64_t i = j + 1; i < m && most == most; ++i) {  // the first NaN counts as the largest
        const T v = std::abs(a[i * n + j]);
        if (v > most || v != v) best = i, most = v;
      }
      swaps[j] = best;
      exchange(j, best, j0, j1);
      const T pivot = a[j * n + j];
      if (pivot == T(0)) {
        if (info == 0) info = j + 1;
        continue;
      }
      const T* above = a + j * n;
      for (int64_t i = j + 1; i < m; ++i) {
        T* row = a + i * n;
        const T f = row[j] / pivot;
        row[j] = f;
#pragma GCC ivdep
        for (int64_t q = j + 1; q < j1; ++q) row[q] -= f * above[q];
      }
    }
    for (int64_t j = j0; j < j1; ++j) {
      exchange(j, swaps[j], 0, j0);
      exchange(j, swaps[j], j1, n);
    }
    if (j1 == n) continue;
    substitute(a + j0 * n + j0, n, a + j0 * n + j1, n, j1 - j0, n - j1, false, true);
    subtract(m - j1, n - j1, j1 - j0, a + j1 * n + j0, n, a + j0 * n + j1, n, a + j1 * n + j1, n);
  }
  return info;
}

template <class F> void for_real(const char* what, Dtype d, F&& f) {
  if (d == Dtype::f32) f(Type<float>{});
  else if (d == Dtype::f64) f(Type<double>{});
  else no_dtype(what);
}

}  // namespace vt::linalg
