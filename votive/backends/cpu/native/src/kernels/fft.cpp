// Fourier transforms of many short rows: as many rows as a vector has lanes are transformed side by
// side, so every step is on whole vectors and no number moves between lanes but at the ends.
//
// Stockham's order (no bit reversal) with radices 4, 2, 3, 5. A real row of even length is a complex one of half
// the length whose even numbers are the real parts.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "vt/kernel.h"
#include "vt/lanes.h"

namespace vt {
namespace {

template <class C> using V = Lanes<C>;

// exp(-2 pi i k / n), kept for every n that was asked for.
template <class C> const std::vector<std::pair<C, C>>& circle(int64_t n) {
  static std::mutex guard;
  static std::map<int64_t, std::unique_ptr<std::vector<std::pair<C, C>>>> known;
  const std::lock_guard<std::mutex> lock(guard);
  auto& found = known[n];
  if (!found) {
    found = std::make_unique<std::vector<std::pair<C, C>>>(n);
    for (int64_t k = 0; k < n; ++k) {
      const double angle = -2.0 * M_PI * double(k) / double(n);
      (*found)[k] = {C(std::cos(angle)), C(std::sin(angle))};
    }
  }
  return *found;
}

template <class C> struct Complex {
  V<C> re, im;
  Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
  Complex operator-(Complex o) const { return {re - o.re, im - o.im}; }
  Complex operator*(C f) const { return {re * f, im * f}; }
  Complex conj() const { return {re, -im}; }
  // Times -i, or times i on the way back.
  template <bool BACK> Complex turned() const {
    if constexpr (BACK) return {-im, re};
    else return {im, -re};
  }
  template <bool BACK> Complex by(std::pair<C, C> w) const {
    const C wi = BACK ? -w.second : w.second;
    return {re * w.first - im * wi, re * wi + im * w.first};
  }
};

// The transform of R numbers, in place.
template <class C, int R, bool BACK> VT_INLINE void few(Complex<C> (&a)[R]) {
  if constexpr (R == 2) {
    const auto s = a[0] + a[1], d = a[0] - a[1];
    a[0] = s, a[1] = d;
  } else if constexpr (R == 3) {
    const auto s = a[1] + a[2], d = (a[1] - a[2]) * C(0.86602540378443864676);
    const auto m = a[0] - s * C(0.5), t = d.template turned<BACK>();
    a[0] = a[0] + s, a[1] = m + t, a[2] = m - t;
  } else if constexpr (R == 4) {
    const auto s = a[0] + a[2], d = a[0] - a[2], u = a[1] + a[3];
    const auto t = (a[1] - a[3]).template turned<BACK>();
    a[0] = s + u, a[2] = s - u, a[1] = d + t, a[3] = d - t;
  } else {
    constexpr C c1 = C(0.30901699437494742410), c2 = C(-0.80901699437494742410);
    constexpr C s1 = C(0.95105651629515357212), s2 = C(0.58778525229247312917);
    const auto p = a[1] + a[4], q = a[2] + a[3], r = a[1] - a[4], s = a[2] - a[3];
    const auto m = a[0] + p * c1 + q * c2, n = a[0] + p * c2 + q * c1;
    const auto t = (r * s1 + s * s2).template turned<BACK>(), u = (r * s2 - s * s1).template turned<BACK>();
    a[0] = a[0] + p + q, a[1] = m + t, a[4] = m - t, a[2] = n + u, a[3] = n - u;
  }
}

// One pass: n numbers are left of the transform, `s` of them lie between neighbours. `step` is how
// far a turn of 1/n goes in `w`.
template <class C, int R, bool BACK>
void pass(Complex<C>* __restrict y, const Complex<C>* __restrict x, int64_t n, int64_t s, const std::pair<C, C>* w, int64_t step) {
  const int64_t m = n / R;
  for (int64_t p = 0; p < m; ++p)
    for (int64_t q = 0; q < s; ++q) {
      Complex<C> a[R];
#pragma GCC unroll 5
      for (int j = 0; j < R; ++j) a[j] = x[q + s * (p + m * j)];
      few<C, R, BACK>(a);
      Complex<C>* to = y + q + s * R * p;
      to[0] = a[0];
#pragma GCC unroll 5
      for (int j = 1; j < R; ++j) to[s * j] = p == 0 ? a[j] : a[j].template by<BACK>(w[p * j * step]);
    }
}

// Transforms x, with y to work in; gives the one that holds the result.
template <class C, bool BACK>
Complex<C>* transform(Complex<C>* x, Complex<C>* y, int64_t size, const std::pair<C, C>* w, int64_t step) {
  int64_t s = 1;
  for (int64_t n = size; n > 1;) {
    const int radix = n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : n % 3 == 0 ? 3 : 5;
    const int64_t turn = step * (size / n);
    if (radix == 4) pass<C, 4, BACK>(y, x, n, s, w, turn);
    else if (radix == 2) pass<C, 2, BACK>(y, x, n, s, w, turn);
    else if (radix == 3) pass<C, 3, BACK>(y, x, n, s, w, turn);
    else pass<C, 5, BACK>(y, x, n, s, w, turn);
    std::swap(x, y);
    n /= radix;
    s *= radix;
  }
  return x;
}

// A square of numbers turned over its diagonal: halves of ever larger squares are exchanged.
template <int S, class C, int... I> VT_INLINE void exchange(V<C>* x, std::integer_sequence<int, I...>) {
  constexpr int L = WIDTH<C>;
  using Mask = typename LanesOf<C>::ints;
  const Mask low{(((I & S) == 0) ? I : L + I - S)...}, high{(((I & S) == 0) ? I + S : L + I)...};
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i)
    if ((i & S) == 0) {
      const V<C> a = x[i], b = x[i + S];
#if defined(__clang__)
      V<C> p, q;
      for (int k = 0; k < L; ++k) p[k] = low[k] < L ? a[low[k]] : b[low[k] - L], q[k] = high[k] < L ? a[high[k]] : b[high[k] - L];
      x[i] = p, x[i + S] = q;
#else
      x[i] = __builtin_shuffle(a, b, low);
      x[i + S] = __builtin_shuffle(a, b, high);
#endif
    }
}
template <class C> VT_INLINE void turn_square(C* dst, int64_t d, const C* src, int64_t s) {
  constexpr int L = WIDTH<C>;
  constexpr auto lanes = std::make_integer_sequence<int, L>{};
  V<C> x[L];
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) x[i] = load<C>(src + i * s);
  exchange<1, C>(x, lanes);
  if constexpr (L > 2) exchange<2, C>(x, lanes);
  if constexpr (L > 4) exchange<4, C>(x, lanes);
  if constexpr (L > 8) exchange<8, C>(x, lanes);
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) store<C>(dst + i * d, x[i]);
}

