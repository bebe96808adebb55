// Convolution with one channel of x per group: sums over taps, without a matrix product.
#pragma once
#include "convolution_padded.h"

namespace vt::conv {

// Rows of weights for one phase and group: element (m, k) at (m / MR) * MR * panel + m % MR * row + k * col.
template <class T> struct Weights {
  const T* data;
  int64_t row, col, panel;
};

// The first n elements of a vector, without a call for a copy of unknown size.
template <class T> inline void store_part(T* to, const Vec<T>& v, int64_t n) {
  typedef T Half __attribute__((vector_size(sizeof(Vec<T>) / 2), aligned(1), may_alias));
  alignas(64) T values[LANES<T>];
  *reinterpret_cast<Vec<T>*>(values) = v;
  int64_t i = 0;
  if (n >= LANES<T> / 2) {
    *reinterpret_cast<Half*>(to) = *reinterpret_cast<const Half*>(values);
    i = LANES<T> / 2;
  }
  for (; i < n; ++i) to[i] = values[i];
}

// R rows of V vectors of sums over the taps: enough of them to hide how long a sum takes.
template <class T, int R, int V>
inline __attribute__((always_inline)) void sum_taps(Vec<T> (&sums)[R][V], const T* from, int64_t row,
                                                    const int64_t* taps, int64_t n, const T* w) {
  constexpr int64_t L = LANES<T>;
  Vec<T> acc[R][V];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[r][v] = sums[r][v];
  for (int64_t t = 0; t < n; ++t) {
    const T* at = from + taps[t];
    const T by = w[t];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] += load(at + r * row + v * L) * by;
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sums[r][v] = acc[r][v];
}

// Each channel by itself (one source channel per group): sums over the taps, a few rows at a time.
template <class T> void by_channel(const Image& y, int64_t image, const Sweep& s, const Padded& p, const Phase& phase,
                                   const T* x, const int64_t* taps, int64_t channel, int64_t M, const T* w,
                                   int64_t w_row, const T* bias) {
  constexpr int64_t L = LANES<T>;
  const int64_t n = int64_t(phase.taps.size()), W = phase.places[2], H = phase.places[1], row = s.step[1] * p.line;
  const CastFn cast = cast_fn(dtype_of<T>, y.dtype);
  Scratch<T> line(up(W, L) * L + 4 * L);
  const bool direct = y.dtype == dtype_of<T> && s.ostep[2] * y.step[2] == int64_t(sizeof(T));
  for (int64_t m = 0; m < M; ++m, w += w_row) {
    const T b = bias == nullptr ? T(0) : bias[m];
    for (int64_t d = 0; d < phase.places[0]; ++d) {
      const auto place = [&](int64_t h) {
        return y.data + image * y.sn + (channel + m) * y.sc + (phase.first[0] + d * s.ostep[0]) * y.step[0] +
               (phase.first[1] + h * s.ostep[1]) * y.step[1] + phase.first[2] * y.step[2];
      };
      // R rows from h on, V vectors of each from i on.
      const auto block = [&](auto rows, auto vectors, int64_t h, int64_t i) {
        constexpr int R = decltype(rows)::value, V = decltype(vectors)::value;
        Vec<T> acc[R][V];
        for (auto& r : acc)
          for (auto& v : r) v = b - Vec<T>{};
        sum_taps<T, R, V>(acc, x + d * s.step[0] * p.plane + h * row + i, row, taps, n, w);
        for (int r = 0; r < R; ++r) {
          const int64_t count = std::min<int64_t>(V * L, W - i);
          T* to = direct ? reinterpret_cast<T*>(place(h + r)) + i : line.get();
          for (int v = 0; v < V; ++v) {
            const int64_t left = count - v * L;
            if (left >= L || !direct) store(to + v * L, acc[r][v]);
            else if (left > 0) store_part<T>(to + v * L, acc[r][v], left);
          }
          if (!direct)
            cast(place(h + r) + i * s.ostep[2] * y.step[2], s.ostep[2] * y.step[2], reinterpret_cast<const char*>(to),
                 sizeof(T), count);
        }
      };
      using std::integral_constant;
      int64_t h = 0;
      if (W <= L)
        for (; h + 4 <= H; h += 4) block(integral_constant<int, 4>{}, integral_constant<int, 1>{}, h, 0);
      else if (W <= 2 * L)
        for (; h + 2 <= H; h += 2) block(integral_constant<int, 2>{}, integral_constant<int, 2>{}, h, 0);
      for (; h < H; ++h)
        for (int64_t i = 0; i < W; i += 4 * L) switch (up(W - i, L)) {
            case 1: block(integral_constant<int, 1>{}, integral_constant<int, 1>{}, h, i); break;
            case 2: block(integral_constant<int, 1>{}, integral_constant<int, 2>{}, h, i); break;
            case 3: block(integral_constant<int, 1>{}, integral_constant<int, 3>{}, h, i); break;
            default: block(integral_constant<int, 1>{}, integral_constant<int, 4>{}, h, i);
          }
    }
  }
}

// One channel of x and of y per group, channels last: vectors of channels, several places at a time.
template <class T> struct ByPixel {
  static constexpr int64_t L = LANES<T>, SIDE = 4;
  const Sweep& s;
  const Image &x, &y;
  const Phase& phase;
  const T *w, *bias;  // (taps, wide) and (wide)
  int64_t wide;
  std::vector<const char*> rows;  // of taps that are within the image
  std::vector<const T*> by, base, by_now, from;
  std::vector<int64_t> at;

  // All places of row u of the phase, counted over images.
  void run(int64_t u) {
    const int64_t C = x.c, W = phase.places[2], n = int64_t(phase.taps.size());
    const int64_t h = u % phase.places[1], d = u / phase.places[1] % phase.places[0];
    const int64_t i = u / phase.places[1] / phase.places[0];
    rows.clear(), by.clear(), at.clear(), base.clear();
    int64_t first = 0, last = W;  // places where every tap is within the row
    for (int64_t t = 0; t < n; ++t) {
      const int64_t* o = &phase.offsets[3 * t];
      const int64_t sd = d * s.step[0] + o[0], sh = h * s.step[1] + o[1];
      if (sd < 0 || sd >= x.size[0] || sh < 0 || sh >= x.size[1]) continue;
      rows.push_back(x.data + i * x.sn + sd * x.step[0] + sh * x.step[1]);
      base.push_back(reinterpret_cast<const T*>(rows.back() + o[2] * x.step[2]));
      by.push_back(w + t * wide);
      at.push_back(o[2]);
      first = std::max(first, o[2] >= 0 ? 0 : up(-o[2], s.step[2]));
      last = std::min(last, o[2] >= x.size[2] ? 0 : up(x.size[2] - o[2], s.step[2]));
    }
    const int64_t taps = int64_t(rows.size()), item = sizeof(T);
    char* out = y.data + i * y.sn + (phase.first[0] + d * s.ostep[0]) * y.step[0] +
                (phase.first[1] + h * s.ostep[1]) * y.step[1] + phase.first[2] * y.step[2];
    const int64_t step = s.step[2] * x.step[2] / item, ostep = s.ostep[2] * y.step[2] / item;
    for (int64_t q = 0; q < W;) {
      T* to = reinterpret_cast<T*>(out) + q * ostep;
      if (q >= first && q + SIDE <= last) {
        several(to, q * step, step, ostep, taps);
        q += SIDE;
        continue;
      }
      from.clear(), by_now.clear();
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t sw = q * s.step[2] + at[t];
        if (sw < 0 || sw >= x.size[2]) continue;
        from.push_back(reinterpret_cast<const T*>(rows[t] + sw * x.step[2]));
        by_now.push_back(by[t]);
      }
      int64_t c = 0;
      for (; c + L <= C; c += L) {
        Vec<T> acc = load(bias + c);
        for (size_t t = 0; t < from.size(); ++t) acc += load(from[t] + c) * load(by_now[t] + c);
        store(to + c, acc);
      }
      for (; c < C; ++c) {
        T sum = bias[c];
        for (size_t t = 0; t < from.size(); ++t) sum += from[t][c] * by_now[t][c];
        to[c] = sum;
      }
      ++q;
    }
  }

