// Norms of rows of a few elements: many rows side by side, since one would leave its vector empty.
#pragma once
#include "vt/moments.h"

namespace vt {

constexpr int64_t SHORT_ROW = 16, SHORT_ROWS = 256;

// Walks of one step each: rows, and the elements of one.
struct Evenly {
  Walk rows, row;
  Evenly(const View& v, int split) {
    for (int d = 0; d < v.ndim; ++d) (d < split ? rows : row).add(v.shape[d], v.strides[d]);
  }
  bool holds() const { return rows.ndim <= 1 && row.ndim <= 1; }
  int64_t down() const { return rows.ndim ? rows.strides[0] : 0; }
  int64_t along() const { return row.ndim ? row.strides[0] : 0; }
};

// y = (x - mean) * rstd * weight + bias for rows of n elements; without CENTRED there is no mean, and no bias. False where
// rows are long, few, or not evenly spaced.
template <class C, bool CENTRED>
bool norm_short(const View& x, const View& y, int split, int64_t n, int64_t rows, const C* weight, const C* bias, C* means,
                C* rstds, double eps) {
  const Evenly from(x, split), to(y, split);
  if (n == 0 || n > SHORT_ROW || rows < 16 || !from.holds() || !to.holds()) return false;
  const CastFn in = cast_fn(x.dtype, dtype_of<C>), out = cast_fn(dtype_of<C>, y.dtype);
  parallel_for((rows + SHORT_ROWS - 1) / SHORT_ROWS, grain_for(SHORT_ROWS * n * 4), [&](int64_t begin, int64_t end) {
    alignas(64) C v[SHORT_ROW][SHORT_ROWS], sum[SHORT_ROWS];
    for (int64_t k = begin; k < end; ++k) {
      const int64_t first = k * SHORT_ROWS, m = std::min(SHORT_ROWS, rows - first);
      cast_block(in, itemsize(x.dtype), sizeof(C), reinterpret_cast<char*>(v), sizeof(v[0]), sizeof(C),
                 x.data + first * from.down(), from.along(), from.down(), n, m);
      if constexpr (CENTRED) {
        std::copy_n(v[0], m, sum);
        for (int64_t j = 1; j < n; ++j)
          for (int64_t i = 0; i < m; ++i) sum[i] += v[j][i];
        for (int64_t i = 0; i < m; ++i) means[first + i] = sum[i] /= C(n);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t i = 0; i < m; ++i) v[j][i] -= sum[i];
      }
      for (int64_t i = 0; i < m; ++i) sum[i] = v[0][i] * v[0][i];
      for (int64_t j = 1; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) sum[i] += v[j][i] * v[j][i];
      for (int64_t i = 0; i < m; ++i) rstds[first + i] = sum[i] = reciprocal_root<C>(sum[i] / C(n), eps);
      for (int64_t j = 0; j < n; ++j) {
        const C w = weight[j], b = CENTRED ? bias[j] : C(0);
        for (int64_t i = 0; i < m; ++i) v[j][i] = CENTRED ? v[j][i] * sum[i] * w + b : v[j][i] * sum[i] * w;
      }
      cast_block(out, sizeof(C), itemsize(y.dtype), y.data + first * to.down(), to.down(), to.along(),
                 reinterpret_cast<const char*>(v), sizeof(C), sizeof(v[0]), m, n);
    }
  });
  return true;
}

}  // namespace vt
