// Sums of boxes: mean pools, adaptive ones too, and their gradients.
#include "pixels.h"
#include "pooling.h"

namespace vt { namespace {
using namespace conv;

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
  const auto covers = [](const Axis& a, int64_t n) { return a.start[0] == 0 && a.end[0] == n; };
  const auto one_each = [](const Axis& a, int64_t n) { return Even(a, n).single; };
  const int64_t piece = itemsize(x.dtype);
  const bool dense_in = x.step[2] == piece && x.step[1] == W * piece && (x.size[0] == 1 || x.step[0] == x.size[1] * x.step[1]);
  if (lines * V == 1 && !share && dense_in && covers(axes[0], x.size[0]) && covers(axes[1], x.size[1]) &&
      covers(axes[2], W)) {
    const T by = divisor != 0 ? T(divisor) : T(axes[0].out[0] * axes[1].out[0] * axes[2].out[0]);
    parallel_for(x.n * x.c, grain_for(plane / 8 + 16), [&](int64_t b, int64_t e) {
      Scratch<T> wide(copied ? plane : 0);
      int64_t i = b / x.c, c = b % x.c;
      for (int64_t k = b; k < e; ++k) {
        const char* from = x.data + i * x.sn + c * x.sc;
        if (copied) in(reinterpret_cast<char*>(wide.get()), item, from, piece, plane);
        const T mean = total(copied ? wide.get() : reinterpret_cast<const T*>(from), plane) / by;
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
  const int64_t out_item = itemsize(y.dtype);
  const bool filled = y.step[2] == out_item && y.step[1] == V * out_item && (y.size[0] == 1 || y.step[0] == y.size[1] * V * out_item);
  if (plane == 1 && filled && alike && even.single && one_each(axes[1], y.size[1]) && one_each(axes[0], y.size[0])) {
    const T by = divisor != 0 ? T(divisor) : T(axes[0].in[0] * axes[1].in[0] * axes[2].in[0]);
    parallel_for(x.n * x.c, grain_for(lines * V / 8 + 16), [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        T value;
        in(reinterpret_cast<char*>(&value), item, x.data + k / x.c * x.sn + k % x.c * x.sc, item, 1);
        value /= by;
        out(y.data + k / x.c * y.sn + k % x.c * y.sc, out_item, reinterpret_cast<const char*>(&value), 0, lines * V);
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
    int64_t image = b * whole_planes / lines / x.c, channel = b * whole_planes / lines % x.c;
    int64_t od = b * whole_planes % lines / y.size[1], oh = b * whole_planes % lines % y.size[1] - 1;
    for (int64_t u = b * whole_planes; u < e * whole_planes; ++u) {
      if (++oh == y.size[1]) {
        oh = 0;
        if (++od == y.size[0]) {
          od = 0;
          if (++channel == x.c) channel = 0, ++image;
        }
      }
      const char* from = x.data + image * x.sn + channel * x.sc;
      const T* source = reinterpret_cast<const T*>(from);
      if (copied) {
        source = space;
        if (od == 0 && oh == 0)
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
      char* at = y.data + image * y.sn + channel * y.sc + od * y.step[0] + oh * y.step[1];
      T* to = direct ? reinterpret_cast<T*>(at) : result.get();
      const int64_t d0 = axes[0].start[od], d1 = axes[0].end[od], h0 = axes[1].start[oh], h1 = axes[1].end[oh];
      if (oh > 0 && u > b * whole_planes && y.step[2] == itemsize(y.dtype) && h0 == axes[1].start[oh - 1] &&
          h1 == axes[1].end[oh - 1] && axes[1].out[oh] == axes[1].out[oh - 1]) {  // the same rows again: a gradient
        std::memcpy(at, at - y.step[1], size_t(V * itemsize(y.dtype)));
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
        } else if (even.length >= 64 && even.length >= V) {  // few and long
          for (int64_t o = 0; o < V; ++o) to[o] = total(row + axes[2].start[o], axes[2].end[o] - axes[2].start[o]);
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

// Sums of vectors of channels over the pixels of a box, N of them in registers at a time.
template <class T, int N, bool SHARE>
void add_pixels(T* to, const T* const* from, const T* by, int64_t count, T divisor) {
  constexpr int64_t L = LANES<T>;
  Vec<T> acc[N] = {};
  for (int64_t t = 0; t < count; ++t)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      const Vec<T> x = load(from[t] + v * L);
      acc[v] += SHARE ? x / by[t] : x;
    }
#pragma GCC unroll 4
  for (int v = 0; v < N; ++v) store(to + v * L, divisor != T(1) ? acc[v] / divisor : acc[v]);
}

// One box of all channels. `from` are its pixels, `by` what each of them is divided by.
template <class T, bool SHARE> void box_of_pixels(T* to, const T** from, const T* by, int64_t count, int64_t C, T divisor) {
  constexpr int64_t L = LANES<T>;
  const auto on = [&](int64_t n) {
    to += n;
    for (int64_t t = 0; t < count; ++t) from[t] += n;
  };
  int64_t left = C;
  for (; left >= 4 * L; left -= 4 * L, on(4 * L)) add_pixels<T, 4, SHARE>(to, from, by, count, divisor);
  for (; left >= L; left -= L, on(L)) add_pixels<T, 1, SHARE>(to, from, by, count, divisor);
  if (left == 0) return;
  if (C >= L) {  // over its neighbours again
    on(left - L);
    return add_pixels<T, 1, SHARE>(to, from, by, count, divisor);
  }
  T sum[L] = {};
  for (int64_t t = 0; t < count; ++t)
#pragma GCC ivdep
    for (int64_t c = 0; c < C; ++c) sum[c] += SHARE ? from[t][c] / by[t] : from[t][c];
  for (int64_t c = 0; c < C; ++c) to[c] = divisor != T(1) ? sum[c] / divisor : sum[c];
}

// The sum of `count` neighbouring pixels of a few channels: so many vectors as there are channels hold whole pixels.
template <class T> void add_neighbours(T* sum, const T* from, int64_t count, int64_t C) {
  constexpr int64_t L = LANES<T>;
  T part[16 * L] = {};
  int64_t i = 0;
  for (; i + L <= count; i += L)
    for (int64_t v = 0; v < C; ++v) store(part + v * L, load(part + v * L) + load(from + i * C + v * L));
  for (int64_t q = 0; q < L; ++q)
    for (int64_t c = 0; c < C; ++c) sum[c] += part[q * C + c];
  for (; i < count; ++i)
    for (int64_t c = 0; c < C; ++c) sum[c] += from[i * C + c];
}

// Channels last: every box adds whole vectors of channels.
template <class T> void box_pixels(const Image& x, const Image& y, const Axis* axes, double divisor) {
  const int64_t C = x.c;
  const bool share = axes[0].in.data != nullptr;
  int64_t most = 1;  // pixels of a box
  for (int d = 0; d < 3; ++d) {
    int64_t longest = 1;
    for (int64_t o = 0; o < y.size[d]; ++o) longest = std::max(longest, axes[d].end[o] - axes[d].start[o]);
    most *= longest;
  }
  const bool side_by_side = x.step[2] == C * int64_t(sizeof(T)) && C < LANES<T> && C <= 16 && !share;
  parallel_for(x.n * y.size[0] * y.size[1], grain_for(y.size[2] * (most + 2) * (C / 4 + 4)), [&](int64_t b, int64_t e) {
    Scratch<const T*> from(most);
    Scratch<T> shares(share ? most : 0);
    for (int64_t u = b; u < e; ++u) {
      const int64_t oh = u % y.size[1], od = u / y.size[1] % y.size[0], n = u / y.size[1] / y.size[0];
      for (int64_t ow = 0; ow < y.size[2]; ++ow) {
        T* to = reinterpret_cast<T*>(y.data + n * y.sn + od * y.step[0] + oh * y.step[1] + ow * y.step[2]);
        const int64_t w0 = axes[2].start[ow], w1 = axes[2].end[ow];
        const T by = divisor != 0 ? T(divisor) : T(axes[0].out[od] * axes[1].out[oh] * axes[2].out[ow]);
        const bool neighbours = side_by_side && w1 - w0 >= LANES<T>;
        T sum[LANES<T>] = {};
        int64_t count = 0;
        for (int64_t d = axes[0].start[od]; d < axes[0].end[od]; ++d)
          for (int64_t h = axes[1].start[oh]; h < axes[1].end[oh]; ++h) {
            const char* line = x.data + n * x.sn + d * x.step[0] + h * x.step[1];
            if (neighbours) {
              add_neighbours(sum, reinterpret_cast<const T*>(line + w0 * x.step[2]), w1 - w0, C);
              continue;
            }
            for (int64_t w = w0; w < w1; ++w) {
              if (share) shares[count] = T(axes[0].in[d] * axes[1].in[h] * axes[2].in[w]);
              from[count++] = reinterpret_cast<const T*>(line + w * x.step[2]);
            }
          }
        if (neighbours)
          for (int64_t c = 0; c < C; ++c) to[c] = sum[c] / by;
        else if (share) box_of_pixels<T, true>(to, from, shares, count, C, by);
        else box_of_pixels<T, false>(to, from, shares, count, C, by);
      }
    }
  });
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
    if (x.dtype == dtype_of<T> && channels_last(x, y)) return box_pixels<T>(x, y, axes, c.f(0));
    // The mean of whole planes needs no copy.
    bool whole = y.size[0] * y.size[1] * y.size[2] == 1;
    for (int d = 0; d < 3; ++d) whole = whole && axes[d].start[0] == 0 && axes[d].end[0] == x.size[d];
    if (!copied_as_pixels(x, y) || (whole && !by_pixels(x))) return box_rows<T>(x, y, axes, c.f(0));
    with_pixels<T>(x, y, [&](const Image& from, const Image& to) { box_pixels<T>(from, to, axes, c.f(0)); });
  };
  if (x.dtype == Dtype::f64) run(Type<double>{});
  else run(Type<float>{});
}

}}  // namespace vt
