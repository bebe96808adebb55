// Linear systems and inverses by LU factors.
#include "linalg.h"

namespace vt {
namespace {
using namespace linalg;

// X with A X = B for each matrix of the batch; without B the inverse.
template <class T> void solve(const View& a, const View& given, const View& out, const View& info) {
  const int lead = a.ndim - 2;
  const int64_t n = a.size(-1), m = out.size(-1);
  int64_t batch = 1;
  for (int d = 0; d < lead; ++d) batch *= a.shape[d];
  const Matrices from(a, lead), to(out, lead), found(info, lead, 0), right(given ? given : out, lead);
  parallel_for(batch, grain_for(n * (n + m) * (n / 8 + 2)), [&](int64_t begin, int64_t end) {
    Scratch<T> work(n * n), x(n * m), b(n * m);
    Scratch<int64_t> swaps(n);
    for (int64_t q = begin; q < end; ++q) {
      fetch<T>(work, a, from.at(q, a.shape), n, n);
      *reinterpret_cast<int32_t*>(found.at(q, a.shape)) = int32_t(factor<T>(work, n, n, swaps));
      if (given) fetch<T>(x, given, right.at(q, a.shape), n, m);
      else {
        std::fill(x.get(), x + n * m, T(0));
        for (int64_t i = 0; i < n; ++i) x[i * m + i] = T(1);
      }
      for (int64_t i = 0; i < n; ++i)
        if (swaps[i] != i) std::swap_ranges(x + i * m, x + (i + 1) * m, x + swaps[i] * m);
      substitute<T>(work, n, x, m, n, m, false, true);
      substitute<T>(work, n, x, m, n, m, true, false);
      put<T>(out, to.at(q, a.shape), x, n, m);
    }
  });
}

// a, b; x, number of the first zero pivot
VT_KERNEL(linalg_solve) {
  for_real("solve", c.view(0).dtype, [&](auto t) {
    solve<typename decltype(t)::type>(c.view(0), c.view(1), c.view(2), c.view(3));
  });
}

// a; inverse, number of the first zero pivot
VT_KERNEL(linalg_inv) {
  for_real("inv", c.view(0).dtype, [&](auto t) {
    solve<typename decltype(t)::type>(c.view(0), View(), c.view(1), c.view(2));
  });
}

}  // namespace
}  // namespace vt
