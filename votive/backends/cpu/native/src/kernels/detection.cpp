// What detectors need: which boxes survive, where the maxima of regions are, and their weighted sums.
#include <algorithm>
#include <cmath>

#include "vt/cast.h"
#include "vt/kernel.h"

namespace vt {
namespace {

// The largest T that is not above a number: `v > limit` then says the same for every v of type T.
template <class T> T not_above(double limit) {
  T t = T(limit);
  return double(t) > limit ? std::nextafter(t, T(-INFINITY)) : t;
}

// Each survivor strikes out all later boxes that it covers too much of. Intersections are stored before
// they are used, so that product and difference are rounded one by one, as in the reference.
template <class T> void strike(const T* x1, const T* y1, const T* x2, const T* y2, const T* area, const int64_t* group,
                               T* inter, uint8_t* alive, int64_t i, int64_t n, T limit, bool grouped) {
  const T left = x1[i], top = y1[i], right = x2[i], bottom = y2[i], own = area[i];
#pragma GCC ivdep
  for (int64_t j = i + 1; j < n; ++j) {
    const T w = std::min(right, x2[j]) - std::max(left, x1[j]), h = std::min(bottom, y2[j]) - std::max(top, y1[j]);
    inter[j] = std::max(w, T(0)) * std::max(h, T(0));
  }
  if (grouped) {
    const int64_t mine = group[i];
#pragma GCC ivdep
    for (int64_t j = i + 1; j < n; ++j)
      alive[j] &= uint8_t(!(inter[j] / (own + area[j] - inter[j]) > limit) | (group[j] != mine));
  } else {
#pragma GCC ivdep
    for (int64_t j = i + 1; j < n; ++j) alive[j] &= uint8_t(!(inter[j] / (own + area[j] - inter[j]) > limit));
  }
}

template <class T> void survivors(Call& c) {
  const View &boxes = c.view(0), &groups = c.view(1), &out = c.view(2);
  const int64_t n = boxes.size(0);
  const T limit = not_above<T>(c.f(0));
  Scratch<T> x1(n), y1(n), x2(n), y2(n), area(n), inter(n);
  Scratch<int64_t> group(n);
  Scratch<uint8_t> alive(n);
  bool grouped = false;
  for (int64_t i = 0; i < n; ++i) {
    const char* row = boxes.data + i * boxes.strides[0];
    auto at = [&](int64_t k) { return *reinterpret_cast<const T*>(row + k * boxes.strides[1]); };
    x1[i] = at(0), y1[i] = at(1), x2[i] = at(2), y2[i] = at(3);
    group[i] = *reinterpret_cast<const int64_t*>(groups.data + i * groups.strides[0]);
    grouped |= group[i] != group[0];
    alive[i] = 1;
  }
  for (int64_t i = 0; i < n; ++i) area[i] = (x2[i] - x1[i]) * (y2[i] - y1[i]);
  for (int64_t i = 0; i < n; ++i)
    if (alive[i]) strike<T>(x1, y1, x2, y2, area, group, inter, alive, i, n, limit, grouped);
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<bool*>(out.data + i * out.strides[0]) = alive[i];
}

// The place in (H, W) of the largest element of each bin, -1 in empty ones. The first of equal ones counts, and
// NaN counts as largest.
template <class T> void region_argmax(Call& c) {
  const View &x = c.view(0), &image = c.view(1), &out = c.view(6);
  const int64_t rows = c.view(2).size(1), columns = c.view(4).size(1), channels = x.size(1), width = x.size(3);
  const int64_t sh = x.stride(2), sw = x.stride(3);
  auto edge = [&](int v, int64_t k, int64_t b) {
    const View& e = c.view(v);
    return *reinterpret_cast<const int64_t*>(e.data + k * e.strides[0] + b * e.strides[1]);
  };
  parallel_for(image.size(0) * channels, grain_for(rows * columns * 16), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t k = task / channels, ch = task % channels;
      const int64_t n = *reinterpret_cast<const int64_t*>(image.data + k * image.strides[0]);
      const T* plane = x.as<T>() + n * x.stride(0) + ch * x.stride(1);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t top = edge(2, k, i), bottom = edge(3, k, i), left = edge(4, k, j), right = edge(5, k, j);
          int64_t found = -1;
          T best = T(0);
          for (int64_t r = top; r < bottom; ++r)
            for (int64_t q = left; q < right; ++q) {
              const T v = plane[r * sh + q * sw];
              if (found < 0 || v > best || (v != v && best == best)) found = r * width + q, best = v;
            }
          char* to = out.data + k * out.strides[0] + ch * out.strides[1] + i * out.strides[2] + j * out.strides[3];
          *reinterpret_cast<int64_t*>(to) = found;
        }
    }
  });
}

// Where the weights of a bin that are not 0 begin and end.
struct Span { int64_t begin, end; };

template <class T> Span span_of(const T* weights, int64_t n) {
  int64_t b = 0, e = n;
  while (b < e && weights[b] == T(0)) ++b;
  while (e > b && weights[e - 1] == T(0)) --e;
  return {b, e};
}

// The spans of all bins of all regions, (K, bins, size).
template <class T> std::vector<Span> spans(const View& by) {
  std::vector<Span> found(by.size(0) * by.size(1));
  for (size_t k = 0; k < found.size(); ++k) found[k] = span_of(by.as<T>() + k * by.size(2), by.size(2));
  return found;
}

