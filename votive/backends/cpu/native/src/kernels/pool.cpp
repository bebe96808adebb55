// Pooling: sums of boxes, largest values of windows, and the way back from these.
#include <limits>

#include "conv_core.h"

namespace vt { namespace {
using namespace conv;

// Element k of an array of int64 that may be missing: then its values are 1.
struct Numbers {
  const int64_t* data;
  explicit Numbers(const View& v) : data(v ? v.as<int64_t>() : nullptr) {}
  int64_t operator[](int64_t k) const { return data == nullptr ? 1 : data[k]; }
};

// --- sums of boxes: mean pools and their gradients ---------------------------------------------------

// Along one dimension: output o takes inputs start[o]..end[o]; in and out are divisors or missing.
struct Axis {
  Numbers start, end, in, out;
};

// Where along w the boxes are evenly spaced and of one length, which makes plain loops.
struct Even {
  int64_t first = 0, last = 0, step = 1, length = 1;
  bool single = true;  // every box is one element

  Even(const Axis& a, int64_t n) {
    for (int64_t o = 0; o < n; ++o) {
      length = std::max(length, a.end[o] - a.start[o]);
      single = single && a.end[o] - a.start[o] == 1;
    }
    while (first < n && a.end[first] - a.start[first] != length) ++first;
    last = std::min(n, first + 1);
    if (last < n) step = a.start[last] - a.start[first];
    while (last < n && a.end[last] - a.start[last] == length && a.start[last] - a.start[last - 1] == step) ++last;
  }
};

template <class T, int STEP> void slide(T* out, const T* in, int64_t n, int64_t length, int64_t step) {
  const int64_t by = STEP == 0 ? step : STEP;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = in[i * by];
  for (int64_t j = 1; j < length; ++j) {
    const T* from = in + j;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] += from[i * by];
  }
}

template <class T> T total(const T* x, int64_t n) {
  Vec<T> acc[4] = {};
  int64_t i = 0;
  for (; i + 4 * LANES<T> <= n; i += 4 * LANES<T>)
    for (int v = 0; v < 4; ++v) acc[v] += load(x + i + v * LANES<T>);
  for (; i + LANES<T> <= n; i += LANES<T>) acc[0] += load(x + i);
  T lanes[LANES<T>], sum = 0;
  store(lanes, (acc[0] + acc[1]) + (acc[2] + acc[3]));
  for (; i < n; ++i) sum += x[i];
  for (int64_t half = LANES<T> / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  return sum + lanes[0];
}

template <class T> void box_rows(const Image& x, const Image& y, const Axis* axes, double divisor) {
  const CastFn in = cast_fn(x.dtype, dtype_of<T>), out = cast_fn(dtype_of<T>, y.dtype);
  const int64_t W = x.size[2], V = y.size[2], plane = x.size[0] * x.size[1] * W, lines = y.size[0] * y.size[1];
  const bool share = axes[0].in.data != nullptr;
  const bool copied = share || x.dtype != dtype_of<T> || x.step[2] != int64_t(sizeof(T)) ||
                      x.step[1] != W * int64_t(sizeof(T)) || (x.size[0] > 1 && x.step[0] != x.size[1] * x.step[1]);
  const Even even(axes[2], V);
  const int64_t item = sizeof(T);
  const bool dense_out = y.dtype == dtype_of<T> && y.step[2] == item && y.step[1] == V * item &&
                         (y.size[0] == 1 || y.step[0] == y.size[1] * V * item);
  const auto covers = [](const Axis& a, int64_t n) { return a.start[0] == 0 && a.end[0] == n; };
  const auto one_each = [](const Axis& a, int64_t n) { return Even(a, n).single; };
  if (lines * V == 1 && !copied && covers(axes[0], x.size[0]) && covers(axes[1], x.size[1]) && covers(axes[2], W)) {
    const T by = divisor != 0 ? T(divisor) : T(axes[0].out[0] * axes[1].out[0] * axes[2].out[0]);
    parallel_for(x.n * x.c, grain_for(plane / 8 + 16), [&](int64_t b, int64_t e) {
      int64_t i = b / x.c, c = b % x.c;
      for (int64_t k = b; k < e; ++k) {
        const T mean = total(reinterpret_cast<const T*>(x.data + i * x.sn + c * x.sc), plane) / by;
        char* to = y.data + i * y.sn + c * y.sc;
        if (y.dtype == dtype_of<T>) *reinterpret_cast<T*>(to) = mean;
        else out(to, item, reinterpret_cast<const char*>(&mean), item, 1);
        if (++c == x.c) c = 0, ++i;
      }
    });
    return;
  }
  // One element for all: only where no result is left without it, or divides by a number of its own.
  const bool alike = divisor != 0 || axes[0].out.data == nullptr;
  if (plane == 1 && dense_out && alike && even.single && one_each(axes[1], y.size[1]) && one_each(axes[0], y.size[0])) {
    const T by = divisor != 0 ? T(divisor) : T(axes[0].in[0] * axes[1].in[0] * axes[2].in[0]);
    parallel_for(x.n * x.c, grain_for(lines * V / 8 + 16), [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        T value;
        in(reinterpret_cast<char*>(&value), item, x.data + k / x.c * x.sn + k % x.c * x.sc, item, 1);
        T* to = reinterpret_cast<T*>(y.data + k / x.c * y.sn + k % x.c * y.sc);
        std::fill(to, to + lines * V, value / by);
      }
    });
    return;
  }
  const bool whole = V == 1 && axes[2].start[0] == 0 && axes[2].end[0] == W;
  const bool direct = y.dtype == dtype_of<T> && y.step[2] == int64_t(sizeof(T));
  const int64_t rows_in = std::max<int64_t>(1, axes[1].end[y.size[1] / 2] - axes[1].start[y.size[1] / 2]);
  const int64_t cost = W * rows_in / 4 + V * (even.length + 3) / 2 + (copied ? plane / lines : 0) + 8;
  const int64_t whole_planes = copied ? lines : 1;
  parallel_for(x.n * x.c * lines / whole_planes, grain_for(cost * whole_planes), [&](int64_t b, int64_t e) {
    Scratch<T> space(copied ? plane : 0), line(W + LANES<T>), result(V);
    for (int64_t u = b * whole_planes; u < e * whole_planes; ++u) {
      const int64_t k = u / lines, oh = u % lines % y.size[1], od = u % lines / y.size[1];
      const char* from = x.data + k / x.c * x.sn + k % x.c * x.sc;
      const T* source = reinterpret_cast<const T*>(from);
      if (copied) {
        source = space;
        if (u % lines == 0)
          for (int64_t d = 0; d < x.size[0]; ++d)
            for (int64_t h = 0; h < x.size[1]; ++h) {
              T* to = space + (d * x.size[1] + h) * W;
              in(reinterpret_cast<char*>(to), sizeof(T), from + d * x.step[0] + h * x.step[1], x.step[2], W);
              if (share) {
                const int64_t by = axes[0].in[d] * axes[1].in[h];
                const int64_t* w = axes[2].in.data;
                for (int64_t i = 0; i < W; ++i) to[i] /= T(by * w[i]);
              }
            }
      }
      char* at = y.data + k / x.c * y.sn + k % x.c * y.sc + od * y.step[0] + oh * y.step[1];
      T* to = direct ? reinterpret_cast<T*>(at) : result.get();
      const int64_t d0 = axes[0].start[od], d1 = axes[0].end[od], h0 = axes[1].start[oh], h1 = axes[1].end[oh];
      if (oh > 0 && u > b * whole_planes && direct && h0 == axes[1].start[oh - 1] && h1 == axes[1].end[oh - 1] &&
          axes[1].out[oh] == axes[1].out[oh - 1]) {  // the same rows again: a gradient
        std::copy(to - y.step[1] / item, to - y.step[1] / item + V, to);
        continue;
      }
      if (whole) {
        T sum = 0;
        for (int64_t d = d0; d < d1; ++d)
          if (h1 > h0) sum += total(source + (d * x.size[1] + h0) * W, (h1 - h0) * W);
        to[0] = sum;
      } else {
        const T* row = line;
        if (d1 - d0 == 1 && h1 - h0 == 1) row = source + (d0 * x.size[1] + h0) * W;
        else {
          bool fresh = true;
          for (int64_t d = d0; d < d1; ++d)
            for (int64_t h = h0; h < h1; ++h) {
              const T* p = source + (d * x.size[1] + h) * W;
              T* l = line;
              if (fresh) std::copy(p, p + W, l);
              else
#pragma GCC ivdep
                for (int64_t i = 0; i < W; ++i) l[i] += p[i];
              fresh = false;
            }
          if (fresh) std::fill(line.get(), line + W, T(0));
        }
        if (even.single && even.step != 1) {
          const int64_t* at_w = axes[2].start.data;
          for (int64_t o = 0; o < V; ++o) to[o] = row[at_w[o]];
        } else
          for (int64_t o = 0; o < V; ++o) {
            if (o == even.first && even.last > o) {
              const T* p = row + axes[2].start[o];
              const int64_t n = even.last - o;
              if (even.step == 1) slide<T, 1>(to + o, p, n, even.length, 1);
              else if (even.step == 2) slide<T, 2>(to + o, p, n, even.length, 2);
              else slide<T, 0>(to + o, p, n, even.length, even.step);
              o = even.last - 1;
              continue;
            }
            T sum = 0;
            for (int64_t w = axes[2].start[o]; w < axes[2].end[o]; ++w) sum += row[w];
            to[o] = sum;
          }
      }
      if (divisor != 0) {
        const T by = T(divisor);
        for (int64_t o = 0; o < V; ++o) to[o] /= by;
      } else if (axes[0].out.data != nullptr) {
        const int64_t by = axes[0].out[od] * axes[1].out[oh];
        const int64_t* w = axes[2].out.data;
        for (int64_t o = 0; o < V; ++o) to[o] /= T(by * w[o]);
      }
      if (!direct) out(at, y.step[2], reinterpret_cast<const char*>(to), sizeof(T), V);
    }
  });
}

// Channels last: every box adds whole vectors of channels.
template <class T> void box_pixels(const Image& x, const Image& y, const Axis* axes, double divisor) {
  const int64_t C = x.c;
  const bool share = axes[0].in.data != nullptr;
  const int64_t reach = std::max<int64_t>(1, axes[2].end[y.size[2] / 2] - axes[2].start[y.size[2] / 2]) *
                        std::max<int64_t>(1, axes[1].end[y.size[1] / 2] - axes[1].start[y.size[1] / 2]);
  parallel_for(
      x.n * y.size[0] * y.size[1], grain_for(y.size[2] * (reach + 2) * (C / 4 + 4)), [&](int64_t b, int64_t e) {
        for (int64_t u = b; u < e; ++u) {
          const int64_t oh = u % y.size[1], od = u / y.size[1] % y.size[0], n = u / y.size[1] / y.size[0];
          for (int64_t ow = 0; ow < y.size[2]; ++ow) {
            T* to = reinterpret_cast<T*>(y.data + n * y.sn + od * y.step[0] + oh * y.step[1] + ow * y.step[2]);
            std::fill(to, to + C, T(0));
            for (int64_t d = axes[0].start[od]; d < axes[0].end[od]; ++d)
              for (int64_t h = axes[1].start[oh]; h < axes[1].end[oh]; ++h)
                for (int64_t w = axes[2].start[ow]; w < axes[2].end[ow]; ++w) {
                  const T* p =
                      reinterpret_cast<const T*>(x.data + n * x.sn + d * x.step[0] + h * x.step[1] + w * x.step[2]);
                  if (share) {
                    const T by = T(axes[0].in[d] * axes[1].in[h] * axes[2].in[w]);
#pragma GCC ivdep
                    for (int64_t c = 0; c < C; ++c) to[c] += p[c] / by;
                  } else {
#pragma GCC ivdep
                    for (int64_t c = 0; c < C; ++c) to[c] += p[c];
                  }
                }
            const T by = divisor != 0 ? T(divisor) : T(axes[0].out[od] * axes[1].out[oh] * axes[2].out[ow]);
            if (by != T(1))
              for (int64_t c = 0; c < C; ++c) to[c] /= by;
          }
        }
      });
}

bool channels_last(const Image& x, const Image& y) {
  return x.dtype == y.dtype && x.c > 1 && x.sc == itemsize(x.dtype) && y.sc == x.sc && x.step[2] != x.sc;
}

// x, out, then start, end, in, out of each of three dimensions; spatial dimensions; divisor or 0.
VT_KERNEL(box_sum) {
  const int spatial = int(c.i(0));
  const Image x(c.view(0), spatial), y(c.view(1), spatial);
  const auto axis = [&](int d) {
    return Axis{Numbers(c.view(2 + 4 * d)), Numbers(c.view(3 + 4 * d)), Numbers(c.view(4 + 4 * d)),
                Numbers(c.view(5 + 4 * d))};
  };
  const Axis axes[3] = {axis(0), axis(1), axis(2)};
  const auto run = [&](auto t) {
    using T = typename decltype(t)::type;
    if (x.dtype == dtype_of<T> && channels_last(x, y)) box_pixels<T>(x, y, axes, c.f(0));
    else box_rows<T>(x, y, axes, c.f(0));
  };
  if (x.dtype == Dtype::f64) run(Type<double>{});
  else run(Type<float>{});
}

// --- largest values -----------------------------------------------------------------------------------

template <class T> struct IndexOf {
  using type = int64_t;
};
template <> struct IndexOf<float> {
  using type = int32_t;
};

template <class T> constexpr T LOWEST =
    std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();

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

template <class F> void for_pooled(Dtype d, F&& f) {
  if (d == Dtype::f64) f(Type<double>{});
  else if (d == Dtype::f32 || d == Dtype::f16 || d == Dtype::bf16) f(Type<float>{});
  else f(Type<int64_t>{});
}

template <bool PLACES> void max_pool(Call& c, const View& values, const View& places) {
  const int n = int(c.ints.size()) / 4;
  const Image x(c.view(0), n), y(values, n), index(places, n);
  const Geometry g(c, 0, n, &c.ints[3 * n]);
  for_pooled(x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    if (x.dtype == dtype_of<T> && channels_last(x, y) && (!PLACES || index.sc == 8)) max_pixels<T, PLACES>(x, y, index, g);
    else max_rows<T, PLACES>(x, y, index, g);
  });
}

