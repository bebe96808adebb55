// One vector register of numbers, as wide as the level has: for row-wise sums, maxima and exponentials.
//
// Without the leave to reorder sums, a compiler adds up one number after the other; written with these,
// a row is added up in several registers at a time, which is faster and rounds less.
#pragma once
#include <cstring>

#include "math.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace vt {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

template <class C> struct LanesOf;
template <> struct LanesOf<float> {
  typedef float type __attribute__((vector_size(VECTOR_BYTES)));
  typedef int32_t ints __attribute__((vector_size(VECTOR_BYTES)));
};
template <> struct LanesOf<double> {
  typedef double type __attribute__((vector_size(VECTOR_BYTES)));
  typedef int64_t ints __attribute__((vector_size(VECTOR_BYTES)));
};
template <class C> using Lanes = typename LanesOf<C>::type;
template <class C> constexpr int WIDTH = VECTOR_BYTES / int(sizeof(C));


template <class C> VT_INLINE Lanes<C> load(const C* p) {
  Lanes<C> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class C> VT_INLINE void store(C* p, Lanes<C> v) { std::memcpy(p, &v, sizeof v); }
template <class C> VT_INLINE Lanes<C> all(C x) { return Lanes<C>{} + x; }

// The first n lanes (0 <= n < WIDTH); the others are `fill`.
template <class C> VT_INLINE Lanes<C> load_part(const C* p, int64_t n, C fill) {
#if defined(__AVX512F__)
  if constexpr (sizeof(C) == 4) {
    const __m512 v = _mm512_mask_loadu_ps(_mm512_set1_ps(float(fill)), __mmask16((1u << n) - 1), p);
    return Lanes<C>(v);
  } else {
    const __m512d v = _mm512_mask_loadu_pd(_mm512_set1_pd(double(fill)), __mmask8((1u << n) - 1), p);
    return Lanes<C>(v);
  }
#else
  Lanes<C> v = all<C>(fill);
  for (int64_t j = 0; j < n; ++j) v[j] = p[j];
  return v;
#endif
}
template <class C> VT_INLINE void store_part(C* p, Lanes<C> v, int64_t n) {
#if defined(__AVX512F__)
  if constexpr (sizeof(C) == 4) _mm512_mask_storeu_ps(p, __mmask16((1u << n) - 1), __m512(v));
  else _mm512_mask_storeu_pd(p, __mmask8((1u << n) - 1), __m512d(v));
#else
  for (int64_t j = 0; j < n; ++j) p[j] = v[j];
#endif
}

// The larger lanes; where one is NaN, `b`.
template <class C> VT_INLINE Lanes<C> larger(Lanes<C> a, Lanes<C> b) { return a > b ? a : b; }

// Halves are folded onto each other until one lane is left.
template <class C, int N, class V, class F> VT_INLINE C fold(V v, F&& f) {
  if constexpr (N == 1) return v[0];
  else {
    typedef C half __attribute__((vector_size(N / 2 * sizeof(C))));
    half h[2];
    std::memcpy(h, &v, sizeof v);
    return fold<C, N / 2>(f(h[0], h[1]), f);
  }
}
template <class C> VT_INLINE C sum_of(Lanes<C> v) {
  return fold<C, WIDTH<C>>(v, [](auto a, auto b) { return a + b; });
}
template <class C> VT_INLINE C max_of(Lanes<C> v) {
  return fold<C, WIDTH<C>>(v, [](auto a, auto b) { return a > b ? a : b; });
}

// A scalar function on each lane, as a loop that the compiler can turn into vector code.
template <class C, class F> VT_INLINE Lanes<C> each(Lanes<C> v, F&& f) {
  alignas(VECTOR_BYTES) C t[WIDTH<C>];
  std::memcpy(t, &v, sizeof v);
  for (int j = 0; j < WIDTH<C>; ++j) t[j] = f(t[j]);
  std::memcpy(&v, t, sizeof v);
  return v;
}

// exp of numbers up to about 40: of differences from a maximum. NaN stays NaN; underflows gradually.
template <class C> VT_INLINE Lanes<C> exp_below(Lanes<C> x) {
  if constexpr (sizeof(C) == 8) return each<C>(x, [](C v) { return vt::exp(v); });
  else {
    using I = typename LanesOf<C>::ints;
    const Lanes<C> low = all<C>(-105.0f);
    x = x < low ? low : x;
    // x = k ln 2 + r with |r| <= ln(2)/2, where k appears in the low bits of a sum with 1.5 * 2^23.
    const Lanes<C> shifted = x * 1.44269504f + 12582912.0f;
    const Lanes<C> k = shifted - 12582912.0f;
    const Lanes<C> r = (x - k * 0.693145752f) - k * 1.42860677e-6f;
    // (e^r - 1 - r) / r^2 by Chebyshev's points of that interval.
    Lanes<C> p = r * 0.00139336509f + 0.00836317986f;
    p = p * r + 0.0416664667f;
    p = p * r + 0.166665763f;
    p = p * r + 0.5f;
    p = p * (r * r) + r + 1.0f;
    // 2^k in two factors, because results below 2^-126 have no exponent of their own.
    I bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const I scale_bits = (bits + (127 + 64)) << 23;
    Lanes<C> scale;
    std::memcpy(&scale, &scale_bits, sizeof scale);
    return p * scale * 5.42101086e-20f;
  }
}

// f(offset, count) over a row: full vectors, two at a time, then the rest, whose count is an int64_t.
template <class C, class F> VT_INLINE void sweep(int64_t n, F&& f) {
  constexpr int W = WIDTH<C>;
  constexpr std::integral_constant<int, W> full{};
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    f(i, full);
    f(i + W, full);
  }
  if (i + W <= n) {
    f(i, full);
    i += W;
  }
  if (i < n) f(i, n - i);
}

