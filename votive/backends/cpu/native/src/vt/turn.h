// Numbers that change places between the lanes of vectors: squares turned over, and short rows side by side.
#pragma once
#include <utility>

#include "lanes.h"

namespace vt {

// Lanes of two vectors, those of the second counted on from the first's.
template <class C, int... I> VT_INLINE Lanes<C> picked(Lanes<C> a, Lanes<C> b, std::integer_sequence<int, I...>) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, I...);
#else
  return __builtin_shuffle(a, b, typename LanesOf<C>::ints{I...});
#endif
}
// The lanes that f gives for 0, 1, ...
template <class C, class F, int... I> VT_INLINE Lanes<C> picked_by(Lanes<C> a, Lanes<C> b, F, std::integer_sequence<int, I...>) {
  return picked<C>(a, b, std::integer_sequence<int, F{}(I)...>{});
}
template <class C, class F> VT_INLINE Lanes<C> pick(Lanes<C> a, Lanes<C> b, F f) {
  return picked_by<C>(a, b, f, std::make_integer_sequence<int, WIDTH<C>>{});
}
// A square of numbers turned over its diagonal: halves of ever larger squares are exchanged.
template <class C, int S = 1> VT_INLINE void turn_square(Lanes<C>* x) {
  constexpr int L = WIDTH<C>;
  if constexpr (S < L) {
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i)
      if ((i & S) == 0) {
        const Lanes<C> a = x[i], b = x[i + S];
        x[i] = pick<C>(a, b, [](int k) { return (k & S) == 0 ? k : WIDTH<C> + k - S; });
        x[i + S] = pick<C>(a, b, [](int k) { return (k & S) == 0 ? k + S : WIDTH<C> + k; });
      }
    turn_square<C, 2 * S>(x);
  }
}

// Short rows that lie one after the other, `n` elements each, to lanes: vector k holds element k of as many rows as a vector
// has lanes. Of `rows` rows; the other lanes repeat the first.
template <class C> VT_INLINE void rows_to_lanes(Lanes<C>* to, const C* from, int64_t rows, int64_t n) {
  constexpr int L = WIDTH<C>;
  for (int64_t j = 0; j < n; j += L) {
    Lanes<C> t[L];
    const int64_t some = n - j;
    for (int i = 0; i < L; ++i) {
      const C* p = from + (i < rows ? i : 0) * n + j;
      t[i] = some >= L ? load<C>(p) : load_part<C>(p, some, C(0));
    }
    turn_square<C>(t);
    for (int i = 0; i < L && i < some; ++i) to[j + i] = t[i];
  }
}
template <class C> VT_INLINE void lanes_to_rows(C* to, const Lanes<C>* from, int64_t rows, int64_t n) {
  constexpr int L = WIDTH<C>;
  for (int64_t j = 0; j < n; j += L) {
    Lanes<C> t[L];
    const int64_t some = n - j;
    for (int i = 0; i < L; ++i) t[i] = i < some ? from[j + i] : Lanes<C>{};
    turn_square<C>(t);
    for (int i = 0; i < L && i < rows; ++i) some >= L ? store<C>(to + i * n + j, t[i]) : store_part<C>(to + i * n + j, t[i], some);
  }
}

}  // namespace vt
