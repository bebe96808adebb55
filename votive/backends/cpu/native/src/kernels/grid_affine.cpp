// Grids of positions that affine maps make, and what the maps receive.
#include <algorithm>
#include <vector>

#include "vt/kernel.h"

namespace vt {
namespace {

// Coordinates of n elements in -1..1: the ends are the outer centres (align) or the outer edges.
template <class C> inline C centre(int64_t i, int64_t n, bool align) {
  const int64_t span = align ? n - 1 : n;
  return span > 0 ? C(2 * i + 1 - n) / C(span) : C(0);
}

// Lines of places: all but the innermost dimension.
struct Lines {
  int dims;
  bool align;
  int64_t size[3], count = 1, width;

  Lines(const View& grid, bool align) : dims(grid.ndim - 2), align(align), width(grid.size(dims)) {
    for (int d = 0; d < dims; ++d) size[d] = grid.size(1 + d);
    for (int d = 0; d < dims - 1; ++d) count *= size[d];
  }
  // y and z of a line, as theta names them, and 1.
  template <class C> void others(int64_t line, C* to) const {
    for (int d = dims - 2; d >= 0; --d) {
      to[dims - 2 - d] = centre<C>(line % size[d], size[d], align);
      line /= size[d];
    }
    to[dims - 1] = C(1);
  }
};

template <class S> void grid(Call& c) {
  using C = compute_t<S>;
  const View &theta = c.view(0), &out = c.view(1);
  const Lines lines(out, c.i(0) != 0);
  const int n = lines.dims;
  parallel_for(out.size(0) * lines.count, grain_for(lines.width * n * 3), [&](int64_t begin, int64_t end) {
    Scratch<C> x(lines.width);
    for (int64_t i = 0; i < lines.width; ++i) x[i] = centre<C>(i, lines.width, lines.align);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / lines.count;
      C other[3], by[3], base[3];
      lines.others(task % lines.count, other);
      for (int d = 0; d < n; ++d) {
        const S* row = theta.as<S>() + b * theta.stride(0) + d * theta.stride(1);
        by[d] = convert<C>(row[0]), base[d] = C(0);
        for (int e = 0; e < n; ++e) base[d] += convert<C>(row[(e + 1) * theta.stride(2)]) * other[e];
      }
      S* to = out.as<S>() + task * lines.width * n;
      if (n == 2)
        for (int64_t i = 0; i < lines.width; ++i)
          to[2 * i] = convert<S>(by[0] * x[i] + base[0]), to[2 * i + 1] = convert<S>(by[1] * x[i] + base[1]);
      else
        for (int64_t i = 0; i < lines.width; ++i)
          for (int d = 0; d < 3; ++d) to[3 * i + d] = convert<S>(by[d] * x[i] + base[d]);
    }
  });
}

// Each map's numbers receive sums over all places; pieces of them are summed apart.
template <class S> void grid_transpose(Call& c) {
  const View &g = c.view(0), &out = c.view(1);
  const Lines lines(g, c.i(0) != 0);
  const int n = lines.dims;
  const int64_t pieces = std::clamp<int64_t>(num_threads() / std::max<int64_t>(g.size(0), 1), 1, lines.count);
  std::vector<double> sums(g.size(0) * pieces * 12, 0.0);
  parallel_for(g.size(0) * pieces, grain_for(lines.count / pieces * lines.width * n * 2), [&](int64_t begin, int64_t end) {
    Scratch<double> x(lines.width);
    for (int64_t i = 0; i < lines.width; ++i) x[i] = centre<double>(i, lines.width, lines.align);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t b = task / pieces, piece = task % pieces;
      double* sum = sums.data() + task * 12;
      for (int64_t line = lines.count * piece / pieces; line < lines.count * (piece + 1) / pieces; ++line) {
        double other[3];
        lines.others(line, other);
        const S* from = g.as<S>() + (b * lines.count + line) * lines.width * n;
        for (int d = 0; d < n; ++d) {
          double plain[4] = {}, along[4] = {};
          int64_t i = 0;
          for (; i + 4 <= lines.width; i += 4)
            for (int j = 0; j < 4; ++j) {
              const double v = convert<double>(from[(i + j) * n + d]);
              plain[j] += v, along[j] += v * x[i + j];
            }
          for (; i < lines.width; ++i) {
            const double v = convert<double>(from[i * n + d]);
            plain[0] += v, along[0] += v * x[i];
          }
          const double total = (plain[0] + plain[1]) + (plain[2] + plain[3]);
          sum[d * 4] += (along[0] + along[1]) + (along[2] + along[3]);
          for (int e = 0; e < n; ++e) sum[d * 4 + 1 + e] += total * other[e];
        }
      }
    }
  });
  for (int64_t b = 0; b < g.size(0); ++b)
    for (int d = 0; d < n; ++d)
      for (int e = 0; e <= n; ++e) {
        double total = 0;
        for (int64_t piece = 0; piece < pieces; ++piece) total += sums[(b * pieces + piece) * 12 + d * 4 + e];
        out.as<S>()[(b * n + d) * (n + 1) + e] = convert<S>(total);
      }
}

}  // namespace

// theta, out, align
VT_KERNEL(affine_grid) {
  for_floats("affine_grid", c.view(0).dtype, [&](auto t) { grid<typename decltype(t)::type>(c); });
}

// g, out, align
VT_KERNEL(affine_grid_transpose) {
  for_floats("affine_grid_transpose", c.view(0).dtype, [&](auto t) { grid_transpose<typename decltype(t)::type>(c); });
}

}  // namespace vt
