// QR factors by Householder reflections (Golub & Van Loan, algorithm 5.2.1), with the signs that LAPACK chooses.
#include "linalg.h"

namespace vt {
namespace {
using namespace linalg;

// Turns column i of A (m x n) into a multiple of the first unit vector from row i on. The reflection 1 - tau v v^T has
// v[0] = 1; the rest of v stays below the diagonal.
template <class T> T reflector(T* a, int64_t m, int64_t n, int64_t i) {
  T most = 0, sum = 0;
  for (int64_t r = i + 1; r < m; ++r) {
    const T v = std::abs(a[r * n + i]);
    most = v > most || v != v ? v : most;
    sum += v;
  }
  if (sum == T(0)) return T(0);
  T squares = 0;  // of what is scaled, so that it neither overflows nor vanishes
  for (int64_t r = i + 1; r < m; ++r) {
    const T v = a[r * n + i] / most;
    squares += v * v;
  }
  const T alpha = a[i * n + i];
  const T beta = -std::copysign(std::hypot(alpha, most * std::sqrt(squares)), alpha);
  for (int64_t r = i + 1; r < m; ++r) a[r * n + i] /= alpha - beta;
  a[i * n + i] = beta;
  return (beta - alpha) / beta;
}

// Rows i.. of columns first..n-1 of x reflected by what stands in column i of a.
template <class T>
void reflect(const T* a, int64_t lda, T tau, int64_t i, T* x, int64_t m, int64_t n, int64_t first, T* sums) {
  if (tau == T(0) || first >= n) return;
  const auto v = [&](int64_t r) { return r == i ? T(1) : a[r * lda + i]; };
  std::fill(sums + first, sums + n, T(0));
  for (int64_t r = i; r < m; ++r) {
    const T f = v(r), *row = x + r * n;
#pragma GCC ivdep
    for (int64_t j = first; j < n; ++j) sums[j] += f * row[j];
  }
  for (int64_t r = i; r < m; ++r) {
    const T f = tau * v(r);
    T* row = x + r * n;
#pragma GCC ivdep
    for (int64_t j = first; j < n; ++j) row[j] -= f * sums[j];
  }
}

// a; Q (or nothing, if empty) and R, whose sizes say how many columns and rows are wanted
VT_KERNEL(linalg_qr) {
  const View &a = c.view(0), &q = c.view(1), &r = c.view(2);
  const int lead = a.ndim - 2;
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), rows = r.size(-2);
  const bool wanted = q.numel() > 0;
  const int64_t cols = wanted ? q.size(-1) : 0;
  int64_t batch = 1;
  for (int d = 0; d < lead; ++d) batch *= a.shape[d];
  const Matrices from(a, lead), to_q(wanted ? q : r, lead), to_r(r, lead);
  for_real("qr", a.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    parallel_for(batch, grain_for(m * (n + cols) * (k / 4 + 2)), [&](int64_t begin, int64_t end) {
      Scratch<T> work(m * n), made(m * cols), upper(rows * n), tau(k), sums(std::max(n, cols));
      for (int64_t b = begin; b < end; ++b) {
        fetch<T>(work, a, from.at(b, a.shape), m, n);
        for (int64_t i = 0; i < k; ++i) {
          tau[i] = reflector<T>(work, m, n, i);
          reflect<T>(work, n, tau[i], i, work, m, n, i + 1, sums);
        }
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t j = 0; j < n; ++j) upper[i * n + j] = j < i ? T(0) : work[i * n + j];
        put<T>(r, to_r.at(b, a.shape), upper, rows, n);
        if (!wanted) continue;
        std::fill(made.get(), made + m * cols, T(0));
        for (int64_t i = 0; i < cols; ++i) made[i * cols + i] = T(1);
        for (int64_t i = k - 1; i >= 0; --i) reflect<T>(work, n, tau[i], i, made, m, cols, i, sums);
        put<T>(q, to_q.at(b, a.shape), made, m, cols);
      }
    });
  });
}

}  // namespace
}  // namespace vt
