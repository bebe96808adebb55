// Logarithms.
#pragma once
#include "parts.h"

namespace vt {

// A positive normal x is m 2^k with m in [sqrt(1/2), sqrt(2)).
VT_INLINE float reduce_log(float x, float& k) {
  const uint32_t u = bits(x);
  const int32_t e = int32_t(u - 0x3f3504f3u) >> 23;
  k = float(e);
  return number(u - (uint32_t(e) << 23));
}
VT_INLINE double reduce_log(double x, double& k) {
  const uint64_t u = bits(x);
  // Biased, since vectors have no arithmetic shift of 64 bits everywhere.
  const uint64_t e = (u - 0x3fe6a09e667f3bcdull + (1024ull << 52)) >> 52;
  k = number(e | 0x4330000000000000ull) - (0x1p52 + 1024);
  return number(u - (e << 52) + (1024ull << 52));
}
template <class T> constexpr T TINIEST_NORMAL = std::numeric_limits<T>::min();
template <class T> VT_INLINE T reduce_log_any(T x, T& k) {
  const bool subnormal = x < TINIEST_NORMAL<T>;
  const T m = reduce_log(subnormal ? x * T(0x1p54) : x, k);
  k = subnormal ? k - T(54) : k;
  return m;
}
// Values at 0, below 0, at infinity and NaN.
template <class T> VT_INLINE T log_ends(T x, T y) {
  y = x < INF<T> ? y : x;
  return x > T(0) ? y : (x == T(0) ? -INF<T> : NOT_A_NUMBER<T>);
}
// log(1 + f) - f for sqrt(1/2) <= 1 + f < sqrt(2).
VT_INLINE float log1p_beyond(float f) {
  const float z = f * f;
  return f * z * paired(f, z, 0.33333316f, -0.25000817f, 0.20002337f, -0.16624375f, 0.14179806f, -0.13129106f,
                        0.1289185f, -0.07871485f) - 0.5f * z;
}
// With s = f / (2 + f): log(1 + f) = 2 artanh(s), of which 2 s = f - s f is taken apart.
VT_INLINE double atanh_beyond(double z) {
  return z * horner(z, 0.6666666666666735, 0.3999999999940906, 0.28571428743826077, 0.22222198407322566,
                    0.18183573833015446, 0.15313785973815316, 0.14798799419424033);
}
VT_INLINE double log1p_beyond(double f) {
  const double s = f / (2.0 + f);
  const double half = 0.5 * f * f;
  return s * (half + atanh_beyond(s * s)) - half;
}

template <class T> constexpr T LN2_HIGH = std::is_same_v<T, float> ? T(0x1.62e4p-1) : T(0x1.62e42feep-1);
template <class T> constexpr T LN2_LOW = std::is_same_v<T, float> ? T(0x1.7f7d1cp-20) : T(0x1.a39ef35793c76p-33);

template <class T> VT_INLINE T log(T x) {
  T k;
  const T f = reduce_log_any(x, k) - T(1);
  return log_ends(x, (f + (log1p_beyond(f) + k * LN2_LOW<T>)) + k * LN2_HIGH<T>);
}
template <class T> VT_INLINE T log1p(T x) {
  const T u = T(1) + x;
  const T back = u - T(1);
  const T error = (T(1) - (u - back)) + (x - back);
  T k;
  const T m = reduce_log(u, k);
  // 1 / 2^k, where the error still matters.
  const T f = (m - T(1)) + (u < T(0x1p60) ? error * power_of_two(ROUNDER<T> - k) : T(0));
  const T y = (f + (log1p_beyond(f) + k * LN2_LOW<T>)) + k * LN2_HIGH<T>;
  return with_sign(x > T(-1) ? (x < INF<T> ? y : x) : (x == T(-1) ? INF<T> : NOT_A_NUMBER<T>), x);
}
VT_INLINE float log2(float x) {
  float k;
  const float f = reduce_log_any(x, k) - 1.0f;
  const float y = f * 0x1.4ae0cp-26f +
                  f * f * horner(f, -0.7213474f, 0.48090178f, -0.36069277f, 0.28836054f, -0.23959652f, 0.20817402f,
                                 -0.1942589f, 0.1667829f, -0.08098378f);
  return log_ends(x, k + (f * 0x1.715476p+0f + y));
}
VT_INLINE float log10(float x) {
  float k;
  const float f = reduce_log_any(x, k) - 1.0f;
  const float y = f * -0x1.5b235ep-27f +
                  f * f * horner(f, -0.2171472f, 0.14476591f, -0.10857949f, 0.086801715f, -0.07211928f, 0.06272951f,
                                 -0.05859189f, 0.04985991f, -0.023695763f);
  return log_ends(x, k * 0x1.344p-2f + (f * 0x1.bcb7b2p-2f + (y + k * 0x1.3509f8p-18f)));
}
// log(1 + f) as a sum whose first part has 21 bits.
VT_INLINE double log1p_parts(double f, double& low) {
  const double s = f / (2.0 + f);
  const double half = 0.5 * f * f;
  const double high = number(bits(f - half) & 0xffffffff00000000ull);
  low = ((f - high) - half) + s * (half + atanh_beyond(s * s));
  return high;
}
VT_INLINE double log2(double x) {
  double k, low;
  const double high = log1p_parts(reduce_log_any(x, k) - 1.0, low);
  const double y = high * 0x1.94ae0bf85ddf4p-22 + low * 0x1.71547652b82fep+0;
  const double main = rounded(high * 0x1.71547p+0);
  const double sum = k + main;
  return log_ends(x, sum + (((k - sum) + main) + y));
}
VT_INLINE double log10(double x) {
  double k, low;
  const double high = log1p_parts(reduce_log_any(x, k) - 1.0, low);
  const double y = k * 0x1.e7fbcc47c4acdp-40 + (high * 0x1.526e50e32a6abp-26 + low * 0x1.bcb7b1526e50ep-2);
  const double main = rounded(high * 0x1.bcb7bp-2), whole = rounded(k * 0x1.34413509fp-2);
  const double sum = whole + main;
  return log_ends(x, sum + (((whole - sum) + main) + y));
}

}  // namespace vt