// x, values, indices; stride, padding, dilation, kernel.
VT_KERNEL(max_pool) { max_pool<true>(c, c.view(1), c.view(2)); }

// The same without indices.
VT_KERNEL(max_pool_values) { max_pool<false>(c, c.view(1), c.view(1)); }

// x, values, indices, then start and end of each of three dimensions.
VT_KERNEL(max_of_boxes) {
  const int n = int(c.i(0));
  const Image x(c.view(0), n), y(c.view(1), n), index(c.view(2), n);
  const Numbers start[3] = {Numbers(c.view(3)), Numbers(c.view(5)), Numbers(c.view(7))};
  const Numbers end[3] = {Numbers(c.view(4)), Numbers(c.view(6)), Numbers(c.view(8))};
  for_pooled(x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    const CastFn in = cast_fn(x.dtype, dtype_of<T>), out = cast_fn(dtype_of<T>, y.dtype);
    const int64_t H = x.size[1], W = x.size[2], plane = x.size[0] * H * W;
    parallel_for(x.n * x.c, grain_for(plane * 4), [&](int64_t b, int64_t e) {
      Scratch<T> copy(plane), values(y.size[2]);
      for (int64_t k = b; k < e; ++k) {
        const char* from = x.data + k / x.c * x.sn + k % x.c * x.sc;
        for (int64_t r = 0; r < x.size[0] * H; ++r)
          in(reinterpret_cast<char*>(copy + r * W), sizeof(T), from + r / H * x.step[0] + r % H * x.step[1], x.step[2],
             W);
        for (int64_t od = 0; od < y.size[0]; ++od)
          for (int64_t oh = 0; oh < y.size[1]; ++oh) {
            char* place =
                index.data + k / x.c * index.sn + k % x.c * index.sc + od * index.step[0] + oh * index.step[1];
            for (int64_t ow = 0; ow < y.size[2]; ++ow) {
              int64_t where = (start[0][od] * H + start[1][oh]) * W + start[2][ow];
              T best = LOWEST<T>;
              for (int64_t d = start[0][od]; d < end[0][od]; ++d)
                for (int64_t h = start[1][oh]; h < end[1][oh]; ++h)
                  for (int64_t w = start[2][ow]; w < end[2][ow]; ++w) {
                    const T v = copy[(d * H + h) * W + w];
                    if (v > best || v != v) best = v, where = (d * H + h) * W + w;
                  }
              values[ow] = best;
              *reinterpret_cast<int64_t*>(place + ow * index.step[2]) = where;
            }
            out(y.data + k / x.c * y.sn + k % x.c * y.sc + od * y.step[0] + oh * y.step[1], y.step[2],
                reinterpret_cast<const char*>(values.get()), sizeof(T), y.size[2]);
          }
      }
    });
  });
}

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
    if (y.dtype == dtype_of<T> && g.dtype == y.dtype && y.sc == item && g.sc == item && index.sc == 8 && y.c > 1 &&
        y.step[2] == y.c * item && (H == 1 || y.step[1] == W * y.step[2]) &&
        (y.size[0] == 1 || y.step[0] == H * y.step[1])) {
      const int64_t part = std::max<int64_t>(16, up(y.c, up(2 * num_threads(), y.n))), parts = up(y.c, part);
      parallel_for(y.n * parts, grain_for(plane * part / 4 + rows * V * part), [&](int64_t b, int64_t e) {
        for (int64_t u = b; u < e; ++u) {
          const int64_t i = u / parts, c0 = u % parts * part, c1 = std::min(y.c, c0 + part);
          T* to = reinterpret_cast<T*>(y.data + i * y.sn);
          for (int64_t q = 0; q < plane; ++q) std::fill(to + q * y.c + c0, to + q * y.c + c1, T(0));
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t w = 0; w < V; ++w) {
              const T* from = reinterpret_cast<const T*>(g.data + i * g.sn + r / g.size[1] * g.step[0] +
                                                         r % g.size[1] * g.step[1] + w * g.step[2]);
              const int64_t* at =
                  reinterpret_cast<const int64_t*>(index.data + i * index.sn + r / g.size[1] * index.step[0] +
                                                   r % g.size[1] * index.step[1] + w * index.step[2]);
              for (int64_t k = c0; k < c1; ++k) {
                if (uint64_t(at[k]) >= uint64_t(plane)) beyond(at[k]);
                to[at[k] * y.c + k] += from[k];
              }
            }
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
