// Convolution with kernels of one element: a matrix product over the channels of every point.
#pragma once
#include "convolution_geometry.h"
#include "vt/gemm.h"
#include "vt/gemm_core.h"

namespace vt::conv {

// A tensor of points: channels `sc` and places `sp` elements apart, in every image.
struct Points {
  int64_t count, sn, sc, sp;
  bool flat;

  explicit Points(const Image& x) : count(x.size[0] * x.size[1] * x.size[2]) {
    const int64_t item = itemsize(x.dtype);
    sn = x.sn / item, sc = x.sc / item;
    int64_t step = -1;
    flat = true;
    for (int d = 2; d >= 0; --d) {
      if (x.size[d] == 1) continue;
      flat = flat && (step < 0 || x.step[d] == step);
      if (step < 0) sp = x.step[d] / item;
      step = x.step[d] * x.size[d];
    }
    if (step < 0) sp = 1;
  }
};

inline bool point_by_point(const Geometry& g, const Image& x, const Image& y, int64_t groups, Dtype compute) {
  for (int d = 0; d < 3; ++d)
    if (g.kernel[d] != 1 || g.stride[d] != 1 || g.padding[d] != 0 || x.size[d] != y.size[d]) return false;
  const Points a(x), b(y);
  return groups == 1 && x.dtype == compute && a.flat && b.flat && (a.sc == 1 || a.sp == 1) && (b.sc == 1 || b.sp == 1);
}

// y[:, p] = w x[:, p] + bias for every point p; w (M x K) by its strides.
template <class T> void points(const Image& x, const Image& y, Matrix<const T> w, const T* bias) {
  const Points a(x), b(y);
  const int64_t K = x.c, M = y.c;
  if (bias != nullptr)
    parallel_for(y.n * M, grain_for(b.count), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        T* to = reinterpret_cast<T*>(y.data) + k / M * b.sn + k % M * b.sc;
        for (int64_t i = 0; i < b.count; ++i) to[i * b.sp] = bias[k % M];
      }
    });
  const bool as_one = a.sc == 1 && b.sc == 1 && a.sn == a.count * a.sp && b.sn == b.count * b.sp;
  const int64_t images = as_one ? 1 : x.n, count = as_one ? a.count * x.n : a.count;
  const bool many = images > 1 && M * K * count < (int64_t(1) << 22);
  parallel_for(images, many ? 1 : images, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = reinterpret_cast<const T*>(x.data) + i * a.sn;
      T* to = reinterpret_cast<T*>(y.data) + i * b.sn;
      if (b.sc == 1)
        gemm(count, M, K, Matrix<const T>{from, a.sp, a.sc}, Matrix<const T>{w.data, w.col, w.row},
             Matrix<T>{to, b.sp, b.sc}, bias != nullptr);
      else gemm(M, count, K, w, Matrix<const T>{from, a.sc, a.sp}, Matrix<T>{to, b.sc, b.sp}, bias != nullptr);
    }
  });
}

// The same for half types, which the product widens itself.
inline bool narrow_points(const Geometry& g, const Image& x, const Image& y, int64_t groups) {
  const bool half = x.dtype == Dtype::f16 || x.dtype == Dtype::bf16;
  const bool some = groups == 1 || (Points(x).count >= 64 && Points(y).sc != 1);  // enough for a product each
  return half && some && y.dtype == x.dtype && point_by_point(g, x, y, 1, x.dtype);
}
// w: (results x channels) of a group, `next` to the next one, in bytes.
inline void points_of_halves(const Image& x, const Image& y, vt::Place weights, int64_t next, const View& bias, int64_t groups) {
  const Points a(x), b(y);
  const int64_t K = x.c / groups, M = y.c / groups, item = itemsize(x.dtype);
  const bool as_one = groups == 1 && a.sc == 1 && b.sc == 1 && a.sn == a.count * a.sp && b.sn == b.count * b.sp;
  const int64_t images = (as_one ? 1 : x.n) * groups, count = as_one ? a.count * x.n : a.count;
  const bool many = images > 1 && M * K * count < (int64_t(1) << 22);
  parallel_for(images, many ? std::max<int64_t>(1, grain_for(M * K * count / 4)) : images, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t i = u / groups, k = u % groups;
      const vt::Place from{x.data + (i * a.sn + k * K * a.sc) * item, a.sc * item, a.sp * item};
      const vt::Place w{weights.data + k * next, weights.row, weights.col};
      Result to{};
      to.data = y.data + (i * b.sn + k * M * b.sc) * item;
      to.row = b.sc * item, to.col = b.sp * item;
      if (bias) {
        to.x = bias.data + k * M * bias.strides[0];
        to.x_row = bias.strides[0];
        to.beta = 1;
      }
      if (b.sc == 1) {
        to.transpose();
        product(x.dtype, y.dtype, count, M, K, {from.data, from.col, from.row}, {w.data, w.col, w.row}, to);
      } else product(x.dtype, y.dtype, M, count, K, w, from, to);
    }
  });
}

}  // namespace vt::conv
