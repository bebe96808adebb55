// Few or long rows, one after the other.
#pragma once
#include "fft_lines.h"
#include "fft_row.h"

namespace vt::fft {

// Runs body(dense row of x, dense row of y) for all rows, by way of a copy where one is not dense.
template <class C, class F> void each_row(const Lines<C>& lines, int64_t x_size, int64_t y_size, F&& body) {
  parallel_for(lines.count, grain_for((x_size + y_size) * 16), [&](int64_t begin, int64_t end) {
    const int64_t x_numbers = x_size * lines.x_parts, y_numbers = y_size * lines.y_parts;
    Scratch<C> x(lines.dense_x() ? 1 : x_numbers), y(lines.dense_y() ? 1 : y_numbers);
    for (int64_t r = begin; r < end; ++r) {
      C *from, *to;
      lines.find(r, 1, &from, &to);
      if (!lines.dense_x()) gather<C>(x, from, lines.x_step, lines.x_parts, x_size);
      body(lines.dense_x() ? from : x.get(), lines.dense_y() ? to : y.get());
      if (!lines.dense_y()) spread_out<C>(to, y, lines.y_step, lines.y_parts, y_size);
    }
  });
}

template <class C> void few_complex(const Lines<C>& lines, int64_t n, bool inverse, C scale) {
  const auto plan = kept<Row<C>>(n);
  each_row<C>(lines, n, n, [&](const C* x, C* y) { plan->run(x, y, inverse, scale); });
}

// The transform of n real numbers from that of n / 2 pairs of them, in place. f(low, high, turns) gets numbers k and n / 2 - k.
template <class C, class F> void meet(C* y, const C* x, int64_t half, const Halves<C>& turns, F&& f) {
  constexpr int L = WIDTH<C>;
  constexpr std::integral_constant<int, L> full{};
  auto flipped = [](Complex<C> z) { return Complex<C>{backwards<C>(z.re), backwards<C>(z.im)}; };
  int64_t k = 1;
  for (; k + L <= half - k - L + 1; k += L) {
    const int64_t end = half - k - L + 1;
    Complex<C> low = load_pairs<C>(x + 2 * k, full), high = flipped(load_pairs<C>(x + 2 * end, full));
    f(low, high, turns.at(k));
    store_pairs<C>(y + 2 * k, low, full);
    store_pairs<C>(y + 2 * end, flipped(high), full);
  }
  // Both sides are read before either is written: in the middle they meet.
  for (; 2 * k <= half; k += L) {
    const int64_t count = std::min<int64_t>(L, half / 2 - k + 1), end = half - k - count + 1;
    Complex<C> low = load_pairs_up_to<C>(x + 2 * k, count), high{}, back = load_pairs_up_to<C>(x + 2 * end, count);
    for (int64_t l = 0; l < count; ++l) high.re[l] = back.re[count - 1 - l], high.im[l] = back.im[count - 1 - l];
    f(low, high, turns.at(k));
    for (int64_t l = 0; l < count; ++l) back.re[l] = high.re[count - 1 - l], back.im[l] = high.im[count - 1 - l];
    store_pairs_up_to<C>(y + 2 * k, low, count);
    store_pairs_up_to<C>(y + 2 * end, back, count);
  }
}

template <class C> void mirror_pairs(C* y, int64_t n) {
  for (int64_t k = n / 2 + 1; k < n; ++k) y[2 * k] = y[2 * (n - k)], y[2 * k + 1] = -y[2 * (n - k) + 1];
}
template <class C> void conjugate_pairs(C* y, int64_t n) {
  for (int64_t k = 0; k < n; ++k) y[2 * k + 1] = -y[2 * k + 1];
}

template <class C> void few_from_even(const Lines<C>& lines, int64_t n, bool whole, bool conjugate, C scale) {
  const int64_t half = n / 2, kept_numbers = whole ? n : half + 1;
  const auto plan = kept<Row<C>>(half);
  const auto turns = kept<Halves<C>>(n);
  each_row<C>(lines, n, kept_numbers, [&](const C* x, C* y) {
    plan->run(x, y, false, scale);
    const C first = y[0], second = y[1];
    y[0] = first + second, y[1] = C(0);
    y[2 * half] = first - second, y[2 * half + 1] = C(0);
    meet<C>(y, y, half, *turns, [](Complex<C>& low, Complex<C>& high, Complex<C> w) {
      const auto sum = (low + high.conj()) * C(0.5), side = ((low - high.conj()) * C(0.5)).by(w).down();
      low = sum + side, high = (sum - side).conj();
    });
    if (whole) mirror_pairs<C>(y, n);
    if (conjugate) conjugate_pairs<C>(y, kept_numbers);
  });
}

template <class C> void few_to_even(const Lines<C>& lines, int64_t n, bool conjugate, C scale) {
  const int64_t half = n / 2;
  const auto plan = kept<Row<C>>(half);
  const auto turns = kept<Halves<C>>(n);
  each_row<C>(lines, half + 1, n, [&](const C* x, C* y) {
    const C first = x[0], last = x[2 * half];
    meet<C>(y, x, half, *turns, [&](Complex<C>& low, Complex<C>& high, Complex<C> w) {
      if (conjugate) low = low.conj(), high = high.conj();
      const auto sum = low + high.conj(), side = (low - high.conj()).by(w.conj()).down();
      low = sum - side, high = (sum + side).conj();
    });
    y[0] = first + last, y[1] = first - last;
    plan->run(y, y, true, scale);
  });
}

// Runs body(two dense rows of x, two of y) for pairs of rows; the second is a null pointer where there is none.
template <class C, class F> void each_pair(const Lines<C>& lines, int64_t x_size, int64_t y_size, F&& body) {
  parallel_for((lines.count + 1) / 2, grain_for((x_size + y_size) * 32), [&](int64_t begin, int64_t end) {
    const int64_t x_numbers = x_size * lines.x_parts, y_numbers = y_size * lines.y_parts;
    Scratch<C> x(lines.dense_x() ? 1 : 2 * x_numbers), y(lines.dense_y() ? 1 : 2 * y_numbers);
    for (int64_t r = begin; r < end; ++r) {
      const int rows = int(std::min<int64_t>(2, lines.count - 2 * r));
      C *from[2], *to[2], *a[2] = {}, *b[2] = {};
      lines.find(2 * r, rows, from, to);
      for (int i = 0; i < rows; ++i) {
        a[i] = lines.dense_x() ? from[i] : x + i * x_numbers;
        b[i] = lines.dense_y() ? to[i] : y + i * y_numbers;
        if (!lines.dense_x()) gather<C>(a[i], from[i], lines.x_step, lines.x_parts, x_size);
      }
      body(a, b);
      for (int i = 0; i < rows && !lines.dense_y(); ++i) spread_out<C>(to[i], b[i], lines.y_step, lines.y_parts, y_size);
    }
  });
}

template <class C> void few_from_odd(const Lines<C>& lines, int64_t n, bool whole, bool conjugate, C scale) {
  const int64_t half = n / 2, kept_numbers = whole ? n : half + 1;
  const auto plan = kept<Row<C>>(n);
  each_pair<C>(lines, n, kept_numbers, [&](C** x, C** y) {
    Scratch<C> z(2 * n);
    for (int64_t j = 0; j < n; ++j) z[2 * j] = x[0][j], z[2 * j + 1] = x[1] ? x[1][j] : C(0);
    plan->run(z, z, false, scale);
    y[0][0] = z[0], y[0][1] = C(0);
    if (y[1]) y[1][0] = z[1], y[1][1] = C(0);
    for (int64_t k = 1; k <= half; ++k) {
      const C a = z[2 * k] * C(0.5), b = z[2 * k + 1] * C(0.5), c = z[2 * (n - k)] * C(0.5), d = z[2 * (n - k) + 1] * C(0.5);
      y[0][2 * k] = a + c, y[0][2 * k + 1] = b - d;
      if (y[1]) y[1][2 * k] = b + d, y[1][2 * k + 1] = c - a;
    }
    for (int i = 0; i < 2 && y[i]; ++i) {
      if (whole) mirror_pairs<C>(y[i], n);
      if (conjugate) conjugate_pairs<C>(y[i], kept_numbers);
    }
  });
}

template <class C> void few_to_odd(const Lines<C>& lines, int64_t n, bool conjugate, C scale) {
  const int64_t half = n / 2;
  const auto plan = kept<Row<C>>(n);
  each_pair<C>(lines, half + 1, n, [&](C** x, C** y) {
    Scratch<C> z(2 * n);
    const C sign = conjugate ? C(-1) : C(1);
    z[0] = x[0][0], z[1] = x[1] ? x[1][0] : C(0);
    for (int64_t k = 1; k <= half; ++k) {
      const C a = x[0][2 * k], b = sign * x[0][2 * k + 1], c = x[1] ? x[1][2 * k] : C(0), d = x[1] ? sign * x[1][2 * k + 1] : C(0);
      z[2 * k] = a - d, z[2 * k + 1] = b + c;
      z[2 * (n - k)] = a + d, z[2 * (n - k) + 1] = c - b;
    }
    plan->run(z, z, true, scale);
    for (int64_t j = 0; j < n; ++j) {
      y[0][j] = z[2 * j];
      if (y[1]) y[1][j] = z[2 * j + 1];
    }
  });
}

}  // namespace vt::fft
