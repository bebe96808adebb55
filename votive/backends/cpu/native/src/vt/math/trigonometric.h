// Trigonometric functions and their inverses.
#pragma once
#include "parts.h"

namespace vt {

// x = n pi/2 + r + low with |r| <= pi/4; gives n in the low bits. For |x| <= TRIG_LIMIT: the parts of
// pi/2 have 33 bits, so that their products with n are exact.
VT_INLINE uint32_t reduce_trig(float x, float& r) {
  const double d = double(x);
  const double held = d * 0x1.45f306dc9c883p-1 + ROUNDER<double>;
  const double n = held - ROUNDER<double>;
  r = float((d - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34);
  return uint32_t(bits(held));
}
VT_INLINE uint64_t reduce_trig(double x, double& r, double& low) {
  const double held = x * 0x1.45f306dc9c883p-1 + ROUNDER<double>;
  const double n = held - ROUNDER<double>;
  const double a = x - n * 0x1.921fb544p+0;
  const double second = rounded(n * 0x1.0b4611a6p-34);
  const double b = a - second;
  const double c = ((a - b) - second) - n * 0x1.3198a2e037073p-69;
  r = b + c;
  low = (b - r) + c;
  return bits(held);
}
// For |r| <= pi/4.
VT_INLINE float sine(float r) {
  const float z = r * r;
  return r + r * z * horner(z, -0.16666655f, 0.00833219f, -0.00019518408f);
}
VT_INLINE float cosine(float r) {
  const float z = r * r;
  return (1.0f - 0.5f * z) + z * z * horner(z, 0.041666646f, -0.0013887312f, 2.4432742e-05f);
}
VT_INLINE double sine(double r, double low) {
  const double z = r * r;
  return r + (r * z * horner(z, -0.16666666666666632, 0.008333333333322458, -0.00019841269829817015,
                             2.7557313688894193e-06, -2.505075692039312e-08, 1.5896693474711294e-10) + low);
}
VT_INLINE double cosine(double r, double low) {
  const double z = r * r, half = 0.5 * z, w = 1.0 - half;
  return w + (((1.0 - w) - half) +
              (z * z * horner(z, 0.0416666666666666, -0.0013888888888874454, 2.4801587289648562e-05,
                              -2.7557314391638217e-07, 2.0875727670789434e-09, -1.135983531077052e-11) - r * low));
}
VT_INLINE float sin_near(float x) {
  float r;
  const uint32_t n = reduce_trig(x, r);
  const float y = (n & 1) ? cosine(r) : sine(r);
  return x == 0.0f ? x : number(bits(y) ^ ((n & 2) << 30));
}
VT_INLINE float cos_near(float x) {
  float r;
  const uint32_t n = reduce_trig(x, r);
  const float y = (n & 1) ? sine(r) : cosine(r);
  return number(bits(y) ^ (((n + 1) & 2) << 30));
}
VT_INLINE float tan_near(float x) {
  float r;
  const uint32_t n = reduce_trig(x, r);
  const float s = sine(r), c = cosine(r);
  const float y = ((n & 1) ? c : s) / ((n & 1) ? -s : c);
  return x == 0.0f ? x : y;
}
VT_INLINE double sin_near(double x) {
  double r, low;
  const uint64_t n = reduce_trig(x, r, low);
  const double y = (n & 1) ? cosine(r, low) : sine(r, low);
  return x == 0.0 ? x : number(bits(y) ^ ((n & 2) << 62));
}
VT_INLINE double cos_near(double x) {
  double r, low;
  const uint64_t n = reduce_trig(x, r, low);
  const double y = (n & 1) ? sine(r, low) : cosine(r, low);
  return number(bits(y) ^ (((n + 1) & 2) << 62));
}
VT_INLINE double tan_near(double x) {
  double r, low;
  const uint64_t n = reduce_trig(x, r, low);
  const double s = sine(r, low), c = cosine(r, low);
  const double y = ((n & 1) ? c : s) / ((n & 1) ? -s : c);
  return x == 0.0 ? x : y;
}
template <class T> inline T sin(T x) { return magnitude(x) > TRIG_LIMIT<T> ? std::sin(x) : sin_near(x); }
template <class T> inline T cos(T x) { return magnitude(x) > TRIG_LIMIT<T> ? std::cos(x) : cos_near(x); }
template <class T> inline T tan(T x) { return magnitude(x) > TRIG_LIMIT<T> ? std::tan(x) : tan_near(x); }

template <class T> constexpr T PI = T(0x1.921fb54442d18p+1);
// What PI lacks, for the double; the float's is rounded up.
template <class T> constexpr T PI_LOW = std::is_same_v<T, float> ? T(-0x1.777a5cp-24) : T(0x1.1a62633145c07p-53);

// atan(t) - t for |t| <= tan(pi/8).
VT_INLINE float atan_beyond(float t) {
  const float z = t * t;
  return t * z * horner(z, -0.33333316f, 0.19998528f, -0.14244388f, 0.105991244f, -0.060898937f);
}
VT_INLINE double atan_beyond(double t) {
  const double z = t * t;
  return t * z * horner(z, -0.33333333333333326, 0.19999999999997253, -0.14285714285347, 0.11111111086067878,
                        -0.0909090807965566, 0.07692281480546082, -0.06666210039269367, 0.05876874937715763,
                        -0.05217547718784868, 0.04500366790964416, -0.0334062955264087, 0.015131103091370937);
}
template <class T> VT_INLINE T atan(T x) {
  const T a = magnitude(x);
  const bool far = a > T(2.414213562373095), middle = a > T(0.41421356237309503);
  const T t = (far ? T(-1) : middle ? a - T(1) : a) / (far ? a : middle ? a + T(1) : T(1));
  const T turns = far ? T(0.5) : middle ? T(0.25) : T(0);
  return with_sign(turns * PI<T> + (t + (atan_beyond(t) + turns * PI_LOW<T>)), x);
}
template <class T> VT_INLINE T atan2(T y, T x) {
  T a = magnitude(x), b = magnitude(y);
  // Two infinities are as far as each other.
  const bool ends = (a == INF<T>) & (b == INF<T>);
  a = ends ? T(1) : a;
  b = ends ? T(1) : b;
  // Away from both ends of the range, so that their sum neither overflows nor loses bits.
  const T scale = (a > b ? a : b) > T(1) ? T(0.25) : T(4);
  a *= scale;
  b *= scale;
  const bool far = b > T(2.414213562373095) * a, middle = b > T(0.41421356237309503) * a;
  // One select at a time: nested ones become branches.
  T top = middle ? b - a : b, bottom = middle ? b + a : a, turns = middle ? T(0.25) : T(0);
  top = far ? -a : top;
  bottom = far ? b : bottom;
  turns = far ? T(0.5) : turns;
  const T ratio = top / bottom;
  const T t = bottom == T(0) ? top : ratio;
  T rest = t + atan_beyond(t);
  turns = negative(x) ? T(1) - turns : turns;
  rest = negative(x) ? -rest : rest;
  return with_sign(turns * PI<T> + (rest + turns * PI_LOW<T>), y);
}
// asin(s) - s for |s| <= 1/2, z = s^2.
VT_INLINE float asin_beyond(float s, float z) {
  return s * z * horner(z, 0.1666666f, 0.07500515f, 0.044515412f, 0.031817805f, 0.014407362f, 0.03755364f);
}
VT_INLINE double asin_beyond(double s, double z) {
  return s * z * horner(z, 0.16666666666666763, 0.07499999999970478, 0.04464285717474357, 0.03038194270660446,
                        0.022372214926292617, 0.01735161427005657, 0.013980783895667913, 0.01139926703409277,
                        0.010778049930266981, 0.003715281768627221, 0.021684977077513413, -0.020966511205242986,
                        0.032608033326563264);
}
template <class T> VT_INLINE T asin(T x) {
  const T a = magnitude(x);
  const bool far = a > T(0.5);
  const T z = far ? T(0.5) - T(0.5) * a : a * a;
  const T s = far ? std::sqrt(z) : a;
  const T beyond = asin_beyond(s, z);
  const T y = far ? T(0.5) * PI<T> - (T(2) * s + (T(2) * beyond - T(0.5) * PI_LOW<T>)) : s + beyond;
  return with_sign(y, x);
}
template <class T> VT_INLINE T acos(T x) {
  const T a = magnitude(x);
  const bool far = a > T(0.5);
  const T z = far ? T(0.5) - T(0.5) * a : a * a;
  const T s = far ? std::sqrt(z) : a;
  const T beyond = asin_beyond(s, z);
  // pi/2 - asin(x), where asin(a) = s + beyond; or 2 (s + beyond), subtracted from pi when x < 0.
  const T near = T(0.5) * PI<T> - (with_sign(s, x) + (with_sign(beyond, x) - T(0.5) * PI_LOW<T>));
  const T twice = T(2) * (s + beyond);
  const T away = x < T(0) ? PI<T> - (twice - PI_LOW<T>) : twice;
  return far ? away : near;
}

}  // namespace vt
