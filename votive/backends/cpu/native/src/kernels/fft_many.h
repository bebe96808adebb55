// Many rows: as many transforms as a vector has lanes, side by side.
#pragma once
#include "fft_lines.h"
#include "fft_plan.h"

namespace vt::fft {

// Runs body(pointers of rows in x, in y, how many, two buffers of `numbers` complex vectors) for blocks of `width` rows.
template <class C, class F> void blocks(const Lines<C>& lines, int width, int64_t numbers, F&& body) {
  parallel_for((lines.count + width - 1) / width, grain_for(numbers * 64), [&](int64_t begin, int64_t end) {
    Scratch<Complex<C>> room(2 * numbers);
    C *from[3 * WIDTH<C>], *to[2 * WIDTH<C>];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t rows = std::min<int64_t>(width, lines.count - t * width);
      lines.find(t * width, rows, from, to);
      for (int64_t k = rows; k < width + WIDTH<C>; ++k) from[k] = from[0];
      body(from, to, rows, room.get(), room.get() + numbers);
    }
  });
}
template <class C> V<C>* numbers_of(Complex<C>* z) { return reinterpret_cast<V<C>*>(z); }

template <class C> void many_complex(const Lines<C>& lines, int64_t n, bool inverse, C scale) {
  const auto plan = kept<Passes<C>>(n);
  blocks<C>(lines, WIDTH<C>, plan->room, [&](C** from, C** to, int64_t rows, Complex<C>* a, Complex<C>* b) {
    load_lanes<C>(numbers_of(a), from, rows, lines.x_step, 2, n, inverse);
    store_lanes<C>(numbers_of(plan->run(a, b)), to, rows, lines.y_step, 2, n, inverse, scale);
  });
}

// The second half of a spectrum from the first: numbers k and n - k are conjugate.
template <class C> void mirror(Complex<C>* y, int64_t n) {
  for (int64_t k = n / 2 + 1; k < n; ++k) y[k] = y[n - k].conj();
}

template <class C> void conjugate_all(Complex<C>* y, int64_t n) {
  for (int64_t k = 0; k < n; ++k) y[k].im = -y[k].im;
}

// Half a spectrum of real numbers, or the `whole` one; of the inverse transform, if `conjugate`.
template <class C> void many_from_even(const Lines<C>& lines, int64_t n, bool whole, bool conjugate, C scale) {
  const int64_t half = n / 2, kept_numbers = whole ? n : half + 1;
  const auto plan = kept<Passes<C>>(half);
  const auto turns = kept<Circle<C>>(n);
  blocks<C>(lines, WIDTH<C>, std::max(plan->room, kept_numbers), [&](C** from, C** to, int64_t rows, Complex<C>* a, Complex<C>* b) {
    load_lanes<C>(numbers_of(a), from, rows, lines.x_step, 1, n, false);
    const Complex<C>* z = plan->run(a, b);
    Complex<C>* y = z == a ? b : a;
    const V<C> none{};
    y[0] = {z[0].re + z[0].im, none};
    y[half] = {z[0].re - z[0].im, none};
    for (int64_t k = 1; 2 * k <= half; ++k) {
      const auto sum = (z[k] + z[half - k].conj()) * C(0.5), rest = (z[k] - z[half - k].conj()) * C(0.5);
      const auto side = rest.by(turns->w[k]).down();
      y[k] = sum + side;
      y[half - k] = (sum - side).conj();
    }
    if (whole) mirror(y, n);
    if (conjugate) conjugate_all(y, kept_numbers);
    store_lanes<C>(numbers_of(y), to, rows, lines.y_step, 2, kept_numbers, false, scale);
  });
}

