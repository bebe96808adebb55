// Determinants: products of pivots.
#include <limits>

#include "linalg.h"

namespace vt {
namespace {
using namespace linalg;

// Calls f(index, diagonal of the factors, whether the swaps are odd) for each matrix.
template <class T, class F> void for_factors(const View& a, F&& f) {
  const int lead = a.ndim - 2;
  const int64_t n = a.size(-1);
  int64_t batch = 1;
  for (int d = 0; d < lead; ++d) batch *= a.shape[d];
  const Matrices from(a, lead);
  parallel_for(batch, grain_for(n * n * (n / 8 + 2)), [&](int64_t begin, int64_t end) {
    Scratch<T> work(n * n), diagonal(n);
    Scratch<int64_t> swaps(n);
    for (int64_t b = begin; b < end; ++b) {
      fetch<T>(work, a, from.at(b, a.shape), n, n);
      factor<T>(work, n, n, swaps);
      bool odd = false;
      for (int64_t i = 0; i < n; ++i) {
        odd ^= swaps[i] != i;
        diagonal[i] = work[i * n + i];
      }
      f(b, diagonal.get(), odd);
    }
  });
}

// a; determinants
VT_KERNEL(det) {
  const View &a = c.view(0), &out = c.view(1);
  const int64_t n = a.size(-1);
  const Matrices to(out, a.ndim - 2, 0);
  for_real("det", a.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    for_factors<T>(a, [&](int64_t b, const T* diagonal, bool odd) {
      T value = odd ? T(-1) : T(1);
      for (int64_t i = 0; i < n; ++i) value *= diagonal[i];
      *reinterpret_cast<T*>(to.at(b, a.shape)) = value;
    });
  });
}

// a; signs, logarithms of moduli
VT_KERNEL(slogdet) {
  const View &a = c.view(0), &signs = c.view(1), &logs = c.view(2);
  const int64_t n = a.size(-1);
  const Matrices to_sign(signs, a.ndim - 2, 0), to_log(logs, a.ndim - 2, 0);
  for_real("slogdet", a.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    for_factors<T>(a, [&](int64_t b, const T* diagonal, bool odd) {
      T sign = odd ? T(-1) : T(1);
      double log = 0;
      for (int64_t i = 0; i < n; ++i) {
        const T v = diagonal[i];
        sign *= v > T(0) ? T(1) : v < T(0) ? T(-1) : v;  // zero stays zero, NaN stays NaN
        log += std::log(std::abs(double(v)));
      }
      *reinterpret_cast<T*>(to_sign.at(b, a.shape)) = sign;
      *reinterpret_cast<T*>(to_log.at(b, a.shape)) = T(log);
    });
  });
}

// The largest sum of moduli of a column.
template <class T> T norm(const T* a, int64_t n) {
  T most = 0;
  for (int64_t j = 0; j < n; ++j) {
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::abs(a[i * n + j]);
    most = sum > most || sum != sum ? sum : most;
  }
  return most;
}

// a; det(A) A^-T, and 1 for matrices of which less than half of the digits are right. With numbers that are not finite
// nothing is, and no other way would be better.
VT_KERNEL(cofactor) {
  const View &a = c.view(0), &out = c.view(1), &poor = c.view(2);
  const int lead = a.ndim - 2;
  const int64_t n = a.size(-1);
  int64_t batch = 1;
  for (int d = 0; d < lead; ++d) batch *= a.shape[d];
  const Matrices from(a, lead), to(out, lead);
  for_real("cofactor", a.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    const T limit = T(1) / std::sqrt(std::numeric_limits<T>::epsilon());
    parallel_for(batch, grain_for(n * n * (n / 4 + 4)), [&](int64_t begin, int64_t end) {
      Scratch<T> given(n * n), work(n * n), x(n * n);
      Scratch<int64_t> swaps(n);
      for (int64_t b = begin; b < end; ++b) {
        fetch<T>(given, a, from.at(b, a.shape), n, n);
        std::copy(given.get(), given + n * n, work.get());
        factor<T>(work, n, n, swaps);
        std::fill(x.get(), x + n * n, T(0));
        for (int64_t i = 0; i < n; ++i) x[i * n + i] = T(1);
        T det = 1;
        for (int64_t i = 0; i < n; ++i) {
          if (swaps[i] != i) {
            std::swap_ranges(x + i * n, x + (i + 1) * n, x + swaps[i] * n);
            det = -det;
          }
          det *= work[i * n + i];
        }
        substitute<T>(work, n, x, n, n, n, false, true);
        substitute<T>(work, n, x, n, n, n, true, false);
        bool finite = true;
        for (int64_t i = 0; i < n * n; ++i) finite &= given[i] - given[i] == T(0);
        poor.as<char>()[b] = finite && !(norm<T>(given, n) * norm<T>(x, n) < limit);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) work[i * n + j] = det * x[j * n + i];
        put<T>(out, to.at(b, a.shape), work, n, n);
      }
    });
  });
}

}  // namespace
}  // namespace vt
