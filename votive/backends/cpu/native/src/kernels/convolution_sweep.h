// Every phase of a convolution as products of weights with blocks of columns that stay in the cache.
#pragma once
#include "convolution_columns.h"
#include "convolution_depthwise.h"
#include "pixels.h"

namespace vt::conv {

constexpr int64_t DEPTH = 384;        // rows of a block of columns
constexpr int64_t BLOCK_VECTORS = 9;  // columns of a block, in vectors
constexpr int64_t BLOCK_BYTES = 128 << 10;

// A single column, contiguous: c (+)= A b.
template <class T> void thin(int64_t M, int64_t K, const T* a, int64_t ar, int64_t ak, int64_t panel, const T* b, T* c,
                             int64_t ldc, bool accumulate) {
  constexpr int64_t L = LANES<T>;
  for (int64_t m0 = 0; m0 < M; m0 += MR) {
    const int64_t n = std::min<int64_t>(MR, M - m0);
    T sums[MR] = {};
    if (ak == 1) {
      for (int64_t m = 0; m < n; ++m) {
        const T* row = a + m0 * panel + m * ar;
        Vec<T> acc[4] = {};
        int64_t k = 0;
        for (; k + 4 * L <= K; k += 4 * L)
          for (int v = 0; v < 4; ++v) acc[v] += load(row + k + v * L) * load(b + k + v * L);
        T lanes[L];
        store(lanes, (acc[0] + acc[1]) + (acc[2] + acc[3]));
        for (; k < K; ++k) sums[m] += row[k] * b[k];
        for (int64_t half = L / 2; half > 0; half /= 2)
          for (int64_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
        sums[m] += lanes[0];
      }
    } else {
      T part[4][MR] = {};
      const T* rows = a + m0 * panel;
      int64_t k = 0;
      for (; k + 4 <= K; k += 4)
        for (int v = 0; v < 4; ++v)
          for (int m = 0; m < MR; ++m) part[v][m] += rows[(k + v) * ak + m] * b[k + v];
      for (; k < K; ++k)
        for (int m = 0; m < MR; ++m) part[0][m] += rows[k * ak + m] * b[k];
      for (int m = 0; m < MR; ++m) sums[m] = (part[0][m] + part[1][m]) + (part[2][m] + part[3][m]);
    }
    for (int64_t m = 0; m < n; ++m) {
      T* at = c + (m0 + m) * ldc;
      *at = accumulate ? *at + sums[m] : sums[m];
    }
  }
}

template <class T> void write(const Image& y, int64_t image, const Columns& cols, const Sweep& s, int64_t channel,
                              int64_t M, T* c, const T* bias) {
  const CastFn cast = cast_fn(dtype_of<T>, y.dtype);
  char* base = y.data + image * y.sn + channel * y.sc;
  const int64_t item = sizeof(T);
  const bool last = y.dtype == dtype_of<T> && y.sc == item && M > 1 && y.step[2] != item;  // channels last
  for (int64_t m = 0; m < M; ++m) {
    T* row = c + m * cols.width;
    if (bias != nullptr) {
      const T b = bias[m];
      for (int64_t i = 0; i < cols.width; ++i) row[i] += b;
    }
    if (last) continue;
    for (const Place& p : cols.places)
      cast(base + m * y.sc + p.target, s.ostep[2] * y.step[2], reinterpret_cast<const char*>(row + p.at), sizeof(T),
           p.len);
  }
  if (last)
    for (const Place& p : cols.places)
      transpose<T>(reinterpret_cast<T*>(base + p.target), s.ostep[2] * y.step[2] / item, c + p.at, cols.width, M,
                   p.len);
}

// Every phase of a sweep over x: y = weights * columns + bias, group by group.
template <class T> void sweep_over(const Sweep& s, const Image& x, const Image& y, int64_t groups,
                                   const std::vector<Weights<T>>& weights, const T* bias) {
  const int64_t ci = x.c / groups, M = y.c / groups, threads = num_threads();
  if (ci == 1 && M == 1 && pixels<T>(x, y)) return by_pixel<T>(s, x, y, weights, bias);
  if (ci == 1 && M == 1 && copied_as_pixels(x, y))
    return with_pixels<T>(x, y, [&](const Image& from, const Image& to) { by_pixel<T>(s, from, to, weights, bias); });
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
      for (const Phase& phase : s.phases)
        cost += phase.count() * int64_t(phase.taps.size()) * M / LANES<T> + phase.count();
      parallel_for(images * groups, grain_for(cost), [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k)
          for (int64_t f = 0; f < n_phases; ++f) {
            const Weights<T>& w = weights[f * groups + k % groups];
            const int64_t g = k % groups;
            by_channel(y, first + k / groups, s, p, s.phases[f], copy + k / groups * p.image + g * p.channel,
                       taps[f].data(), g * M, M, w.data, w.row, bias == nullptr ? nullptr : bias + g * M);
          }
      });
      continue;
    }
    struct Item {
      int64_t phase, group, first, count, m0, m1;
    };
    std::vector<Item> items;
    for (int64_t f = 0; f < n_phases; ++f) {
      const int64_t all = images * s.phases[f].count();
      if (all == 0) continue;
      // One column more than fills vectors costs least by itself.
      const bool odd = all % LANES<T> == 1 && all > LANES<T> && all < 32 * LANES<T> && M >= MR;
      const int64_t columns = odd ? all - 1 : all, vectors = up(columns, LANES<T>);
      const int64_t work = columns * M * ci * int64_t(s.phases[f].taps.size());
      const int64_t want = work * groups * n_phases < 65536 ? 1 : threads;
      // Blocks of few rows are longer: each costs some bookkeeping.
      const int64_t rows = std::min(DEPTH, ci * int64_t(s.phases[f].taps.size())) + M;
      const int64_t longest =
          std::clamp<int64_t>(BLOCK_BYTES / (rows * VECTOR_BYTES), BLOCK_VECTORS, 8 * BLOCK_VECTORS);
      // Threads take columns, or rows where few columns could not be shared evenly.
      const bool by_rows = groups == 1 && n_phases == 1 && want > 1 && M >= want * 4 * MR &&
                           (vectors < want || up(vectors, want) * want * 10 > vectors * 11);
      const int64_t blocks = std::min(vectors, by_rows ? up(vectors, longest) : want * up(vectors, want * longest));
      const int64_t parts = by_rows                                 ? want
                            : blocks * groups >= want || M < 2 * MR ? 1
                                                                    : std::min<int64_t>(want, up(M, MR));
      const int64_t height = up(up(M, parts), MR) * MR;
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t b = 0; b < blocks; ++b)
          for (int64_t m = 0; m < M; m += height)
            items.push_back({f, g, vectors * b / blocks * LANES<T>,
                             std::min(columns, vectors * (b + 1) / blocks * LANES<T>) - vectors * b / blocks * LANES<T>,
                             m, std::min(M, m + height)});
      if (odd)
        for (int64_t g = 0; g < groups; ++g)
          for (int64_t m = 0; m < M; m += height) items.push_back({f, g, columns, 1, m, std::min(M, m + height)});
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
      if (it.count == 1 && rows >= MR) {
        Scratch<T> column(K);
        const int64_t* tap = taps[it.phase].data();
        const T* from = source + cols.runs[0].source;
        for (int64_t j = 0, k = 0; j < ci; ++j)
          for (int64_t t = 0; t < n_taps; ++t) column[k++] = from[j * p.channel + tap[t]];
        for (int64_t k0 = 0; k0 < K; k0 += kc)
          thin<T>(rows, std::min(kc, K - k0), w.data + it.m0 * w.panel + k0 * w.col, w.row, w.col, w.panel, column + k0,
                  c.get(), cols.width, k0 > 0);
        const int64_t channel = it.group * M + it.m0;
        write(y, first, cols, s, channel, rows, c.get(), bias == nullptr ? nullptr : bias + channel);
        return;
      }
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

}  // namespace vt::conv
