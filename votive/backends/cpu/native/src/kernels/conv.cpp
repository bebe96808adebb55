// Convolution, its transpose and its weight gradient as products of matrices whose columns are laid out
// block by block, so that they stay in the cache.
#include "conv_core.h"
#include "conv_winograd.h"

#include "vt/gemm.h"

namespace vt { namespace {
using namespace conv;

constexpr int64_t DEPTH = 384;          // rows of a block of columns
constexpr int64_t BLOCK_VECTORS = 9;    // columns of a block, in vectors
constexpr int64_t CHUNK_BYTES = 4 << 20;  // images are copied with their padding about so much at a time

// Neighbouring columns whose sources are contiguous: `len` of them from `at` in their sliver.
struct Run {
  int32_t sliver, at, len;
  int64_t source;    // in the padded copy, without channel and tap
  int64_t target;    // bytes into the output, without channel
};

// Columns first..first+count of a phase over several images, cut into slivers of at most NV vectors.
struct Columns {
  std::vector<Run> runs;
  std::vector<int64_t> begin;    // of each sliver's runs
  std::vector<int64_t> vectors;  // of each sliver
  int64_t width = 0;             // of all slivers

  template <class T>
  void make(const Sweep& s, const Padded& p, const Phase& phase, const Image& y, int64_t first, int64_t count,
            int64_t widest) {
    const int64_t L = LANES<T>, total = up(count, L), slivers = up(total, widest);
    runs.clear(), begin.assign(1, 0), vectors.clear();
    width = total * L;
    int64_t c = first;
    const int64_t last = first + count;
    for (int64_t k = 0; k < slivers; ++k) {
      const int64_t v = (total * (k + 1)) / slivers - (total * k) / slivers;
      const int64_t end = std::min(last, c + v * L);
      const int64_t start = c;
      while (c < end) {
        const int64_t w = c % phase.places[2], row = c / phase.places[2];
        const int64_t h = row % phase.places[1], d = row / phase.places[1] % phase.places[0];
        const int64_t i = row / phase.places[1] / phase.places[0];
        const int64_t len = std::min(phase.places[2] - w, end - c);
        Run r;
        r.sliver = int32_t(k), r.at = int32_t(c - start), r.len = int32_t(len);
        r.source = i * p.image + d * s.step[0] * p.plane + h * s.step[1] * p.line + w;
        r.target = i * y.sn + (phase.first[0] + d * s.ostep[0]) * y.step[0] +
                   (phase.first[1] + h * s.ostep[1]) * y.step[1] + (phase.first[2] + w * s.ostep[2]) * y.step[2];
        runs.push_back(r);
        c += len;
      }
      begin.push_back(int64_t(runs.size()));
      vectors.push_back(v);
    }
  }
};

// Rows k0..k1 (channel, tap) of runs, each row `stride` after the one before. Whole vectors are copied:
// what is too much is overwritten by what follows, and the space must have a vector to spare.
template <class T>
void lay_out(T* to, int64_t stride, const T* x, const Padded& p, const int64_t* taps, int64_t n_taps, int64_t k0,
             int64_t k1, const Run* runs, int64_t n_runs) {
  int64_t c = k0 / n_taps, t = k0 % n_taps;
  for (int64_t k = k0; k < k1; ++k, to += stride) {
    const T* from = x + c * p.channel + taps[t];
    for (int64_t r = 0; r < n_runs; ++r) {
      const T* src = from + runs[r].source;
      T* dst = to + runs[r].at;
      for (int64_t i = 0; i < runs[r].len; i += LANES<T>) store(dst + i, load(src + i));
    }
    if (++t == n_taps) t = 0, ++c;
  }
}

// Rows of weights for one phase and group: element (m, k) at (m / MR) * MR * panel + m % MR * row + k * col.
template <class T> struct Weights {
  const T* data;
  int64_t row, col, panel;
};

template <class T>
void write(const Image& y, int64_t image, const Columns& cols, const Sweep& s, int64_t channel, int64_t M, T* c,
           const T* bias) {
  const CastFn cast = cast_fn(dtype_of<T>, y.dtype);
  char* base = y.data + image * y.sn + channel * y.sc;
  for (int64_t m = 0; m < M; ++m) {
    T* row = c + m * cols.width;
    if (bias != nullptr) {
      const T b = bias[m];
      for (int64_t i = 0; i < cols.width; ++i) row[i] += b;
    }
    int64_t start = 0;
    for (size_t k = 0; k < cols.vectors.size(); ++k) {
      for (int64_t r = cols.begin[k]; r < cols.begin[k + 1]; ++r)
        cast(base + m * y.sc + cols.runs[r].target, s.ostep[2] * y.step[2],
             reinterpret_cast<const char*>(row + start + cols.runs[r].at), sizeof(T), cols.runs[r].len);
      start += cols.vectors[k] * LANES<T>;
    }
  }
}

// Each channel by itself (one source channel per group): sums over the taps, a row at a time.
template <class T>
void by_channel(const Image& y, int64_t image, const Sweep& s, const Padded& p, const Phase& phase, const T* x,
                const int64_t* taps, int64_t channel, int64_t M, const T* w, int64_t w_row, const T* bias) {
  constexpr int64_t L = LANES<T>;
  const int64_t n = int64_t(phase.taps.size()), W = phase.places[2];
  const CastFn cast = cast_fn(dtype_of<T>, y.dtype);
  Scratch<T> line(up(W, L) * L);
  const bool direct = y.dtype == dtype_of<T> && s.ostep[2] * y.step[2] == int64_t(sizeof(T));
  for (int64_t m = 0; m < M; ++m, w += w_row) {
    const T b = bias == nullptr ? T(0) : bias[m];
    for (int64_t d = 0; d < phase.places[0]; ++d)
      for (int64_t h = 0; h < phase.places[1]; ++h) {
        const T* from = x + d * s.step[0] * p.plane + h * s.step[1] * p.line;
        char* out = y.data + image * y.sn + (channel + m) * y.sc + (phase.first[0] + d * s.ostep[0]) * y.step[0] +
                    (phase.first[1] + h * s.ostep[1]) * y.step[1] + phase.first[2] * y.step[2];
        T* to = direct ? reinterpret_cast<T*>(out) : line.get();
        int64_t i = 0;
        for (; i + 4 * L <= W; i += 4 * L) {
          Vec<T> acc[4] = {b - Vec<T>{}, b - Vec<T>{}, b - Vec<T>{}, b - Vec<T>{}};
          for (int64_t t = 0; t < n; ++t) {
            const T* at = from + taps[t] + i;
            for (int v = 0; v < 4; ++v) acc[v] += load(at + v * L) * w[t];
          }
          for (int v = 0; v < 4; ++v) store(to + i + v * L, acc[v]);
        }
        for (; i < W; i += L) {
          Vec<T> acc = b - Vec<T>{};
          for (int64_t t = 0; t < n; ++t) acc += load(from + taps[t] + i) * w[t];
          if (i + L <= W || !direct) store(to + i, acc);
          else std::memcpy(to + i, &acc, size_t(W - i) * sizeof(T));
        }
        if (!direct) cast(out, s.ostep[2] * y.step[2], reinterpret_cast<const char*>(to), sizeof(T), W);
      }
  }
}

// Every phase of a sweep over x: y = weights * columns + bias, group by group.
template <class T>
void sweep_over(const Sweep& s, const Image& x, const Image& y, int64_t groups, const std::vector<Weights<T>>& weights,
                const T* bias) {
  const int64_t ci = x.c / groups, M = y.c / groups, threads = num_threads();
  const Padded p(s, x.c);
  const int64_t chunk = std::clamp<int64_t>(CHUNK_BYTES / std::max<int64_t>(p.image * int64_t(sizeof(T)), 1), 1, x.n);
  Scratch<T> copy(chunk * p.image + LANES<T> * 8);
  std::vector<std::vector<int64_t>> taps;
  for (const Phase& phase : s.phases) {
    taps.emplace_back();
    for (size_t t = 0; t < phase.taps.size(); ++t) taps.back().push_back(p.at(s, &phase.offsets[3 * t]));
  }
  for (int64_t first = 0; first < x.n; first += chunk) {
    const int64_t images = std::min(chunk, x.n - first);
    p.fill(copy.get(), s, x, first, images);
    const int64_t n_phases = int64_t(s.phases.size());
    if (ci == 1 && M <= 4) {
      int64_t cost = 1;
      for (const Phase& phase : s.phases) cost += phase.count() * int64_t(phase.taps.size()) * M / LANES<T> + phase.count();
      parallel_for(images * groups, grain_for(cost), [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k)
          for (int64_t f = 0; f < n_phases; ++f) {
            const Weights<T>& w = weights[f * groups + k % groups];
            const int64_t g = k % groups;
            by_channel(y, first + k / groups, s, p, s.phases[f], copy + k / groups * p.image + g * p.channel, taps[f].data(),
                       g * M, M, w.data, w.row, bias == nullptr ? nullptr : bias + g * M);
          }
      });
      continue;
    }
    struct Item { int64_t phase, group, first, count, m0, m1; };
    std::vector<Item> items;
    for (int64_t f = 0; f < n_phases; ++f) {
      const int64_t columns = images * s.phases[f].count(), vectors = up(columns, LANES<T>);
      if (columns == 0) continue;
      const int64_t work = columns * M * ci * int64_t(s.phases[f].taps.size());
      const int64_t want = work * groups * n_phases < 65536 ? 1 : threads;
      const int64_t share_of = want * up(vectors, want * BLOCK_VECTORS);
      const int64_t size = up(vectors, share_of) * LANES<T>;
      const int64_t blocks = up(columns, size);
      const int64_t parts = blocks * groups >= want || M < 2 * MR ? 1 : std::min<int64_t>(want, up(M, MR));
      const int64_t height = up(up(M, parts), MR) * MR;
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t b = 0; b < blocks; ++b)
          for (int64_t m = 0; m < M; m += height)
            items.push_back({f, g, b * size, std::min(size, columns - b * size), m, std::min(M, m + height)});
    }
    share(int64_t(items.size()), [&](int64_t k) {
      const Item& it = items[k];
      const Phase& phase = s.phases[it.phase];
      const Weights<T>& w = weights[it.phase * groups + it.group];
      const int64_t n_taps = int64_t(phase.taps.size()), K = ci * n_taps, rows = it.m1 - it.m0;
      Columns cols;
      cols.make<T>(s, p, phase, y, it.first, it.count, NV);
      const int64_t kc = std::min(DEPTH, K);
      Scratch<T> c(rows * cols.width), b(kc * cols.width + LANES<T>);
      if (K == 0) std::fill(c.get(), c + rows * cols.width, T(0));
      const T* source = copy + it.group * ci * p.channel;
      for (int64_t k0 = 0; k0 < K; k0 += kc) {
        const int64_t k1 = std::min(K, k0 + kc);
        T* sliver = b;
        int64_t at = 0;
        for (size_t j = 0; j < cols.vectors.size(); ++j) {
          const int64_t wide = cols.vectors[j] * LANES<T>;
          lay_out(sliver, wide, source, p, taps[it.phase].data(), n_taps, k0, k1, &cols.runs[cols.begin[j]],
                  cols.begin[j + 1] - cols.begin[j]);
          sliver += wide * (k1 - k0);
        }
        for (int64_t m = 0; m < rows; m += MR) {
          sliver = b, at = 0;
          for (size_t j = 0; j < cols.vectors.size(); ++j) {
            const int64_t wide = cols.vectors[j] * LANES<T>;
            product<T>(std::min<int64_t>(MR, rows - m), cols.vectors[j], k1 - k0,
                       w.data + (it.m0 + m) * w.panel + k0 * w.col, w.row, w.col, w.panel, sliver, wide,
                       c + m * cols.width + at, cols.width, k0 > 0);
            sliver += wide * (k1 - k0), at += wide;
          }
        }
      }
      const int64_t channel = it.group * M + it.m0;
      write(y, first, cols, s, channel, rows, c.get(), bias == nullptr ? nullptr : bias + channel);
    });
  }
}