// Rows along the last dimension, whose elements are `parts` numbers each.
template <class C> struct Lines {
  const View& v;
  int parts;
  int64_t rows = 1, step;  // of numbers along a row; 0 if parts of an element are not next to the next

  Lines(const View& v, int parts) : v(v), parts(parts) {
    for (int d = 0; d < v.ndim - 1; ++d) rows *= v.shape[d];
    step = v.strides[v.ndim - 1] / int64_t(sizeof(C));
  }
  C* row(int64_t r) const {
    char* p = v.data;
    for (int d = v.ndim - 2; d >= 0; --d) {
      p += r % v.shape[d] * v.strides[d];
      r /= v.shape[d];
    }
    return reinterpret_cast<C*>(p);
  }
  // Whether rows r.. r + L lie dense and equally far apart; then how far, in numbers.
  bool even(int64_t r, int64_t& apart) const {
    if (step != parts || r + WIDTH<C> > rows) return false;
    const C* first = row(r);
    apart = row(r + 1) - first;
    for (int l = 2; l < WIDTH<C>; ++l)
      if (row(r + l) - first != l * apart) return false;
    return true;
  }
  // `count` numbers of rows r.. to lanes; lanes without a row are zero.
  void load_lanes(C* to, int64_t r, int64_t count) const {
    constexpr int L = WIDTH<C>;
    int64_t apart, j = 0;
    if (even(r, apart))
      for (const C* first = row(r); j + L <= count; j += L) turn_square<C>(to + j * L, L, first + j, apart);
    for (int l = 0; l < L; ++l) {
      const C* from = r + l < rows ? row(r + l) : nullptr;
      for (int64_t k = j; k < count; ++k) to[k * L + l] = from ? from[k / parts * step + k % parts] : C(0);
    }
  }
  void store_lanes(const C* from, int64_t r, int64_t count) const {
    constexpr int L = WIDTH<C>;
    int64_t apart, j = 0;
    if (even(r, apart))
      for (C* first = row(r); j + L <= count; j += L) turn_square<C>(first + j, apart, from + j * L, L);
    for (int l = 0; l < L && r + l < rows; ++l) {
      C* to = row(r + l);
      for (int64_t k = j; k < count; ++k) to[k / parts * step + k % parts] = from[k * L + l];
    }
  }
};

