// Hyperbolic functions and their inverses.
#pragma once
#include "exponential.h"
#include "logarithm.h"

namespace vt {

VT_INLINE float tanh_beyond(float a, float z) {
  return a * z * horner(z, -0.33333284f, 0.1333148f, -0.053742465f, 0.020647084f, -0.0057131117f);
}
VT_INLINE double tanh_beyond(double a, double z) {
  return a * z * horner(z, -0.333333333333333, 0.1333333333332661, -0.05396825396376355, 0.0218694883860839,
                        -0.008863232606640285, 0.0035920920925950122, -0.001455543287971718, 0.0005884464250902402,
                        -0.0002333867116736725, 8.332403889106473e-05, -1.9499467221367055e-05);
}
template <class T> VT_INLINE T tanh(T x) {
  const T all = magnitude(x);
  const T a = all > T(20) ? T(20) : all;
  const T far = T(1) - T(2) / (exp_near(T(2) * a) + T(1));
  const T near = a + tanh_beyond(a, a * a);
  return with_sign(a < T(0.55) ? near : far, x);
}
// For |a| <= 1.
VT_INLINE float sinh_beyond(float a, float z) {
  return a * z * horner(z, 0.16666667f, 0.008333316f, 0.0001984142f, 2.7915382e-06f);
}
VT_INLINE double sinh_beyond(double a, double z) {
  return a * z * horner(z, 0.16666666666666669, 0.00833333333333297, 0.00019841269841531202, 2.755731913037927e-06,
                        2.5052126856094766e-08, 1.605700052085293e-10, 7.765897596002476e-13);
}
template <class T> VT_INLINE T sinh(T x) {
  const T a = magnitude(x);
  const T e = half_exp(a);
  const T near = a + sinh_beyond(a, a * a);
  return with_sign(a < T(1) ? near : e - T(0.25) / e, x);
}
template <class T> VT_INLINE T cosh(T x) {
  const T e = half_exp(magnitude(x));
  return e + T(0.25) / e;
}
// Where x^2 drowns the 1.
template <class T> constexpr T HUGE_SQUARE = std::is_same_v<T, float> ? T(0x1p14) : T(0x1p28);
template <class T> VT_INLINE T asinh(T x) {
  const T a = magnitude(x), z = a * a;
  const bool far = a > HUGE_SQUARE<T>;
  const T y = log1p(far ? a - T(1) : a + z / (T(1) + std::sqrt(T(1) + z)));
  return with_sign(far ? y + T(0.6931471805599453) : y, x);
}
template <class T> VT_INLINE T acosh(T x) {
  const T t = x - T(1);
  const bool far = x > HUGE_SQUARE<T>;
  const T y = log1p(far ? t : t + std::sqrt(T(2) * t + t * t));
  return x < T(1) ? NOT_A_NUMBER<T> : (far ? y + T(0.6931471805599453) : y);
}
template <class T> VT_INLINE T atanh(T x) {
  const T a = magnitude(x);
  return with_sign(T(0.5) * log1p(T(2) * a / (T(1) - a)), x);
}

}  // namespace vt
