// Convolution by its definition: a sum over the taps that lie within the input, and no others. It needs no
// padded copy, so it serves geometries whose copy would be far larger than the tensors, and it multiplies
// nothing by the zeros of the padding, where a NaN or an infinity would make NaN of them.
#pragma once
#include "convolution_padded.h"

namespace vt::conv {

struct Line {
  int64_t n, m, d, h;  // image, channel and place of a line
};
struct Tap {
  int64_t number, d, h, w;
};

// One line of results after another: tap(sums, line, tap) adds what a tap reads.
template <class T, class F>
void direct_lines(const T* bias, const Image& y, const Geometry& g, int64_t cost, F&& tap) {
  const int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2], V = y.size[2], lines = y.size[0] * y.size[1];
  const CastFn cast = cast_fn(dtype_of<T>, y.dtype);
  parallel_for(y.n * y.c * lines, grain_for(cost), [&](int64_t b, int64_t e) {
    Scratch<T> line(V);
    for (int64_t u = b; u < e; ++u) {
      const Line at{u / lines / y.c, u / lines % y.c, u % lines / y.size[1], u % y.size[1]};
      T* sums = line;
      std::fill(sums, sums + V, bias == nullptr ? T(0) : bias[at.m]);
      for (int64_t t = 0; t < taps; ++t)
        tap(sums, at, Tap{t, t / g.kernel[2] / g.kernel[1], t / g.kernel[2] % g.kernel[1], t % g.kernel[2]});
      cast(y.data + at.n * y.sn + at.m * y.sc + at.d * y.step[0] + at.h * y.step[1], y.step[2],
           reinterpret_cast<const char*>(sums), sizeof(T), V);
    }
  });
}

// y = x * w + bias, with w (y.c, x.c / groups, taps).
template <class T>
void direct(const View& x, const T* w, const T* bias, const Image& y, const Geometry& g, int64_t groups) {
  Scratch<T> space(dense_space<T>(x));
  const T* source = dense(x, space.get());
  const Image from(x);
  const int64_t ci = from.c / groups, M = y.c / groups, H = from.size[1], W = from.size[2], V = y.size[2];
  const int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2], step = g.stride[2];
  direct_lines<T>(bias, y, g, V * (ci * taps + 1), [&](T* sums, const Line& at, const Tap& tap) {
    const int64_t d = at.d * g.stride[0] + tap.d * g.dilation[0] - g.padding[0];
    const int64_t h = at.h * g.stride[1] + tap.h * g.dilation[1] - g.padding[1];
    if (d < 0 || d >= from.size[0] || h < 0 || h >= H) return;
    const int64_t offset = tap.w * g.dilation[2] - g.padding[2];
    const Inside in(V, step, offset, W);
    for (int64_t c = 0; c < ci; ++c) {
      const T* row = source + (((at.n * from.c + at.m / M * ci + c) * from.size[0] + d) * H + h) * W;
      const T by = w[(at.m * ci + c) * taps + tap.number];
#pragma GCC ivdep
      for (int64_t o = in.first; o < in.last; ++o) sums[o] += row[o * step + offset] * by;
    }
  });
}

// The transpose of the same, with w (x.c, y.c / groups, taps).
template <class T>
void direct_transposed(const View& x, const T* w, const T* bias, const Image& y, const Geometry& g, int64_t groups) {
  Scratch<T> space(dense_space<T>(x));
  const T* source = dense(x, space.get());
  const Image from(x);
  const int64_t ci = from.c / groups, M = y.c / groups, H = from.size[1], W = from.size[2], V = y.size[2];
  const int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2], step = g.stride[2];
  direct_lines<T>(bias, y, g, V + W * ci * taps, [&](T* sums, const Line& at, const Tap& tap) {
    const int64_t far = at.d + g.padding[0] - tap.d * g.dilation[0], down = at.h + g.padding[1] - tap.h * g.dilation[1];
    if (far < 0 || down < 0 || far % g.stride[0] != 0 || down % g.stride[1] != 0) return;
    const int64_t d = far / g.stride[0], h = down / g.stride[1];
    if (d >= from.size[0] || h >= H) return;
    const int64_t offset = tap.w * g.dilation[2] - g.padding[2];
    const Inside in(W, step, offset, V);
    for (int64_t c = 0; c < ci; ++c) {
      const int64_t channel = at.m / M * ci + c;
      const T* row = source + (((at.n * from.c + channel) * from.size[0] + d) * H + h) * W;
      const T by = w[(channel * M + at.m % M) * taps + tap.number];
#pragma GCC ivdep
      for (int64_t i = in.first; i < in.last; ++i) sums[i * step + offset] += row[i] * by;
    }
  });
}

// The weight's gradient (grad.c, x.c / groups, taps).
template <class T>
void direct_weight(const View& x, const View& grad, const View& out, const Geometry& g, int64_t groups) {
  Scratch<T> x_space(dense_space<T>(x)), g_space(dense_space<T>(grad));
  const T *source = dense(x, x_space.get()), *by = dense(grad, g_space.get());
  const Image from(x), y(grad);
  const int64_t ci = from.c / groups, O = y.c / groups, H = from.size[1], W = from.size[2], V = y.size[2];
  const int64_t taps = g.kernel[0] * g.kernel[1] * g.kernel[2], lines = y.size[0] * y.size[1];
  const CastFn cast = cast_fn(dtype_of<T>, out.dtype);
  const int64_t item = itemsize(out.dtype);
  parallel_for(y.c * ci * taps, grain_for(y.n * lines * (V + 8)), [&](int64_t b, int64_t e) {
    for (int64_t u = b; u < e; ++u) {
      const int64_t t = u % taps, c = u / taps % ci, o = u / taps / ci;
      const int64_t kw = t % g.kernel[2], kh = t / g.kernel[2] % g.kernel[1], kd = t / g.kernel[2] / g.kernel[1];
      const int64_t offset = kw * g.dilation[2] - g.padding[2], step = g.stride[2];
      const Inside in(V, step, offset, W);
      T sum = 0;
      for (int64_t r = 0; r < y.n * lines; ++r) {
        const int64_t n = r / lines, d = r % lines / y.size[1] * g.stride[0] + kd * g.dilation[0] - g.padding[0];
        const int64_t h = r % y.size[1] * g.stride[1] + kh * g.dilation[1] - g.padding[1];
        if (d < 0 || d >= from.size[0] || h < 0 || h >= H) continue;
        const T* row = source + (((n * from.c + o / O * ci + c) * from.size[0] + d) * H + h) * W;
        const T* weigh = by + ((n * y.c + o) * lines + r % lines) * V;
        T part = 0;
        for (int64_t q = in.first; q < in.last; ++q) part += weigh[q] * row[q * step + offset];
        sum += part;
      }
      cast(out.data + u * item, item, reinterpret_cast<const char*>(&sum), sizeof(T), 1);
    }
  });
}

}  // namespace vt::conv