// Runs body(first row, two buffers of `numbers` complex vectors) for blocks of rows.
template <class C, class F> void blocks(int64_t rows, int64_t numbers, F&& body) {
  constexpr int L = WIDTH<C>;
  parallel_for((rows + L - 1) / L, grain_for(numbers * 64), [&](int64_t begin, int64_t end) {
    Scratch<C> room(numbers * 4 * L);
    auto* x = reinterpret_cast<Complex<C>*>(room.get());
    for (int64_t t = begin; t < end; ++t) body(t * L, x, x + numbers);
  });
}

template <class C> void real_to_complex(Call& c) {
  const View &x = c.view(0), &out = c.view(1);
  const int64_t n = x.shape[x.ndim - 1], half = n / 2;
  const C scale = C(c.f(0));
  const Lines<C> from(x, 1), to(out, 2);
  const auto* w = circle<C>(n).data();
  blocks<C>(from.rows, half + 1, [&](int64_t r, Complex<C>* a, Complex<C>* b) {
    from.load_lanes(reinterpret_cast<C*>(a), r, n);
    const Complex<C>* z = transform<C, false>(a, b, half, w, 2);
    Complex<C>* y = z == a ? b : a;
    const V<C> none{};
    y[0] = Complex<C>{z[0].re + z[0].im, none} * scale;
    y[half] = Complex<C>{z[0].re - z[0].im, none} * scale;
    for (int64_t k = 1; k < half; ++k) {
      const auto sum = z[k] + z[half - k].conj(), rest = z[k] - z[half - k].conj();
      y[k] = (sum + rest.template by<false>(w[k]).template turned<false>()) * (scale * C(0.5));
    }
    to.store_lanes(reinterpret_cast<const C*>(y), r, n + 2);
  });
}

template <class C> void complex_to_real(Call& c) {
  const View &x = c.view(0), &out = c.view(1);
  const int64_t n = out.shape[out.ndim - 1], half = n / 2;
  const C scale = C(c.f(0));
  const Lines<C> from(x, 2), to(out, 1);
  const auto* w = circle<C>(n).data();
  blocks<C>(from.rows, half + 1, [&](int64_t r, Complex<C>* a, Complex<C>* b) {
    from.load_lanes(reinterpret_cast<C*>(a), r, n + 2);
    // Imaginary parts at both ends belong to no real signal and are not read.
    b[0] = Complex<C>{a[0].re + a[half].re, a[0].re - a[half].re} * scale;
    for (int64_t k = 1; k < half; ++k) {
      const auto sum = a[k] + a[half - k].conj(), rest = a[k] - a[half - k].conj();
      b[k] = (sum + rest.template by<true>(w[k]).template turned<true>()) * scale;
    }
    const Complex<C>* y = transform<C, true>(b, a, half, w, 2);
    to.store_lanes(reinterpret_cast<const C*>(y), r, n);
  });
}

template <class C> void complex_to_complex(Call& c) {
  const View &x = c.view(0), &out = c.view(1);
  const int64_t n = x.shape[x.ndim - 1];
  const C scale = C(c.f(0));
  const bool forward = c.i(0) != 0;
  const Lines<C> from(x, 2), to(out, 2);
  const auto* w = circle<C>(n).data();
  blocks<C>(from.rows, n, [&](int64_t r, Complex<C>* a, Complex<C>* b) {
    from.load_lanes(reinterpret_cast<C*>(a), r, 2 * n);
    Complex<C>* y = forward ? transform<C, false>(a, b, n, w, 1) : transform<C, true>(a, b, n, w, 1);
    if (scale != C(1))
      for (int64_t k = 0; k < n; ++k) y[k] = y[k] * scale;
    to.store_lanes(reinterpret_cast<const C*>(y), r, 2 * n);
  });
}

bool wide(const View& v) { return v.dtype == Dtype::f64 || v.dtype == Dtype::c128; }

}  // namespace

// x, out, scale; along the last dimension
VT_KERNEL(fft_r2c) { wide(c.view(0)) ? real_to_complex<double>(c) : real_to_complex<float>(c); }
VT_KERNEL(fft_c2r) { wide(c.view(0)) ? complex_to_real<double>(c) : complex_to_real<float>(c); }
// x, out, scale, forward
VT_KERNEL(fft_c2c) { wide(c.view(0)) ? complex_to_complex<double>(c) : complex_to_complex<float>(c); }

}  // namespace vt
