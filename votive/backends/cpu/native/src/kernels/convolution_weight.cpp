// The gradient of a convolution by its weight, as a product over all places.
#include "convolution_columns.h"
#include "convolution_depthwise.h"
#include "convolution_direct.h"
#include "convolution_points.h"
#include "convolution_winograd.h"

namespace vt { namespace {
using namespace conv;

// part[t] += products of a row of the gradient with what tap t reads; what does not fill a vector goes to tails.
template <class T, int N> void dots(const T* src, const int64_t* taps, const T* row, int64_t W, T* part, T* tails) {
  constexpr int64_t L = LANES<T>;
  Vec<T> acc[N];
#pragma GCC unroll 9
  for (int t = 0; t < N; ++t) acc[t] = load(part + t * L);
  int64_t q = 0;
  for (; q + L <= W; q += L) {
    const Vec<T> g = load(row + q);
#pragma GCC unroll 9
    for (int t = 0; t < N; ++t) acc[t] += load(src + taps[t] + q) * g;
  }
#pragma GCC unroll 9
  for (int t = 0; t < N; ++t) store(part + t * L, acc[t]);
  if (q == W) return;
  for (int t = 0; t < N; ++t) {
    T sum = 0;
    for (int64_t i = q; i < W; ++i) sum += src[taps[t] + i] * row[i];
    tails[t] += sum;
  }
}

// One channel per group, channels last: sums[c][wide] per tap; threads take vectors of channels.
template <class T> void weight_by_pixel(const Sweep& s, const Image& x, const Image& g, T* out) {
  constexpr int64_t L = LANES<T>;
  const Phase& phase = s.phases[0];
  const int64_t n = int64_t(phase.taps.size()), C = x.c;
  const int64_t part = std::max<int64_t>(L, up(up(C, 2 * num_threads()), L) * L), parts = up(C, part);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    Scratch<T> sums(n * part);
    for (int64_t u = begin; u < end; ++u) {
      const int64_t c0 = u * part, m = std::min(C, c0 + part) - c0;
      std::fill(sums.get(), sums + n * part, T(0));
      for (int64_t k = 0; k < g.n * phase.places[0] * phase.places[1]; ++k) {
        const int64_t h = k % phase.places[1], d = k / phase.places[1] % phase.places[0],
                      i = k / phase.places[1] / phase.places[0];
        const char* gs = g.data + i * g.sn + c0 * g.sc + d * g.step[0] + h * g.step[1];
        for (int64_t t = 0; t < n; ++t) {
          const int64_t* o = &phase.offsets[3 * t];
          const int64_t sd = d * s.step[0] + o[0], sh = h * s.step[1] + o[1];
          if (sd < 0 || sd >= x.size[0] || sh < 0 || sh >= x.size[1]) continue;
          const char* xs = x.data + i * x.sn + c0 * x.sc + sd * x.step[0] + sh * x.step[1];
          const int64_t w0 = o[2] >= 0 ? 0 : up(-o[2], s.step[2]);
          const int64_t w1 = std::min(phase.places[2], o[2] >= x.size[2] ? 0 : up(x.size[2] - o[2], s.step[2]));
          const int64_t item = sizeof(T), x_step = s.step[2] * x.step[2] / item, g_step = g.step[2] / item;
          const T* xp = reinterpret_cast<const T*>(xs + o[2] * x.step[2]);
          const T* gp = reinterpret_cast<const T*>(gs);
          int64_t c = 0;
          for (; c + L <= m; c += L) {
            Vec<T> acc[4] = {};
            int64_t w = w0;
            for (; w + 4 <= w1; w += 4)
              for (int j = 0; j < 4; ++j)
                acc[j] += load(gp + (w + j) * g_step + c) * load(xp + (w + j) * x_step + c);
            for (; w < w1; ++w) acc[0] += load(gp + w * g_step + c) * load(xp + w * x_step + c);
            store(sums + t * part + c, load(sums + t * part + c) + ((acc[0] + acc[1]) + (acc[2] + acc[3])));
          }
          for (; c < m; ++c) {
            T sum = 0;
            for (int64_t w = w0; w < w1; ++w)
              sum += reinterpret_cast<const T*>(gs + w * g.step[2])[c] *
                     reinterpret_cast<const T*>(xs + (w * s.step[2] + o[2]) * x.step[2])[c];
            sums[t * part + c] += sum;
          }
        }
      }
      for (int64_t c = 0; c < m; ++c)
        for (int64_t t = 0; t < n; ++t) out[(c0 + c) * n + t] = sums[t * part + c];
    }
  });
}

