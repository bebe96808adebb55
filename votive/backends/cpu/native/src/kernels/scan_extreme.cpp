// Running extremes along a dimension, and where they stand.
#include <algorithm>

#include "scan.h"
#include "vt/cast.h"
#include "vt/kernel.h"
#include "vt/lines.h"
#include "vt/math.h"

namespace vt {
namespace {

// Running extremes: the last of equals is its place, and so is each NaN.
template <class C, bool MAX> void extremes(Call& c) {
  const View &x = c.view(0), &values = c.view(1), &places = c.view(2);
  const int dim = int(c.i(0));
  const Lines rows({&x, &values, &places}, dim);
  if (rows.count == 0 || rows.size == 0) return;
  auto takes = [](C v, C best) { return ((MAX ? v >= best : v <= best) | (v != v)) & ((best == best) | (v != v)); };
  const int64_t n = rows.size;
  const int beside = x.ndim > 1 && rows.step(0) != itemsize(x.dtype) ? dense_beside(x, values, dim) : -1;
  if (beside >= 0) {
    const CastFn in_cast = cast_fn(x.dtype, dtype_of<C>), out_cast = cast_fn(dtype_of<C>, x.dtype);
    const int64_t columns = x.shape[beside], blocks = (columns + WIDTH - 1) / WIDTH;
    int64_t others = 1;
    for (int d = 0; d < x.ndim; ++d)
      if (d != dim && d != beside) others *= x.shape[d];
    parallel_for(others * blocks, grain_for(n * std::min(columns, WIDTH) * 2), [&](int64_t begin, int64_t end) {
      alignas(64) C best[WIDTH], from[WIDTH];
      alignas(64) int64_t at[WIDTH];
      for (int64_t task = begin; task < end; ++task) {
        const int64_t c0 = task % blocks * WIDTH, m = std::min(WIDTH, columns - c0);
        int64_t rest = task / blocks;
        const char* p = x.data + c0 * x.strides[beside];
        char* q = values.data + c0 * values.strides[beside];
        char* w = places.data + c0 * places.strides[beside];
        for (int d = x.ndim - 1; d >= 0; --d) {
          if (d == dim || d == beside) continue;
          p += rest % x.shape[d] * x.strides[d];
          q += rest % x.shape[d] * values.strides[d];
          w += rest % x.shape[d] * places.strides[d];
          rest /= x.shape[d];
        }
        for (int64_t i = 0; i < n; ++i, p += x.strides[dim], q += values.strides[dim], w += places.strides[dim]) {
          in_cast(reinterpret_cast<char*>(from), sizeof(C), p, x.strides[beside], m);
          if (i == 0) {
            for (int64_t j = 0; j < m; ++j) best[j] = from[j], at[j] = 0;
          } else {
#pragma GCC ivdep
            for (int64_t j = 0; j < m; ++j) {
              const bool take = takes(from[j], best[j]);
              best[j] = take ? from[j] : best[j];
              at[j] = take ? i : at[j];
            }
          }
          out_cast(q, values.strides[beside], reinterpret_cast<const char*>(best), sizeof(C), m);
          for (int64_t j = 0; j < m; ++j) *reinterpret_cast<int64_t*>(w + j * places.strides[beside]) = at[j];
        }
      }
    });
    return;
  }
  if (n <= SHORT && rows.dense(0) && rows.dense(1) && rows.dense(2)) {
    constexpr int64_t TILE = 1024;
    const int64_t block = TILE / n;
    const CastFn in_cast = cast_fn(x.dtype, dtype_of<C>), out_cast = cast_fn(dtype_of<C>, x.dtype);
    parallel_for((rows.count + block - 1) / block, grain_for(TILE * 3), [&](int64_t begin, int64_t end) {
      alignas(64) C v[TILE];
      for (int64_t b = begin; b < end; ++b) {
        const int64_t count = std::min(block, rows.count - b * block);
        int64_t* at = reinterpret_cast<int64_t*>(rows.row(2, b * block));
        in_cast(reinterpret_cast<char*>(v), sizeof(C), rows.row(0, b * block), rows.step(0), count * n);
        for (int64_t r = 0; r < count; ++r, at += n) {
          C* row = v + r * n;
          C best = row[0];
          int64_t place = 0;
          for (int64_t i = 0; i < n; ++i) {
            const bool take = takes(row[i], best);
            row[i] = best = take ? row[i] : best;
            at[i] = place = take ? i : place;
          }
        }
        out_cast(rows.row(1, b * block), rows.step(1), reinterpret_cast<const char*>(v), sizeof(C), count * n);
      }
    });
    return;
  }
  parallel_for(rows.count, grain_for(n * 3), [&](int64_t begin, int64_t end) {
    constexpr int64_t TILE = 1024;
    alignas(64) C from[TILE], to[TILE];
    const CastFn in_cast = cast_fn(x.dtype, dtype_of<C>), out_cast = cast_fn(dtype_of<C>, x.dtype);
    for (int64_t r = begin; r < end; ++r) {
      const char* p = rows.row(0, r);
      char *q = rows.row(1, r), *w = rows.row(2, r);
      C best{};
      int64_t at = 0;
      for (int64_t i0 = 0; i0 < n; i0 += TILE) {
        const int64_t m = std::min(TILE, n - i0);
        in_cast(reinterpret_cast<char*>(from), sizeof(C), p + i0 * rows.step(0), rows.step(0), m);
        if (i0 == 0) best = from[0];
        for (int64_t i = 0; i < m; ++i) {
          const bool take = takes(from[i], best);
          best = take ? from[i] : best;
          at = take ? i0 + i : at;
          to[i] = best;
          *reinterpret_cast<int64_t*>(w + (i0 + i) * rows.step(2)) = at;
        }
        out_cast(q + i0 * rows.step(1), rows.step(1), reinterpret_cast<const char*>(to), sizeof(C), m);
      }
    }
  });
}

template <class C> void extremes_of(Call& c) { c.i(2) ? extremes<C, true>(c) : extremes<C, false>(c); }

}  // namespace

// x, values, places, dim, compute type, largest
VT_KERNEL(scan_extreme) {
  switch (Dtype(c.i(1))) {
    case Dtype::f32: return extremes_of<float>(c);
    case Dtype::f64: return extremes_of<double>(c);
    default: return extremes_of<int64_t>(c);
  }
}

}  // namespace vt
