// Copies of tensors for convolutions and pools: with padding in place, or dense.
#pragma once
#include "convolution_geometry.h"
#include "convolution_vector.h"

namespace vt::conv {

// A dense copy of some images with zeros around, its rows split by the step: what a tap reads for
// neighbouring places is contiguous. Element (c, d, h, w) of image i is at
// i * image + c * channel + d * plane + h * line + (w % step) * part + w / step, counted from `low`.
struct Padded {
  int64_t image, channel, plane, line, part;
  std::vector<char> used[3];  // which coordinates some tap reads; along w: which residues

  Padded(const Sweep& s, int64_t channels) {
    part = up(s.span[2], s.step[2]);
    line = part * s.step[2];
    plane = line * s.span[1];
    channel = plane * s.span[0];
    image = channel * channels;
    for (int d = 0; d < 3; ++d) {
      used[d].assign(d == 2 ? s.step[2] : s.span[d], 0);
      for (const Phase& p : s.phases)
        for (size_t t = 0; t < p.taps.size(); ++t) {
          const int64_t at = p.offsets[3 * t + d] - s.low[d];
          if (d == 2) used[d][at % s.step[2]] = 1;
          else
            for (int64_t q = 0; q < p.places[d]; ++q) used[d][at + q * s.step[d]] = 1;
        }
    }
  }

  int64_t at(const Sweep& s, const int64_t* coordinate) const {
    const int64_t w = coordinate[2] - s.low[2];
    return (coordinate[0] - s.low[0]) * plane + (coordinate[1] - s.low[1]) * line + w % s.step[2] * part +
           w / s.step[2];
  }

  // What every row of a source has in common: for each residue the elements that exist.
  struct Row {
    int64_t to, first, last, from;  // elements first..last of the part at `to` come from `from` (bytes) on
  };
  template <class T> struct Filling {
    const Padded& p;
    const Sweep& s;
    const Image& x;
    T blank;
    CastFn cast;
    bool same;
    std::vector<Row> rows;

    Filling(const Padded& p_, const Sweep& s_, const Image& x_, T blank_)
        : p(p_), s(s_), x(x_), blank(blank_), cast(cast_fn(x_.dtype, dtype_of<T>)), same(x_.dtype == dtype_of<T>) {
      for (int64_t r = 0; r < s.step[2]; ++r) {
        if (!p.used[2][r]) continue;
        const int64_t base = s.low[2] + r, size = x.size[2];
        const int64_t j0 = std::clamp<int64_t>(base >= 0 ? 0 : up(-base, s.step[2]), 0, p.part);
        const int64_t j1 = std::clamp<int64_t>(base >= size ? 0 : up(size - base, s.step[2]), j0, p.part);
        rows.push_back({r * p.part, j0, j1, (base + j0 * s.step[2]) * x.step[2]});
      }
    }

    void line(T* to, const char* from) const {
      for (const Row& r : rows) {
        T* at = to + r.to;
        for (int64_t j = 0; j < r.first; ++j) at[j] = blank;
        const int64_t n = r.last - r.first;
        T* out = at + r.first;
        if (same && x.step[2] == int64_t(sizeof(T)) && s.step[2] <= 2) {
          const T* in = reinterpret_cast<const T*>(from + r.from);
          if (s.step[2] == 1) std::memcpy(out, in, size_t(n) * sizeof(T));
          else every_second(out, in, n);
        } else if (n > 0) cast(reinterpret_cast<char*>(out), sizeof(T), from + r.from, s.step[2] * x.step[2], n);
        for (int64_t j = r.last; j < p.part; ++j) at[j] = blank;
      }
    }

    // The same line of all channels, whose elements lie side by side.
    void pixels(T* to, const char* from, int64_t d, int64_t h) const {
      to += d * p.plane + h * p.line;
      const int64_t sd = d + s.low[0], sh = h + s.low[1];
      if (sd < 0 || sd >= x.size[0] || sh < 0 || sh >= x.size[1]) {
        for (int64_t c = 0; c < x.c; ++c) std::fill(to + c * p.channel, to + c * p.channel + p.line, blank);
        return;
      }
      from += sd * x.step[0] + sh * x.step[1];
      for (const Row& r : rows) {
        for (int64_t c = 0; c < x.c; ++c) {
          T* at = to + c * p.channel + r.to;
          for (int64_t j = 0; j < r.first; ++j) at[j] = blank;
          for (int64_t j = r.last; j < p.part; ++j) at[j] = blank;
        }
        transpose<T>(to + r.to + r.first, p.channel, reinterpret_cast<const T*>(from + r.from),
                     s.step[2] * x.step[2] / int64_t(sizeof(T)), r.last - r.first, x.c);
      }
    }

    void one(T* to, const char* from, int64_t d, int64_t h) const {
      T* at = to + d * p.plane + h * p.line;
      const int64_t sd = d + s.low[0], sh = h + s.low[1];
      if (sd < 0 || sd >= x.size[0] || sh < 0 || sh >= x.size[1]) std::fill(at, at + p.line, blank);
      else line(at, from + sd * x.step[0] + sh * x.step[1]);
    }

    // One channel, from its first element.
    void channel(T* to, const char* from) const {
      for (int64_t d = 0; d < s.span[0]; ++d)
        for (int64_t h = 0; h < s.span[1]; ++h)
          if (p.used[0][d] && p.used[1][h]) one(to, from, d, h);
    }
  };

