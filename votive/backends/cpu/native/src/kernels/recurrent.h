// What the kernels of recurrent networks share: sizes, dense sources, and products with a weight for all steps.
#pragma once
#include <vector>

#include "vt/copy.h"
#include "vt/kernel.h"

namespace vt::recurrent {

enum class Mode { tanh, relu, gru, lstm };

// The sizes of a network, as backends/common/recurrent.py has them; rows stand longest first.
struct Sizes {
  Mode mode;
  int64_t layers, directions;
  bool biases, projected;
  int64_t features, hidden, out;
  std::vector<int64_t> starts;  // the first row of each step, and at last the number of rows

  // From the numbers of a call: mode, layers, directions, biases, projected, then `steps` and the rows of each.
  Sizes(const Call& c, int first_step, const View& x, const View& w_ih, const View& w_hh)
      : mode(Mode(c.i(0))), layers(c.i(1)), directions(c.i(2)), biases(c.i(3) != 0), projected(c.i(4) != 0),
        features(x.size(-1)), hidden(w_ih.size(0) / gates()), out(w_hh.size(1)) {
    const int64_t packed = c.i(first_step), steps = packed ? packed : x.size(0);
    starts.reserve(size_t(steps) + 1);
    starts.push_back(0);
    for (int64_t t = 0; t < steps; ++t)
      starts.push_back(starts.back() + (packed ? c.i(first_step + 1 + int(t)) : x.size(1)));
  }

  int64_t gates() const { return mode == Mode::lstm ? 4 : mode == Mode::gru ? 3 : 1; }
  int64_t kept() const { return mode == Mode::lstm || mode == Mode::gru ? 4 : 0; }
  int64_t steps() const { return int64_t(starts.size()) - 1; }
  int64_t rows() const { return starts.back(); }
  int64_t batch() const { return starts[1]; }
  int64_t size(int64_t t) const { return starts[t + 1] - starts[t]; }
  int64_t at(int64_t k, bool backwards) const { return backwards ? steps() - 1 - k : k; }  // the k-th step to run
  bool even() const { return size(steps() - 1) == batch(); }
  int64_t width() const { return directions * out; }
  int64_t inputs(int64_t layer) const { return layer ? width() : features; }
  int64_t per_group() const { return 2 + 2 * biases + projected; }

  // Where values lie in the reserve.
  int64_t block() const {
    return rows() * (directions * (kept() * hidden + (mode == Mode::lstm ? hidden : 0)) + width());
  }
  int64_t gates_at(int64_t layer, int64_t d) const { return layer * block() + d * rows() * kept() * hidden; }
  int64_t cells_at(int64_t layer, int64_t d) const {
    return layer * block() + rows() * hidden * (directions * kept() + d);
  }
  int64_t output_at(int64_t layer) const { return (layer + 1) * block() - rows() * width(); }
};

// Weights of one layer and direction, among `Sources`.
struct Group {
  int w_ih, w_hh, b_ih, b_hh, w_hr;
  Group(const Sizes& s, int64_t k) {
    const int at = int(k * s.per_group());
    w_ih = at;
    w_hh = at + 1;
    b_ih = s.biases ? at + 2 : -1;
    b_hh = s.biases ? at + 3 : -1;
    w_hr = s.projected ? at + (s.biases ? 4 : 2) : -1;
  }
};

// Arrays as dense memory of the compute type: where they lie, or copies.
template <class T> class Sources {
 public:
  explicit Sources(const std::vector<View>& views) : memory(needed(views)) {
    T* to = memory;
    for (const View& v : views) {
      if (!v || ready(v)) {
        pointers.push_back(v ? v.as<T>() : nullptr);
        continue;
      }
      std::vector<int64_t> strides(size_t(v.ndim));
      int64_t step = sizeof(T);
      for (int d = v.ndim - 1; d >= 0; --d) {
        strides[size_t(d)] = step;
        step *= v.shape[d];
      }
      View dense{reinterpret_cast<char*>(to), v.ndim, v.shape, strides.data(), dtype_of<T>};
      copy(dense, v);
      pointers.push_back(to);
      to += v.numel();
    }
  }
  const T* operator[](int64_t k) const { return pointers[size_t(k)]; }

 private:
  static bool ready(const View& v) { return v.dtype == dtype_of<T> && v.contiguous(); }
  static int64_t needed(const std::vector<View>& views) {
    int64_t n = 0;
    for (const View& v : views)
      if (v && !ready(v)) n += v.numel();
    return n;
  }
  Scratch<T> memory;
  std::vector<const T*> pointers;
};

// Rows whose distance is a multiple of a kilobyte push each other out of the first cache.
template <class T> constexpr int64_t apart(int64_t n) {
  return n * int64_t(sizeof(T)) % 1024 ? n : n + 64 / int64_t(sizeof(T));
}

// A factor of K x N that many products share, in panels of two vectors of columns.
template <class T> struct Panels {
  T* data;
  int64_t K, N;
  static int64_t size(int64_t K, int64_t N);
  // Element (k, n) is w[k * s_k + n * s_n].
  void pack(const T* w, int64_t s_k, int64_t s_n);
};

// c = a w, or c += a w; a has `rows` rows of K numbers.
template <class T>
void multiply(const Panels<T>& w, int64_t rows, const T* a, int64_t lda, T* c, int64_t ldc, bool add);

// The same with numbers rounded to bfloat16: two of them, along k, are multiplied at once where the processor can. Rows
// of a and panels of w are made of pairs.
struct Pairs {
  uint32_t* data = nullptr;
  int64_t K = 0, N = 0;
  int64_t pairs() const { return (K + 1) / 2; }
  static int64_t size(int64_t K, int64_t N) { return (N + 31) / 32 * 32 * ((K + 1) / 2); }
  void pack(const Panels<float>& w);
};
bool has_pairs();
void pair_rows(uint32_t* to, const float* from, int64_t ld, int64_t rows, int64_t n);
void multiply(const Pairs& w, int64_t rows, const uint32_t* a, float* c, int64_t ldc, bool add);

// Row blocks of a batch that run through all steps side by side, and directions likewise: f(direction, begin, end).
template <class F> void for_row_blocks(const Sizes& s, F&& f) {
  const int64_t work = s.rows() * s.gates() * s.hidden * (s.out + 16);
  int64_t pieces = 1;
  if (num_threads() > s.directions && work > (1 << 18))
    pieces = std::min<int64_t>((num_threads() + s.directions - 1) / s.directions, (s.batch() + 1) / 2);
  if (pieces * s.directions == 1 || work <= (1 << 16)) {
    for (int64_t d = 0; d < s.directions; ++d) f(d, int64_t(0), s.batch());
    return;
  }
  parallel_for(pieces * s.directions, 1, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t p = k / s.directions;
      f(k % s.directions, p * s.batch() / pieces, (p + 1) * s.batch() / pieces);
    }
  });
}

}  // namespace vt::recurrent
