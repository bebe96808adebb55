// What detectors need: which boxes survive, and where the maxima of regions are.
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

}  // namespace

VT_KERNEL(survivors) {
  c.view(0).dtype == Dtype::f32 ? survivors<float>(c) : survivors<double>(c);
}

VT_KERNEL(region_argmax) {
  c.view(0).dtype == Dtype::f32 ? region_argmax<float>(c) : region_argmax<double>(c);
}

}  // namespace vt
