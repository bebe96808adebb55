// Powers, roots and lengths.
#pragma once
#include "exponential.h"
#include "logarithm.h"

namespace vt {

// x^y from |x|^y and the cases that a logarithm does not tell apart.
template <class T> VT_INLINE T power_ends(T x, T y, T value) {
  using U = std::conditional_t<std::is_same_v<T, float>, uint32_t, uint64_t>;
  constexpr T wholes = std::is_same_v<T, float> ? T(0x1p23) : T(0x1p52);
  const T a = magnitude(x), b = magnitude(y);
  const T held = b + wholes;
  const T whole = b < wholes ? held - wholes : b;
  // The last bit of a whole number; from 2 * wholes on all are even.
  U odd = b < wholes ? bits(held) : bits(b);
  odd = b < T(2) * wholes ? odd << (sizeof(T) * 8 - 1) : U(0);
  value = a == INF<T> ? (y < T(0) ? T(0) : INF<T>) : value;
  value = a == T(0) ? (y < T(0) ? INF<T> : T(0)) : value;
  value = a == T(1) ? T(1) : value;
  const T part = x < T(0) ? NOT_A_NUMBER<T> : value;
  value = whole == b ? number(bits(value) ^ (odd & bits(x))) : (a < INF<T> ? part : value);
  value = x == x ? value : x;
  value = y == y ? value : y;
  value = x == T(1) ? T(1) : value;
  return y == T(0) ? T(1) : value;
}

// In double throughout: enough bits for a float result without any tricks.
VT_INLINE float pow(float base, float exponent) {
  double k;
  const double m = reduce_log(double(magnitude(base)), k);
  const double s = (m - 1.0) / (m + 1.0);
  const double log2 = k + s * horner(s * s, 2.8853900817778495, 0.9617966941137772, 0.577077942235942,
                                     0.4122092673152625, 0.3199049915151548, 0.28291158385219306);
  const double p = clamped(double(exponent) * log2, -200.0, 200.0);
  const double held = p + ROUNDER<double>;
  const double value = power_of_two(held) *
      horner(p - (held - ROUNDER<double>), 0.9999999999615953, 0.6931471807394678, 0.240226511985855,
             0.05550410318233603, 0.009618027171404406, 0.0013333950451461483, 0.00015469325101351357,
             1.5195639870856212e-05);
  return power_ends(base, exponent, float(value));
}

// log2(|x|) as a sum of two doubles: y multiplies its error by up to a thousand.
VT_INLINE double pow(double x, double y) {
  double k;
  const double a = magnitude(x);
  const double m = reduce_log_any(a, k);
  const double f = m - 1.0, d = m + 1.0, d_low = f - (d - 2.0);
  const double inverse = 1.0 / d;
  // s = f / d, the series 2 (s + s^3/3 + s^5 T(s^2)/2).
  const double s = rounded(f * inverse);
  const double sd = rounded(s * d);
  const double s_low = (((f - sd) - lost(s, d, sd)) - s * d_low) * inverse;
  const double z = rounded(s * s);
  const double z_low = lost(s, s, z) + 2.0 * s * s_low;
  constexpr double third = 0x1.5555555555555p-2, third_low = 0x1.5555555555555p-56;
  const double w = rounded(z * third);
  const double w_low = lost(z, third, w) + (z * third_low + z_low * third);
  const double q = rounded(z * z * horner(z, 0.5 * 0.3999999999999998, 0.5 * 0.2857142857144382,
                                          0.5 * 0.2222222221779633, 0.5 * 0.1818181884324434,
                                          0.5 * 0.1538455846972036, 0.5 * 0.1333626337921043,
                                          0.5 * 0.11675793582522336, 0.5 * 0.11981726988066227));
  const double tail = w + q, tail_low = ((w - tail) + q) + w_low;
  const double u = rounded(s * tail);
  const double u_low = lost(s, tail, u) + (s * tail_low + s_low * tail);
  const double h = s + u, h_low = ((s - h) + u) + (u_low + s_low);
  constexpr double c = 0x1.71547652b82fep+1, c_low = 0x1.777d0ffda0d24p-55;
  const double g = rounded(h * c);
  const double g_low = lost(h, c, g) + (h * c_low + h_low * c);
  const double log2 = k + g, log2_low = ((k - log2) + g) + g_low;
  // Beyond this exponent only overflow, underflow and 1 are left.
  const double e = clamped(y, -0x1p66, 0x1p66);
  const double product = rounded(e * log2);
  const bool within = magnitude(product) < 1100.0;
  const double p = clamped(product, -1100.0, 1100.0);
  const double p_low = within ? lost(e, log2, product) + e * log2_low : 0.0;
  const double held = p + ROUNDER<double>;
  const double value = scaled(1.0 + exp2m1_near((p - (held - ROUNDER<double>)) + p_low), held);
  return power_ends(x, y, value);
}

template <class T> VT_INLINE T sqrt(T x) { return std::sqrt(x); }

VT_INLINE float hypot(float x, float y) {
  const double a = double(x), b = double(y);
  const float h = float(std::sqrt(a * a + b * b));
  return (magnitude(x) == INF<float> || magnitude(y) == INF<float>) ? INF<float> : h;
}
VT_INLINE double hypot(double x, double y) {
  const double a = magnitude(x), b = magnitude(y);
  const double most = a > b ? a : b;
  // By a power of two, so that the squares neither overflow nor vanish.
  const double down = most > 0x1p500 ? 0x1p-600 : most < 0x1p-500 ? 0x1p600 : 1.0;
  const double up = most > 0x1p500 ? 0x1p600 : most < 0x1p-500 ? 0x1p-600 : 1.0;
  const double p = a * down, q = b * down;
  const double h = std::sqrt(p * p + q * q) * up;
  return (a == INF<double> || b == INF<double>) ? INF<double> : h;
}

}  // namespace vt
