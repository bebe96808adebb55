// Distances of every point of one set to every point of another.
#include <algorithm>
#include <cmath>

#include "vt/cast.h"
#include "vt/gemm.h"
#include "vt/kernel.h"

namespace vt {
namespace {

enum class Norm { COUNT, SUM, SQUARES, LARGEST };

template <Norm N, class C> inline C added(C total, C difference) {
  const C d = std::abs(difference);
  if constexpr (N == Norm::COUNT) return total + (d != C(0) ? C(1) : C(0));
  else if constexpr (N == Norm::SUM) return total + d;
  else if constexpr (N == Norm::SQUARES) return total + d * d;
  else return d > total || d != d ? d : total;
}

// The points of one batch: n rows of `size` numbers, of any type and strides in bytes.
struct Points {
  const char* data;
  int64_t n, size, row, col;
  Dtype dtype;
};

Points points_of(const View& x, const View& out, int64_t batch) {
  const char* data = x.data;
  const int missing = out.ndim - x.ndim;
  for (int d = out.ndim - 3; d >= 0; --d) {
    const int64_t at = batch % out.shape[d];
    batch /= out.shape[d];
    if (d >= missing && x.shape[d - missing] != 1) data += at * x.strides[d - missing];
  }
  return {data, x.shape[x.ndim - 2], x.shape[x.ndim - 1], x.strides[x.ndim - 2], x.strides[x.ndim - 1], x.dtype};
}

// Some of the points as dense rows.
template <class C> void take(C* to, const Points& from, int64_t first, int64_t n) {
  const CastFn in = cast_fn(from.dtype, dtype_of<C>);
  for (int64_t i = 0; i < n; ++i)
    in(reinterpret_cast<char*>(to + i * from.size), sizeof(C), from.data + (first + i) * from.row, from.col, from.size);
}

constexpr int64_t ROWS = 64;

// Distances of `rows` points to W others, whose numbers lie side by side: a lane is a pair of points.
template <Norm N, int64_t W, class C>
void tile(C* to, const C* a, int64_t rows, const C* b, int64_t size) {
  for (int64_t i = 0; i < rows; ++i) {
    C total[W] = {};
    for (int64_t k = 0; k < size; ++k) {
      const C v = a[i * size + k];
      for (int64_t j = 0; j < W; ++j) total[j] = added<N>(total[j], v - b[k * W + j]);
    }
    for (int64_t j = 0; j < W; ++j) to[i * W + j] = N == Norm::SQUARES ? std::sqrt(total[j]) : total[j];
  }
}

template <Norm N, int64_t W, class C>
void pairs(const Points& left, const Points& right, char* out, int64_t row, int64_t col, Dtype stored) {
  const int64_t size = left.size, across = (right.n + W - 1) / W, down = (left.n + ROWS - 1) / ROWS;
  const CastFn put = cast_fn(dtype_of<C>, stored);
  parallel_for(across * down, grain_for(ROWS * W / 4 * (size + 4)), [&](int64_t begin, int64_t end) {
    Scratch<C> a(ROWS * size), b(W * size), line(size), to(ROWS * W);
    int64_t held_left = -1, held_right = -1;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t i = task / across * ROWS, j = task % across * W;
      const int64_t m = std::min(ROWS, left.n - i), n = std::min(W, right.n - j);
      if (held_left != i) take<C>(a, left, held_left = i, m);
      if (held_right != j) {
        held_right = j;
        for (int64_t at = 0; at < W; ++at) {
          if (at < n) take<C>(line, right, j + at, 1);
          for (int64_t k = 0; k < size; ++k) b[k * W + at] = line[k];
        }
      }
      tile<N, W, C>(to, a, m, b, size);
      for (int64_t at = 0; at < m; ++at)
        put(out + (i + at) * row + j * col, col, reinterpret_cast<const char*>(to + at * W), sizeof(C), n);
    }
  });
}

template <Norm N, class C>
void distances(const Points& left, const Points& right, char* out, int64_t row, int64_t col, Dtype stored) {
  // The set with more points fills the lanes.
  if (right.n < left.n && right.n < 32) return distances<N, C>(right, left, out, col, row, stored);
  if (right.n <= 16) return pairs<N, 16, C>(left, right, out, row, col, stored);
  pairs<N, 64, C>(left, right, out, row, col, stored);
}

// |a - b|^2 = |a|^2 - 2 ab + |b|^2, held above the negative numbers that rounding makes.
template <class C>
void by_product(const Points& left, const Points& right, char* out, int64_t row, int64_t col, Dtype stored) {
  const int64_t M = left.n, N = right.n, K = left.size;
  Scratch<C> a(M * K), b(N * K), squares(M + N), product(M * N);
  take<C>(a, left, 0, M);
  take<C>(b, right, 0, N);
  auto square = [K](const C* x) {
    C total = 0;
    for (int64_t k = 0; k < K; ++k) total += x[k] * x[k];
    return total;
  };
  for (int64_t i = 0; i < M; ++i) squares[i] = square(a + i * K);
  for (int64_t j = 0; j < N; ++j) squares[M + j] = square(b + j * K);
  gemm(M, N, K, Matrix<const C>{a, K, 1}, Matrix<const C>{b, 1, K}, Matrix<C>{product, N, 1});
  const CastFn put = cast_fn(dtype_of<C>, stored);
  parallel_for(M, grain_for(2 * N), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      C* p = product + i * N;
      const C mine = squares[i];
      const C* theirs = squares + M;
      for (int64_t j = 0; j < N; ++j) {
        const C d = mine + theirs[j] - C(2) * p[j];
        p[j] = std::sqrt(d < C(0) ? C(0) : d);
      }
      put(out + i * row, col, reinterpret_cast<const char*>(p), sizeof(C), N);
    }
  });
}

template <class C> void all_batches(Call& c) {
  const View &out = c.view(0), &x1 = c.view(1), &x2 = c.view(2);
  int64_t batches = 1;
  for (int d = 0; d < out.ndim - 2; ++d) batches *= out.shape[d];
  if (out.numel() == 0) return;
  const double p = c.f(0);
  const int64_t row = out.strides[out.ndim - 2], col = out.strides[out.ndim - 1];
  auto batch = [&](int64_t k) {
    char* to = out.data;
    for (int64_t d = out.ndim - 3, left = k; d >= 0; --d) to += left % out.shape[d] * out.strides[d], left /= out.shape[d];
    const Points a = points_of(x1, out, k), b = points_of(x2, out, k);
    if (c.i(0) && a.size) by_product<C>(a, b, to, row, col, out.dtype);
    else if (p == 0) distances<Norm::COUNT, C>(a, b, to, row, col, out.dtype);
    else if (p == 1) distances<Norm::SUM, C>(a, b, to, row, col, out.dtype);
    else if (p == 2) distances<Norm::SQUARES, C>(a, b, to, row, col, out.dtype);
    else distances<Norm::LARGEST, C>(a, b, to, row, col, out.dtype);
  };
  // Batches side by side; within one, and where there is only one, tiles.
  const int64_t work = out.numel() / batches * (x1.shape[x1.ndim - 1] + 1) / 4;
  parallel_for(batches, grain_for(work), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) batch(k);
  });
}

// out, x1, x2; p as float; whether by a matrix product
VT_KERNEL(cdist) { c.view(1).dtype == Dtype::f64 ? all_batches<double>(c) : all_batches<float>(c); }

}  // namespace
}  // namespace vt
