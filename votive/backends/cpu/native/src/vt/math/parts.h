// What the scalar functions are made of: bits, polynomials, scaling by powers of two.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "vt/dtype.h"

#define VT_INLINE inline __attribute__((always_inline))

namespace vt {

template <class T> constexpr T INF = std::numeric_limits<T>::infinity();
template <class T> constexpr T NOT_A_NUMBER = std::numeric_limits<T>::quiet_NaN();
template <class T> constexpr T TRIG_LIMIT = T(0x1p20);

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

}  // namespace vt
