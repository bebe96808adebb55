// Recurrent networks forward: all layers and directions, step by step.
#include "recurrent.h"

#include <algorithm>
#include <utility>

#include "vt/cast.h"
#include "vt/gemm.h"
#include "vt/lanes.h"

namespace vt {
namespace {

using namespace recurrent;

template <class T> VT_INLINE Lanes<T> sigmoids(Lanes<T> x) { return each<T>(x, [](T v) { return vt::sigmoid(v); }); }
template <class T> VT_INLINE Lanes<T> tanhs(Lanes<T> x) { return each<T>(x, [](T v) { return vt::tanh(v); }); }

// What is stored as S, read again.
template <class S, class T> VT_INLINE Lanes<T> rounded(Lanes<T> x) {
  if constexpr (std::is_same_v<S, T>) return x;
  else return each<T>(x, [](T v) { return convert<T>(convert<S>(v)); });
}

// One direction of a layer.
template <class T> struct Direction {
  T* z;           // (rows, ldz): what the input gives to the gates, then the gates; from row `first` on
  int64_t ldz, first;
  T* cells;       // (rows, hidden) or null
  T* out;         // (rows, ldo)
  int64_t ldo;
  T *h, *c;       // the states of the batch
  const T* bias;  // of all gates; of a GRU's n first that of the input, then that of the state
  const T* w_hh;
  Panels<T> panels, late, projection;  // the weight; that of a GRU's n; w_hr
  Pairs pairs, late_pairs;  // the weight as bfloat16, if that is faster
  uint32_t* paired;         // (batch, out / 2): the state as bfloat16
  T* wide;        // (batch, hidden) before the projection
  bool backwards, blank;  // blank: the states are zeros
};

// z += h W for n rows; a GRU's n is apart, since r multiplies it alone.
template <class T> void recur(const Sizes& s, const Direction<T>& d, int64_t begin, int64_t n, const T* h, T* z) {
  const int64_t H = s.hidden;
  if constexpr (std::is_same_v<T, float>)
    if (d.pairs.data) {
      uint32_t* a = d.paired + begin * d.pairs.pairs();
      pair_rows(a, h, s.out, n, s.out);
      multiply(d.pairs, n, a, z, d.ldz, true);
      if (s.mode == Mode::gru) multiply(d.late_pairs, n, a, z + 3 * H, d.ldz, false);
      return;
    }
  if (d.panels.data) {
    multiply(d.panels, n, h, s.out, z, d.ldz, true);
    if (s.mode == Mode::gru) multiply(d.late, n, h, s.out, z + 3 * H, d.ldz, false);
    return;
  }
  const int64_t first = s.mode == Mode::gru ? 2 * H : s.gates() * H;
  gemm(n, first, s.out, Matrix<const T>{h, s.out, 1}, Matrix<const T>{d.w_hh, 1, s.out}, Matrix<T>{z, d.ldz, 1}, true);
  if (s.mode == Mode::gru)
    gemm(n, H, s.out, Matrix<const T>{h, s.out, 1}, Matrix<const T>{d.w_hh + first * s.out, 1, s.out},
         Matrix<T>{z + 3 * H, d.ldz, 1});
}

// Rows of a stretch of steps: their gates take a megabyte, and a product of them is worth preparing.
template <class T> int64_t stretch(const Sizes& s) {
  const int64_t bytes = std::max<int64_t>(s.kept(), 1) * s.hidden * int64_t(sizeof(T));
  return std::max<int64_t>({s.batch(), 256, (1 << 20) / bytes});
}

template <class S, class T> void lstm_row(int64_t H, T* z, const T* bias, T* c, T* cells, T* h, T* out) {
  sweep<T>(H, [&](int64_t j, auto n) {
    const auto gate = [&](int64_t k) { return load_some<T>(z + k * H + j, n) + load_some<T>(bias + k * H + j, n); };
    const Lanes<T> i = sigmoids<T>(gate(0)), f = sigmoids<T>(gate(1)), g = tanhs<T>(gate(2)), o = sigmoids<T>(gate(3));
    const Lanes<T> cell = f * load_some<T>(c + j, n) + i * g;
    const Lanes<T> y = rounded<S, T>(o * tanhs<T>(cell));
    store_some<T>(c + j, cell, n);
    store_some<T>(h + j, y, n);
    if (out) store_some<T>(out + j, y, n);
    if (cells) {
      store_some<T>(z + j, i, n);
      store_some<T>(z + H + j, f, n);
      store_some<T>(z + 2 * H + j, g, n);
      store_some<T>(z + 3 * H + j, o, n);
      store_some<T>(cells + j, cell, n);
    }
  });
}

template <class S, class T> void gru_row(int64_t H, T* z, const T* bias, T* h, T* out) {
  sweep<T>(H, [&](int64_t j, auto n) {
    const auto gate = [&](int64_t k) { return load_some<T>(z + k * H + j, n) + load_some<T>(bias + k * H + j, n); };
    const Lanes<T> r = sigmoids<T>(gate(0)), u = sigmoids<T>(gate(1)), m = gate(3);
    const Lanes<T> g = tanhs<T>(gate(2) + r * m);
    const Lanes<T> y = rounded<S, T>(g + u * (load_some<T>(h + j, n) - g));
    store_some<T>(h + j, y, n);
    store_some<T>(out + j, y, n);
    store_some<T>(z + j, r, n);
    store_some<T>(z + H + j, u, n);
    store_some<T>(z + 2 * H + j, g, n);
    store_some<T>(z + 3 * H + j, m, n);
  });
}

template <class S, class T> void plain_row(Mode mode, int64_t H, const T* z, const T* bias, T* h, T* out) {
  sweep<T>(H, [&](int64_t j, auto n) {
    const Lanes<T> x = load_some<T>(z + j, n) + load_some<T>(bias + j, n);
    const Lanes<T> y = rounded<S, T>(mode == Mode::tanh ? tanhs<T>(x) : x < T(0) ? Lanes<T>{} : x);
    store_some<T>(h + j, y, n);
    store_some<T>(out + j, y, n);
  });
}

template <class S, class T>
void step(const Sizes& s, const Direction<T>& d, int64_t t, int64_t begin, int64_t end, bool first) {
  const int64_t H = s.hidden, n = end - begin, row = s.starts[size_t(t)] + begin;
  T *z = d.z + (row - d.first) * d.ldz, *h = d.h + begin * s.out, *out = d.out + row * d.ldo;
  if (!(first && d.blank)) recur(s, d, begin, n, h, z);
  else if (s.mode == Mode::gru)
    for (int64_t i = 0; i < n; ++i) std::fill_n(z + i * d.ldz + 3 * H, H, T(0));
  for (int64_t i = 0; i < n; ++i, z += d.ldz, h += s.out, out += d.ldo) {
    if (s.mode == Mode::lstm) {
      T* to = s.projected ? d.wide + (begin + i) * H : h;
      lstm_row<S, T>(H, z, d.bias, d.c + (begin + i) * H, d.cells ? d.cells + (row + i) * H : nullptr, to,
                     s.projected ? nullptr : out);
    } else if (s.mode == Mode::gru) gru_row<S, T>(H, z, d.bias, h, out);
    else plain_row<S, T>(s.mode, H, z, d.bias, h, out);
  }
  if (!s.projected) return;
  h = d.h + begin * s.out;
  out = d.out + row * d.ldo;
  multiply(d.projection, n, d.wide + begin * H, H, h, s.out, false);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < s.out; ++j) {
      T& y = h[i * s.out + j];
      out[i * d.ldo + j] = y = convert<T>(convert<S>(y));
    }
}

// Steps [from, to) in the order in which they run.
template <class S, class T>
void steps(const Sizes& s, const Direction<T>& d, int64_t from, int64_t to, int64_t begin, int64_t end) {
  for (int64_t k = from; k < to; ++k) {
    const int64_t t = s.at(k, d.backwards), last = std::min(end, s.size(t));
    if (last > begin) step<S, T>(s, d, t, begin, last, k == 0);
  }
}

// What the input gives to the gates, for a stretch of steps at a time whose gates stay in the second cache: one product
// for all of them, since only the recurrent part must wait for its step. Then the steps.
template <class S, class T>
void layer_steps(const Sizes& s, Direction<T>* directions, const T* in, int64_t F, const T* const* w_ih, bool reuse) {
  const int64_t G = s.gates() * s.hidden, D = s.directions, most = stretch<T>(s);
  // A weight that serves several stretches is packed once.
  const bool paired = std::is_same_v<S, bf16> && has_pairs() && s.rows() > 8;
  const bool packs = paired || s.rows() > most;
  const int64_t each = packs ? Panels<T>::size(F, G) : 0;
  Scratch<T> packed(D * each);
  Scratch<uint32_t> halves(paired ? D * Pairs::size(F, G) + s.rows() * ((F + 1) / 2) : 0);
  uint32_t* const rows_in = halves + D * Pairs::size(F, G);
  Panels<T> panels[2];
  Pairs pairs[2];
  for (int64_t k = 0; packs && k < D; ++k) {
    panels[k] = {packed + k * each, F, G};
    panels[k].pack(w_ih[k], 1, F);
    if constexpr (std::is_same_v<T, float>)
      if (paired) {
        pairs[k].data = halves + k * Pairs::size(F, G);
        pairs[k].pack(panels[k]);
      }
  }
  if constexpr (std::is_same_v<T, float>)
    if (paired) pair_rows(rows_in, in, F, s.rows(), F);
  int64_t from[2] = {}, to[2] = {};
  while (to[0] < s.steps() || (D == 2 && to[1] < s.steps())) {
    for (int64_t k = 0; k < D; ++k) {
      Direction<T>& d = directions[k];
      from[k] = to[k];
      int64_t rows = 0;
      while (to[k] < s.steps() && (rows == 0 || rows + s.size(s.at(to[k], d.backwards)) <= most))
        rows += s.size(s.at(to[k]++, d.backwards));
      if (rows == 0) continue;
      const int64_t row = s.starts[size_t(d.backwards ? s.at(to[k] - 1, true) : from[k])];
      if (reuse) d.first = row;
      T* z = d.z + (row - d.first) * d.ldz;
      const T* x = in + row * F;
      if constexpr (std::is_same_v<T, float>)
        if (paired) {
          multiply(pairs[k], rows, rows_in + row * pairs[k].pairs(), z, d.ldz, false);
          continue;
        }
      if (packs) multiply(panels[k], rows, x, F, z, d.ldz, false);
      else gemm(rows, G, F, Matrix<const T>{x, F, 1}, Matrix<const T>{w_ih[k], 1, F}, Matrix<T>{z, d.ldz, 1});
    }
    for_row_blocks(s, [&](int64_t k, int64_t begin, int64_t end) {
      steps<S, T>(s, directions[k], from[k], to[k], begin, end);
    });
  }
}

// recurrent(out, h_n, c_n, reserve, x, h, c, weights..., numbers of Sizes with `save` before the steps)
template <class S, class T> void forward(Call& c) {
  const Sizes s(c, 6, c.view(4), c.view(7), c.view(8));
  const bool save = c.i(5) != 0;
  const int64_t R = s.rows(), B = s.batch(), H = s.hidden, P = s.out, D = s.directions, W = s.width();
  if (R == 0) return;
  const Sources<T> from(std::vector<View>(c.views.begin() + 4, c.views.end()));
  const auto weight = [&](int k) { return from[3 + k]; };
  T* reserve = c.view(3).as<T>();

  constexpr bool narrow = !std::is_same_v<S, T>;
  const int64_t G = s.gates() * H, ldz = std::max<int64_t>(s.kept(), 1) * H;
  // A plain network has its sums where its results will be.
  const bool own = s.kept() && !save;
  const int64_t biases = s.mode == Mode::gru ? 4 * H : G;
  const bool packs = s.steps() > 2, paired = std::is_same_v<S, bf16> && packs && has_pairs();
  const int64_t first = s.mode == Mode::gru ? 2 * H : G;
  const int64_t panels = packs ? Panels<T>::size(P, first) + (s.mode == Mode::gru ? Panels<T>::size(P, H) : 0) : 0;
  const int64_t projection = s.projected ? Panels<T>::size(H, P) + B * H : 0;
  const int64_t held = own ? std::min(R, stretch<T>(s)) * ldz : 0;
  const int64_t each = held + B * (P + H) + biases + panels + projection + 64;
  const int64_t halves = paired ? Pairs::size(P, first) + Pairs::size(P, H) + B * ((P + 1) / 2) : 0;
  Scratch<uint32_t> half_memory(D * halves);
  Scratch<T> memory(D * each), between(save || s.layers == 1 ? 0 : 2 * R * W), last(narrow ? R * W : 0);

  const T* in = from[0];
  for (int64_t layer = 0; layer < s.layers; ++layer) {
    T* out = layer == s.layers - 1 ? (narrow ? last.get() : c.view(0).as<T>())
             : save                ? reserve + s.output_at(layer)
                                   : between + (layer % 2) * R * W;
    const int64_t F = s.inputs(layer);
    Direction<T> directions[2] = {};
    const T* w_ih[2] = {};
    for (int64_t k = 0; k < D; ++k) {
      Direction<T>& d = directions[k];
      const int64_t at = layer * D + k;
      const Group g(s, at);
      T* free = memory + k * each;
      const auto take = [&](int64_t n) { return std::exchange(free, free + n); };
      d.out = out + k * P;
      d.ldo = W;
      d.z = !s.kept() ? d.out : save ? reserve + s.gates_at(layer, k) : take(held);
      d.ldz = s.kept() ? ldz : W;
      d.cells = save && s.mode == Mode::lstm ? reserve + s.cells_at(layer, k) : nullptr;
      d.h = take(B * P);
      d.c = take(B * H);
      d.blank = from[1] == nullptr;
      if (d.blank) std::fill_n(d.h, B * P, T(0));
      else std::copy_n(from[1] + at * B * P, B * P, d.h);
      if (from[2] == nullptr) std::fill_n(d.c, B * H, T(0));
      else std::copy_n(from[2] + at * B * H, B * H, d.c);
      T* bias = take(biases);
      std::fill_n(bias, biases, T(0));
      if (s.biases) {
        const T *a = weight(g.b_ih), *b = weight(g.b_hh);
        for (int64_t j = 0; j < first; ++j) bias[j] = a[j] + b[j];
        if (s.mode == Mode::gru) {
          std::copy_n(a + 2 * H, H, bias + 2 * H);
          std::copy_n(b + 2 * H, H, bias + 3 * H);
        }
      }
      d.bias = bias;
      d.w_hh = weight(g.w_hh);
      if (packs) {
        d.panels = {take(Panels<T>::size(P, first)), P, first};
        d.panels.pack(d.w_hh, 1, P);
        if (s.mode == Mode::gru) {
          d.late = {take(Panels<T>::size(P, H)), P, H};
          d.late.pack(d.w_hh + first * P, 1, P);
        }
        if constexpr (std::is_same_v<T, float>)
          if (paired) {
            d.pairs.data = half_memory + k * halves;
            d.late_pairs.data = d.pairs.data + Pairs::size(P, first);
            d.paired = d.late_pairs.data + Pairs::size(P, H);
            d.pairs.pack(d.panels);
            if (s.mode == Mode::gru) d.late_pairs.pack(d.late);
          }
      }
      if (s.projected) {
        d.projection = {take(Panels<T>::size(H, P)), H, P};
        d.projection.pack(weight(g.w_hr), 1, H);
        d.wide = take(B * H);
      }
      d.backwards = k == 1;
      w_ih[k] = weight(g.w_ih);
    }
    layer_steps<S, T>(s, directions, in, F, w_ih, own);
    for (int64_t k = 0; k < D; ++k) {
      const int64_t at = layer * D + k;
      for (int64_t j = 0; j < B * P; ++j) c.view(1).as<S>()[at * B * P + j] = convert<S>(directions[k].h[j]);
      if (s.mode == Mode::lstm)
        for (int64_t j = 0; j < B * H; ++j) c.view(2).as<S>()[at * B * H + j] = convert<S>(directions[k].c[j]);
    }
    in = out;
  }
  if constexpr (narrow)
    cast_fn(dtype_of<T>, dtype_of<S>)(c.view(0).data, sizeof(S), reinterpret_cast<char*>(last.get()), sizeof(T), R * W);
}

VT_KERNEL(recurrent) {
  for_floats("recurrent", c.view(4).dtype, [&](auto t) {
    using S = typename decltype(t)::type;
    forward<S, compute_t<S>>(c);
  });
}

}  // namespace
}  // namespace vt