  // Images first..first+count of x, all channels.
  template <class T> void fill(T* to, const Sweep& s, const Image& x, int64_t first, int64_t count) const {
    const Filling<T> filling(*this, s, x, T(0));
    if (x.sc < x.step[2]) {  // channels last: all channels of a line while it is in the cache
      parallel_for(count * s.span[0] * s.span[1], grain_for(x.c * line), [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k) {
          const int64_t h = k % s.span[1], d = k / s.span[1] % s.span[0], i = k / s.span[1] / s.span[0];
          if (!used[0][d] || !used[1][h]) continue;
          if (filling.same && x.sc == int64_t(sizeof(T)))
            filling.pixels(to + i * image, x.data + (first + i) * x.sn, d, h);
          else
            for (int64_t c = 0; c < x.c; ++c)
              filling.one(to + i * image + c * channel, x.data + (first + i) * x.sn + c * x.sc, d, h);
        }
      });
      return;
    }
    parallel_for(count * x.c, grain_for(channel), [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k)
        filling.channel(to + k * channel, x.data + (first + k / x.c) * x.sn + k % x.c * x.sc);
    });
  }
};

// A tensor as a dense row-major array of T: itself when it is one, else a copy in `space`.
template <class T> const T* dense(const View& v, T* space) {
  const CastFn cast = cast_fn(v.dtype, dtype_of<T>);
  if (v.contiguous()) {
    if (v.dtype == dtype_of<T>) return v.as<T>();
    parallel_for(v.numel(), grain_for(1), [&](int64_t b, int64_t e) {
      const int64_t item = itemsize(v.dtype);
      cast(reinterpret_cast<char*>(space + b), sizeof(T), v.data + b * item, item, e - b);
    });
    return space;
  }
  // Lines along the longest dimension, whichever it is.
  int along = 0;
  for (int d = 1; d < v.ndim; ++d)
    if (v.shape[d] >= v.shape[along]) along = d;
  int64_t steps[8], step = 1;
  for (int d = v.ndim - 1; d >= 0; --d) steps[d] = step, step *= v.shape[d];
  const int64_t inner = v.shape[along];
  parallel_for(v.numel() / inner, grain_for(inner), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      const char* from = v.data;
      T* to = space;
      int64_t r = k;
      for (int d = v.ndim - 1; d >= 0; --d)
        if (d != along) {
          from += r % v.shape[d] * v.strides[d], to += r % v.shape[d] * steps[d];
          r /= v.shape[d];
        }
      cast(reinterpret_cast<char*>(to), steps[along] * int64_t(sizeof(T)), from, v.strides[along], inner);
    }
  });
  return space;
}
template <class T> int64_t dense_space(const View& v) {
  return v.dtype == dtype_of<T> && v.contiguous() ? 0 : v.numel();
}

}  // namespace vt::conv
