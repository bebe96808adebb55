// The primitives of formulas as scalar functions. Compiled formulas and the tile interpreter both
// use these, so that they agree.
#pragma once
#include "math.h"

namespace vt {

template <class T> constexpr bool floating = std::is_floating_point_v<T>;

template <class T> inline T abs(T a) {
  if constexpr (floating<T>) return std::abs(a);
  else return a < 0 ? T(std::make_unsigned_t<T>(0) - std::make_unsigned_t<T>(a)) : a;
}
template <class T> inline T square(T a) { return a * a; }
template <class T> inline T rsqrt(T a) { return T(1) / std::sqrt(a); }
template <class T> inline T reciprocal(T a) { return T(1) / a; }
template <class T> inline T floor(T a) {
  if constexpr (floating<T>) return std::floor(a);
  else return a;
}
template <class T> inline T ceil(T a) {
  if constexpr (floating<T>) return std::ceil(a);
  else return a;
}
template <class T> inline T trunc(T a) {
  if constexpr (floating<T>) return std::trunc(a);
  else return a;
}
// Half to even.
template <class T> inline T round(T a) {
  if constexpr (floating<T>) return std::nearbyint(a);
  else return a;
}
// 0 for NaN.
template <class T> inline T sign(T a) { return T(a > T(0) ? 1 : 0) - T(a < T(0) ? 1 : 0); }
template <class T> inline T sgn(T a) { return sign(a); }
template <class T> inline bool signbit(T a) {
  if constexpr (floating<T>) return std::signbit(a);
  else return a < 0;
}
template <class T> inline bool isnan(T a) { return a != a; }
template <class T> inline bool isinf(T a) {
  if constexpr (floating<T>) return std::abs(a) == INF<T>;
  else return a != a;
}
template <class T> inline bool isfinite(T a) {
  if constexpr (floating<T>) return std::abs(a) < INF<T>;
  else return a == a;
}
template <class T> inline bool isposinf(T a) { return floating<T> && a == INF<T>; }
template <class T> inline bool isneginf(T a) { return floating<T> && a == -INF<T>; }
// NaN wins in maximum and minimum, loses in fmax and fmin.
template <class T> inline T maximum(T a, T b) { return (a > b || a != a) ? a : b; }
template <class T> inline T minimum(T a, T b) { return (a < b || a != a) ? a : b; }
template <class T> inline T fmax(T a, T b) { return (a > b || b != b) ? a : b; }
template <class T> inline T fmin(T a, T b) { return (a < b || b != b) ? a : b; }
template <class T> inline T copysign(T a, T b) { return std::copysign(a, b); }

}  // namespace vt