// The weight's gradient: rows are (channel of x, tap), columns are channels of the gradient, and the sum
// runs over all places. Rows are laid out like columns of the forward product, but along the places.
template <class T> void by_weight(const View& x, const View& grad, const View& out, const Geometry& g, int64_t groups) {
  constexpr int64_t L = LANES<T>;
  constexpr int64_t KC = 256, STRIDE = KC + L;
  const Image from(x), gy(grad);
  if (point_by_point(g, from, gy, groups, dtype_of<T>)) {
    const Points a(from), b(gy);
    const bool as_one = a.sn == a.count * a.sp && b.sn == b.count * b.sp;
    const int64_t images = as_one ? 1 : from.n, count = as_one ? a.count * from.n : a.count;
    for (int64_t i = 0; i < images; ++i)
      gemm(gy.c, from.c, count, Matrix<const T>{reinterpret_cast<const T*>(gy.data) + i * b.sn, b.sc, b.sp},
           Matrix<const T>{reinterpret_cast<const T*>(from.data) + i * a.sn, a.sp, a.sc},
           Matrix<T>{out.as<T>(), from.c, 1}, i > 0);
    return;
  }
  if constexpr (std::is_same_v<T, float>)
    if (winograd_weight_pays(g, from, gy, groups)) {
      Scratch<float> space(out.dtype == Dtype::f32 ? 0 : out.numel());
      float* to = out.dtype == Dtype::f32 ? out.as<float>() : space.get();
      if (winograd_weight(g, from, gy, to)) {
        const int64_t item = itemsize(out.dtype);
        if (out.dtype != Dtype::f32)
          cast_fn(Dtype::f32, out.dtype)(out.data, item, reinterpret_cast<const char*>(to), sizeof(float), out.numel());
        return;
      }
    }
  const Sweep s = forward_sweep(g, gy.size);
  if (oversized(s, from, gy)) return direct_weight<T>(x, grad, out, g, groups);
  const Phase& phase = s.phases[0];
  const int64_t ci = from.c / groups, O = gy.c / groups, nt = int64_t(phase.taps.size()), R = ci * nt;
  if (ci == 1 && O == 1 && pixels<T>(from, gy)) return weight_by_pixel<T>(s, from, gy, out.as<T>());
  const Padded p(s, from.c);
  const int64_t places = phase.count();
  const int64_t chunk = std::clamp<int64_t>(CHUNK_BYTES / ((p.image + gy.c * places) * int64_t(sizeof(T))), 1, from.n);
  std::vector<int64_t> taps;
  for (int64_t t = 0; t < nt; ++t) taps.push_back(p.at(s, &phase.offsets[3 * t]));
  Scratch<T> copy(chunk * p.image + L * 8);
  const bool single = ci == 1 && O <= 4;
  const int64_t wide = up(O, L) * L;  // columns with room for whole vectors
  Scratch<T> sums(groups * R * wide);
  std::fill(sums.get(), sums + groups * R * wide, T(0));
  Scratch<T> by_place(single ? 0 : chunk * places * groups * wide);
  const CastFn cast = cast_fn(gy.dtype, dtype_of<T>);
  const int64_t slivers = up(wide / L, NV), threads = num_threads();
  for (int64_t first = 0; first < from.n; first += chunk) {
    const int64_t images = std::min(chunk, from.n - first), columns = images * places;
    p.fill(copy.get(), s, from, first, images);
    if (single) {
      parallel_for(groups * O, grain_for(columns * R / L), [&](int64_t b, int64_t e) {
        const int64_t W = phase.places[2];
        Scratch<T> line(W), part(nt * L), tails(nt);
        for (int64_t u = b; u < e; ++u) {
          const int64_t k = u / O, o = u % O;
          std::fill(part.get(), part + nt * L, T(0));
          std::fill(tails.get(), tails + nt, T(0));
          for (int64_t i = 0; i < images; ++i)
            for (int64_t d = 0; d < phase.places[0]; ++d)
              for (int64_t h = 0; h < phase.places[1]; ++h) {
                const char* g_row = gy.data + (first + i) * gy.sn + u * gy.sc + d * gy.step[0] + h * gy.step[1];
                const T* row = reinterpret_cast<const T*>(g_row);
                if (gy.dtype != dtype_of<T> || gy.step[2] != int64_t(sizeof(T))) {
                  cast(reinterpret_cast<char*>(line.get()), sizeof(T), g_row, gy.step[2], W);
                  row = line;
                }
                const T* src = copy + i * p.image + k * p.channel + d * s.step[0] * p.plane + h * s.step[1] * p.line;
                if (nt == 9) dots<T, 9>(src, taps.data(), row, W, part, tails);
                else
                  for (int64_t t = 0; t < nt; ++t) {
                    const T* at = src + taps[t];
                    Vec<T> acc = load(part + t * L);
                    int64_t q = 0;
                    for (; q + L <= W; q += L) acc += load(at + q) * load(row + q);
                    store(part + t * L, acc);
                    T sum = 0;
                    for (; q < W; ++q) sum += at[q] * row[q];
                    tails[t] += sum;
                  }
              }
          for (int64_t t = 0; t < nt; ++t) {
            T sum = tails[t];
            for (int64_t j = 0; j < L; ++j) sum += part[t * L + j];
            sums[(k * R + t) * wide + o] += sum;
          }
        }
      });
      continue;
    }
    // The gradient by place: sliver after sliver of channels, each a row per place.
    constexpr int64_t SPAN = 64;
    parallel_for(groups * up(columns, SPAN), grain_for(O * SPAN * 2), [&](int64_t b, int64_t e) {
      Scratch<T> block(NV * L * SPAN);
      Columns span;
      for (int64_t u = b; u < e; ++u) {
        const int64_t k = u / up(columns, SPAN), c0 = u % up(columns, SPAN) * SPAN, n = std::min(SPAN, columns - c0);
        span.make<T>(s, p, phase, gy, c0, n, SPAN / L + 1);
        T* base = by_place + k * columns * wide;
        for (int64_t j = 0, at = 0; j < slivers; ++j) {
          const int64_t v = (wide / L * (j + 1)) / slivers - (wide / L * j) / slivers, width = v * L;
          for (int64_t o = at; o < at + width; ++o) {
            T* to = block + (o - at) * SPAN;
            if (o >= O) std::fill(to, to + n, T(0));
            else
              for (const auto& q : span.places)
                cast(reinterpret_cast<char*>(to + q.at), sizeof(T),
                     gy.data + first * gy.sn + (k * O + o) * gy.sc + q.target, gy.step[2], q.len);
          }
          transpose<T>(base + at * columns + c0 * width, width, block, SPAN, width, n);
          at += width;
        }
      }
    });
    const int64_t parts = threads * up(R * groups, threads * 72);
    const int64_t height = up(up(R, up(parts, groups)), MR) * MR, blocks = up(R, height);
    share(groups * blocks, [&](int64_t u) {
      const int64_t k = u / blocks, r0 = u % blocks * height, r1 = std::min(R, r0 + height);
      Scratch<T> a((r1 - r0) * STRIDE + L);
      Columns cols;
      for (int64_t c0 = 0; c0 < columns; c0 += KC) {
        const int64_t n = std::min(KC, columns - c0);
        cols.make<T>(s, p, phase, gy, c0, n, KC / L);
        lay_out(a.get(), STRIDE, copy + k * ci * p.channel, p, taps.data(), nt, r0, r1, cols.runs.data(),
                int64_t(cols.runs.size()));
        for (int64_t j = 0, at = 0; j < slivers; ++j) {
          const int64_t v = (wide / L * (j + 1)) / slivers - (wide / L * j) / slivers;
          product<T>(r1 - r0, v, n, a.get(), STRIDE, 1, STRIDE, by_place + k * columns * wide + at * columns + c0 * v * L,
                     v * L, sums + (k * R + r0) * wide + at, wide, true);
          at += v * L;
        }
      }
    });
  }
  // The result is (O, ci, taps): transposed, in the type of the result.
  const CastFn back = cast_fn(dtype_of<T>, out.dtype);
  const int64_t item = itemsize(out.dtype);
  std::atomic<bool> nan{false};
  constexpr int64_t SIDE = 64;
  parallel_for(groups * up(O, L) * up(R, SIDE), grain_for(L * SIDE * 2), [&](int64_t b, int64_t e) {
    T block[L * SIDE];
    for (int64_t u = b; u < e; ++u) {
      const int64_t r0 = u % up(R, SIDE) * SIDE, o0 = u / up(R, SIDE) % up(O, L) * L, k = u / up(R, SIDE) / up(O, L);
      const int64_t rows = std::min(SIDE, R - r0), n = std::min(L, O - o0);
      transpose<T>(block, SIDE, sums + (k * R + r0) * wide + o0, wide, rows, L);
      for (int64_t j = 0; j < n; ++j) {
        if (has_nan(block + j * SIDE, rows)) nan = true;
        back(out.data + ((k * O + o0 + j) * R + r0) * item, item, reinterpret_cast<const char*>(block + j * SIDE),
             sizeof(T), rows);
      }
    }
  });
  // Zeros of the padding may have met a NaN or an infinity of the gradient.
  if (nan && reaches_out(s, from)) direct_weight<T>(x, grad, out, g, groups);
}

// x, grad, out.
VT_KERNEL(convolution_weight) {
  const View &x = c.view(0), &grad = c.view(1), &out = c.view(2);
  const int n = x.ndim - 2;
  const Geometry g(c, 0, n, out.shape + 2);
  computed(x.dtype, [&](auto t) { by_weight<typename decltype(t)::type>(x, grad, out, g, c.i(3 * n)); });
}

}}  // namespace vt
