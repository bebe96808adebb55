// Cholesky factors, column by column.
#include "linalg.h"

namespace vt {
namespace {
using namespace linalg;

// The lower factor in place of a symmetric matrix as far as it goes; the order of the minor where it stopped, or 0.
template <class T> int64_t cholesky(T* a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  for (int64_t k = 0; k < n; ++k) {
    const T* row = a + k * n;
    const T pivot = row[k] - dot(row, row, k);
    a[k * n + k] = pivot;
    if (!(pivot > T(0))) return k + 1;
    const T root = a[k * n + k] = std::sqrt(pivot);
    for (int64_t i = k + 1; i < n; ++i) a[i * n + k] = (a[i * n + k] - dot(a + i * n, row, k)) / root;
  }
  return 0;
}

// a; factor, info; upper
VT_KERNEL(cholesky) {
  const View &a = c.view(0), &out = c.view(1), &info = c.view(2);
  const bool upper = c.i(0);
  const int lead = a.ndim - 2;
  const int64_t n = a.size(-1);
  int64_t batch = 1;
  for (int d = 0; d < lead; ++d) batch *= a.shape[d];
  // The upper factor is the lower one of the transposed matrix, transposed.
  const auto turned = [&](const View& v, int64_t* strides) {
    std::copy(v.strides, v.strides + v.ndim, strides);
    if (upper) std::swap(strides[v.ndim - 1], strides[v.ndim - 2]);
    return View{v.data, v.ndim, v.shape, strides, v.dtype};
  };
  int64_t strides[2][64];
  const View from = turned(a, strides[0]), to = turned(out, strides[1]);
  const Matrices sources(from, lead), targets(to, lead), found(info, lead, 0);
  for_real("cholesky", a.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    parallel_for(batch, grain_for(n * n * (n / 16 + 2)), [&](int64_t begin, int64_t end) {
      Scratch<T> work(n * n);
      for (int64_t b = begin; b < end; ++b) {
        fetch<T>(work, from, sources.at(b, a.shape), n, n);
        *reinterpret_cast<int32_t*>(found.at(b, a.shape)) = int32_t(cholesky<T>(work, n));
        put<T>(to, targets.at(b, a.shape), work, n, n);
      }
    });
  });
}

}  // namespace
}  // namespace vt