template <class T> const T* values(const View& v, T* space) { return v ? dense(v, space) : nullptr; }

template <class T> void forward(const View& x, const View& weight, const View& bias, const View& out, const Geometry& g, int64_t groups) {
  const Image from(x), to(out);
  Scratch<T> w_space(dense_space<T>(weight)), b_space(bias ? bias.numel() : 0);
  const T* w = dense(weight, w_space.get());
  const T* b = values(bias, b_space.get());
  if constexpr (std::is_same_v<T, float>)
    if (winograd_pays(g, from, to, groups, false)) return winograd(g, from, to, w, false, b);
  const Sweep s = forward_sweep(g, to.size);
  const int64_t K = from.c / groups * int64_t(s.phases[0].taps.size());
  std::vector<Weights<T>> weights;
  for (int64_t k = 0; k < groups; ++k) weights.push_back({w + k * (to.c / groups) * K, K, 1, K});
  sweep_over<T>(s, from, to, groups, weights, b);
}

template <class T> void transposed(const View& x, const View& weight, const View& bias, const View& out, const Geometry& g, int64_t groups) {
  const Image from(x), to(out);
  Scratch<T> w_space(dense_space<T>(weight)), b_space(bias ? bias.numel() : 0);
  const T* w = dense(weight, w_space.get());
  const T* b = values(bias, b_space.get());
  if constexpr (std::is_same_v<T, float>)
    if (winograd_pays(g, from, to, groups, true)) return winograd(g, from, to, w, true, b);
  const Sweep s = transposed_sweep(g, to.size);
  const int64_t O = from.c / groups, M = to.c / groups, taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const int64_t panels = up(M, MR);
  // Panels of MR rows for each phase and group: row m = channel of the result, column = (channel of x, tap).
  int64_t total = 0;
  std::vector<int64_t> starts;
  for (const Phase& phase : s.phases)
    for (int64_t k = 0; k < groups; ++k) starts.push_back(total), total += panels * MR * O * int64_t(phase.taps.size());
  Scratch<T> packed(total);
  std::vector<Weights<T>> weights;
  for (size_t f = 0; f < s.phases.size(); ++f)
    for (int64_t k = 0; k < groups; ++k) {
      const int64_t K = O * int64_t(s.phases[f].taps.size());
      weights.push_back({packed + starts[f * groups + k], 1, MR, K});
    }
  parallel_for(groups * panels, grain_for(MR * O * taps * 2), [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t k = u / panels, m0 = u % panels * MR, n = std::min<int64_t>(MR, M - m0);
      for (size_t f = 0; f < s.phases.size(); ++f) {
        const std::vector<int64_t>& hit = s.phases[f].taps;
        const int64_t nt = int64_t(hit.size());
        T* to_panel = packed + starts[f * groups + k] + m0 * O * nt;
        for (int64_t o = 0; o < O; ++o) {
          const T* row = w + ((k * O + o) * M + m0) * taps;
          for (int64_t t = 0; t < nt; ++t)
            for (int64_t m = 0; m < n; ++m) to_panel[(o * nt + t) * MR + m] = row[m * taps + hit[t]];
        }
      }
    }
  });
  if (O == 1 && M <= 4) {  // by_channel reads plain rows
    for (size_t f = 0; f < s.phases.size(); ++f)
      for (int64_t k = 0; k < groups; ++k) {
        const std::vector<int64_t>& hit = s.phases[f].taps;
        T* rows = packed + starts[f * groups + k];
        for (int64_t m = 0; m < M; ++m)
          for (size_t t = 0; t < hit.size(); ++t) rows[m * int64_t(hit.size()) + int64_t(t)] = w[(k * M + m) * taps + hit[t]];
        weights[f * groups + k] = {rows, int64_t(hit.size()), 1, int64_t(hit.size())};
      }
  }
  sweep_over<T>(s, from, to, groups, weights, b);
}

