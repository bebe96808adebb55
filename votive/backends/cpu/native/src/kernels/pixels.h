// Images as dense pixels of the compute type, channels last: for half types, and for planes so small that vectors along
// their rows would be mostly empty. Copies go in and out; the kernels between see one layout.
#pragma once
#include "convolution_padded.h"

namespace vt::conv {

// Whether channels are neighbours in memory.
inline bool by_pixels(const Image& x) { return x.c > 1 && x.sc == itemsize(x.dtype) && x.step[2] != x.sc; }

// Whether a copy as pixels pays: half types that lie so, or planes of a few results in a row. Half types are converted
// row by row otherwise, so that up to `half_row` are few.
inline bool copied_as_pixels(const Image& x, const Image& y, int64_t half_row = 16) {
  const bool half = x.dtype == Dtype::f16 || x.dtype == Dtype::bf16;
  if (x.dtype != y.dtype || (!half && x.dtype != Dtype::f32 && x.dtype != Dtype::f64)) return false;
  if (half && by_pixels(x) && by_pixels(y)) return true;
  const int64_t results = y.size[0] * y.size[1] * y.size[2], plane = x.size[0] * x.size[1] * x.size[2];
  const int64_t narrow = half ? half_row : 12;
  return x.c >= 8 && y.size[2] < narrow && x.size[2] < 2 * narrow && (results > 1 || plane <= 64);
}

// Calls f(pointer in memory, offset of the copy) for each line of pixels, shared among threads.
template <class F> void for_lines(const Image& x, F&& f) {
  const int64_t lines = x.size[0] * x.size[1], W = x.size[2];
  parallel_for(x.n * lines, grain_for(W * x.c), [&](int64_t b, int64_t e) {
    for (int64_t u = b; u < e; ++u) {
      const int64_t r = u % lines;
      f(x.data + u / lines * x.sn + r / x.size[1] * x.step[0] + r % x.size[1] * x.step[1], u * W * x.c);
    }
  });
}

// Dense pixels of T; memory is the caller's.
template <class T> Image pixels_of(const Image& like, T* memory, Dtype dtype = dtype_of<T>) {
  Image p = like;
  const int64_t item = sizeof(T);
  p.data = reinterpret_cast<char*>(memory);
  p.dtype = dtype;
  p.sc = item;
  p.step[2] = p.c * item;
  p.step[1] = p.size[2] * p.step[2];
  p.step[0] = p.size[1] * p.step[1];
  p.sn = p.size[0] * p.step[0];
  return p;
}

// Lines of pixels are turned over while they are converted.
template <class S, class T> void copy_in(const Image& x, T* to) {
  const int64_t W = x.size[2], C = x.c, item = sizeof(T);
  const CastFn cast = cast_fn(dtype_of<S>, dtype_of<T>);
  for_lines(x, [&](const char* from, int64_t at) {
    cast_block(cast, sizeof(S), item, reinterpret_cast<char*>(to + at), C * item, item, from, x.step[2], x.sc, W, C);
  });
}
template <class S, class T> void copy_out(const Image& y, const T* from) {
  const int64_t W = y.size[2], C = y.c, item = sizeof(T);
  const CastFn cast = cast_fn(dtype_of<T>, dtype_of<S>);
  for_lines(y, [&](char* to, int64_t at) {
    const char* pixels = reinterpret_cast<const char*>(from + at);
    if (y.sc == int64_t(sizeof(S))) cast_block(cast, item, sizeof(S), to, y.step[2], y.sc, pixels, C * item, item, W, C);
    else cast_block(cast, item, sizeof(S), to, y.sc, y.step[2], pixels, item, C * item, C, W);
  });
}

template <class T> void into_pixels(const Image& x, T* to) {
  for_floats("pixels", x.dtype, [&](auto s) { copy_in<typename decltype(s)::type, T>(x, to); });
}
template <class T> void from_pixels(const Image& y, const T* from) {
  for_floats("pixels", y.dtype, [&](auto s) { copy_out<typename decltype(s)::type, T>(y, from); });
}

inline int64_t elements(const Image& x) { return x.n * x.c * x.size[0] * x.size[1] * x.size[2]; }

// Runs f(pixels of x, pixels of y), then y holds what f wrote.
template <class T, class F> void with_pixels(const Image& x, const Image& y, F&& f) {
  Scratch<T> in(elements(x)), out(elements(y));
  into_pixels<T>(x, in.get());
  f(pixels_of<T>(x, in), pixels_of<T>(y, out));
  from_pixels<T>(y, static_cast<const T*>(out.get()));
}

}  // namespace vt::conv
