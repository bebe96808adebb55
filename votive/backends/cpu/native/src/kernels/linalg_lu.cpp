// LU factors with partial pivoting.
#include "linalg.h"

namespace vt {
namespace {
using namespace linalg;

// a; factors, swaps counted from 1, number of the first zero pivot
VT_KERNEL(lu_factor) {
  const View &a = c.view(0), &lu = c.view(1), &pivots = c.view(2), &info = c.view(3);
  const int lead = a.ndim - 2;
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  int64_t batch = 1;
  for (int d = 0; d < lead; ++d) batch *= a.shape[d];
  for_real("lu_factor", a.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    const Matrices from(a, lead), to(lu, lead), swapped(pivots, lead, 1), found(info, lead, 0);
    parallel_for(batch, grain_for(m * n * (k / 8 + 2)), [&](int64_t begin, int64_t end) {
      Scratch<T> work(m * n);
      Scratch<int64_t> swaps(k);
      for (int64_t b = begin; b < end; ++b) {
        fetch<T>(work, a, from.at(b, a.shape), m, n);
        *reinterpret_cast<int32_t*>(found.at(b, a.shape)) = int32_t(factor<T>(work, m, n, swaps));
        put<T>(lu, to.at(b, a.shape), work, m, n);
        char* p = swapped.at(b, a.shape);
        for (int64_t i = 0; i < k; ++i)
          *reinterpret_cast<int32_t*>(p + i * pivots.strides[pivots.ndim - 1]) = int32_t(swaps[i] + 1);
      }
    });
  });
}

}  // namespace
}  // namespace vt