// The sum of f(offset, count), which must be zero in the lanes that do not count.
template <class C, class F> VT_INLINE C sum_over(int64_t n, F&& f) {
  constexpr int W = WIDTH<C>;
  constexpr std::integral_constant<int, W> full{};
  Lanes<C> a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    a += f(i, full);
    b += f(i + W, full);
    c += f(i + 2 * W, full);
    d += f(i + 3 * W, full);
  }
  for (; i + W <= n; i += W) a += f(i, full);
  if (i < n) b += f(i, n - i);
  return sum_of<C>((a + b) + (c + d));
}

// Two sums at once: f(offset, count, a, b) adds to both, the other lanes nothing.
template <class C> struct Pair {
  C first, second;
};
template <class C, class F> VT_INLINE Pair<C> sums_over(int64_t n, F&& f) {
  constexpr int W = WIDTH<C>;
  constexpr std::integral_constant<int, W> full{};
  Lanes<C> a{}, b{}, c{}, d{};
  int64_t i = 0;
  for (; i + 2 * W <= n; i += 2 * W) {
    f(i, full, a, b);
    f(i + W, full, c, d);
  }
  if (i + W <= n) {
    f(i, full, a, b);
    i += W;
  }
  if (i < n) f(i, n - i, c, d);
  return {sum_of<C>(a + c), sum_of<C>(b + d)};
}

// Loads and stores that know from the type of `count` whether the vector is full.
template <class C, class N> VT_INLINE Lanes<C> load_some(const C* p, N count, C fill = C(0)) {
  if constexpr (std::is_same_v<N, int64_t>) return load_part<C>(p, count, fill);
  else return load<C>(p);
}
template <class C, class N> VT_INLINE void store_some(C* p, Lanes<C> v, N count) {
  if constexpr (std::is_same_v<N, int64_t>) store_part<C>(p, v, count);
  else store<C>(p, v);
}

}  // namespace vt
