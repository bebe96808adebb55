// Where the taps of a sliding kernel read: sizes, strides and the sweeps over them. Moves no element.
#pragma once
#include <algorithm>
#include <vector>

#include "vt/cast.h"
#include "vt/kernel.h"

namespace vt::conv {

inline int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Floor division and its rest.
inline int64_t down(int64_t a, int64_t b) { return a >= 0 ? a / b : -up(-a, b); }
inline int64_t rest(int64_t a, int64_t b) { return a - down(a, b) * b; }

// (N, C, up to three sizes) with missing sizes as 1; strides in bytes.
struct Image {
  char* data;
  Dtype dtype;
  int64_t n, c, size[3];
  int64_t sn, sc, step[3];

  explicit Image(const View& v) : Image(v, v.ndim - 2) {}
  // A batch or channels that are not there count as 1.
  Image(const View& v, int spatial) : data(v.data), dtype(v.dtype), n(1), c(1), sn(0), sc(0) {
    const int lead = v.ndim - spatial;
    if (lead > 0) c = v.shape[lead - 1], sc = v.strides[lead - 1];
    if (lead > 1) n = v.shape[0], sn = v.strides[0];
    for (int d = 0; d < 3; ++d) {
      const int k = d - (3 - spatial);
      size[d] = k < 0 ? 1 : v.shape[lead + k];
      step[d] = k < 0 ? 0 : v.strides[lead + k];
    }
  }
};

// How a kernel slides: stride, padding, dilation.
struct Geometry {
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  // From ints of a call: stride, padding, dilation of `spatial` dimensions each.
  Geometry(const Call& c, int first, int spatial, const int64_t* sizes) {
    for (int k = 0; k < spatial; ++k) {
      const int d = 3 - spatial + k;
      kernel[d] = sizes[k];
      stride[d] = c.i(first + k);
      padding[d] = c.i(first + spatial + k);
      dilation[d] = c.i(first + 2 * spatial + k);
    }
  }
};

// A subset of the outputs, every ostep-th from `first`, and where each tap of it reads: the source of
// place q is at q * step + offset in every dimension.
struct Phase {
  int64_t places[3], first[3];
  std::vector<int64_t> taps;     // positions within the kernel
  std::vector<int64_t> offsets;  // three per tap

  int64_t count() const { return places[0] * places[1] * places[2]; }
};

struct Sweep {
  int64_t step[3], ostep[3], low[3], span[3];  // sources from low to low + span are read
  std::vector<Phase> phases;

  void close() {
    for (int d = 0; d < 3; ++d) {
      int64_t lo = INT64_MAX, hi = INT64_MIN;
      for (const Phase& p : phases)
        for (size_t t = 0; t < p.taps.size(); ++t) {
          lo = std::min(lo, p.offsets[3 * t + d]);
          hi = std::max(hi, p.offsets[3 * t + d] + (p.places[d] - 1) * step[d] + 1);
        }
      low[d] = lo == INT64_MAX ? 0 : lo;
      span[d] = lo == INT64_MAX ? 1 : hi - lo;
    }
  }
};

inline Sweep forward_sweep(const Geometry& g, const int64_t* places) {
  Sweep s;
  Phase p;
  for (int d = 0; d < 3; ++d) {
    s.step[d] = places[d] == 1 ? 1 : g.stride[d];  // a single place takes no step
    s.ostep[d] = 1, p.places[d] = places[d], p.first[d] = 0;
  }
  int64_t at = 0;
  for (int64_t i = 0; i < g.kernel[0]; ++i)
    for (int64_t j = 0; j < g.kernel[1]; ++j)
      for (int64_t k = 0; k < g.kernel[2]; ++k) {
        p.taps.push_back(at++);
        p.offsets.insert(p.offsets.end(), {i * g.dilation[0] - g.padding[0], j * g.dilation[1] - g.padding[1],
                                           k * g.dilation[2] - g.padding[2]});
      }
  s.phases.push_back(std::move(p));
  s.close();
  return s;
}

inline int64_t phases_of(const Geometry& g, const int64_t* size) {
  int64_t n = 1;
  for (int d = 0; d < 3; ++d) n *= std::min(g.stride[d], size[d]);
  return n;
}

// Outputs of the transpose by their residue modulo the stride: each residue sees some of the taps, and
// sees them as a convolution of stride 1.
inline Sweep transposed_sweep(const Geometry& g, const int64_t* size) {
  Sweep s;
  for (int d = 0; d < 3; ++d) s.step[d] = 1, s.ostep[d] = g.stride[d];
  for (int64_t a = 0; a < std::min(g.stride[0], size[0]); ++a)
    for (int64_t b = 0; b < std::min(g.stride[1], size[1]); ++b)
      for (int64_t c = 0; c < std::min(g.stride[2], size[2]); ++c) {
        Phase p;
        const int64_t first[3] = {a, b, c};
        for (int d = 0; d < 3; ++d) p.first[d] = first[d], p.places[d] = up(size[d] - first[d], g.stride[d]);
        int64_t at = 0;
        for (int64_t i = 0; i < g.kernel[0]; ++i)
          for (int64_t j = 0; j < g.kernel[1]; ++j)
            for (int64_t k = 0; k < g.kernel[2]; ++k, ++at) {
              const int64_t tap[3] = {i, j, k};
              int64_t off[3];
              bool hit = true;
              for (int d = 0; d < 3; ++d) {
                const int64_t v = first[d] + g.padding[d] - tap[d] * g.dilation[d];
                hit = hit && rest(v, g.stride[d]) == 0;
                off[d] = down(v, g.stride[d]);
              }
              if (!hit) continue;
              p.taps.push_back(at);
              p.offsets.insert(p.offsets.end(), off, off + 3);
            }
        s.phases.push_back(std::move(p));
      }
  s.close();
  return s;
}

// Whether some tap of a sweep reads beyond x, in the padding.
inline bool reaches_out(const Sweep& s, const Image& x) {
  for (int d = 0; d < 3; ++d)
    if (s.low[d] < 0 || s.low[d] + s.span[d] > x.size[d]) return true;
  return false;
}

// Whether a padded copy would be out of proportion to what is read and written: strides, paddings and
// dilations far larger than the tensors.
inline bool oversized(const Sweep& s, const Image& x, const Image& y) {
  constexpr double SMALL = 1 << 18;
  double copy = double(x.c), given = double(x.c), made = double(y.c);
  for (int d = 0; d < 3; ++d)
    copy *= double(d == 2 ? up(s.span[d], s.step[d]) * s.step[d] : s.span[d]), given *= double(x.size[d]),
        made *= double(y.size[d]);
  return copy > SMALL + 8 * (given + made);
}

// Places o of a row whose source o * stride + offset lies in 0..size-1.
struct Inside {
  int64_t first, last;
  Inside(int64_t places, int64_t stride, int64_t offset, int64_t size) {
    first = std::clamp<int64_t>(offset >= 0 ? 0 : up(-offset, stride), 0, places);
    last = std::clamp<int64_t>(offset >= size ? 0 : up(size - offset, stride), first, places);
  }
};

}  // namespace vt::conv
