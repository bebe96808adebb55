// The passes of a Fourier transform in Stockham's order (no bit reversal), on as many transforms at a time as
// a vector has lanes: every step is on whole vectors, and no number moves between lanes.
//
// All transforms are forward ones: that of numbers with real and imaginary parts exchanged, exchanged again, is the inverse.
#pragma once
#include <cmath>

#include "fft_numbers.h"

namespace vt::fft {

// exp(-2 pi i k / n), exact to the last digit: angles are brought down to an eighth of a turn.
inline Turn<double> turn_of(int64_t k, int64_t n) {
  k %= n;
  const bool below = 2 * k > n;
  if (below) k = n - k;                 // conjugate
  const bool left = 4 * k > n;
  const int64_t m = left ? n - 2 * k : 2 * k;  // the angle is m / 2n of a turn, at most a quarter
  const double unit = M_PI / double(n);
  double c, s;
  if (4 * m > n) {
    const double rest = double(n - 2 * m) * 0.5 * unit;
    c = std::sin(rest), s = std::cos(rest);
  } else c = std::cos(double(m) * unit), s = std::sin(double(m) * unit);
  return {left ? -c : c, below ? s : -s};
}
template <class C> Turn<C> turned(int64_t k, int64_t n) {
  const Turn<double> w = turn_of(k, n);
  return {C(w.re), C(w.im)};
}

// Cosines and sines of all turns by 1/R.
template <class C, int R> struct Roots {
  C cos[R], sin[R];
  Roots() {
    for (int k = 0; k < R; ++k) {
      const Turn<double> w = turn_of(k, R);
      cos[k] = C(w.re), sin[k] = C(-w.im);
    }
  }
};
template <class C, int R> inline const Roots<C, R> ROOTS{};

// The transform of R numbers, in place.
template <class C, int R> VT_INLINE void few(Complex<C>* a) {
  if constexpr (R == 2) {
    const auto s = a[0] + a[1], d = a[0] - a[1];
    a[0] = s, a[1] = d;
  } else if constexpr (R == 3) {
    const auto s = a[1] + a[2], d = ((a[1] - a[2]) * C(0.86602540378443864676)).down();
    const auto m = a[0] - s * C(0.5);
    a[0] = a[0] + s, a[1] = m + d, a[2] = m - d;
  } else if constexpr (R == 4) {
    const auto s = a[0] + a[2], d = a[0] - a[2], u = a[1] + a[3], t = (a[1] - a[3]).down();
    a[0] = s + u, a[2] = s - u, a[1] = d + t, a[3] = d - t;
  } else if constexpr (R == 8) {
    Complex<C> even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    few<C, 4>(even), few<C, 4>(odd);
    constexpr C h = C(0.70710678118654752440);
    const auto p = odd[1], q = odd[3];
    odd[1] = Complex<C>{p.re + p.im, p.im - p.re} * h;
    odd[2] = odd[2].down();
    odd[3] = Complex<C>{q.im - q.re, -q.re - q.im} * h;
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) a[k] = even[k] + odd[k], a[k + 4] = even[k] - odd[k];
  } else if constexpr (R == 16) {
    Complex<C> b[16];
#pragma GCC unroll 4
    for (int l = 0; l < 4; ++l) {
      Complex<C> t[4] = {a[l], a[l + 4], a[l + 8], a[l + 12]};
      few<C, 4>(t);
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) {
        const Turn<C> w = {ROOTS<C, 16>.cos[k * l], -ROOTS<C, 16>.sin[k * l]};
        b[4 * k + l] = k * l == 0 ? t[k] : k * l == 4 ? t[k].down() : t[k].by(w);
      }
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      few<C, 4>(b + 4 * k);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) a[k + 4 * j] = b[4 * k + j];
    }
  } else {
    // Numbers j and R - j meet the same cosines and opposite sines.
    constexpr int H = R / 2;
    Complex<C> s[H + 1], d[H + 1];
    const auto first = a[0];
    auto total = first;
#pragma GCC unroll 16
    for (int j = 1; j <= H; ++j) s[j] = a[j] + a[R - j], d[j] = a[j] - a[R - j], total = total + s[j];
    a[0] = total;
#pragma GCC unroll 16
    for (int k = 1; k <= H; ++k) {
      auto m = first + s[1] * ROOTS<C, R>.cos[k];
      auto t = d[1] * ROOTS<C, R>.sin[k];
#pragma GCC unroll 16
      for (int j = 2; j <= H; ++j) {
        m = m + s[j] * ROOTS<C, R>.cos[k * j % R];
        t = t + d[j] * ROOTS<C, R>.sin[k * j % R];
      }
      a[k] = m + t.down(), a[R - k] = m - t.down();
    }
  }
}

