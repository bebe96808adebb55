// The primitives of formulas as scalar functions. Compiled formulas and the tile interpreter both
// use these, so that they agree.
#pragma once
#include <numeric>
#include <stdexcept>
#include <string>

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
// A NaN in a is kept by the first test and one in b by the second, which falls away for constants.
template <class T> inline T maximum(T a, T b) {
  const T most = b >= a ? b : a;
  return b != b ? b : most;
}
template <class T> inline T minimum(T a, T b) {
  const T least = b <= a ? b : a;
  return b != b ? b : least;
}
template <class T> inline T fmax(T a, T b) {
  const T most = a > b ? a : b;
  return b != b ? a : most;
}
template <class T> inline T fmin(T a, T b) {
  const T least = a < b ? a : b;
  return b != b ? a : least;
}
template <class T> inline T copysign(T a, T b) { return std::copysign(a, b); }

// --- built on logarithms and exponentials ---------------------------------------------------------

template <class T> VT_INLINE T logaddexp(T a, T b) {
  const T y = (a > b ? a : b) + log1p(exp_minus(magnitude(a - b)));
  // Two equal infinities have no difference.
  return a == b ? a + T(0.6931471805599453) : y;
}
template <class T> VT_INLINE T logaddexp2(T a, T b) {
  const T y = (a > b ? a : b) + log1p(exp2(-magnitude(a - b))) * T(1.4426950408889634);
  return a == b ? a + T(1) : y;
}
template <class T> VT_INLINE T xlogy(T a, T b) {
  const T y = a * log(b);
  return b != b ? b : (a == T(0) ? T(0) : y);
}
template <class T> VT_INLINE T xlog1py(T a, T b) {
  const T y = a * log1p(b);
  return b != b ? b : (a == T(0) ? T(0) : y);
}
template <class T> VT_INLINE T entr(T x) {
  const T y = -x * log(x);
  return x < T(0) ? -INF<T> : (x == T(0) ? T(0) : y);
}
// In two steps: 2^b alone may overflow where the product does not.
template <class T> VT_INLINE T ldexp(T a, T b) {
  constexpr T most = T(std::numeric_limits<T>::max_exponent - 1);
  const T half = clamped(trunc(b * T(0.5)), -most, most);
  return a * exp2(half) * exp2(b - half);
}
template <class T> VT_INLINE T angle(T x) { return x < T(0) ? PI<T> : (x == x ? T(0) : x); }
template <class T> VT_INLINE T sinc_near(T x) {
  const T z = PI<T> * x;
  return x == T(0) ? T(1) : sin_near(z) / z;
}
template <class T> inline T sinc(T x) {
  const T z = PI<T> * x;
  return x == T(0) ? T(1) : sin(z) / z;
}
// Neighbours in value are neighbours as integers.
template <class T> VT_INLINE T nextafter(T a, T b) {
  const auto u = bits(a);
  const T least = with_sign(std::numeric_limits<T>::denorm_min(), b);
  const T up = number(u + 1), down = number(u - 1);
  const T step = a == T(0) ? least : (a < b ? (a > T(0) ? up : down) : (a > T(0) ? down : up));
  return a == b ? b : (a != a ? a : (b != b ? b : step));
}

// --- quotients and remainders -----------------------------------------------------------------------

// Of floats whose quotient is at most this, the remainder is found without a branch.
template <class T> constexpr T QUOTIENT_LIMIT = T(0x1p22);
#if defined(__FMA__)
template <class T> constexpr bool EXACT_REMAINDER = true;
VT_INLINE double remainder_step(double a, double n, double b) { return __builtin_fma(-n, b, a); }
#else
template <class T> constexpr bool EXACT_REMAINDER = std::is_same_v<T, float>;
VT_INLINE double remainder_step(double a, double n, double b) { return a - n * b; }
#endif
// a = n b + r with n whole and |r| <= |b| / 2, exactly.
VT_INLINE double divide_near(double a, double b, double& n) {
  n = (a / b + ROUNDER<double>) - ROUNDER<double>;
  return remainder_step(a, n, b);
}
template <class T> VT_INLINE T fmod_near(T x, T y) {
  double n;
  const double a = double(x), b = double(y), r = divide_near(a, b, n);
  const double other = r + with_sign(b, a);
  const double same = a < 0.0 ? (r > 0.0 ? other : r) : (r < 0.0 ? other : r);
  return with_sign(T(same), x);
}
template <class T> VT_INLINE T remainder_near(T x, T y) {
  double n;
  const double a = double(x), b = double(y), r = divide_near(a, b, n);
  const double same = b < 0.0 ? (r > 0.0 ? r + b : r) : (r < 0.0 ? r + b : r);
  return same == 0.0 ? with_sign(T(0), x) : T(same);
}
template <class T> VT_INLINE T floor_divide_near(T x, T y) {
  double n;
  const double a = double(x), b = double(y), r = divide_near(a, b, n);
  const double q = b < 0.0 ? (r > 0.0 ? n - 1.0 : n) : (r < 0.0 ? n - 1.0 : n);
  return q == 0.0 ? with_sign(T(0), x / y) : T(q);
}