  void several(T* to, int64_t q, int64_t step, int64_t ostep, int64_t taps) const {
    const int64_t C = x.c;
    const T* const* v = by.data();
    const T* const* p = base.data();
    int64_t c = 0;
    for (; c + L <= C; c += L) {
      Vec<T> acc[SIDE];
      for (int j = 0; j < SIDE; ++j) acc[j] = load(bias + c);
      for (int64_t t = 0; t < taps; ++t) {
        const Vec<T> f = load(v[t] + c);
        const T* src = p[t] + q + c;
        for (int j = 0; j < SIDE; ++j) acc[j] += load(src + j * step) * f;
      }
      for (int j = 0; j < SIDE; ++j) store(to + j * ostep + c, acc[j]);
    }
    for (; c < C; ++c)
      for (int64_t j = 0; j < SIDE; ++j) {
        T sum = bias[c];
        for (int64_t t = 0; t < taps; ++t) sum += p[t][q + j * step + c] * v[t][c];
        to[j * ostep + c] = sum;
      }
  }
};

template <class T>
void by_pixel(const Sweep& s, const Image& x, const Image& y, const std::vector<Weights<T>>& weights, const T* bias) {
  const int64_t C = x.c, wide = up(C, LANES<T>) * LANES<T>;
  for (size_t f = 0; f < s.phases.size(); ++f) {
    const Phase& phase = s.phases[f];
    const int64_t n = int64_t(phase.taps.size()), lines = x.n * phase.places[0] * phase.places[1];
    Scratch<T> w(n * wide), b(wide);
    std::fill(b.get(), b + wide, T(0));
    if (bias != nullptr) std::copy(bias, bias + C, b.get());
    for (int64_t t = 0; t < n; ++t)
      for (int64_t k = 0; k < C; ++k) w[t * wide + k] = weights[f * C + k].data[t];
    parallel_for(lines, grain_for(phase.places[2] * C * (n + 1) / 8), [&](int64_t begin, int64_t end) {
      ByPixel<T> part{s, x, y, phase, w, b, wide};
      for (int64_t u = begin; u < end; ++u) part.run(u);
    });
  }
}

template <class T> bool pixels(const Image& x, const Image& y) {
  return x.dtype == dtype_of<T> && y.dtype == x.dtype && x.c > 1 && x.sc == int64_t(sizeof(T)) && y.sc == x.sc &&
         x.step[2] != x.sc && y.step[2] != y.sc;
}

}  // namespace vt::conv
