// Sampling at arbitrary positions, and its gradients.
#include <algorithm>
#include <cmath>

#include "vt/kernel.h"

namespace vt {
namespace {

enum Mode { bilinear, nearest, bicubic };
enum Padding { zeros, border, reflection };

constexpr int64_t B = 128;  // places that are sampled together
constexpr int TAPS = 4;     // per dimension
constexpr int CORNERS = 16;

struct Rule {
  Mode mode;
  Padding padding;
  bool align;
};

// Into 0..size-1, NaN to 0; the ends count as outside.
template <class C> inline C clipped(C x, C top) { return x > C(0) ? (x < top ? x : top) : C(0); }

template <class C> struct Back { C x, slope; };

// A position as the padding sees it, and how much it moves with the given one.
template <Padding P, class C> inline Back<C> bring_back(C x, C size, bool align) {
  C slope = C(1);
  if constexpr (P == zeros) return {x, slope};
  const C top = size - C(1);
  if constexpr (P == reflection) {
    const C low = align ? C(0) : C(-0.5), span = align ? std::max(top, C(1)) : size;  // one element: clipped below
    const C away = x < low ? low - x : x - low, turns = std::floor(away / span), rest = away - turns * span;
    const C odd = turns - C(2) * std::floor(turns * C(0.5));
    slope = x < low ? C(-1) : C(1);
    slope = odd > C(0) ? -slope : slope;
    x = (odd > C(0) ? span - rest : rest) + low;
  }
  slope = x > C(0) ? slope : C(0);
  slope = x < top ? slope : C(0);
  return {clipped(x, top), slope};
}

// Keys' kernel with a = -3/4 at a distance of 0..1 or 1..2, and its derivative.
template <class C> inline C near_weight(C d) { return (C(1.25) * d - C(2.25)) * d * d + C(1); }
template <class C> inline C near_slope(C d) { return (C(3.75) * d - C(4.5)) * d; }
template <class C> inline C far_weight(C d) { return ((C(-0.75) * d + C(3.75)) * d - C(6)) * d + C(3); }
template <class C> inline C far_slope(C d) { return (C(-2.25) * d + C(7.5)) * d - C(6); }

// The taps of B places along one dimension.
template <class C> struct Along {
  int taps;
  alignas(64) int32_t place[TAPS][B];
  alignas(64) int32_t inside[TAPS][B];
  alignas(64) C weight[TAPS][B], slope[TAPS][B];

  // `at` are coordinates in -1..1. Derivatives of weights are found only where they are `wanted`.
  void find(const C* at, int64_t count, int64_t n, const Rule& r, bool wanted) {
    const auto padded = [&](auto m, auto slopes) {
      if (r.padding == zeros) search<m(), zeros, slopes()>(at, count, n, r.align);
      else if (r.padding == border) search<m(), border, slopes()>(at, count, n, r.align);
      else search<m(), reflection, slopes()>(at, count, n, r.align);
    };
    const auto with = [&](auto m) { wanted ? padded(m, std::true_type{}) : padded(m, std::false_type{}); };
    if (r.mode == bilinear) with(std::integral_constant<Mode, bilinear>{});
    else if (r.mode == nearest) with(std::integral_constant<Mode, nearest>{});
    else with(std::integral_constant<Mode, bicubic>{});
  }

  template <Mode M, Padding P, bool SLOPES> void search(const C* at, int64_t count, int64_t n, bool align) {
    taps = M == nearest ? 1 : M == bilinear ? 2 : 4;
    const C size = C(n), top = C(n - 1), scale = C(align ? (n - 1) / 2.0 : n / 2.0), shift = align ? C(0) : C(-0.5);
    alignas(64) C low[B];
#pragma GCC ivdep
    for (int64_t o = 0; o < count; ++o) {
      // Rounded once: in float it matters for large images.
      C x = std::fma(at[o] + C(1), scale, shift), by = scale;
      if constexpr (M != bicubic) {
        const Back<C> b = bring_back<P>(x, size, align);
        x = b.x, by = b.slope * scale;
      }
      const C base = M == nearest ? std::rint(x) : std::floor(x), part = x - base;
      if constexpr (M == bicubic) {
        low[o] = base - C(1);
        weight[0][o] = far_weight(part + C(1)), weight[1][o] = near_weight(part);
        weight[2][o] = near_weight(C(1) - part), weight[3][o] = far_weight(C(2) - part);
        if constexpr (SLOPES) {
          slope[0][o] = far_slope(part + C(1)) * by, slope[1][o] = near_slope(part) * by;
          slope[2][o] = -near_slope(C(1) - part) * by, slope[3][o] = -far_slope(C(2) - part) * by;
        }
      } else {
        low[o] = base;
        if constexpr (M == bilinear) weight[0][o] = C(1) - part, weight[1][o] = part;
        if constexpr (M == bilinear && SLOPES) slope[0][o] = -by, slope[1][o] = by;
      }
    }
    for (int t = 0; t < taps; ++t) {
#pragma GCC ivdep
      for (int64_t o = 0; o < count; ++o) {
        C e = low[o] + C(t);
        if constexpr (M == bicubic) e = bring_back<P>(e, size, align).x;  // its taps are brought back one by one
        inside[t][o] = int32_t((e >= C(0)) & (e <= top));
        place[t][o] = int32_t(clipped(e, top));
      }
    }
  }
};

// The combinations of taps: elements and their weights.
template <class C> struct Corners {
  int count;
  bool whole;  // every element exists
  alignas(64) int32_t index[CORNERS][B];
  alignas(64) int32_t inside[CORNERS][B];
  alignas(64) C weight[CORNERS][B];

  // Dimension 0 is the outermost; `step` in elements. A single corner has no weight.
  void join(const Along<C>* along, int dims, const int64_t* step, int64_t places) {
    count = 1;
    for (int d = 0; d < dims; ++d) count *= along[d].taps;
    int32_t all = 1;
    for (int t = 0; t < count; ++t) {
      const Along<C>& last = along[dims - 1];
      int k = t % last.taps, rest = t / last.taps;
      start(t, last, k, int32_t(step[dims - 1]), places);
      for (int d = dims - 2; d >= 0; --d) {
        k = rest % along[d].taps, rest /= along[d].taps;
        extend(t, along[d], k, int32_t(step[d]), places);
      }
      for (int64_t o = 0; o < places; ++o) all &= inside[t][o];
    }
    whole = all != 0;
  }

  void start(int t, const Along<C>& a, int k, int32_t step, int64_t places) {
#pragma GCC ivdep
    for (int64_t o = 0; o < places; ++o) {
      index[t][o] = a.place[k][o] * step;
      inside[t][o] = a.inside[k][o];
    }
    if (count > 1) std::copy_n(a.weight[k], places, weight[t]);
  }

  void extend(int t, const Along<C>& a, int k, int32_t step, int64_t places) {
#pragma GCC ivdep
    for (int64_t o = 0; o < places; ++o) {
      index[t][o] += a.place[k][o] * step;
      inside[t][o] &= a.inside[k][o];
    }
    if (count == 1) return;
#pragma GCC ivdep
    for (int64_t o = 0; o < places; ++o) weight[t][o] *= a.weight[k][o];
  }
};

// What both directions know of input and grid. Input (N, C, sizes...), grid (N, places..., dims).
template <class S> struct Sampler {
  using C = compute_t<S>;
  const View &x, &grid;
  Rule rule;
  int dims;
  int64_t sizes[3], step[3], places = 1;

  Sampler(const View& x, const View& grid, const Call& c)
      : x(x), grid(grid), rule{Mode(c.i(0)), Padding(c.i(1)), c.i(2) != 0}, dims(x.ndim - 2) {
    for (int d = 0; d < dims; ++d) sizes[d] = x.size(2 + d), step[d] = x.stride(2 + d), places *= grid.size(1 + d);
  }

  // Coordinates of the places from p on, along each dimension, outermost first.
  void coordinates(int64_t n, int64_t p, int64_t count, C at[3][B]) const {
    int64_t k[3] = {0, 0, 0}, rest = p;
    for (int d = dims - 1; d >= 0; --d) k[d] = rest % grid.size(1 + d), rest /= grid.size(1 + d);
    const int64_t inner = grid.stride(dims), last = grid.stride(dims + 1), width = grid.size(dims);
    for (int64_t o = 0; o < count;) {
      const S* from = grid.as<S>() + n * grid.stride(0);
      for (int d = 0; d < dims; ++d) from += k[d] * grid.stride(1 + d);
      const int64_t run = std::min(count - o, width - k[dims - 1]);
      if (dims == 2 && inner == 2 && last == 1)
        for (int64_t i = 0; i < run; ++i) at[1][o + i] = convert<C>(from[2 * i]), at[0][o + i] = convert<C>(from[2 * i + 1]);
      else
        for (int d = 0; d < dims; ++d)
          for (int64_t i = 0; i < run; ++i) at[d][o + i] = convert<C>(from[i * inner + (dims - 1 - d) * last]);
      o += run, k[dims - 1] = 0;
      for (int d = dims - 2; d >= 0 && ++k[d] == grid.size(1 + d); --d) k[d] = 0;
    }
  }

  void find(int64_t n, int64_t p, int64_t count, Along<C>* along, bool slopes = false) const {
    alignas(64) C at[3][B];
    coordinates(n, p, count, at);
    for (int d = 0; d < dims; ++d) along[d].find(at[d], count, sizes[d], rule, slopes);
  }
};

// Elements are read one by one: what processors offer for reading many at once is slower on several of them. Places and
// weights are read once for N channels.
template <int T, bool WHOLE, int N, class S, class C = compute_t<S>>
[[gnu::optimize("no-tree-vectorize")]] void mix(S* __restrict to, int64_t next_to, const S* __restrict from, int64_t next,
                                                const Corners<C>& k, int64_t count) {
  for (int64_t o = 0; o < count; ++o) {
    C sum[N] = {};
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      if (!WHOLE && !k.inside[t][o]) {
        // As if the element were 0: a weight that is no number stays one.
        for (int c = 0; c < N; ++c) sum[c] += T == 1 ? C(0) : k.weight[t][o] * C(0);
        continue;
      }
      const S* at = from + k.index[t][o];
#pragma GCC unroll 4
      for (int c = 0; c < N; ++c) {
        const C v = convert<C>(at[c * next]);
        sum[c] = T == 1 ? v : sum[c] + k.weight[t][o] * v;
      }
    }
#pragma GCC unroll 4
    for (int c = 0; c < N; ++c) to[o + c * next_to] = convert<S>(sum[c]);
  }
}

// Calls f(N, first) with channels in groups of four, and what is left.
template <class F> void by_fours(int64_t channels, F&& f) {
  int64_t ch = 0;
  const auto some = [&](auto n) {
    for (; ch + n() <= channels; ch += n()) f(n, ch);
  };
  some(std::integral_constant<int, 4>{});
  some(std::integral_constant<int, 3>{});
  some(std::integral_constant<int, 2>{});
  some(std::integral_constant<int, 1>{});
}

template <class F> void for_corners(int count, bool whole, F&& f) {
  const auto with = [&](auto n) { whole ? f(n, std::true_type{}) : f(n, std::false_type{}); };
  if (count == 1) with(std::integral_constant<int, 1>{});
  else if (count == 4) with(std::integral_constant<int, 4>{});
  else if (count == 8) with(std::integral_constant<int, 8>{});
  else with(std::integral_constant<int, 16>{});
}

template <class S> void sample(Call& c) {
  using C = compute_t<S>;
  const View &x = c.view(0), &out = c.view(2);
  const Sampler<S> s(x, c.view(1), c);
  const int64_t channels = x.size(1), blocks = (s.places + B - 1) / B;
  parallel_for(x.size(0) * blocks, grain_for(B * (channels * 8 + 32)), [&](int64_t begin, int64_t end) {
    Along<C> along[3];
    Corners<C> corners;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / blocks, p = task % blocks * B, count = std::min(B, s.places - p);
      s.find(n, p, count, along);
      corners.join(along, s.dims, s.step, count);
      for_corners(corners.count, corners.whole, [&](auto taps, auto whole) {
        const S* from = x.as<S>() + n * x.stride(0);
        S* to = out.as<S>() + n * channels * s.places + p;
        by_fours(channels, [&](auto n, int64_t ch) {
          mix<taps(), whole(), n()>(to + ch * s.places, s.places, from + ch * x.stride(1), x.stride(1), corners, count);
        });
      });
    }
  });
}