// Rows of odd length go in pairs, as the real and imaginary parts of one.
template <class C> void many_from_odd(const Lines<C>& lines, int64_t n, bool whole, bool conjugate, C scale) {
  constexpr int L = WIDTH<C>;
  const int64_t half = n / 2, kept_numbers = whole ? n : half + 1;
  const auto plan = kept<Passes<C>>(n);
  blocks<C>(lines, 2 * L, std::max(plan->room, 2 * kept_numbers), [&](C** from, C** to, int64_t rows, Complex<C>* a, Complex<C>* b) {
    const int64_t one = (rows + 1) / 2, two = rows - one;
    load_lanes<C>(numbers_of(a), from, one, lines.x_step, 1, n, false, 2);
    if (two > 0) load_lanes<C>(numbers_of(a) + 1, from + one, two, lines.x_step, 1, n, false, 2);
    else
      for (int64_t j = 0; j < n; ++j) a[j].im = V<C>{};
    const Complex<C>* z = plan->run(a, b);
    Complex<C>* y = z == a ? b : a;
    Complex<C>* other = y + kept_numbers;
    const V<C> none{};
    y[0] = {z[0].re, none}, other[0] = {z[0].im, none};
    for (int64_t k = 1; k <= half; ++k) {
      y[k] = (z[k] + z[n - k].conj()) * C(0.5);
      other[k] = (z[k] - z[n - k].conj()).down() * C(0.5);
    }
    if (whole) mirror(y, n), mirror(other, n);
    if (conjugate) conjugate_all(y, 2 * kept_numbers);
    store_lanes<C>(numbers_of(y), to, one, lines.y_step, 2, kept_numbers, false, scale);
    if (two > 0) store_lanes<C>(numbers_of(other), to + one, two, lines.y_step, 2, kept_numbers, false, scale);
  });
}

// Real numbers from half a spectrum, or from its conjugate: those of a forward transform. Imaginary parts at both ends
// belong to no real signal and are not read.
template <class C> void many_to_even(const Lines<C>& lines, int64_t n, bool conjugate, C scale) {
  const int64_t half = n / 2;
  const auto plan = kept<Passes<C>>(half);
  const auto turns = kept<Circle<C>>(n);
  blocks<C>(lines, WIDTH<C>, std::max(plan->room, half + 1), [&](C** from, C** to, int64_t rows, Complex<C>* a, Complex<C>* b) {
    load_lanes<C>(numbers_of(a), from, rows, lines.x_step, 2, half + 1, false);
    if (conjugate) conjugate_all(a, half + 1);
    b[0] = {a[0].re - a[half].re, a[0].re + a[half].re};
    for (int64_t k = 1; 2 * k <= half; ++k) {
      const auto sum = a[k] + a[half - k].conj(), rest = a[k] - a[half - k].conj();
      const auto side = rest.by(turns->w[k].conj()).down();
      b[k] = (sum - side).swapped();
      b[half - k] = (sum + side).conj().swapped();
    }
    store_lanes<C>(numbers_of(plan->run(b, a)), to, rows, lines.y_step, 1, n, true, scale);
  });
}

template <class C> void many_to_odd(const Lines<C>& lines, int64_t n, bool conjugate, C scale) {
  constexpr int L = WIDTH<C>;
  const int64_t half = n / 2;
  const auto plan = kept<Passes<C>>(n);
  blocks<C>(lines, 2 * L, std::max(plan->room, 2 * (half + 1)), [&](C** from, C** to, int64_t rows, Complex<C>* a, Complex<C>* b) {
    const int64_t one = (rows + 1) / 2, two = rows - one;
    Complex<C>* other = a + half + 1;
    load_lanes<C>(numbers_of(a), from, one, lines.x_step, 2, half + 1, false);
    if (two > 0) load_lanes<C>(numbers_of(other), from + one, two, lines.x_step, 2, half + 1, false);
    else std::fill(other, other + half + 1, Complex<C>{});
    if (conjugate) conjugate_all(a, 2 * (half + 1));
    // a + i b, exchanged: the inverse transform of both.
    b[0] = {other[0].re, a[0].re};
    for (int64_t k = 1; k <= half; ++k) {
      const auto u = a[k], v = other[k];
      b[k] = Complex<C>{u.re - v.im, u.im + v.re}.swapped();
      b[n - k] = Complex<C>{u.re + v.im, v.re - u.im}.swapped();
    }
    const V<C>* y = numbers_of(plan->run(b, a));
    store_lanes<C>(y + 1, to, one, lines.y_step, 1, n, false, scale, 2);
    if (two > 0) store_lanes<C>(y, to + one, two, lines.y_step, 1, n, false, scale, 2);
  });
}

}  // namespace vt::fft