Span around(const Span* bins, int64_t n) {
  Span all{0, 0};
  for (int64_t q = 0; q < n; ++q)
    if (bins[q].end > bins[q].begin)
      all = all.end ? Span{std::min(all.begin, bins[q].begin), std::max(all.end, bins[q].end)} : bins[q];
  return all;
}

// Rows of features are summed for each bin of rows, and the sums for each bin of columns. Elements of x may lie
// anywhere; those of a row are brought together first where they do not.
template <class T> void region_sums(Call& c) {
  const View &x = c.view(0), &image = c.view(1), &by_row = c.view(2), &by_column = c.view(3), &out = c.view(4);
  const int64_t channels = x.size(1), rows = by_row.size(1), columns = by_column.size(1), H = x.size(2), W = x.size(3);
  const auto down = spans<T>(by_row), across = spans<T>(by_column);
  parallel_for(image.size(0) * channels, grain_for(rows * (W + columns * 4)), [&](int64_t begin, int64_t end) {
    Scratch<T> line(W);
    T* sums = line;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t k = task / channels, ch = task % channels;
      const Span all = around(&across[k * columns], columns);
      const char* plane = x.data + image.as<int64_t>()[k] * x.strides[0] + ch * x.strides[1];
      for (int64_t p = 0; p < rows; ++p) {
        std::fill(sums + all.begin, sums + all.end, T(0));
        const Span d = down[k * rows + p];
        const T* weight = by_row.as<T>() + (k * rows + p) * H;
        for (int64_t h = d.begin; h < d.end; ++h) {
          const T by = weight[h];
          const char* row = plane + h * x.strides[2];
          if (x.strides[3] == int64_t(sizeof(T))) {
            const T* from = reinterpret_cast<const T*>(row);
#pragma GCC ivdep
            for (int64_t w = all.begin; w < all.end; ++w) sums[w] += by * from[w];
          } else {
            for (int64_t w = all.begin; w < all.end; ++w)
              sums[w] += by * *reinterpret_cast<const T*>(row + w * x.strides[3]);
          }
        }
        char* to = out.data + k * out.strides[0] + ch * out.strides[1] + p * out.strides[2];
        for (int64_t q = 0; q < columns; ++q) {
          const Span a = across[k * columns + q];
          const T* by = by_column.as<T>() + (k * columns + q) * W;
          T sum = T(0);
          for (int64_t w = a.begin; w < a.end; ++w) sum += by[w] * sums[w];
          *reinterpret_cast<T*>(to + q * out.strides[3]) = sum;
        }
      }
    }
  });
}

// Parallel over channels: regions overlap, channels do not.
template <class T> void region_sums_transpose(Call& c) {
  const View &g = c.view(0), &image = c.view(1), &by_row = c.view(2), &by_column = c.view(3), &out = c.view(4);
  const int64_t channels = g.size(1), rows = by_row.size(1), columns = by_column.size(1), regions = image.size(0);
  const int64_t H = by_row.size(2), W = by_column.size(2);
  const auto down = spans<T>(by_row), across = spans<T>(by_column);
  parallel_for(channels, grain_for(out.size(0) * H * W + regions * rows * W), [&](int64_t begin, int64_t end) {
    Scratch<T> line(W);
    T* sums = line;
    for (int64_t ch = begin; ch < end; ++ch) {
      for (int64_t n = 0; n < out.size(0); ++n) {
        T* plane = out.as<T>() + (n * channels + ch) * H * W;
        std::fill(plane, plane + H * W, T(0));
      }
      for (int64_t k = 0; k < regions; ++k) {
        const Span all = around(&across[k * columns], columns);
        T* plane = out.as<T>() + (image.as<int64_t>()[k] * channels + ch) * H * W;
        for (int64_t p = 0; p < rows; ++p) {
          std::fill(sums + all.begin, sums + all.end, T(0));
          const char* from = g.data + k * g.strides[0] + ch * g.strides[1] + p * g.strides[2];
          for (int64_t q = 0; q < columns; ++q) {
            const Span a = across[k * columns + q];
            const T* by = by_column.as<T>() + (k * columns + q) * W;
            const T v = *reinterpret_cast<const T*>(from + q * g.strides[3]);
#pragma GCC ivdep
            for (int64_t w = a.begin; w < a.end; ++w) sums[w] += v * by[w];
          }
          const Span d = down[k * rows + p];
          for (int64_t h = d.begin; h < d.end; ++h) {
            const T by = by_row.as<T>()[(k * rows + p) * H + h];
            T* row = plane + h * W;
#pragma GCC ivdep
            for (int64_t w = all.begin; w < all.end; ++w) row[w] += by * sums[w];
          }
        }
      }
    }
  });
}

}  // namespace

VT_KERNEL(survivors) {
  c.view(0).dtype == Dtype::f32 ? survivors<float>(c) : survivors<double>(c);
}

VT_KERNEL(region_argmax) {
  c.view(0).dtype == Dtype::f32 ? region_argmax<float>(c) : region_argmax<double>(c);
}

VT_KERNEL(region_sums) {
  c.view(0).dtype == Dtype::f32 ? region_sums<float>(c) : region_sums<double>(c);
}

VT_KERNEL(region_sums_transpose) {
  c.view(0).dtype == Dtype::f32 ? region_sums_transpose<float>(c) : region_sums_transpose<double>(c);
}

}  // namespace vt
