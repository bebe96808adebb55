// Convolution and its transpose: by points, by Winograd's way, by columns, or by definition.
#include "convolution_direct.h"
#include "convolution_gathered.h"
#include "convolution_points.h"
#include "convolution_sweep.h"
#include "convolution_winograd.h"

namespace vt { namespace {
using namespace conv;

constexpr int64_t MOST_PHASES = 1024;

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
  if (narrow_points(g, from, to, groups))
    return points_of_halves(from, to, {weight.data, weight.strides[0], weight.strides[1]},
                            to.c / groups * weight.strides[0], bias, groups);
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
      reaches_out(s, from), w, weight.numel(), out,
      [&] {
        if (gathered_pays(s, from, to, groups)) gathered<T>(s, from, to, w, b);
        else sweep_over<T>(s, from, to, groups, weights, b);
      },
      by_definition);
}

template <class T> void transposed(const View& x, const View& weight, const View& bias, const View& out,
                                   const Geometry& g, int64_t groups) {
  const Image from(x), to(out);
  if (narrow_points(g, from, to, groups))
    return points_of_halves(from, to, {weight.data, weight.strides[1], weight.strides[0]},
                            from.c / groups * weight.strides[0], bias, groups);
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

}}  // namespace vt
