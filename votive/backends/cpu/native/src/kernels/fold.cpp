// Windows as columns, and columns added up to images.
#include "convolution_padded.h"

namespace vt { namespace {
using namespace conv;

template <class S> void unfolded(const Image& x, const View& out, const Geometry& g, const int64_t* places) {
  const int64_t item = sizeof(S), taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const int64_t rows = places[0] * places[1], V = places[2];
  parallel_for(x.n * x.c * taps, grain_for(rows * (V / 2 + 8)), [&](int64_t b, int64_t e) {
    for (int64_t u = b; u < e; ++u) {
      const int64_t t = u % taps, k = u / taps;
      const int64_t kw = t % g.kernel[2], kh = t / g.kernel[2] % g.kernel[1], kd = t / g.kernel[2] / g.kernel[1];
      const char* from = x.data + k / x.c * x.sn + k % x.c * x.sc;
      S* to = reinterpret_cast<S*>(out.data + k / x.c * out.strides[0] + (k % x.c * taps + t) * out.strides[1]);
      const int64_t offset = kw * g.dilation[2] - g.padding[2], step = g.stride[2] * x.step[2];
      const Inside in(V, g.stride[2], offset, x.size[2]);
      for (int64_t r = 0; r < rows; ++r, to += V) {
        const int64_t d = r / places[1] * g.stride[0] + kd * g.dilation[0] - g.padding[0];
        const int64_t h = r % places[1] * g.stride[1] + kh * g.dilation[1] - g.padding[1];
        if (d < 0 || d >= x.size[0] || h < 0 || h >= x.size[1]) {
          std::fill(to, to + V, S{});
          continue;
        }
        const char* src = from + d * x.step[0] + h * x.step[1] + offset * x.step[2];
        std::fill(to, to + in.first, S{});
        if (step == item && in.last > in.first)
          std::memcpy(to + in.first, src + in.first * step, size_t((in.last - in.first) * item));
        else
          for (int64_t o = in.first; o < in.last; ++o) to[o] = *reinterpret_cast<const S*>(src + o * step);
        std::fill(to + in.last, to + V, S{});
      }
    }
  });
}

template <class T> void folded(const View& x, const Image& y, const Geometry& g, const int64_t* places) {
  const int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2], rows = places[0] * places[1], V = places[2];
  const int64_t H = y.size[1], W = y.size[2], plane = y.size[0] * H * W, item = itemsize(y.dtype), xs = x.strides[2];
  const CastFn in = cast_fn(x.dtype, dtype_of<T>), out = cast_fn(dtype_of<T>, y.dtype);
  const bool dense_plane = y.dtype == dtype_of<T> && y.step[2] == item && y.step[1] == W * item &&
                           (y.size[0] == 1 || y.step[0] == H * W * item);
  parallel_for(y.n * y.c, grain_for(taps * rows * (V / 2 + 8)), [&](int64_t b, int64_t e) {
    Scratch<T> space(dense_plane ? 0 : plane), line(V);
    for (int64_t k = b; k < e; ++k) {
      char* target = y.data + k / y.c * y.sn + k % y.c * y.sc;
      T* to = dense_plane ? reinterpret_cast<T*>(target) : space.get();
      std::fill(to, to + plane, T(0));
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t kw = t % g.kernel[2], kh = t / g.kernel[2] % g.kernel[1], kd = t / g.kernel[2] / g.kernel[1];
        const int64_t offset = kw * g.dilation[2] - g.padding[2];
        const Inside within(V, g.stride[2], offset, W);
        const char* from = x.data + k / y.c * x.strides[0] + (k % y.c * taps + t) * x.strides[1];
        for (int64_t r = 0; r < rows; ++r, from += V * xs) {
          const int64_t d = r / places[1] * g.stride[0] + kd * g.dilation[0] - g.padding[0];
          const int64_t h = r % places[1] * g.stride[1] + kh * g.dilation[1] - g.padding[1];
          if (d < 0 || d >= y.size[0] || h < 0 || h >= H) continue;
          const T* row = reinterpret_cast<const T*>(from);
          if (x.dtype != dtype_of<T> || xs != int64_t(sizeof(T))) {
            in(reinterpret_cast<char*>(line.get()), sizeof(T), from, xs, V);
            row = line;
          }
          T* sums = to + (d * H + h) * W + offset;
          if (g.stride[2] == 1) {
#pragma GCC ivdep
            for (int64_t o = within.first; o < within.last; ++o) sums[o] += row[o];
          } else {
            const int64_t step = g.stride[2];
#pragma GCC ivdep
            for (int64_t o = within.first; o < within.last; ++o) sums[o * step] += row[o];
          }
        }
      }
      if (!dense_plane)
        for (int64_t r = 0; r < y.size[0] * H; ++r)
          out(target + r / H * y.step[0] + r % H * y.step[1], y.step[2], reinterpret_cast<const char*>(to + r * W),
              sizeof(T), W);
    }
  });
}

// x, out; stride, padding, dilation, kernel, places.
VT_KERNEL(unfold) {
  const int n = int(c.ints.size()) / 5;
  const Image x(c.view(0), n);
  const Geometry g(c, 0, n, &c.ints[3 * n]);
  int64_t places[3] = {1, 1, 1};
  for (int k = 0; k < n; ++k) places[3 - n + k] = c.i(4 * n + k);
  for_sizes(x.dtype, [&](auto t) { unfolded<typename decltype(t)::type>(x, c.view(1), g, places); });
}

VT_KERNEL(fold) {
  const int n = int(c.ints.size()) / 5;
  const Image y(c.view(1), n);
  const Geometry g(c, 0, n, &c.ints[3 * n]);
  int64_t places[3] = {1, 1, 1};
  for (int k = 0; k < n; ++k) places[3 - n + k] = c.i(4 * n + k);
  if (y.dtype == Dtype::f64) folded<double>(c.view(0), y, g, places);
  else folded<float>(c.view(0), y, g, places);
}

}}  // namespace vt
