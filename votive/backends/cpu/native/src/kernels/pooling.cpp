// The largest values of windows, and the way back from these.
#include "pixels.h"
#include "pooling.h"

namespace vt { namespace {
using namespace conv;

template <class T> struct IndexOf {
  using type = int64_t;
};
template <> struct IndexOf<float> {
  using type = int32_t;
};

template <class T> struct Best {
  using I = typename IndexOf<T>::type;
  Vec<T> value;
  Vec<I> index;

  // Among equal values the first counts, among NaN the last.
  void meet(Vec<T> v, Vec<I> at) {
    const auto better = (v > value) | (v != v);
    value = better ? v : value;
    index = better ? at : index;
  }
};

// The first coordinate of a window that lies within the input.
int64_t first_inside(int64_t start, int64_t dilation) {
  return start >= 0 ? start : start + up(-start, dilation) * dilation;
}

// The largest of each window, and with PLACES its position.
template <class T, bool PLACES>
void max_rows(const Image& x, const Image& y, const Image& index, const Geometry& g) {
  using I = typename IndexOf<T>::type;
  constexpr int64_t L = LANES<T>;
  const Sweep s = forward_sweep(g, y.size);
  const Padded p(s, 1);
  const Phase& phase = s.phases[0];
  const int64_t n_taps = int64_t(phase.taps.size()), H = x.size[1], W = x.size[2], V = y.size[2];
  std::vector<int64_t> taps;
  std::vector<I> places;
  for (int64_t t = 0; t < n_taps; ++t) {
    const int64_t* o = &phase.offsets[3 * t];
    taps.push_back(p.at(s, o));
    places.push_back(I((o[0] * H + o[1]) * W + o[2]));
  }
  Scratch<I> starts(up(V, L) * L);
  for (int64_t o = 0; o < up(V, L) * L; ++o)
    starts[o] = I(first_inside(std::min(o, V - 1) * g.stride[2] - g.padding[2], g.dilation[2]));
  Vec<I> lanes;
  for (int64_t j = 0; j < L; ++j) lanes[j] = I(j * g.stride[2]);
  const CastFn out = cast_fn(dtype_of<T>, y.dtype), wide = cast_fn(dtype_of<I>, Dtype::i64);
  const int64_t lines = y.size[0] * y.size[1];
  // Windows side by side that need no padding are read where they are; the last vectors lie over their neighbours.
  if (!PLACES && V >= L && x.dtype == dtype_of<T> && y.dtype == x.dtype && x.step[2] == int64_t(sizeof(T)) &&
      y.step[2] == x.step[2] && g.stride[2] == 1 && !reaches_out(s, x)) {
    std::vector<int64_t> reads;
    for (int64_t t = 0; t < n_taps; ++t) {
      const int64_t* o = &phase.offsets[3 * t];
      reads.push_back(o[0] * x.step[0] + o[1] * x.step[1] + o[2] * x.step[2]);
    }
    parallel_for(x.n * x.c * lines, grain_for(up(V, L) * (n_taps * 3 + 4)), [&](int64_t b, int64_t e) {
      for (int64_t u = b; u < e; ++u) {
        const int64_t k = u / lines, oh = u % lines % y.size[1], od = u % lines / y.size[1];
        const char* from = x.data + k / x.c * x.sn + k % x.c * x.sc + od * g.stride[0] * x.step[0] + oh * g.stride[1] * x.step[1];
        T* to = reinterpret_cast<T*>(y.data + k / x.c * y.sn + k % x.c * y.sc + od * y.step[0] + oh * y.step[1]);
        for (int64_t o = 0; o < V; o += L) {
          const int64_t at = std::min(o, V - L);
          Best<T> best{LOWEST<T> + Vec<T>{}, Vec<I>{}};
          for (int64_t t = 0; t < n_taps; ++t)
            best.meet(load(reinterpret_cast<const T*>(from + reads[t]) + at), Vec<I>{});
          store(to + at, best.value);
        }
      }
    });
    return;
  }
  const Padded::Filling<T> filling(p, s, x, LOWEST<T>);
  parallel_for(x.n * x.c, grain_for(p.channel / 2 + lines * up(V, L) * (n_taps * 6 + 8)), [&](int64_t b, int64_t e) {
    Scratch<T> copy(p.channel + L * 2), values(up(V, L) * L);
    Scratch<I> found(up(V, L) * L);
    for (int64_t k = b; k < e; ++k) {
      filling.channel(copy.get(), x.data + k / x.c * x.sn + k % x.c * x.sc);
      for (int64_t u = 0; u < lines; ++u) {
        const int64_t oh = u % y.size[1], od = u / y.size[1];
        const T* from = copy + od * s.step[0] * p.plane + oh * s.step[1] * p.line;
        const int64_t d0 = first_inside(od * g.stride[0] - g.padding[0], g.dilation[0]);
        const int64_t h0 = first_inside(oh * g.stride[1] - g.padding[1], g.dilation[1]);
        const I corner = I((d0 * H + h0) * W), base = I((od * g.stride[0] * H + oh * g.stride[1]) * W);
        for (int64_t o = 0; o < V; o += L) {
          Best<T> best{LOWEST<T> + Vec<T>{}, load(starts + o) + corner};
          const Vec<I> at = lanes + I(base + o * g.stride[2]);
          for (int64_t t = 0; t < n_taps; ++t) best.meet(load(from + taps[t] + o), at + places[t]);
          store(values + o, best.value);
          if constexpr (PLACES) store(found + o, best.index);
        }
        const int64_t to = od * y.step[0] + oh * y.step[1];
        out(y.data + k / x.c * y.sn + k % x.c * y.sc + to, y.step[2], reinterpret_cast<const char*>(values.get()),
            sizeof(T), V);
        if constexpr (PLACES)
          wide(index.data + k / x.c * index.sn + k % x.c * index.sc + od * index.step[0] + oh * index.step[1],
               index.step[2], reinterpret_cast<const char*>(found.get()), sizeof(I), V);
      }
    }
  });
}

// Channels last: windows of pixels, each a vector of channels.
template <class T, bool PLACES>
void max_pixels(const Image& x, const Image& y, const Image& index, const Geometry& g) {
  using I = typename IndexOf<T>::type;
  constexpr int64_t L = LANES<T>;
  const int64_t C = x.c, lines = y.size[0] * y.size[1], taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const CastFn wide = cast_fn(dtype_of<I>, Dtype::i64);
  parallel_for(x.n * lines, grain_for(y.size[2] * up(C, L) * (taps * 6 + 8)), [&](int64_t b, int64_t e) {
    std::vector<const T*> from(taps);
    std::vector<I> at(taps);
    for (int64_t u = b; u < e; ++u) {
      const int64_t oh = u % y.size[1], od = u / y.size[1] % y.size[0], n = u / lines;
      for (int64_t ow = 0; ow < y.size[2]; ++ow) {
        const int64_t o[3] = {od, oh, ow};
        int64_t count = 0, q[3];
        for (int64_t i = 0; i < g.kernel[0]; ++i)
          for (int64_t j = 0; j < g.kernel[1]; ++j)
            for (int64_t k = 0; k < g.kernel[2]; ++k) {
              const int64_t tap[3] = {i, j, k};
              bool within = true;
              for (int d = 0; d < 3; ++d) {
                q[d] = o[d] * g.stride[d] - g.padding[d] + tap[d] * g.dilation[d];
                within = within && q[d] >= 0 && q[d] < x.size[d];
              }
              if (!within) continue;
              from[count] = reinterpret_cast<const T*>(x.data + n * x.sn + q[0] * x.step[0] + q[1] * x.step[1] +
                                                       q[2] * x.step[2]);
              at[count++] = I((q[0] * x.size[1] + q[1]) * x.size[2] + q[2]);
            }
        T* to = reinterpret_cast<T*>(y.data + n * y.sn + od * y.step[0] + oh * y.step[1] + ow * y.step[2]);
        char* place = index.data + n * index.sn + od * index.step[0] + oh * index.step[1] + ow * index.step[2];
        int64_t c = 0;
        for (; c + L <= C; c += L) {
          Best<T> best{LOWEST<T> + Vec<T>{}, at[0] + Vec<I>{}};
          for (int64_t t = 0; t < count; ++t) best.meet(load(from[t] + c), at[t] + Vec<I>{});
          store(to + c, best.value);
          if constexpr (PLACES) wide(place + c * 8, 8, reinterpret_cast<const char*>(&best.index), sizeof(I), L);
        }
        for (; c < C; ++c) {
          T best = LOWEST<T>;
          int64_t where = at[0];
          for (int64_t t = 0; t < count; ++t) {
            const T v = from[t][c];
            if (v > best || v != v) best = v, where = at[t];
          }
          to[c] = best;
          if constexpr (PLACES) reinterpret_cast<int64_t*>(place)[c] = where;
        }
      }
    }
  });
}

template <bool PLACES> void max_pool(Call& c, const View& values, const View& places) {
  const int n = int(c.ints.size()) / 4;
  const Image x(c.view(0), n), y(values, n), index(places, n);
  const Geometry g(c, 0, n, &c.ints[3 * n]);
  for_pooled(x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    if (x.dtype == dtype_of<T> && channels_last(x, y) && (!PLACES || index.sc == 8))
      return max_pixels<T, PLACES>(x, y, index, g);
    if constexpr (std::is_floating_point_v<T>)
      if (copied_as_pixels(x, y, 8)) {
        Scratch<int64_t> found(PLACES ? elements(y) : 0);
        with_pixels<T>(x, y, [&](const Image& from, const Image& to) {
          max_pixels<T, PLACES>(from, to, PLACES ? pixels_of<int64_t>(index, found, Dtype::i64) : to, g);
        });
        if constexpr (PLACES) copy_out<int64_t, int64_t>(index, found.get());
        return;
      }
    max_rows<T, PLACES>(x, y, index, g);
  });
}

// x, values, indices; stride, padding, dilation, kernel.
VT_KERNEL(max_pool) { max_pool<true>(c, c.view(1), c.view(2)); }

// The same without indices.
VT_KERNEL(max_pool_values) { max_pool<false>(c, c.view(1), c.view(1)); }

// g, indices, out: every value of g added where its index points.
VT_KERNEL(put_back) {
  const int n = int(c.i(0));
  const Image g(c.view(0), n), index(c.view(1), n), y(c.view(2), n);
  const auto run = [&](auto t) {
    using T = typename decltype(t)::type;
    const CastFn in = cast_fn(g.dtype, dtype_of<T>), out = cast_fn(dtype_of<T>, y.dtype);
    const int64_t H = y.size[1], W = y.size[2], plane = y.size[0] * H * W;
    const int64_t rows = g.size[0] * g.size[1], V = g.size[2], item = itemsize(y.dtype);
    const bool dense_plane = y.dtype == dtype_of<T> && y.step[2] == item && y.step[1] == W * item &&
                             (y.size[0] == 1 || y.step[0] == H * W * item);
    const auto beyond = [&](int64_t at) {
      throw IndexError("max_pool: index " + std::to_string(at) + " is out of range for " + std::to_string(plane) +
                       " elements.");
    };
    if (g.dtype == y.dtype && y.sc == item && g.sc == item && index.sc == 8 && y.c > 1 && y.step[2] == y.c * item &&
        (H == 1 || y.step[1] == W * y.step[2]) && (y.size[0] == 1 || y.step[0] == H * y.step[1])) {
      const bool narrow = y.dtype != dtype_of<T>;  // added up beside the result
      const int64_t part = std::max<int64_t>(16, up(y.c, up(2 * num_threads(), y.n))), parts = up(y.c, part);
      parallel_for(y.n * parts, grain_for(plane * part / 4 + rows * V * part), [&](int64_t b, int64_t e) {
        Scratch<T> space(narrow ? plane * part : 0), line(narrow ? part : 0);
        for (int64_t u = b; u < e; ++u) {
          const int64_t i = u / parts, c0 = u % parts * part, n = std::min(y.c, c0 + part) - c0;
          char* target = y.data + i * y.sn + c0 * item;
          T* to = narrow ? space.get() : reinterpret_cast<T*>(target);
          const int64_t pixel = narrow ? n : y.c;
          for (int64_t q = 0; q < plane; ++q) std::fill(to + q * pixel, to + q * pixel + n, T(0));
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t w = 0; w < V; ++w) {
              const char* given = g.data + i * g.sn + r / g.size[1] * g.step[0] + r % g.size[1] * g.step[1] +
                                  w * g.step[2] + c0 * item;
              const T* from = reinterpret_cast<const T*>(given);
              if (narrow) {
                in(reinterpret_cast<char*>(line.get()), sizeof(T), given, item, n);
                from = line;
              }
              const int64_t* at =
                  reinterpret_cast<const int64_t*>(index.data + i * index.sn + r / g.size[1] * index.step[0] +
                                                   r % g.size[1] * index.step[1] + w * index.step[2]) +
                  c0;
              for (int64_t k = 0; k < n; ++k) {
                if (uint64_t(at[k]) >= uint64_t(plane)) beyond(at[k]);
                to[at[k] * pixel + k] += from[k];
              }
            }
          if (narrow)
            for (int64_t q = 0; q < plane; ++q)
              out(target + q * y.step[2], item, reinterpret_cast<const char*>(to + q * n), sizeof(T), n);
        }
      });
      return;
    }
    parallel_for(g.n * g.c, grain_for(plane / 4 + rows * V * 2), [&](int64_t b, int64_t e) {
      Scratch<T> space(dense_plane ? 0 : plane), line(V);
      for (int64_t k = b; k < e; ++k) {
        const int64_t i = k / g.c, ch = k % g.c;
        char* target = y.data + i * y.sn + ch * y.sc;
        T* to = dense_plane ? reinterpret_cast<T*>(target) : space.get();
        std::fill(to, to + plane, T(0));
        for (int64_t r = 0; r < rows; ++r) {
          const char* from = g.data + i * g.sn + ch * g.sc + r / g.size[1] * g.step[0] + r % g.size[1] * g.step[1];
          const char* at =
              index.data + i * index.sn + ch * index.sc + r / g.size[1] * index.step[0] + r % g.size[1] * index.step[1];
          const bool there = g.dtype == dtype_of<T> && g.step[2] == int64_t(sizeof(T)) && index.step[2] == 8;
          if (there) {
            const T* values = reinterpret_cast<const T*>(from);
            const int64_t* places = reinterpret_cast<const int64_t*>(at);
            for (int64_t w = 0; w < V; ++w) {
              if (uint64_t(places[w]) >= uint64_t(plane)) beyond(places[w]);
              to[places[w]] += values[w];
            }
            continue;
          }
          in(reinterpret_cast<char*>(line.get()), sizeof(T), from, g.step[2], V);
          for (int64_t w = 0; w < V; ++w) {
            const int64_t q = *reinterpret_cast<const int64_t*>(at + w * index.step[2]);
            if (uint64_t(q) >= uint64_t(plane)) beyond(q);
            to[q] += line[w];
          }
        }
        if (!dense_plane)
          for (int64_t r = 0; r < y.size[0] * H; ++r)
            out(target + r / H * y.step[0] + r % H * y.step[1], y.step[2], reinterpret_cast<const char*>(to + r * W),
                sizeof(T), W);
      }
    });
  };
  for_pooled(y.dtype, run);
}

}}  // namespace vt
