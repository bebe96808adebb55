// Convolution, its transpose and its weight gradient as products of matrices whose columns are laid out
// block by block, so that they stay in the cache.
#include "conv_core.h"
#include "conv_direct.h"
#include "conv_winograd.h"

#include "vt/gemm.h"

namespace vt { namespace {
using namespace conv;

constexpr int64_t DEPTH = 384;        // rows of a block of columns
constexpr int64_t BLOCK_VECTORS = 9;  // columns of a block, in vectors
constexpr int64_t BLOCK_BYTES = 128 << 10;
constexpr int64_t MOST_PHASES = 1024;
constexpr int64_t CHUNK_BYTES = 4 << 20;  // images are copied with their padding about so much at a time

// Neighbouring columns whose sources are contiguous: `len` of them from `at` in their sliver.
struct Run {
  int32_t sliver, at, len;
  int64_t source;  // in the padded copy, without channel and tap
};

// Columns that lie side by side in the output: `len` of them from `at` in their block.
struct Place {
  int64_t at, len, target;
};

// Columns first..first+count of a phase over several images, cut into slivers of at most NV vectors.
struct Columns {
  std::vector<Run> runs;
  std::vector<Place> places;
  std::vector<int64_t> begin;    // of each sliver's runs
  std::vector<int64_t> vectors;  // of each sliver
  int64_t width = 0;             // of all slivers

  template <class T> void make(const Sweep& s, const Padded& p, const Phase& phase, const Image& y, int64_t first,
                               int64_t count, int64_t widest) {
    const int64_t L = LANES<T>, total = up(count, L), slivers = up(total, widest);
    runs.clear(), places.clear(), begin.assign(1, 0), vectors.clear();
    width = total * L;
    int64_t c = first, column = 0;
    const int64_t apart = s.ostep[2] * y.step[2];
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
        const int64_t target = i * y.sn + (phase.first[0] + d * s.ostep[0]) * y.step[0] +
                               (phase.first[1] + h * s.ostep[1]) * y.step[1] +
                               (phase.first[2] + w * s.ostep[2]) * y.step[2];
        runs.push_back(r);
        const int64_t at = column + r.at;
        if (!places.empty() && places.back().at + places.back().len == at &&
            places.back().target + places.back().len * apart == target)
          places.back().len += len;
        else places.push_back({at, len, target});
        c += len;
      }
      begin.push_back(int64_t(runs.size()));
      vectors.push_back(v);
      column += v * L;
    }
  }
};

// Rows k0..k1 (channel, tap) of runs, each row `stride` after the one before. Whole vectors are copied:
// what is too much is overwritten by what follows, and the space must have a vector to spare.
template <class T> void lay_out(T* to, int64_t stride, const T* x, const Padded& p, const int64_t* taps, int64_t n_taps,
                                int64_t k0, int64_t k1, const Run* runs, int64_t n_runs) {
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

// Rows of weights for one phase and group: element (m, k) at (m / MR) * MR * panel + m % MR * row + k * col.
template <class T> struct Weights {
  const T* data;
  int64_t row, col, panel;
};

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

// Each channel by itself (one source channel per group): sums over the taps, a row at a time.
template <class T> void by_channel(const Image& y, int64_t image, const Sweep& s, const Padded& p, const Phase& phase,
                                   const T* x, const int64_t* taps, int64_t channel, int64_t M, const T* w,
                                   int64_t w_row, const T* bias) {
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

// Every phase of a sweep over x: y = weights * columns + bias, group by group.
template <class T> void sweep_over(const Sweep& s, const Image& x, const Image& y, int64_t groups,
                                   const std::vector<Weights<T>>& weights, const T* bias) {
  const int64_t ci = x.c / groups, M = y.c / groups, threads = num_threads();
  if (ci == 1 && M == 1 && pixels<T>(x, y)) return by_pixel<T>(s, x, y, weights, bias);
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

// A tensor of points: channels `sc` and places `sp` elements apart, in every image.
struct Points {
  int64_t count, sn, sc, sp;
  bool flat;

  explicit Points(const Image& x) : count(x.size[0] * x.size[1] * x.size[2]) {
    const int64_t item = itemsize(x.dtype);
    sn = x.sn / item, sc = x.sc / item;
    int64_t step = -1;
    flat = true;
    for (int d = 2; d >= 0; --d) {
      if (x.size[d] == 1) continue;
      flat = flat && (step < 0 || x.step[d] == step);
      if (step < 0) sp = x.step[d] / item;
      step = x.step[d] * x.size[d];
    }
    if (step < 0) sp = 1;
  }
};

bool point_by_point(const Geometry& g, const Image& x, const Image& y, int64_t groups, Dtype compute) {
  for (int d = 0; d < 3; ++d)
    if (g.kernel[d] != 1 || g.stride[d] != 1 || g.padding[d] != 0 || x.size[d] != y.size[d]) return false;
  const Points a(x), b(y);
  return groups == 1 && x.dtype == compute && a.flat && b.flat && (a.sc == 1 || a.sp == 1) && (b.sc == 1 || b.sp == 1);
}

// y[:, p] = w x[:, p] + bias for every point p; w (M x K) by its strides.
template <class T> void points(const Image& x, const Image& y, Matrix<const T> w, const T* bias) {
  const Points a(x), b(y);
  const int64_t K = x.c, M = y.c;
  if (bias != nullptr)
    parallel_for(y.n * M, grain_for(b.count), [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        T* to = reinterpret_cast<T*>(y.data) + k / M * b.sn + k % M * b.sc;
        for (int64_t i = 0; i < b.count; ++i) to[i * b.sp] = bias[k % M];
      }
    });
  const bool joined = a.sc == 1 && b.sc == 1 && a.sn == a.count * a.sp && b.sn == b.count * b.sp;
  const int64_t images = joined ? 1 : x.n, count = joined ? a.count * x.n : a.count;
  const bool many = images > 1 && M * K * count < (int64_t(1) << 22);
  parallel_for(images, many ? 1 : images, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T* from = reinterpret_cast<const T*>(x.data) + i * a.sn;
      T* to = reinterpret_cast<T*>(y.data) + i * b.sn;
      if (b.sc == 1)
        gemm(count, M, K, Matrix<const T>{from, a.sp, a.sc}, Matrix<const T>{w.data, w.col, w.row},
             Matrix<T>{to, b.sp, b.sc}, bias != nullptr);
      else gemm(M, count, K, w, Matrix<const T>{from, a.sc, a.sp}, Matrix<T>{to, b.sc, b.sp}, bias != nullptr);
    }
  });
}

