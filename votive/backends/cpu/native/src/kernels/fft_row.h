// One transform whose own parts are the lanes: n = A B numbers as a table of A rows and B columns (Bailey's four steps).
//
// Transforms of length A go down as many columns at a time as a vector has lanes; squares are turned over, and transforms of
// length B go along rows in the same way. Pieces fit the nearer caches whatever n is, and threads share them.
#pragma once
#include "fft_plan.h"

namespace vt::fft {

template <class C> constexpr int64_t vectors(int64_t n) { return (n + WIDTH<C> - 1) / WIDTH<C>; }

template <class C> double cost_of_table(int64_t a, int64_t b) {
  const double moved = 12.0 * double(vectors<C>(b) * a + vectors<C>(a) * b);
  return double(vectors<C>(b)) * cost_of_lanes<C>(a) + double(vectors<C>(a)) * cost_of_lanes<C>(b) + moved;
}

// The number of rows that costs least, and what the transform costs then.
template <class C> std::pair<int64_t, double> best_table(int64_t n) {
  std::pair<int64_t, double> best = {0, 1e30};
  for (int64_t a = 2; a * a <= n; ++a)
    if (n % a == 0)
      for (const int64_t rows : {a, n / a}) {
        const double cost = cost_of_table<C>(rows, n / rows);
        if (cost < best.second) best = {rows, cost};
      }
  return best;
}
template <class C> int64_t roomy_table(int64_t n) {
  return roomy(n, [](int64_t m) { return best_table<C>(m).second; });
}
template <class C> double cost_of_row(int64_t n) {
  if (n < 16) return 1e30;
  const double chirp = 2 * best_table<C>(roomy_table<C>(n)).second + 12.0 * double(vectors<C>(3 * n));
  return std::min(best_table<C>(n).second, chirp);
}

// What both ways cost, which takes longer to find out than a short transform.
template <class C> struct Costs {
  double lanes, row;
  explicit Costs(int64_t n) : lanes(cost_of_lanes<C>(n)), row(cost_of_row<C>(n)) {}
  size_t bytes() const { return 1024; }
};

template <class C> class Row {
 public:
  const int64_t size;

  explicit Row(int64_t n) : size(n) {
    const auto [a, least] = best_table<C>(n);
    if (least <= cost_of_row<C>(n)) lay_out(a);
    else convolve();
  }

  // From pairs to pairs, which may be the same ones. `swap` reads and writes parts exchanged: the inverse.
  void run(const C* from, C* to, bool swap, C scale) const {
    if (inner) return run_chirp(from, to, swap, scale);
    const int64_t across = vectors<C>(columns), down = vectors<C>(rows);
    Scratch<Complex<C>> table(across * rows);
    parallel_for(across, grain_for(rows * 64), [&](int64_t begin, int64_t end) {
      Scratch<Complex<C>> room(2 * first->room);
      for (int64_t g = begin; g < end; ++g) run_down(from, g, swap, room, table + g * rows);
    });
    parallel_for(down, grain_for(columns * 64), [&](int64_t begin, int64_t end) {
      Scratch<Complex<C>> room(2 * (second->room + WIDTH<C>));
      for (int64_t h = begin; h < end; ++h) run_across(table, h, swap, scale, room, to);
    });
  }
  size_t bytes() const {
    return sizeof(*this) + (twist.size() + lanes.size()) * sizeof(Complex<C>) + (steps.size() + chirp.size() + filter.size()) * sizeof(Turn<C>);
  }

 private:
  int64_t rows = 0, columns = 0;
  std::shared_ptr<const Passes<C>> first, second;
  // Turns by row times column, whole, or as a product of those of a vector's first column and of its lanes.
  std::vector<Complex<C>> twist, lanes;
  std::vector<Turn<C>> steps;
  std::shared_ptr<const Row> inner;
  std::vector<Turn<C>> chirp, filter;

  void lay_out(int64_t a) {
    constexpr int64_t WHOLE = 1 << 14;
    constexpr int L = WIDTH<C>;
    rows = a, columns = size / a;
    first = kept<Passes<C>>(rows), second = kept<Passes<C>>(columns);
    auto vector = [&](int64_t k, int64_t column) {
      Complex<C> w;
      for (int l = 0; l < L; ++l) {
        const Turn<C> t = turned<C>(k * (column + l), size);
        w.re[l] = t.re, w.im[l] = t.im;
      }
      return w;
    };
    if (size <= WHOLE)
      for (int64_t g = 0; g < vectors<C>(columns); ++g)
        for (int64_t k = 0; k < rows; ++k) twist.push_back(vector(k, g * L));
    else {
      for (int64_t k = 0; k < rows; ++k) lanes.push_back(vector(k, 0));
      for (int64_t g = 0; g < vectors<C>(columns); ++g)
        for (int64_t k = 0; k < rows; ++k) steps.push_back(turned<C>(k * g * L, size));
    }
  }

  void run_down(const C* from, int64_t g, bool swap, Complex<C>* room, Complex<C>* to) const {
    constexpr int L = WIDTH<C>;
    const int64_t count = columns - g * L;
    const C* p = from + 2 * g * L;
    for (int64_t j = 0; j < rows; ++j, p += 2 * columns) {
      const Complex<C> z = load_pairs_up_to<C>(p, count);
      room[j] = swap ? z.swapped() : z;
    }
    const Complex<C>* z = first->run(room, room + first->room);
    if (!twist.empty())
      for (int64_t k = 0; k < rows; ++k) to[k] = z[k].by(twist[g * rows + k]);
    else
      for (int64_t k = 0; k < rows; ++k) to[k] = z[k].by(lanes[k].by(steps[g * rows + k]));
  }

  void run_across(const Complex<C>* table, int64_t h, bool swap, C scale, Complex<C>* room, C* to) const {
    constexpr int L = WIDTH<C>;
    const int64_t count = std::min<int64_t>(L, rows - h * L);
    Complex<C>* other = room + second->room + L;
    for (int64_t g = 0; g < vectors<C>(columns); ++g) {
      const Complex<C>* from = table + g * rows + h * L;
      V<C> re[L], im[L];
      // Lanes past the last row repeat it; nobody looks at them.
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) re[i] = from[i < count ? i : count - 1].re;
      turn_square<C>(re);
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) room[g * L + i].re = re[i];
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) im[i] = from[i < count ? i : count - 1].im;
      turn_square<C>(im);
#pragma GCC unroll 16
      for (int i = 0; i < L; ++i) room[g * L + i].im = im[i];
    }
    const Complex<C>* z = second->run(room, other);
    C* p = to + 2 * h * L;
    for (int64_t k = 0; k < columns; ++k, p += 2 * rows) {
      const Complex<C> v = z[k] * scale;
      store_pairs_up_to<C>(p, swap ? v.swapped() : v, count);
    }
  }

  void convolve() {
    const int64_t room = roomy_table<C>(size);
    inner = kept<Row>(room);
    chirp = chirp_of<C>(size);
    const auto w = chirp_of<double>(size);
    std::vector<double> x(2 * room, 0.0);
    for (int64_t j = 0; j < size; ++j)
      for (const int64_t at : {j, (room - j) % room}) x[2 * at] = w[j].re, x[2 * at + 1] = -w[j].im;
    kept<Row<double>>(room)->run(x.data(), x.data(), false, 1.0 / double(room));
    filter.resize(room);
    for (int64_t k = 0; k < room; ++k) filter[k] = {C(x[2 * k]), C(x[2 * k + 1])};
  }

  void run_chirp(const C* from, C* to, bool swap, C scale) const {
    const int64_t room = inner->size;
    Scratch<C> buffer(2 * room);
    C* x = buffer.get();
    // Pairs times turns, both as pairs; exchanged before, or after.
    auto multiply = [](C* y, const C* x, const Turn<C>* w, int64_t n, bool before, bool after, C scale) {
      by_vectors<C>(n, [&](int64_t i, auto count) {
        Complex<C> z = load_pairs<C>(x + 2 * i, count);
        if (before) z = z.swapped();
        z = z.by(load_pairs<C>(&w[i].re, count)) * scale;
        store_pairs<C>(y + 2 * i, after ? z.swapped() : z, count);
      });
    };
    multiply(x, from, chirp.data(), size, swap, false, C(1));
    std::fill(x + 2 * size, x + 2 * room, C(0));
    inner->run(x, x, false, C(1));
    multiply(x, x, filter.data(), room, false, false, C(1));
    inner->run(x, x, true, C(1));
    multiply(to, x, chirp.data(), size, false, swap, scale);
  }
};

// The turns that make a transform of n real numbers from one of n / 2 complex ones: w^k for k = 1, 2, ...
template <class C> class Halves {
 public:
  explicit Halves(int64_t n) {
    for (int l = 0; l < WIDTH<C>; ++l) {
      const Turn<C> t = turned<C>(l, n);
      lanes.re[l] = t.re, lanes.im[l] = t.im;
    }
    for (int64_t k = 1; k <= n / 4 + WIDTH<C>; k += WIDTH<C>) starts.push_back(turned<C>(k, n));
  }
  // w^k for a vector of k, which is one more than a multiple of the vector's width.
  Complex<C> at(int64_t k) const { return lanes.by(starts[(k - 1) / WIDTH<C>]); }
  size_t bytes() const { return sizeof(*this) + starts.size() * sizeof(Turn<C>); }

 private:
  Complex<C> lanes;
  std::vector<Turn<C>> starts;
};

}  // namespace vt::fft
