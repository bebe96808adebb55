// Resizing: every output is a weighted sum of few inputs per dimension.
#include "pixels.h"

namespace vt { namespace {
using namespace conv;

// For one dimension: tap k of output o is input index[k][o] with weight[k][o].
template <class T> struct Taps {
  int64_t n = 1, places = 0;
  std::vector<int32_t> index;
  std::vector<T> weight;
  bool plain = false;  // every output is the input at its place

  // (places, n) as Python has it, or nothing for a dimension that stays.
  Taps(const View& at, const View& by, int64_t size) {
    if (!at) {
      plain = true, places = size;
      for (int64_t o = 0; o < size; ++o) index.push_back(int32_t(o)), weight.push_back(T(1));
      return;
    }
    places = at.shape[0], n = at.shape[1];
    index.resize(places * n), weight.resize(places * n);
    for (int64_t o = 0; o < places; ++o)
      for (int64_t k = 0; k < n; ++k) {
        index[k * places + o] = int32_t(at.as<int64_t>()[o * n + k]);
        weight[k * places + o] = T(by.as<double>()[o * n + k]);
      }
  }
};

template <class T> void mix_row(T* to, const T* from, const Taps<T>& w, bool sparse) {
  const int64_t n = w.places;
  if (sparse) {
    std::fill(to, to + n, T(0));
    for (int64_t k = 0; k < w.n; ++k) {
      const int32_t* at = w.index.data() + k * n;
      const T* by = w.weight.data() + k * n;
#pragma GCC ivdep
      for (int64_t o = 0; o < n; ++o) to[o] += by[o] != T(0) ? by[o] * from[at[o]] : T(0);
    }
    return;
  }
  const int32_t* i0 = w.index.data();
  const T* w0 = w.weight.data();
  if (w.n == 2) {
    const int32_t* i1 = i0 + n;
    const T* w1 = w0 + n;
#pragma GCC ivdep
    for (int64_t o = 0; o < n; ++o) to[o] = w0[o] * from[i0[o]] + w1[o] * from[i1[o]];
    return;
  }
#pragma GCC ivdep
  for (int64_t o = 0; o < n; ++o) to[o] = w0[o] * from[i0[o]];
  for (int64_t k = 1; k < w.n; ++k) {
    i0 += n, w0 += n;
#pragma GCC ivdep
    for (int64_t o = 0; o < n; ++o) to[o] += w0[o] * from[i0[o]];
  }
}

template <class T> void add_row(T* to, const T* from, T by, int64_t n, bool fresh) {
  if (fresh) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = by * from[i];
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] += by * from[i];
  }
}

