// Exponentials and the logistic function.
#pragma once
#include "parts.h"

namespace vt {

// x = n ln 2 + r with |r| <= ln(2)/2; gives n + ROUNDER.
VT_INLINE float reduce_exp(float x, float& r) {
  const float held = x * 0x1.715476p+0f + ROUNDER<float>;
  const float n = held - ROUNDER<float>;
  r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;
  return held;
}
VT_INLINE double reduce_exp(double x, double& r) {
  const double held = x * 0x1.71547652b82fep+0 + ROUNDER<double>;
  const double n = held - ROUNDER<double>;
  r = (x - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
  return held;
}
// exp(r) - 1 for |r| <= ln(2)/2.
VT_INLINE float expm1_near(float r) {
  const float z = r * r;
  return r + z * paired(r, z, 0.5f, 0.1666654f, 0.041666478f, 0.008366829f, 0.00139337f);
}
VT_INLINE double expm1_near(double r) {
  const double z = r * r;
  return r + z * paired(r, z, 0.5, 0.16666666666666677, 0.04166666666666668, 0.008333333333321442,
                        0.0013888888888877445, 0.00019841269886569808, 2.4801587340616703e-05,
                        2.7557243786127943e-06, 2.755725920703251e-07, 2.5109178722745544e-08,
                        2.0919500327140614e-09);
}
// 2^r - 1 for |r| <= 1/2.
VT_INLINE float exp2m1_near(float r) {
  return r * horner(r, 0.6931472f, 0.2402265f, 0.05550358f, 0.009618077f, 0.0013391658f, 0.00015456368f);
}
VT_INLINE double exp2m1_near(double r) {
  return r * horner(r, 0.6931471805599453, 0.24022650695910072, 0.055504108664822936, 0.009618129107628048,
                    0.0013333558146164414, 0.00015403530394055882, 1.5252734036831205e-05,
                    1.3215486313357688e-06, 1.0177985616045705e-07, 7.055064075592822e-09,
                    4.465543901330306e-10, 2.551687294389743e-11);
}

// NaN passes.
template <class T> VT_INLINE T clamped(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
template <class T> constexpr T EXP_LOW = std::is_same_v<T, float> ? T(-104) : T(-746);
template <class T> constexpr T EXP_HIGH = std::is_same_v<T, float> ? T(89) : T(710);
template <class T> constexpr T EXP2_LOW = std::is_same_v<T, float> ? T(-150.5) : T(-1075.5);
template <class T> constexpr T EXP2_HIGH = std::is_same_v<T, float> ? T(128) : T(1024);

template <class T> VT_INLINE T exp(T x) {
  T r;
  const T held = reduce_exp(x, r);
  const T y = scaled(T(1) + expm1_near(r), held);
  return x > EXP_HIGH<T> ? INF<T> : x < EXP_LOW<T> ? T(0) : y;
}
// exp(-a) for a >= 0.
template <class T> VT_INLINE T exp_minus(T a) {
  constexpr T shift = std::is_same_v<T, float> ? T(64) : T(512);
  constexpr T back = std::is_same_v<T, float> ? T(0x1p-64) : T(0x1p-512);
  T r;
  const T held = reduce_exp(-a, r);
  const T y = (T(1) + expm1_near(r)) * power_of_two(held + shift) * back;
  return a > -EXP_LOW<T> ? T(0) : y;
}
// exp(x) / 2, which is finite a little further than exp.
template <class T> VT_INLINE T half_exp(T x) {
  T r;
  const T held = reduce_exp(clamped(x, EXP_LOW<T>, EXP_HIGH<T> + T(1)), r);
  return scaled(T(1) + expm1_near(r), held - T(1));
}
// exp(x) for |x| < 87 (708): result and scale are normal numbers.
template <class T> VT_INLINE T exp_near(T x) {
  T r;
  const T held = reduce_exp(x, r);
  return (T(1) + expm1_near(r)) * power_of_two(held);
}
template <class T> VT_INLINE T exp2(T x) {
  x = clamped(x, EXP2_LOW<T>, EXP2_HIGH<T>);
  const T held = x + ROUNDER<T>;
  return scaled(T(1) + exp2m1_near(x - (held - ROUNDER<T>)), held);
}
template <class T> VT_INLINE T expm1(T x) {
  constexpr T low = std::is_same_v<T, float> ? T(-20) : T(-40);
  constexpr T tiny = std::is_same_v<T, float> ? T(0x1p-25) : T(0x1p-54);
  T r;
  const T held = reduce_exp(clamped(x, low, EXP_HIGH<T>), r);
  // Half the scale, which does not overflow where the result is still finite.
  const T s = power_of_two(held - T(1));
  const T y = (expm1_near(r) * s + (s - T(0.5))) * T(2);
  return magnitude(x) < tiny ? x : y;
}
// exp of a non-positive number only: no overflow on either side.
template <class T> VT_INLINE T sigmoid(T x) {
  const T e = exp_minus(magnitude(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

}  // namespace vt