// One pass: R m numbers are left of the transform, `s` lie between neighbours. `w` has R - 1 turns for each p > 0.
template <class C, int R>
void pass(Complex<C>* __restrict y, const Complex<C>* __restrict x, int64_t m, int64_t s, const Turn<C>* __restrict w) {
  for (int64_t q = 0; q < s; ++q) {
    Complex<C> a[R];
#pragma GCC unroll 16
    for (int j = 0; j < R; ++j) a[j] = x[q + s * m * j];
    few<C, R>(a);
#pragma GCC unroll 16
    for (int j = 0; j < R; ++j) y[q + s * j] = a[j];
  }
  for (int64_t p = 1; p < m; ++p, w += R - 1)
    for (int64_t q = 0; q < s; ++q) {
      Complex<C> a[R];
#pragma GCC unroll 16
      for (int j = 0; j < R; ++j) a[j] = x[q + s * (p + m * j)];
      few<C, R>(a);
      Complex<C>* to = y + q + s * R * p;
      to[0] = a[0];
#pragma GCC unroll 16
      for (int j = 1; j < R; ++j) to[s * j] = a[j].by(w[j - 1]);
    }
}

// Any odd R up to ODD, by its definition. `roots` has for each block of PAIRS results k the cosines and sines of all j.
constexpr int ODD = 401, PAIRS = 4;

template <class C, int K>
VT_INLINE void odd_block(Complex<C>* m, Complex<C>* t, const Complex<C>* s, const Complex<C>* d, int64_t half, const Turn<C>* roots) {
  for (int k = 0; k < K; ++k) m[k] = t[k] = Complex<C>{};
  for (int64_t j = 0; j < half; ++j, roots += PAIRS)
#pragma GCC unroll 4
    for (int k = 0; k < K; ++k) {
      m[k].re += s[j].re * roots[k].re, m[k].im += s[j].im * roots[k].re;
      t[k].re += d[j].re * roots[k].im, t[k].im += d[j].im * roots[k].im;
    }
}

template <class C>
void odd_pass(Complex<C>* __restrict y, const Complex<C>* __restrict x, int64_t R, int64_t m, int64_t s, const Turn<C>* __restrict w,
              const Turn<C>* __restrict roots) {
  const int64_t half = R / 2;
  Complex<C> sum[ODD / 2], rest[ODD / 2];
  for (int64_t p = 0; p < m; ++p)
    for (int64_t q = 0; q < s; ++q) {
      const Complex<C>* from = x + q + s * p;
      Complex<C>* to = y + q + s * R * p;
      const Turn<C>* turn = w + (p - 1) * (R - 1) - 1;
      const auto first = from[0];
      auto total = first;
      for (int64_t j = 1; j <= half; ++j) {
        const auto a = from[s * m * j], b = from[s * m * (R - j)];
        sum[j - 1] = a + b, rest[j - 1] = a - b;
        total = total + sum[j - 1];
      }
      to[0] = total;
      auto put = [&](int64_t k, Complex<C> v) { to[s * k] = p == 0 ? v : v.by(turn[k]); };
      for (int64_t k = 0; k < half; k += PAIRS) {
        Complex<C> a[PAIRS], b[PAIRS];
        const Turn<C>* at = roots + k * half;
        odd_block<C, PAIRS>(a, b, sum, rest, half, at);
        for (int64_t i = 0; i < PAIRS && k + i < half; ++i) {
          const auto mean = first + a[i], side = b[i].down();
          put(k + i + 1, mean + side), put(R - k - i - 1, mean - side);
        }
      }
    }
}

}  // namespace vt::fft
