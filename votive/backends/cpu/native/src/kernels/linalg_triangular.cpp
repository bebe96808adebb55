// Triangular systems by substitution.
#include "linalg.h"

namespace vt {
namespace {
using namespace linalg;

// a, b, x; upper, unit
VT_KERNEL(solve_triangular) {
  const View &a = c.view(0), &b = c.view(1), &out = c.view(2);
  const bool upper = c.i(0), unit = c.i(1);
  const int lead = out.ndim - 2;
  const int64_t n = out.size(-2), m = out.size(-1);
  int64_t batch = 1;
  for (int d = 0; d < lead; ++d) batch *= out.shape[d];
  for_real("solve_triangular", out.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    const Matrices from(a, lead), right(b, lead), to(out, lead);
    const bool dense = a.strides[a.ndim - 1] == int64_t(sizeof(T)) && a.strides[a.ndim - 2] % int64_t(sizeof(T)) == 0;
    const int64_t lda = dense ? a.strides[a.ndim - 2] / int64_t(sizeof(T)) : n;
    parallel_for(batch, grain_for(n * (n / 8 + 1) * (m + 8)), [&](int64_t begin, int64_t end) {
      Scratch<T> work(dense ? 0 : n * n), x(n * m);
      for (int64_t q = begin; q < end; ++q) {
        const char* matrix = from.at(q, out.shape);
        if (!dense) fetch<T>(work, a, matrix, n, n);
        fetch<T>(x, b, right.at(q, out.shape), n, m);
        substitute<T>(dense ? reinterpret_cast<const T*>(matrix) : work.get(), lda, x, m, n, m, upper, unit);
        put<T>(out, to.at(q, out.shape), x, n, m);
      }
    });
  });
}

}  // namespace
}  // namespace vt
