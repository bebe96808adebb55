// Gradients of recurrent networks: steps in the reverse order, then one product over all steps for each weight.
#include "recurrent.h"

#include <algorithm>
#include <utility>

#include "vt/cast.h"
#include "vt/gemm.h"
#include "vt/lanes.h"

namespace vt {
namespace {

using namespace recurrent;

// One direction of a layer.
template <class T> struct Direction {
  const T *gates, *cells;   // what forward kept: (rows, 4, hidden) and (rows, hidden)
  const T *out, *by;        // the results and their gradient, (rows, width)
  const T *h, *c;           // states before the first step, or null for zeros
  T *by_h, *by_c;           // the gradient that the state carries
  T* by_gates;              // (rows, ldg); of a GRU r, z, then by what the state and by what the input gave to n
  int64_t ldg;
  T *by_out, *wide;         // of a projection: what each row got (rows, out) and gave (rows, hidden)
  T* by_wide;               // (batch, hidden): the gradient before the projection
  Panels<T> panels, projection;
  Pairs pairs;              // the weight as bfloat16, if that is faster, and all of by_gates
  uint32_t* paired;
  bool backwards;
};

// What products over all steps read: gradients of gates, results, states before the first step, inputs.
template <class E> struct Factors {
  const E* gates;
  int64_t ldg;
  const E *out, *h, *in;
};

// The row of the step before, among those of `values`, or of the initial state; null for zeros.
template <class T>
const T* before(const Sizes& s, bool backwards, int64_t t, int64_t b, const T* values, int64_t ld, const T* initial,
                int64_t n) {
  const int64_t u = backwards ? t + 1 : t - 1;
  if (u >= 0 && u < s.steps() && b < s.size(u)) return values + (s.starts[size_t(u)] + b) * ld;
  return initial ? initial + b * n : nullptr;
}

template <class T, class N> VT_INLINE Lanes<T> load_or_zero(const T* p, int64_t j, N n) {
  return p ? load_some<T>(p + j, n) : Lanes<T>{};
}
template <class T> VT_INLINE Lanes<T> tanhs(Lanes<T> x) { return each<T>(x, [](T v) { return vt::tanh(v); }); }

template <class T>
void lstm_row(int64_t H, const T* gates, const T* cell, const T* earlier, const T* by, const T* by_more, T* by_c, T* to,
              T* wide) {
  sweep<T>(H, [&](int64_t j, auto n) {
    const auto gate = [&](int64_t k) { return load_some<T>(gates + k * H + j, n); };
    const Lanes<T> i = gate(0), f = gate(1), g = gate(2), o = gate(3), y = tanhs<T>(load_some<T>(cell + j, n));
    const Lanes<T> by_h = load_some<T>(by + j, n) + load_or_zero<T>(by_more, j, n);
    const Lanes<T> by_cell = load_some<T>(by_c + j, n) + by_h * o * (T(1) - y * y);
    store_some<T>(by_c + j, by_cell * f, n);
    store_some<T>(to + j, by_cell * g * i * (T(1) - i), n);
    store_some<T>(to + H + j, by_cell * load_or_zero<T>(earlier, j, n) * f * (T(1) - f), n);
    store_some<T>(to + 2 * H + j, by_cell * i * (T(1) - g * g), n);
    store_some<T>(to + 3 * H + j, by_h * y * o * (T(1) - o), n);
    if (wide) store_some<T>(wide + j, o * y, n);
  });
}

// by_h becomes what goes past the product, z times the gradient.
template <class T>
void gru_row(int64_t H, const T* gates, const T* earlier, const T* by, T* by_h, T* to) {
  sweep<T>(H, [&](int64_t j, auto n) {
    const auto gate = [&](int64_t k) { return load_some<T>(gates + k * H + j, n); };
    const Lanes<T> r = gate(0), z = gate(1), g = gate(2), m = gate(3);
    const Lanes<T> all = load_some<T>(by + j, n) + load_some<T>(by_h + j, n);
    const Lanes<T> by_n = all * (T(1) - z) * (T(1) - g * g);
    store_some<T>(to + j, by_n * m * r * (T(1) - r), n);
    store_some<T>(to + H + j, all * (load_or_zero<T>(earlier, j, n) - g) * z * (T(1) - z), n);
    store_some<T>(to + 2 * H + j, by_n * r, n);
    store_some<T>(to + 3 * H + j, by_n, n);
    store_some<T>(by_h + j, all * z, n);
  });
}

template <class T> void plain_row(Mode mode, int64_t H, const T* y, const T* by, const T* by_h, T* to) {
  sweep<T>(H, [&](int64_t j, auto n) {
    const Lanes<T> all = load_some<T>(by + j, n) + load_some<T>(by_h + j, n), v = load_some<T>(y + j, n);
    store_some<T>(to + j, mode == Mode::tanh ? all * (T(1) - v * v) : v > T(0) ? all : Lanes<T>{}, n);
  });
}

template <class T>
void step(const Sizes& s, const Direction<T>& d, int64_t t, int64_t begin, int64_t end, bool goes_on) {
  const int64_t H = s.hidden, P = s.out, W = s.width(), n = end - begin, row = s.starts[size_t(t)] + begin;
  T *to = d.by_gates + row * d.ldg, *by_h = d.by_h + begin * P;
  if (s.projected) {
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < P; ++j)
        d.by_out[(row + i) * P + j] = d.by[(row + i) * W + j] + by_h[i * P + j];
    multiply(d.projection, n, d.by_out + row * P, P, d.by_wide + begin * H, H, false);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t b = begin + i, r = row + i;
    if (s.mode == Mode::lstm) {
      const T* earlier = before(s, d.backwards, t, b, d.cells, H, d.c, H);
      lstm_row<T>(H, d.gates + r * 4 * H, d.cells + r * H, earlier, s.projected ? d.by_wide + b * H : d.by + r * W,
                  s.projected ? nullptr : by_h + i * P, d.by_c + b * H, to + i * d.ldg,
                  s.projected ? d.wide + r * H : nullptr);
    } else if (s.mode == Mode::gru)
      gru_row<T>(H, d.gates + r * 4 * H, before(s, d.backwards, t, b, d.out, W, d.h, P), d.by + r * W, by_h + i * P,
                 to + i * d.ldg);
    else plain_row<T>(s.mode, H, d.out + r * W, d.by + r * W, by_h + i * P, to + i * d.ldg);
  }
  if constexpr (std::is_same_v<T, float>)
    if (d.pairs.data) {
      uint32_t* a = d.paired + row * d.pairs.pairs();
      pair_rows(a, to, d.ldg, n, d.pairs.K);
      if (goes_on) multiply(d.pairs, n, a, by_h, P, false);
      return;
    }
  if (goes_on) multiply(d.panels, n, to, d.ldg, by_h, P, s.mode == Mode::gru);
}

template <class T> void steps(const Sizes& s, const Direction<T>& d, int64_t begin, int64_t end, bool wants_states) {
  const int64_t count = s.steps();
  for (int64_t k = count - 1; k >= 0; --k) {
    const int64_t t = d.backwards ? count - 1 - k : k, to = std::min(end, s.size(t));
    if (to > begin) step<T>(s, d, t, begin, to, k > 0 || wants_states);
  }
}

// to[j] = sum over rows of x[row, j].
template <class T> void column_sums(int64_t rows, int64_t n, const T* x, int64_t ld, T* to) {
  constexpr int64_t BLOCK = 64;
  parallel_for((n + BLOCK - 1) / BLOCK, grain_for(rows * BLOCK / 8), [&](int64_t begin, int64_t end) {
    for (int64_t q = begin; q < end; ++q) {
      const int64_t from = q * BLOCK, m = std::min(BLOCK, n - from);
      // Sums of some rows at a time: a long sum of small numbers loses their last digits.
      T total[BLOCK] = {};
      for (int64_t r = 0; r < rows; r += 128) {
        T part[BLOCK] = {};
        for (int64_t i = r; i < std::min(rows, r + 128); ++i) {
          const T* line = x + i * ld + from;
          if (m == BLOCK)
            for (int64_t j = 0; j < BLOCK; ++j) part[j] += line[j];
          else
            for (int64_t j = 0; j < m; ++j) part[j] += line[j];
        }
        for (int64_t j = 0; j < BLOCK; ++j) total[j] += part[j];
      }
      std::copy_n(total, m, to + from);
    }
  });
}

// c (M x N) = a^T b, where a and b have `rows` rows.
template <class E, class T>
void outer(int64_t rows, int64_t M, int64_t N, const E* a, int64_t lda, const E* b, int64_t ldb, T* c, bool add) {
  gemm(M, N, rows, Matrix<const E>{a, 1, lda}, Matrix<const E>{b, ldb, 1}, Matrix<T>{c, N, 1}, add);
}

// The gradient by w_hh: the states before all steps times the gradients of the sums that they went into.
template <class E, class T> void by_recurrent(const Sizes& s, bool backwards, const Factors<E>& f, T* to) {
  const int64_t G = s.gates() * s.hidden, P = s.out, W = s.width(), R = s.rows(), B = s.batch();
  if (s.even()) {
    const int64_t first = backwards ? R - B : 0, rest = backwards ? 0 : B, prior = backwards ? B : 0;
    outer(R - B, G, P, f.gates + rest * f.ldg, f.ldg, f.out + prior * W, W, to, false);
    if (f.h) outer(B, G, P, f.gates + first * f.ldg, f.ldg, f.h, P, to, true);
    return;
  }
  Scratch<E> states(R * P);
  for (int64_t t = 0; t < s.steps(); ++t)
    for (int64_t b = 0; b < s.size(t); ++b) {
      const E* from = before(s, backwards, t, b, f.out, W, f.h, P);
      E* row = states + (s.starts[size_t(t)] + b) * P;
      if (from) std::copy_n(from, P, row);
      else std::fill_n(row, P, E{});
    }
  outer(R, G, P, f.gates, f.ldg, static_cast<const E*>(states.get()), P, to, false);
}

// Results of the compute type, where they lie or stored as S in the end.
template <class S, class T> struct Target {
  const View& view;
  T* data;
  Target(const View& v, T* spare) : view(v), data(std::is_same_v<S, T> ? v.as<T>() : spare) {}
  void finish() const {
    if constexpr (!std::is_same_v<S, T>)
      cast_fn(dtype_of<T>, dtype_of<S>)(view.data, sizeof(S), reinterpret_cast<const char*>(data), sizeof(T),
                                        view.numel());
  }
};

template <class S, class T, class E>
void by_weights(const Sizes& s, const Direction<T>& d, const Group& g, const View* to, const Factors<E>& f, int64_t F) {
  constexpr bool narrow = !std::is_same_v<S, T>;
  const int64_t H = s.hidden, G = s.gates() * H, P = s.out, R = s.rows();
  Scratch<T> spare(narrow ? G * std::max(F, P) : 0);
  const bool gru = s.mode == Mode::gru;
  const int64_t first = gru ? 2 * H : G;
  {
    const Target<S, T> w(to[g.w_ih], spare);
    outer(R, first, F, f.gates, f.ldg, f.in, F, w.data, false);
    if (gru) outer(R, H, F, f.gates + 3 * H, f.ldg, f.in, F, w.data + first * F, false);
    w.finish();
  }
  {
    const Target<S, T> w(to[g.w_hh], spare);
    by_recurrent(s, d.backwards, f, w.data);
    w.finish();
  }
  if (s.biases) {
    const Target<S, T> state(to[g.b_hh], spare);
    column_sums(R, G, d.by_gates, d.ldg, state.data);
    state.finish();
    const Target<S, T> input(to[g.b_ih], spare);
    if (!narrow) std::copy_n(state.data, first, input.data);
    if (gru) column_sums(R, H, d.by_gates + 3 * H, d.ldg, input.data + 2 * H);
    input.finish();
  }
  if (s.projected) {
    const Target<S, T> w(to[g.w_hr], spare);
    outer<T>(R, P, H, d.by_out, P, d.wide, H, w.data, false);
    w.finish();
  }
}

// recurrent_backward(by_x, by_h, by_c, [by_weights...], g_out, g_h, g_c, x, h, c, out, reserve, weights..., numbers of
// Sizes with wants_input, wants_states and wants_weights before the steps)
template <class S, class T> void backward(Call& c) {
  const bool wants_input = c.i(5) != 0, wants_states = c.i(6) != 0, wants_weights = c.i(7) != 0;
  const int count = (int(c.views.size()) - 11) / (wants_weights ? 2 : 1), base = 3 + (wants_weights ? count : 0);
  const Sizes s(c, 8, c.view(base + 3), c.view(base + 8), c.view(base + 9));
  const int64_t R = s.rows(), B = s.batch(), H = s.hidden, P = s.out, D = s.directions, W = s.width();
  const View* by_weight_views = c.views.data() + 3;
  if (R == 0) {
    for (int k = 3; k < base; ++k) zero_bytes(c.view(k).data, c.view(k).numel() * int64_t(sizeof(S)));
    return;
  }
  const Sources<T> from(std::vector<View>(c.views.begin() + base, c.views.end()));
  const auto weight = [&](int k) { return from[8 + k]; };
  const T* reserve = from[7];

  constexpr bool narrow = !std::is_same_v<S, T>;
  const int64_t G = s.gates() * H, ldg = apart<T>(s.mode == Mode::gru ? 4 * H : G);
  const int64_t projection = s.projected ? Panels<T>::size(P, H) + R * (P + H) + B * H : 0;
  const int64_t each = R * ldg + B * (P + H) + Panels<T>::size(G, P) + projection + 64;
  int64_t widest = narrow && wants_input ? R * s.features : 0;
  if (s.layers > 1) widest = std::max(widest, R * W);
  // Gradients of gates are then as narrow as if they were tensors between operators; those of a GRU are in two parts.
  const bool paired = std::is_same_v<S, bf16> && has_pairs() && s.mode != Mode::gru && R > 16;
  const int64_t G2 = (G + 1) / 2, widest_in = std::max(s.features, s.layers > 1 ? W : 0);
  Scratch<uint32_t> pair_memory(paired ? D * (Pairs::size(G, P) + R * G2) : 0);
  Scratch<bf16> narrow_memory(paired ? R * (W + widest_in) + G * widest_in + B * P : 0);
  Scratch<T> memory(D * each), blank(from[0] ? 0 : R * W), between(2 * widest);
  if (!from[0]) std::fill_n(blank.get(), R * W, T(0));

  const T* by = from[0] ? from[0] : blank.get();
  for (int64_t layer = s.layers - 1; layer >= 0; --layer) {
    const T* out = layer == s.layers - 1 ? from[6] : reserve + s.output_at(layer);
    const T* in = layer ? reserve + s.output_at(layer - 1) : from[3];
    const int64_t F = s.inputs(layer);
    Direction<T> directions[2] = {};
    for (int64_t k = 0; k < D; ++k) {
      Direction<T>& d = directions[k];
      const int64_t at = layer * D + k;
      const Group g(s, at);
      T* free = memory + k * each;
      const auto take = [&](int64_t n) { return std::exchange(free, free + n); };
      d.gates = reserve + s.gates_at(layer, k);
      d.cells = reserve + s.cells_at(layer, k);
      d.out = out + k * P;
      d.by = by + k * P;
      d.h = from[4] ? from[4] + at * B * P : nullptr;
      d.c = from[5] ? from[5] + at * B * H : nullptr;
      d.by_gates = take(R * ldg);
      d.ldg = ldg;
      d.by_h = take(B * P);
      d.by_c = take(B * H);
      if (from[1]) std::copy_n(from[1] + at * B * P, B * P, d.by_h);
      else std::fill_n(d.by_h, B * P, T(0));
      if (from[2]) std::copy_n(from[2] + at * B * H, B * H, d.by_c);
      else std::fill_n(d.by_c, B * H, T(0));
      d.panels = {take(Panels<T>::size(G, P)), G, P};
      d.panels.pack(weight(g.w_hh), P, 1);
      if (s.projected) {
        d.projection = {take(Panels<T>::size(P, H)), P, H};
        d.projection.pack(weight(g.w_hr), H, 1);
        d.by_out = take(R * P);
        d.wide = take(R * H);
        d.by_wide = take(B * H);
      }
      if constexpr (std::is_same_v<T, float>)
        if (paired) {
          d.pairs.data = pair_memory + k * (Pairs::size(G, P) + R * G2);
          d.pairs.pack(d.panels);
          d.paired = d.pairs.data + Pairs::size(G, P);
        }
      d.backwards = k == 1;
    }
    for_row_blocks(s, [&](int64_t k, int64_t begin, int64_t end) {
      steps<T>(s, directions[k], begin, end, wants_states);
    });

    const bool last = layer == 0;
    T* below = !last ? between + (layer % 2) * widest : narrow ? between.get() : c.view(0).as<T>();
    for (int64_t k = 0; k < D; ++k) {
      const Direction<T>& d = directions[k];
      const int64_t at = layer * D + k;
      const Group g(s, at);
      if (wants_states) {
        for (int64_t j = 0; j < B * P; ++j) c.view(1).as<S>()[at * B * P + j] = convert<S>(d.by_h[j]);
        if (s.mode == Mode::lstm)
          for (int64_t j = 0; j < B * H; ++j) c.view(2).as<S>()[at * B * H + j] = convert<S>(d.by_c[j]);
      }
      const T* w = weight(g.w_ih);
      const bool goes_below = !last || wants_input;
      if constexpr (std::is_same_v<T, float>)
        if (paired) {
          const auto narrowed = [](bf16* to, const float* values, int64_t n) {
            const char* from = reinterpret_cast<const char*>(values);
            cast_fn(Dtype::f32, Dtype::bf16)(reinterpret_cast<char*>(to), 2, from, 4, n);
            return static_cast<const bf16*>(to);
          };
          bf16* const free = narrow_memory;
          Factors<bf16> f{reinterpret_cast<const bf16*>(d.paired), 2 * G2, narrowed(free, out, R * W) + k * P, nullptr,
                          narrowed(free + R * W, in, R * F)};
          if (d.h) f.h = narrowed(free + R * (W + F) + G * F, d.h, B * P);
          if (wants_weights) by_weights<S, T>(s, d, g, by_weight_views, f, F);
          if (goes_below)
            gemm(R, F, G, Matrix<const bf16>{f.gates, f.ldg, 1},
                 Matrix<const bf16>{narrowed(free + R * (W + F), w, G * F), F, 1}, Matrix<float>{below, F, 1}, k > 0);
          continue;
        }
      if (wants_weights) by_weights<S, T>(s, d, g, by_weight_views, Factors<T>{d.by_gates, ldg, d.out, d.h, in}, F);
      if (!goes_below) continue;
      const int64_t first = s.mode == Mode::gru ? 2 * H : G;
      gemm(R, F, first, Matrix<const T>{d.by_gates, ldg, 1}, Matrix<const T>{w, F, 1}, Matrix<T>{below, F, 1}, k > 0);
      if (s.mode == Mode::gru)
        gemm(R, F, H, Matrix<const T>{d.by_gates + 3 * H, ldg, 1}, Matrix<const T>{w + first * F, F, 1},
             Matrix<T>{below, F, 1}, true);
    }
    if (narrow && last && wants_input)
      cast_fn(dtype_of<T>, dtype_of<S>)(c.view(0).data, sizeof(S), reinterpret_cast<char*>(below), sizeof(T), R * F);
    by = below;
  }
}

VT_KERNEL(recurrent_backward) {
  const int count = c.i(7) ? (int(c.views.size()) - 11) / 2 : 0;
  for_floats("recurrent_backward", c.view(3 + count + 3).dtype, [&](auto t) {
    using S = typename decltype(t)::type;
    backward<S, compute_t<S>>(c);
  });
}

}  // namespace
}  // namespace vt