// `sparse`: a weight of 0 means that there is no such tap.
template <class T> void mix_planes(const Image& x, const Image& y, const Taps<T>* taps, bool sparse) {
  const CastFn in = cast_fn(x.dtype, dtype_of<T>), out = cast_fn(dtype_of<T>, y.dtype);
  const int64_t W = x.size[2], V = y.size[2], H = x.size[1], rows = x.size[0] * H, lines = y.size[0] * y.size[1];
  const int64_t row_taps = taps[0].n * taps[1].n;
  // Along w first where that is done for fewer lines.
  const bool early = !taps[2].plain && rows <= lines;
  const int64_t width = early ? V : W;
  const bool direct = y.dtype == dtype_of<T> && y.step[2] == int64_t(sizeof(T));
  const bool there = x.dtype == dtype_of<T> && x.step[2] == int64_t(sizeof(T));
  const int64_t cost = std::min(rows, lines) * V * taps[2].n * 2 + lines * width * row_taps / 4 + rows * W;
  parallel_for(x.n * x.c, grain_for(cost), [&](int64_t b, int64_t e) {
    Scratch<T> space(early || !there ? rows * width : 0), line(std::max(width, V)), raw(W), result(V);
    for (int64_t k = b; k < e; ++k) {
      const char* from = x.data + k / x.c * x.sn + k % x.c * x.sc;
      if (early || !there)
        for (int64_t r = 0; r < rows; ++r) {
          const char* at = from + r / H * x.step[0] + r % H * x.step[1];
          const T* row = reinterpret_cast<const T*>(at);
          if (!there) {
            T* to = early ? raw.get() : space + r * width;
            in(reinterpret_cast<char*>(to), sizeof(T), at, x.step[2], W);
            row = to;
          }
          if (early) mix_row(space + r * width, row, taps[2], sparse);
        }
      for (int64_t u = 0; u < lines; ++u) {
        const int64_t oh = u % y.size[1], od = u / y.size[1];
        char* at = y.data + k / x.c * y.sn + k % x.c * y.sc + od * y.step[0] + oh * y.step[1];
        T* to = direct ? reinterpret_cast<T*>(at) : result.get();
        const bool late = !early && !taps[2].plain;
        T* sums = late ? line.get() : to;
        bool fresh = true;
        for (int64_t i = 0; i < taps[0].n; ++i)
          for (int64_t j = 0; j < taps[1].n; ++j) {
            const int64_t d = taps[0].index[i * y.size[0] + od], h = taps[1].index[j * y.size[1] + oh];
            const T by = taps[0].weight[i * y.size[0] + od] * taps[1].weight[j * y.size[1] + oh];
            if (sparse && by == T(0)) continue;
            const T* row = early || !there ? space + (d * H + h) * width
                                           : reinterpret_cast<const T*>(from + d * x.step[0] + h * x.step[1]);
            add_row(sums, row, by, width, fresh);
            fresh = false;
          }
        if (fresh) std::fill(sums, sums + width, T(0));
        if (late) mix_row(to, sums, taps[2], sparse);
        if (!direct) out(at, y.step[2], reinterpret_cast<const char*>(to), sizeof(T), V);
      }
    }
  });
}

// Channels last, two rows and two columns: the usual case of weighted sums of four pixels.
template <class T> void mix_four(const Image& x, const Image& y, const Taps<T>* taps) {
  const int64_t C = x.c, V = y.size[2];
  const T *v0 = taps[2].weight.data(), *v1 = v0 + V, *u0 = taps[1].weight.data(), *u1 = u0 + y.size[1];
  const int32_t *i0 = taps[2].index.data(), *i1 = i0 + V;
  parallel_for(x.n * y.size[1], grain_for(V * (C / 4 + 8)), [&](int64_t b, int64_t e) {
    for (int64_t u = b; u < e; ++u) {
      const int64_t oh = u % y.size[1], i = u / y.size[1];
      const char* top = x.data + i * x.sn + taps[1].index[oh] * x.step[1];
      const char* low = x.data + i * x.sn + taps[1].index[y.size[1] + oh] * x.step[1];
      char* line = y.data + i * y.sn + oh * y.step[1];
      for (int64_t o = 0; o < V; ++o) {
        const T* p = reinterpret_cast<const T*>(top + i0[o] * x.step[2]);
        const T* q = reinterpret_cast<const T*>(top + i1[o] * x.step[2]);
        const T* r = reinterpret_cast<const T*>(low + i0[o] * x.step[2]);
        const T* s = reinterpret_cast<const T*>(low + i1[o] * x.step[2]);
        T* to = reinterpret_cast<T*>(line + o * y.step[2]);
        const T a = u0[oh] * v0[o], c = u0[oh] * v1[o], d = u1[oh] * v0[o], f = u1[oh] * v1[o];
        int64_t k = 0;
        for (; k + LANES<T> <= C; k += LANES<T>)
          store(to + k, (load(p + k) * a + load(q + k) * c) + (load(r + k) * d + load(s + k) * f));
        for (; k < C; ++k) to[k] = (p[k] * a + q[k] * c) + (r[k] * d + s[k] * f);
      }
    }
  });
}

