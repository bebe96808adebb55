// The largest element of a row, and the sum of exponentials below it.
#pragma once
#include "lanes.h"

namespace vt {

// NaN may be passed over: it comes back in the sum.
template <class C> inline C row_max(const C* x, int64_t n) {
  constexpr int W = WIDTH<C>;
  Lanes<C> a = all<C>(-INF<C>), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    a = larger<C>(load<C>(x + i), a);
    b = larger<C>(load<C>(x + i + W), b);
    c = larger<C>(load<C>(x + i + 2 * W), c);
    d = larger<C>(load<C>(x + i + 3 * W), d);
  }
  for (; i + W <= n; i += W) a = larger<C>(load<C>(x + i), a);
  if (i < n) b = larger<C>(load_part<C>(x + i, n - i, -INF<C>), b);
  return max_of<C>(larger<C>(larger<C>(a, b), larger<C>(c, d)));
}

// The sum of e^(x - top); lanes past the end count nothing.
template <class C> inline C sum_exp(const C* x, int64_t n, C top) {
  constexpr int W = WIDTH<C>;
  const Lanes<C> t = all<C>(top);
  Lanes<C> total[4] = {};
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
    for (int k = 0; k < 4; ++k) total[k] += exp_below<C>(load<C>(x + i + k * W) - t);
  for (; i + W <= n; i += W) total[0] += exp_below<C>(load<C>(x + i) - t);
  C rest = 0;
  if (i < n) {
    alignas(VECTOR_BYTES) C e[W];
    store<C>(e, exp_below<C>(load_part<C>(x + i, n - i, top) - t));
    for (int64_t j = 0; j < n - i; ++j) rest += e[j];
  }
  return sum_of<C>((total[0] + total[1]) + (total[2] + total[3])) + rest;
}

// The same for columns x[d * step + j], j < n; `top` and `sum` have room for a vector behind the last.
template <class C> inline void column_max(const C* x, int64_t step, int64_t dim, int64_t n, C* top) {
  sweep<C>(n, [&](int64_t j, auto) { store<C>(top + j, all<C>(-INF<C>)); });
  for (int64_t d = 0; d < dim; ++d)
    sweep<C>(n, [&](int64_t j, auto m) {
      store<C>(top + j, larger<C>(load_some<C>(x + d * step + j, m), load<C>(top + j)));
    });
}

template <class C> inline void column_sum_exp(const C* x, int64_t step, int64_t dim, int64_t n, const C* top, C* sum) {
  sweep<C>(n, [&](int64_t j, auto) { store<C>(sum + j, Lanes<C>{}); });
  for (int64_t d = 0; d < dim; ++d)
    sweep<C>(n, [&](int64_t j, auto m) {
      store<C>(sum + j, load<C>(sum + j) + exp_below<C>(load_some<C>(x + d * step + j, m) - load<C>(top + j)));
    });
}

}  // namespace vt