template <class T> const T* values(const View& v, T* space) { return v ? dense(v, space) : nullptr; }

// Runs `sweep`, or `direct` where the zeros of the padding would meet a weight that is NaN or infinite. Weights are
// looked through first, or, if there are more of them than of results, when a result turned out to be NaN.
template <class T, class F, class G>
void unless_poisoned(bool padded, const T* w, int64_t n, const View& out, F&& sweep, G&& direct) {
  const int64_t results = out.numel();
  if (padded && n <= results && !all_finite(w, n)) return direct();
  sweep();
  if (!padded || n <= results) return;
  Scratch<T> space(dense_space<T>(out));
  if (has_nan(dense(out, space.get()), results) && !all_finite(w, n)) direct();
}

template <class T>
void forward(const View& x, const View& weight, const View& bias, const View& out, const Geometry& g, int64_t groups) {
  const Image from(x), to(out);
  Scratch<T> w_space(dense_space<T>(weight)), b_space(bias ? bias.numel() : 0);
  const T* w = dense(weight, w_space.get());
  const T* b = values(bias, b_space.get());
  if (point_by_point(g, from, to, groups, dtype_of<T>)) return points<T>(from, to, Matrix<const T>{w, from.c, 1}, b);
  if constexpr (std::is_same_v<T, float>)
    if (winograd_pays(g, from, to, groups, false) && winograd(g, from, to, w, false, b)) return;
  const Sweep s = forward_sweep(g, to.size);
  const auto by_definition = [&] { direct<T>(x, w, b, to, g, groups); };
  if (oversized(s, from, to)) return by_definition();
  const int64_t K = from.c / groups * int64_t(s.phases[0].taps.size());
  std::vector<Weights<T>> weights;
  for (int64_t k = 0; k < groups; ++k) weights.push_back({w + k * (to.c / groups) * K, K, 1, K});
  unless_poisoned(
      reaches_out(s, from), w, weight.numel(), out, [&] { sweep_over<T>(s, from, to, groups, weights, b); },
      by_definition);
}

template <class T> void transposed(const View& x, const View& weight, const View& bias, const View& out,
                                   const Geometry& g, int64_t groups) {
  const Image from(x), to(out);
  Scratch<T> w_space(dense_space<T>(weight)), b_space(bias ? bias.numel() : 0);
  const T* w = dense(weight, w_space.get());
  const T* b = values(bias, b_space.get());
  if (point_by_point(g, from, to, groups, dtype_of<T>)) return points<T>(from, to, Matrix<const T>{w, 1, to.c}, b);
  if constexpr (std::is_same_v<T, float>)
    if (winograd_pays(g, from, to, groups, true) && winograd(g, from, to, w, true, b)) return;
  const int64_t O = from.c / groups, M = to.c / groups, taps = g.kernel[0] * g.kernel[1] * g.kernel[2];
  const auto by_definition = [&] { direct_transposed<T>(x, w, b, to, g, groups); };
  if (phases_of(g, to.size) > MOST_PHASES + 4 * taps) return by_definition();  // most of them without a tap
  const Sweep s = transposed_sweep(g, to.size);
  if (oversized(s, from, to)) return by_definition();
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
          if (nt == taps && n == MR) {
            transpose<T>(to_panel + o * nt * MR, MR, row, taps, MR, taps);
            continue;
          }
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
          for (size_t t = 0; t < hit.size(); ++t)
            rows[m * int64_t(hit.size()) + int64_t(t)] = w[(k * M + m) * taps + hit[t]];
        weights[f * groups + k] = {rows, int64_t(hit.size()), 1, int64_t(hit.size())};
      }
  }
  unless_poisoned(
      reaches_out(s, from), w, weight.numel(), out, [&] { sweep_over<T>(s, from, to, groups, weights, b); },
      by_definition);
}

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
    const bool joined = a.sn == a.count * a.sp && b.sn == b.count * b.sp;
    const int64_t images = joined ? 1 : from.n, count = joined ? a.count * from.n : a.count;
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
  Scratch<T> turned(single ? 0 : chunk * places * groups * wide);
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
        T* base = turned + k * columns * wide;
        for (int64_t j = 0, at = 0; j < slivers; ++j) {
          const int64_t v = (wide / L * (j + 1)) / slivers - (wide / L * j) / slivers, width = v * L;
          for (int64_t o = at; o < at + width; ++o) {
            T* to = block + (o - at) * SPAN;
            if (o >= O) std::fill(to, to + n, T(0));
            else
              for (const Place& q : span.places)
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