template <int T, bool WHOLE, int N, class S, class C = compute_t<S>>
[[gnu::optimize("no-tree-vectorize")]] void meet(C met[][B], const S* g, int64_t next_g, const S* from, int64_t next,
                                                 const Corners<C>& k, int64_t count) {
  for (int64_t o = 0; o < count; ++o) {
    C back[N];
#pragma GCC unroll 4
    for (int c = 0; c < N; ++c) back[c] = convert<C>(g[o + c * next_g]);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const S* at = from + k.index[t][o];
      C sum = met[t][o];
#pragma GCC unroll 4
      for (int c = 0; c < N; ++c) sum += back[c] * (WHOLE || k.inside[t][o] ? convert<C>(at[c * next]) : C(0));
      met[t][o] = sum;
    }
  }
}

// By the grid: products of gradient and element are summed over channels, then weighed.
template <class S> void by_grid(Call& c) {
  using C = compute_t<S>;
  const View &g = c.view(0), &x = c.view(1), &out = c.view(4);
  const Sampler<S> s(x, c.view(2), c);
  const int64_t channels = x.size(1), blocks = (s.places + B - 1) / B;
  parallel_for(x.size(0) * blocks, grain_for(B * (channels * 12 + 64)), [&](int64_t begin, int64_t end) {
    Along<C> along[3];
    Corners<C> corners;
    alignas(64) C met[CORNERS][B], sum[B];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / blocks, p = task % blocks * B, count = std::min(B, s.places - p);
      S* to = out.as<S>() + (n * s.places + p) * s.dims;
      if (s.rule.mode == nearest) {
        std::fill(to, to + count * s.dims, convert<S>(C(0)));
        continue;
      }
      s.find(n, p, count, along, true);
      corners.join(along, s.dims, s.step, count);
      for (int t = 0; t < corners.count; ++t) std::fill(met[t], met[t] + count, C(0));
      for_corners(corners.count, corners.whole, [&](auto taps, auto whole) {
        const S* from = x.as<S>() + n * x.stride(0);
        const S* back = g.as<S>() + n * channels * s.places + p;
        by_fours(channels, [&](auto n, int64_t ch) {
          meet<taps(), whole(), n()>(met, back + ch * s.places, s.places, from + ch * x.stride(1), x.stride(1), corners, count);
        });
      });
      for (int d = 0; d < s.dims; ++d) {
        std::fill(sum, sum + count, C(0));
        for (int t = 0; t < corners.count; ++t) {
          const C* by[3] = {};
          for (int e = s.dims - 1, rest = t; e >= 0; --e) {
            const int k = rest % along[e].taps;
            rest /= along[e].taps;
            by[e] = e == d ? along[e].slope[k] : along[e].weight[k];
          }
          if (s.dims == 2)
            for (int64_t o = 0; o < count; ++o) sum[o] += met[t][o] * by[0][o] * by[1][o];
          else
            for (int64_t o = 0; o < count; ++o) sum[o] += met[t][o] * by[0][o] * by[1][o] * by[2][o];
        }
        for (int64_t o = 0; o < count; ++o) to[o * s.dims + s.dims - 1 - d] = convert<S>(sum[o]);
      }
    }
  });
}

