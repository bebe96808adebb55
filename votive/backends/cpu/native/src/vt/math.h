// Scalar functions without branches: loops of them become vector code on every level.
//
// Errors in units in the last place stay below (tests/native/test_math.py holds them to this):
//
//              float   double                    float   double
//   exp         1.1     1.0        sin, cos       1.6     1.0
//   exp2        1.0     1.0        tan            3.5     2.5
//   expm1       1.7     1.9        asin           1.7     1.7
//   log         1.0     1.0        acos           1.2     1.3
//   log2        1.1     0.8        atan           2.0     2.0
//   log10       1.1     0.8        atan2          2.4     2.4
//   log1p       1.5     1.5        sinh           1.8     1.8
//   sigmoid     2.3     2.4        cosh, tanh     1.6     1.6
//   erf         2.8     1.8        asinh          2.0     2.0
//   erfc        4.0     4.0        acosh, atanh   2.5     2.5
//   pow         0.6     1.0        hypot          0.6     1.4
//
// Without fused multiply-add (baseline): exp2 and pow 1.1, log2 2.0 and log10 1.7 in float.
//
// sin, cos and tan leave arguments beyond TRIG_LIMIT to the C library, by a branch that keeps a loop
// from becoming vector code; sin_near, cos_near and tan_near are for arguments known to be smaller.
// Polynomials are minimax fits over the interval named beside them, constant term first.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "dtype.h"

#define VT_INLINE inline __attribute__((always_inline))

namespace vt {

template <class T> constexpr T INF = std::numeric_limits<T>::infinity();
template <class T> constexpr T NOT_A_NUMBER = std::numeric_limits<T>::quiet_NaN();
template <class T> constexpr T TRIG_LIMIT = T(0x1p20);

// --- parts --------------------------------------------------------------------------------------

VT_INLINE uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }
VT_INLINE uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }
template <class U> VT_INLINE auto number(U u) {
  if constexpr (sizeof(U) == 4) return std::bit_cast<float>(u);
  else return std::bit_cast<double>(u);
}

VT_INLINE float magnitude(float x) { return number(bits(x) & 0x7fffffffu); }
VT_INLINE double magnitude(double x) { return number(bits(x) & 0x7fffffffffffffffull); }
// |x| with the sign of s.
VT_INLINE float with_sign(float x, float s) { return number((bits(x) & 0x7fffffffu) | (bits(s) & 0x80000000u)); }
VT_INLINE double with_sign(double x, double s) {
  return number((bits(x) & 0x7fffffffffffffffull) | (bits(s) & 0x8000000000000000ull));
}
VT_INLINE bool negative(float x) { return int32_t(bits(x)) < 0; }
VT_INLINE bool negative(double x) { return int64_t(bits(x)) < 0; }

template <class T> VT_INLINE T horner(T, T c) { return c; }
template <class T, class... More> VT_INLINE T horner(T x, T c, More... more) { return horner(x, T(more)...) * x + c; }
// The same in pairs: one product more, and half the time from the first step to the last.
template <class T> VT_INLINE T paired(T, T, T c) { return c; }
template <class T> VT_INLINE T paired(T x, T, T c, T d) { return d * x + c; }
template <class T, class... More> VT_INLINE T paired(T x, T x2, T c, T d, More... more) {
  return paired(x, x2, T(more)...) * x2 + (d * x + c);
}

// Adding this to a number of moderate size rounds it to a whole one, which the low bits then hold.
template <class T> constexpr T ROUNDER = std::is_same_v<T, float> ? T(0x1.8p23) : T(0x1.8p52);

// 2^n from `held` = n + ROUNDER, for n from -126 to 127 (-1022 to 1023).
VT_INLINE float power_of_two(float held) { return number((bits(held) << 23) + 0x3f800000u); }
VT_INLINE double power_of_two(double held) { return number((bits(held) << 52) + 0x3ff0000000000000ull); }

// x 2^n with one rounding, also where the result is subnormal: n + ROUNDER is `held`.
VT_INLINE float scaled(float x, float held) {
  const int32_t n = int32_t(bits(held) - bits(ROUNDER<float>));
  const int32_t half = n >> 1;
  return x * number(uint32_t(half + 127) << 23) * number(uint32_t(n - half + 127) << 23);
}
VT_INLINE double scaled(double x, double held) {
  const double n = held - ROUNDER<double>;
  const double half = n * 0.5 + ROUNDER<double>;
  const double rest = n - (half - ROUNDER<double>) + ROUNDER<double>;
  return x * power_of_two(half) * power_of_two(rest);
}

// Keeps a product from becoming part of a fused multiply-add, where its rounding is made up for.
template <class T> VT_INLINE T rounded(T x) {
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
  return __builtin_assoc_barrier(x);
#elif defined(__clang__) && __has_builtin(__arithmetic_fence)
  return __arithmetic_fence(x);
#else
  return x;
#endif
}
// What a * b lost when it was rounded to p.
VT_INLINE double lost(double a, double b, double p) {
#if defined(__FMA__)
  return __builtin_fma(a, b, -p);
#else
  // T. J. Dekker, "A floating-point technique for extending the available precision" (1971).
  const double ah = number(bits(a) & 0xfffffffff8000000ull), al = a - ah;
  const double bh = number(bits(b) & 0xfffffffff8000000ull), bl = b - bh;
  return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
#endif
}

// --- exponentials ---------------------------------------------------------------------------------

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

// --- logarithms -----------------------------------------------------------------------------------

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

// --- trigonometry -----------------------------------------------------------------------------------

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

// --- hyperbolic functions ---------------------------------------------------------------------------

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

// --- error function ---------------------------------------------------------------------------------

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

// --- powers -------------------------------------------------------------------------------------------

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
