// Scalar functions without branches, which the compiler turns into vector code.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dtype.h"

namespace vt {

template <class T> constexpr T INF = std::numeric_limits<T>::infinity();
template <class T> constexpr T NOT_A_NUMBER = std::numeric_limits<T>::quiet_NaN();

template <class T> inline T exp(T x) { return std::exp(x); }
template <class T> inline T exp2(T x) { return std::exp2(x); }
template <class T> inline T expm1(T x) { return std::expm1(x); }
template <class T> inline T log(T x) { return std::log(x); }
template <class T> inline T log2(T x) { return std::log2(x); }
template <class T> inline T log10(T x) { return std::log10(x); }
template <class T> inline T log1p(T x) { return std::log1p(x); }
template <class T> inline T sin(T x) { return std::sin(x); }
template <class T> inline T cos(T x) { return std::cos(x); }
template <class T> inline T tan(T x) { return std::tan(x); }
template <class T> inline T asin(T x) { return std::asin(x); }
template <class T> inline T acos(T x) { return std::acos(x); }
template <class T> inline T atan(T x) { return std::atan(x); }
template <class T> inline T sinh(T x) { return std::sinh(x); }
template <class T> inline T cosh(T x) { return std::cosh(x); }
template <class T> inline T tanh(T x) { return std::tanh(x); }
template <class T> inline T asinh(T x) { return std::asinh(x); }
template <class T> inline T acosh(T x) { return std::acosh(x); }
template <class T> inline T atanh(T x) { return std::atanh(x); }
template <class T> inline T erf(T x) { return std::erf(x); }
template <class T> inline T erfc(T x) { return std::erfc(x); }
template <class T> inline T pow(T x, T y) { return std::pow(x, y); }
template <class T> inline T atan2(T y, T x) { return std::atan2(y, x); }
template <class T> inline T hypot(T x, T y) { return std::hypot(x, y); }
template <class T> inline T sqrt(T x) { return std::sqrt(x); }

// exp of a non-positive number only: no overflow on either side.
template <class T> inline T sigmoid(T x) {
  const T e = exp(-std::abs(x));
  const T s = T(1) / (T(1) + e);
  return x >= T(0) ? s : (x < T(0) ? e * s : x);
}

}  // namespace vt