[[noreturn]] inline void zero_divisor(const char* op) {
  throw std::runtime_error(std::string(op) + ": ZeroDivisionError: integer division by zero.");
}
// Wraps where the smallest integer is divided by -1. Divisors are not 0.
template <class T> VT_INLINE T quotient(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if constexpr (sizeof(T) == 4) {
    // In double, where the quotient of 32-bit integers is exact enough and vectors can divide.
    const int32_t q = int32_t(double(a) / double(b == -1 ? 1 : b));
    return b == -1 ? T(U(0) - U(a)) : q;
  } else {
    return b == -1 ? T(U(0) - U(a)) : T(a / b);
  }
}
template <class T> VT_INLINE T rest(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return T(U(a) - U(quotient(a, b)) * U(b));
}

template <class T> inline T trunc_divide(T a, T b) {
  if constexpr (floating<T>) return trunc(a / b);
  else return quotient(a, b);
}
template <class T> inline T fmod(T a, T b) {
  if constexpr (floating<T>) return std::fmod(a, b);
  else return rest(a, b);
}
template <class T> inline T remainder(T a, T b) {
  const T r = fmod(a, b);
  if constexpr (floating<T>) return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
  else return r == 0 ? 0 : ((r ^ b) < 0 ? r + b : r);
}
template <class T> inline T floor_divide(T a, T b) {
  if constexpr (floating<T>) {
    if (b == T(0)) return a / b;
    const T r = std::fmod(a, b);
    T q = (a - r) / b;
    if (r != T(0) && (b < T(0)) != (r < T(0))) q -= T(1);
    if (q == T(0)) return std::copysign(T(0), a / b);
    const T whole = std::floor(q);
    return q - whole > T(0.5) ? whole + T(1) : whole;
  } else {
    using U = std::make_unsigned_t<T>;
    const T q = quotient(a, b);
    const T r = T(U(a) - U(q) * U(b));
    return r == 0 ? q : ((r ^ b) < 0 ? q - 1 : q);
  }
}

// --- integers -------------------------------------------------------------------------------------------

// Wraps around; 1 and -1 have whole inverses, what others have is cut off to 0.
template <class T> inline T integer_pow(T a, T b) {
  using U = std::make_unsigned_t<T>;
  if (b < 0) return a == 1 ? 1 : (a == -1 ? (b % 2 == 0 ? 1 : -1) : 0);
  U result = 1, power = U(a);
  for (U n = U(b); n != 0; n >>= 1, power *= power)
    if (n & 1) result *= power;
  return T(result);
}
template <class T> inline T gcd(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return T(std::gcd(a < 0 ? U(0) - U(a) : U(a), b < 0 ? U(0) - U(b) : U(b)));
}
template <class T> inline T lcm(T a, T b) {
  using U = std::make_unsigned_t<T>;
  const U p = a < 0 ? U(0) - U(a) : U(a), q = b < 0 ? U(0) - U(b) : U(b);
  const U divisor = std::gcd(p, q);
  return divisor == 0 ? T(0) : T(p / divisor * q);
}
// Shifts by less than 0 or by all bits and more leave nothing, or the sign.
template <class T> VT_INLINE T bitwise_left_shift(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr U all = U(sizeof(T) * 8);
  const U by = U(b) < all ? U(b) : U(0);
  const T y = T(U(a) << by);
  return U(b) < all ? y : T(0);
}
template <class T> VT_INLINE T bitwise_right_shift(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr U all = U(sizeof(T) * 8);
  const U by = U(b) < all ? U(b) : all - 1;
  return a >> by;
}

}  // namespace vt
