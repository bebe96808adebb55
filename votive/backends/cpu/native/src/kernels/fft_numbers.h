// Vectors of complex numbers, real and imaginary parts apart, and how they come from and go to memory.
#pragma once
#include <utility>

#include "vt/kernel.h"
#include "vt/turn.h"

namespace vt::fft {

template <class C> using V = Lanes<C>;

// A number on the unit circle.
template <class C> struct Turn {
  C re, im;
  Turn conj() const { return {re, -im}; }
};

template <class C> struct Complex {
  V<C> re, im;
  VT_INLINE Complex operator+(Complex o) const { return {re + o.re, im + o.im}; }
  VT_INLINE Complex operator-(Complex o) const { return {re - o.re, im - o.im}; }
  VT_INLINE Complex operator*(C f) const { return {re * f, im * f}; }
  VT_INLINE Complex conj() const { return {re, -im}; }
  VT_INLINE Complex swapped() const { return {im, re}; }
  VT_INLINE Complex down() const { return {im, -re}; }  // times -i
  VT_INLINE Complex by(Turn<C> w) const { return {re * w.re - im * w.im, re * w.im + im * w.re}; }
  VT_INLINE Complex by(Complex w) const { return {re * w.re - im * w.im, re * w.im + im * w.re}; }
};

template <class C> VT_INLINE V<C> backwards(V<C> a) {
  return pick<C>(a, a, [](int i) { return WIDTH<C> - 1 - i; });
}

// Numbers that lie in memory as pairs; `count` of them, if it is an int64_t.
template <class C, class N> VT_INLINE Complex<C> load_pairs(const C* p, N count) {
  constexpr int L = WIDTH<C>;
  V<C> a, b;
  if constexpr (std::is_same_v<N, int64_t>) {
    const int64_t n = 2 * count;
    a = n >= L ? load<C>(p) : load_part<C>(p, n, C(0));
    b = n > L ? load_part<C>(p + L, n - L, C(0)) : V<C>{};
  } else a = load<C>(p), b = load<C>(p + L);
  return {pick<C>(a, b, [](int i) { return 2 * i; }), pick<C>(a, b, [](int i) { return 2 * i + 1; })};
}
template <class C, class N> VT_INLINE void store_pairs(C* p, Complex<C> z, N count) {
  constexpr int L = WIDTH<C>;
  const V<C> a = pick<C>(z.re, z.im, [](int i) { return i / 2 + i % 2 * WIDTH<C>; });
  const V<C> b = pick<C>(z.re, z.im, [](int i) { return i / 2 + i % 2 * WIDTH<C> + WIDTH<C> / 2; });
  if constexpr (std::is_same_v<N, int64_t>) {
    const int64_t n = 2 * count;
    if (n >= L) store<C>(p, a);
    else store_part<C>(p, a, n);
    if (n > L) store_part<C>(p + L, b, n - L);
  } else store<C>(p, a), store<C>(p + L, b);
}
template <class C> VT_INLINE void store_pairs_up_to(C* p, Complex<C> z, int64_t count) {
  if (count >= WIDTH<C>) store_pairs<C>(p, z, std::integral_constant<int, WIDTH<C>>{});
  else store_pairs<C>(p, z, count);
}
template <class C> VT_INLINE Complex<C> load_pairs_up_to(const C* p, int64_t count) {
  if (count >= WIDTH<C>) return load_pairs<C>(p, std::integral_constant<int, WIDTH<C>>{});
  return load_pairs<C>(p, count);
}

// f(offset, count) over n numbers, a vector at a time: count is a constant, or an int64_t for the rest.
template <class C, class F> VT_INLINE void by_vectors(int64_t n, F&& f) {
  int64_t i = 0;
  for (; i + WIDTH<C> <= n; i += WIDTH<C>) f(i, std::integral_constant<int, WIDTH<C>>{});
  if (i < n) f(i, n - i);
}

}  // namespace vt::fft