template <int T, bool WHOLE, class S, class C = compute_t<S>>
void give(C* to, const S* back, const Corners<C>& k, int64_t count) {
  for (int64_t o = 0; o < count; ++o) {
    const C v = convert<C>(back[o]);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t)
      if (WHOLE || k.inside[t][o]) to[k.index[t][o]] += T == 1 ? v : v * k.weight[t][o];
  }
}

// By the input: every place adds to the elements it read, so a plane belongs to one thread.
template <class S> void by_input(Call& c) {
  using C = compute_t<S>;
  const View &g = c.view(0), &x = c.view(1), &out = c.view(3);
  const Sampler<S> s(x, c.view(2), c);
  const int64_t channels = x.size(1), blocks = (s.places + B - 1) / B;
  int64_t step[3], plane = 1;
  for (int d = s.dims - 1; d >= 0; --d) step[d] = plane, plane *= s.sizes[d];
  // Positions are found anew for each group of channels: no more groups than threads need.
  const int64_t groups = std::clamp<int64_t>(2 * num_threads() / std::max<int64_t>(x.size(0), 1), 1, std::max<int64_t>(channels, 1));
  const int64_t each = (channels + groups - 1) / groups;
  parallel_for(x.size(0) * groups, grain_for(each * (s.places * 16 + plane)), [&](int64_t begin, int64_t end) {
    Along<C> along[3];
    Corners<C> corners;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / groups, from = std::min(task % groups * each, channels), upto = std::min(from + each, channels);
      constexpr bool direct = std::is_same_v<S, C>;
      Scratch<C> room(direct ? 0 : (upto - from) * plane);
      C* sums = room;
      if constexpr (direct) sums = out.as<S>() + (n * channels + from) * plane;
      std::fill(sums, sums + (upto - from) * plane, C(0));
      for (int64_t b = 0; b < blocks && upto > from; ++b) {
        const int64_t p = b * B, count = std::min(B, s.places - p);
        s.find(n, p, count, along);
        corners.join(along, s.dims, step, count);
        for_corners(corners.count, corners.whole, [&](auto taps, auto whole) {
          for (int64_t ch = from; ch < upto; ++ch) {
            const S* back = g.as<S>() + (n * channels + ch) * s.places + p;
            C* to = sums + (ch - from) * plane;
            give<taps(), whole()>(to, back, corners, count);
          }
        });
      }
      if constexpr (!direct) {
        S* to = out.as<S>() + (n * channels + from) * plane;
        for (int64_t i = 0; i < (upto - from) * plane; ++i) to[i] = convert<S>(sums[i]);
      }
    }
  });
}

}  // namespace

// x, grid, out, mode, padding, align
VT_KERNEL(grid_sample) {
  for_floats("grid_sample", c.view(0).dtype, [&](auto t) { sample<typename decltype(t)::type>(c); });
}

// g, x, grid, by input, by grid, mode, padding, align; a result that is not asked for is empty
VT_KERNEL(grid_sample_backward) {
  for_floats("grid_sample_backward", c.view(1).dtype, [&](auto t) {
    using S = typename decltype(t)::type;
    if (c.view(3).ndim == c.view(1).ndim) by_input<S>(c);
    if (c.view(4).ndim == c.view(2).ndim) by_grid<S>(c);
  });
}

}  // namespace vt