// Channels last: weighted sums of pixels.
template <class T> void mix_pixels(const Image& x, const Image& y, const Taps<T>* taps, bool sparse) {
  if (!sparse && x.size[0] == 1 && y.size[0] == 1 && taps[0].plain && taps[1].n == 2 && taps[2].n == 2)
    return mix_four<T>(x, y, taps);
  const int64_t C = x.c, n = taps[0].n * taps[1].n * taps[2].n;
  parallel_for(x.n * y.size[0] * y.size[1], grain_for(y.size[2] * n * (C / 4 + 4)), [&](int64_t b, int64_t e) {
    for (int64_t u = b; u < e; ++u) {
      const int64_t oh = u % y.size[1], od = u / y.size[1] % y.size[0], i = u / y.size[1] / y.size[0];
      for (int64_t ow = 0; ow < y.size[2]; ++ow) {
        T* to = reinterpret_cast<T*>(y.data + i * y.sn + od * y.step[0] + oh * y.step[1] + ow * y.step[2]);
        const T* from[4];
        T by[4];
        int64_t count = 0;
        bool fresh = true;
        const auto flush = [&] {
          const T *p = from[0], *q = from[1], *r = from[2], *s = from[3];
          const T a = by[0], b = by[1], c = by[2], d = by[3];
          if (count == 4 && fresh) {
#pragma GCC ivdep
            for (int64_t k = 0; k < C; ++k) to[k] = (a * p[k] + b * q[k]) + (c * r[k] + d * s[k]);
          } else if (count == 4) {
#pragma GCC ivdep
            for (int64_t k = 0; k < C; ++k) to[k] += (a * p[k] + b * q[k]) + (c * r[k] + d * s[k]);
          } else
            for (int64_t t = 0; t < count; ++t) add_row(to, from[t], by[t], C, fresh && t == 0);
          if (count > 0) fresh = false;
          count = 0;
        };
        for (int64_t j = 0; j < taps[0].n; ++j)
          for (int64_t k = 0; k < taps[1].n; ++k)
            for (int64_t l = 0; l < taps[2].n; ++l) {
              by[count] = taps[0].weight[j * y.size[0] + od] * taps[1].weight[k * y.size[1] + oh] *
                          taps[2].weight[l * y.size[2] + ow];
              if (sparse && by[count] == T(0)) continue;
              from[count] = reinterpret_cast<const T*>(
                  x.data + i * x.sn + taps[0].index[j * y.size[0] + od] * x.step[0] +
                  taps[1].index[k * y.size[1] + oh] * x.step[1] + taps[2].index[l * y.size[2] + ow] * x.step[2]);
              if (++count == 4) flush();
            }
        flush();
        if (fresh) std::fill(to, to + C, T(0));
      }
    }
  });
}

// x, out, then index and weight, or two Nones, for each of three dimensions; sparse.
VT_KERNEL(resample) {
  const Image x(c.view(0)), y(c.view(1));
  const auto run = [&](auto t) {
    using T = typename decltype(t)::type;
    const Taps<T> taps[3] = {Taps<T>(c.view(2), c.view(3), x.size[0]), Taps<T>(c.view(4), c.view(5), x.size[1]),
                             Taps<T>(c.view(6), c.view(7), x.size[2])};
    if (x.dtype == dtype_of<T> && y.dtype == x.dtype && x.c > 1 && x.sc == int64_t(sizeof(T)) && y.sc == x.sc &&
        x.step[2] != x.sc && y.step[2] != y.sc)
      mix_pixels<T>(x, y, taps, c.i(0) != 0);
    else if (copied_as_pixels(x, y))
      with_pixels<T>(x, y, [&](const Image& from, const Image& to) { mix_pixels<T>(from, to, taps, c.i(0) != 0); });
    else mix_planes<T>(x, y, taps, c.i(0) != 0);
  };
  if (x.dtype == Dtype::f64) run(Type<double>{});
  else run(Type<float>{});
}

}}  // namespace vt