// The weight's gradient: rows are (channel of x, tap), columns are channels of the gradient, and the sum
// runs over all places. Rows are laid out like columns of the forward product, but along the places.
template <class T> void by_weight(const View& x, const View& grad, const View& out, const Geometry& g, int64_t groups) {
  constexpr int64_t L = LANES<T>;
  constexpr int64_t KC = 256, STRIDE = KC + L;
  const Image from(x), gy(grad);
  if constexpr (std::is_same_v<T, float>)
    if (winograd_weight_pays(g, from, gy, groups)) {
      Scratch<float> space(out.dtype == Dtype::f32 ? 0 : out.numel());
      float* to = out.dtype == Dtype::f32 ? out.as<float>() : space.get();
      winograd_weight(g, from, gy, to);
      const int64_t item = itemsize(out.dtype);
      if (out.dtype != Dtype::f32)
        cast_fn(Dtype::f32, out.dtype)(out.data, item, reinterpret_cast<const char*>(to), sizeof(float), out.numel());
      return;
    }
  const Sweep s = forward_sweep(g, gy.size);
  const Phase& phase = s.phases[0];
  const int64_t ci = from.c / groups, O = gy.c / groups, nt = int64_t(phase.taps.size()), R = ci * nt;
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
  Scratch<T> turned(single ? 0 : chunk * places * groups * wide);
  const CastFn cast = cast_fn(gy.dtype, dtype_of<T>);
  const int64_t slivers = up(wide / L, NV), threads = num_threads();
  for (int64_t first = 0; first < from.n; first += chunk) {
    const int64_t images = std::min(chunk, from.n - first), columns = images * places;
    p.fill(copy.get(), s, from, first, images);
    if (single) {
      parallel_for(groups, grain_for(columns * R * O / L), [&](int64_t b, int64_t e) {
        Scratch<T> line(up(phase.places[2], L) * L);
        for (int64_t k = b; k < e; ++k)
          for (int64_t o = 0; o < O; ++o)
            for (int64_t i = 0; i < images; ++i)
              for (int64_t d = 0; d < phase.places[0]; ++d)
                for (int64_t h = 0; h < phase.places[1]; ++h) {
                  const int64_t W = phase.places[2];
                  std::fill(line + W / L * L, line + up(W, L) * L, T(0));
                  cast(reinterpret_cast<char*>(line.get()), sizeof(T),
                       gy.data + (first + i) * gy.sn + (k * O + o) * gy.sc + d * gy.step[0] + h * gy.step[1], gy.step[2], W);
                  const T* src = copy + i * p.image + k * p.channel + d * s.step[0] * p.plane + h * s.step[1] * p.line;
                  for (int64_t t = 0; t < nt; ++t) {
                    const T* at = src + taps[t];
                    Vec<T> acc{};
                    int64_t q = 0;
                    for (; q + L <= W; q += L) acc += load(at + q) * load(line + q);
                    T sum = 0;
                    for (int64_t j = 0; j < L; ++j) sum += acc[j];
                    for (; q < W; ++q) sum += at[q] * line[q];
                    sums[(k * R + t) * wide + o] += sum;
                  }
                }
      });
      continue;
    }
    // The gradient by place: sliver after sliver of channels, each a row per place.
    parallel_for(groups * up(columns, L), grain_for(O * L * 2), [&](int64_t b, int64_t e) {
      T block[NV * L * L];
      for (int64_t u = b; u < e; ++u) {
        const int64_t k = u / up(columns, L), c0 = u % up(columns, L) * L, n = std::min(L, columns - c0);
        T* base = turned + k * columns * wide;
        for (int64_t j = 0, at = 0; j < slivers; ++j) {
          const int64_t v = (wide / L * (j + 1)) / slivers - (wide / L * j) / slivers, width = v * L;
          const int64_t o1 = std::min(O, at + width);
          for (int64_t o = at; o < o1; ++o) {
            T* to = block + (o - at) * L;
            for (int64_t c = 0; c < n;) {
              const int64_t w = (c0 + c) % phase.places[2], row = (c0 + c) / phase.places[2];
              const int64_t h = row % phase.places[1], d = row / phase.places[1] % phase.places[0];
              const int64_t i = row / phase.places[1] / phase.places[0];
              const int64_t len = std::min(n - c, phase.places[2] - w);
              cast(reinterpret_cast<char*>(to + c), sizeof(T),
                   gy.data + (first + i) * gy.sn + (k * O + o) * gy.sc + d * gy.step[0] + h * gy.step[1] + w * gy.step[2],
                   gy.step[2], len);
              c += len;
            }
          }
          T* to = base + at * columns + c0 * width;
          for (int64_t c = 0; c < n; ++c) {
            for (int64_t o = 0; o < o1 - at; ++o) to[c * width + o] = block[o * L + c];
            for (int64_t o = o1 - at; o < width; ++o) to[c * width + o] = T(0);
          }
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
        lay_out(a.get(), STRIDE, copy + k * ci * p.channel, p, taps.data(), nt, r0, r1, cols.runs.data(), int64_t(cols.runs.size()));
        for (int64_t j = 0, at = 0; j < slivers; ++j) {
          const int64_t v = (wide / L * (j + 1)) / slivers - (wide / L * j) / slivers;
          product<T>(r1 - r0, v, n, a.get(), STRIDE, 1, STRIDE, turned + k * columns * wide + at * columns + c0 * v * L,
                     v * L, sums + (k * R + r0) * wide + at, wide, true);
          at += v * L;
        }
      }
    });
  }
  // The result is (O, ci, taps): turned around, in the type of the result.
  const CastFn back = cast_fn(dtype_of<T>, out.dtype);
  const int64_t item = itemsize(out.dtype);
  parallel_for(groups * O, grain_for(R), [&](int64_t b, int64_t e) {
    for (int64_t u = b; u < e; ++u)
      back(out.data + u * R * item, item, reinterpret_cast<const char*>(sums + u / O * R * wide + u % O), wide * int64_t(sizeof(T)), R);
  });
}

template <class F> void computed(Dtype d, F&& f) {
  if (d == Dtype::f64) f(Type<double>{});
  else f(Type<float>{});
}

// x, weight, bias, out; stride, padding, dilation, groups.
VT_KERNEL(convolution) {
  const View &x = c.view(0), &weight = c.view(1), &bias = c.view(2), &out = c.view(3);
  const int n = x.ndim - 2;
  const Geometry g(c, 0, n, weight.shape + 2);
  computed(x.dtype, [&](auto t) { forward<typename decltype(t)::type>(x, weight, bias, out, g, c.i(3 * n)); });
}

VT_KERNEL(convolution_transpose) {
  const View &x = c.view(0), &weight = c.view(1), &bias = c.view(2), &out = c.view(3);
  const int n = x.ndim - 2;
  const Geometry g(c, 0, n, weight.shape + 2);
  computed(x.dtype, [&](auto t) { transposed<typename decltype(t)::type>(x, weight, bias, out, g, c.i(3 * n)); });
}

// x, grad, out.
VT_KERNEL(convolution_weight) {
  const View &x = c.view(0), &grad = c.view(1), &out = c.view(2);
  const int n = x.ndim - 2;
  const Geometry g(c, 0, n, out.shape + 2);
  computed(x.dtype, [&](auto t) { by_weight<typename decltype(t)::type>(x, grad, out, g, c.i(3 * n)); });
}

}}  // namespace vt
