// Pseudo-inverses from singular vectors and values.
#include "linalg.h"

namespace vt {
namespace {
using namespace linalg;

// U, values and V^H, all dense; V diag(1 / values) U', values up to a limit taken as zero; absolute and relative limit
VT_KERNEL(pinv) {
  const View &u = c.view(0), &s = c.view(1), &vh = c.view(2), &out = c.view(3);
  const double atol = c.f(0), rtol = c.f(1);
  const int64_t m = u.size(-2), k = u.size(-1), n = vh.size(-1);
  int64_t batch = 1;
  for (int d = 0; d < u.ndim - 2; ++d) batch *= u.shape[d];
  for_real("pinv", u.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    parallel_for(batch, grain_for(m * n * (k / 4 + 2)), [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const T *left = u.as<T>() + b * m * k, *values = s.as<T>() + b * k, *right = vh.as<T>() + b * k * n;
        T* to = out.as<T>() + b * n * m;
        T most = 0;
        for (int64_t q = 0; q < k; ++q) most = std::max(most, values[q]);
        const T limit = std::max(T(atol), T(rtol) * most);
        std::fill(to, to + n * m, T(0));
        for (int64_t q = 0; q < k; ++q) {
          if (!(values[q] > limit)) continue;
          for (int64_t i = 0; i < n; ++i) {
            const T f = right[q * n + i] / values[q];
            for (int64_t j = 0; j < m; ++j) to[i * m + j] += f * left[j * k + q];
          }
        }
      }
    });
  });
}

}  // namespace
}  // namespace vt
