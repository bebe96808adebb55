// The error function and its complement.
#pragma once
#include "exponential.h"

namespace vt {

// erfc(a) = 2^-(a Q(a)), so erf(a) is an expm1 and keeps its relative precision near 0.
VT_INLINE float erf(float x) {
  const float all = magnitude(x);
  const float a = all > 3.93f ? 3.93f : all;
  const float q = a * paired(a, a * a, 1.627907f, 0.9184476f, 0.14827685f, -0.027630558f, -0.00023493238f, 0.0024091133f,
                                 -0.00091546966f, 0.0001704676f, -1.3442366e-05f);
  const float held = ROUNDER<float> - q;
  const float n = held - ROUNDER<float>;
  const float s = power_of_two(held);
  return with_sign((1.0f - s) - s * exp2m1_near(-q - n), x);
}
// erf(x) / x for |x| <= 1/2, z = x^2.
VT_INLINE float erf_near(float z) {
  return horner(z, 1.1283791f, -0.37612298f, 0.11278396f, -0.026522828f, 0.004303801f);
}
VT_INLINE double erf_near(double z) {
  return horner(z, 1.1283791670955126, -0.37612638903183254, 0.11283791670912745, -0.02686617062964793,
                0.005223977328988446, -0.0008548294365376611, 0.00012053186842890273, -1.4842409766327326e-05,
                1.4693043016969765e-06);
}
// (1 + 2 a) exp(a^2) erfc(a) for a >= 1/2, as a polynomial in (a - K) / (a + K); the form is that of
// M. Shepherd and J. Laframboise, Math. Comp. 36 (1981).
VT_INLINE float erfc_shape(float a) {
  return horner((a - 2.0f) / (a + 2.0f), 1.2769784f, -0.09276382f, -0.16602999f, 0.16405088f, -0.05422586f,
                -0.008027675f, 0.0087571535f, 0.0012292976f, -0.0015454761f, -0.00032849624f, 0.00028704418f);
}
VT_INLINE double erfc_shape(double a) {
  const double t = (a - 3.0) / (a + 3.0);
  return paired(t, t * t, 1.2530080582697296, -0.13562110612458098, -0.04756229435343385,
                0.12964515870273477, -0.11927366341637526, 0.06830802734503855, -0.023770514892434536,
                0.002529391795270572, 0.0018886900299031823, -0.0007798320413209495, -0.00010515740118847969,
                0.00012509778459700486, 4.938705696391381e-06, -2.009381977667305e-05, -7.009083643120822e-07,
                3.453941818717631e-06, 3.0237459362397e-07, -5.854027811384979e-07, -8.349115096823224e-08,
                7.176688641026098e-08, 8.292872415624721e-09);
}
// exp(-a^2), with the rounding of the square made up for.
VT_INLINE float exp_minus_square(float a) {
  const double square = double(a) * double(a);
  const float high = float(square);
  const float e = exp(-high);
  return e - e * float(square - double(high));
}
VT_INLINE double exp_minus_square(double a) {
  const double high = rounded(a * a);
  const double e = exp(-high);
  return e - e * lost(a, a, high);
}
// For a >= 1/2; NaN passes.
template <class T> VT_INLINE T erfc_far(T a) {
  constexpr T most = std::is_same_v<T, float> ? T(10.2) : T(27.5);
  a = a > most ? most : a;
  return exp_minus_square(a) * erfc_shape(a) / (T(1) + T(2) * a);
}
VT_INLINE double erf(double x) {
  const double a = magnitude(x);
  const double far = 1.0 - erfc_far(a);
  const double near = a * erf_near(a * a);
  return with_sign(a < 0.5 ? near : far, x);
}
template <class T> VT_INLINE T erfc(T x) {
  const T a = magnitude(x);
  const T far = erfc_far(a);
  const T near = T(1) - x * erf_near(x * x);
  return a < T(0.5) ? near : (x < T(0) ? T(2) - far : far);
}

}  // namespace vt
