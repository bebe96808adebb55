// The primitives of formulas as loops over tiles: one per name and compute type.
#include "vt/primitives.h"

#include "vt/elementwise.h"

namespace vt {

namespace {

// Elements are S, arithmetic is in T.
template <class T, class S, class F> void one(void* out, const void* const* in, int64_t n, F f) {
  S* o = static_cast<S*>(out);
  const S* a = static_cast<const S*>(in[0]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = convert<S>(f(convert<T>(a[i])));
}
template <class T, class S, class F> void two(void* out, const void* const* in, int64_t n, F f) {
  S* o = static_cast<S*>(out);
  const S* a = static_cast<const S*>(in[0]);
  const S* b = static_cast<const S*>(in[1]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = convert<S>(f(convert<T>(a[i]), convert<T>(b[i])));
}
template <class T, class F> void three(void* out, const void* const* in, int64_t n, F f) {
  T* o = static_cast<T*>(out);
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  const T* c = static_cast<const T*>(in[2]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = f(a[i], b[i], c[i]);
}

// A function of elements under its name, for arrays and for numbers as its last arguments.
template <class T, class F> void add_one(const char* name, F) {
  add_tile(name, dtype_of<T>, [](void* o, const void* const* in, int64_t n) { one<T, T>(o, in, n, F{}); });
}
template <class T, class F> void add_two(const char* name, F) {
  add_tile(name, dtype_of<T>, [](void* o, const void* const* in, int64_t n) { two<T, T>(o, in, n, F{}); });
  const TileFn with_number = [](void* o, const void* const* in, int64_t n) {
    const T b = *static_cast<const T*>(in[1]);
    one<T, T>(o, in, n, [=](T a) { return F{}(a, b); });
  };
  add_tile(name, dtype_of<T>, with_number, 1);
}
template <class T, class F> void add_three(const char* name, F) {
  add_tile(name, dtype_of<T>, [](void* o, const void* const* in, int64_t n) { three<T>(o, in, n, F{}); });
  const TileFn with_number = [](void* o, const void* const* in, int64_t n) {
    const T c = *static_cast<const T*>(in[2]);
    two<T, T>(o, in, n, [=](T a, T b) { return F{}(a, b, c); });
  };
  const TileFn with_two = [](void* o, const void* const* in, int64_t n) {
    const T b = *static_cast<const T*>(in[1]), c = *static_cast<const T*>(in[2]);
    one<T, T>(o, in, n, [=](T a) { return F{}(a, b, c); });
  };
  add_tile(name, dtype_of<T>, with_number, 1);
  add_tile(name, dtype_of<T>, with_two, 2);
}

template <class T> bool any_beyond(const void* in, int64_t n, T limit) {
  const T* a = static_cast<const T*>(in);
  int any = 0;
  for (int64_t i = 0; i < n; ++i) any |= magnitude(a[i]) > limit ? 1 : 0;
  return any != 0;
}

template <class T> bool any_far_apart(const void* const* in, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  int any = 0;
  for (int64_t i = 0; i < n; ++i) {
    any |= magnitude(a[i] / b[i]) < QUOTIENT_LIMIT<T> ? 0 : 1;
    any |= magnitude(b[i]) < INF<T> ? 0 : 1;
  }
  return any != 0;
}
template <class T> bool any_zero(const void* in, int64_t n) {
  const T* b = static_cast<const T*>(in);
  int any = 0;
  for (int64_t i = 0; i < n; ++i) any |= b[i] == 0 ? 1 : 0;
  return any != 0;
}

// Truth values are 0 and 1 in the compute type, so a program has registers of one type only.
#define ONE(T, name, expr) add_one<T>(#name, [](T a) -> T { return T(expr); })
#define TWO(T, name, expr) add_two<T>(#name, [](T a, T b) -> T { return T(expr); })
#define THREE(T, name, expr) add_three<T>(#name, [](T a, T b, T c) -> T { return T(expr); })
// A tile that holds an argument beyond the limit goes the long way.
#define TRIG(T, name)                                                          \
  add_tile(#name, dtype_of<T>, [](void* o, const void* const* in, int64_t n) { \
    if (any_beyond<T>(in[0], n, TRIG_LIMIT<T> / T(4)))                         \
      one<T, T>(o, in, n, [](T a) -> T { return vt::name(a); });               \
    else one<T, T>(o, in, n, [](T a) -> T { return vt::name##_near(a); });     \
  })
#define QUOTIENT(T, name)                                                      \
  add_tile(#name, dtype_of<T>, [](void* o, const void* const* in, int64_t n) { \
    if (!EXACT_REMAINDER<T> || any_far_apart<T>(in, n))                        \
      two<T, T>(o, in, n, [](T a, T b) -> T { return vt::name(a, b); });       \
    else two<T, T>(o, in, n, [](T a, T b) -> T { return vt::name##_near(a, b); }); \
  })
// Integers: refused as a whole when a divisor is 0, as operator `op`.
#define DIVISION(T, name, op)                                                  \
  add_tile(#name, dtype_of<T>, [](void* o, const void* const* in, int64_t n) { \
    if (any_zero<T>(in[1], n)) zero_divisor(op);                               \
    two<T, T>(o, in, n, [](T a, T b) -> T { return vt::name(a, b); });         \
  })
#define CALL1(T, name) ONE(T, name, vt::name(a))
#define CALL2(T, name) TWO(T, name, vt::name(a, b))

template <class T> void add_common() {
  TWO(T, lt, a < b ? 1 : 0);
  TWO(T, le, a <= b ? 1 : 0);
  TWO(T, gt, a > b ? 1 : 0);
  TWO(T, ge, a >= b ? 1 : 0);
  TWO(T, eq, a == b ? 1 : 0);
  TWO(T, ne, a != b ? 1 : 0);
  TWO(T, logical_and, int(a != 0) & int(b != 0));
  TWO(T, logical_or, int(a != 0) | int(b != 0));
  TWO(T, logical_xor, int(a != 0) ^ int(b != 0));
  ONE(T, logical_not, a == 0 ? 1 : 0);
  THREE(T, where, a != 0 ? b : c);
  CALL1(T, abs);
  CALL1(T, floor);
  CALL1(T, ceil);
  CALL1(T, trunc);
  CALL1(T, round);
  CALL1(T, sign);
  CALL1(T, sgn);
  CALL1(T, signbit);
  CALL1(T, isnan);
  CALL1(T, isinf);
  CALL1(T, isfinite);
  CALL1(T, isposinf);
  CALL1(T, isneginf);
  CALL2(T, maximum);
  CALL2(T, minimum);
  CALL2(T, fmax);
  CALL2(T, fmin);
}

template <class T> void add_floats() {
  add_common<T>();
  TWO(T, add, a + b);
  TWO(T, sub, a - b);
  TWO(T, mul, a * b);
  TWO(T, div, a / b);
  ONE(T, neg, -a);
  CALL1(T, square);
  CALL1(T, sqrt);
  CALL1(T, rsqrt);
  CALL1(T, reciprocal);
  CALL2(T, copysign);
  CALL1(T, exp);
  CALL1(T, exp2);
  CALL1(T, expm1);
  CALL1(T, log);
  CALL1(T, log2);
  CALL1(T, log10);
  CALL1(T, log1p);
  TRIG(T, sin);
  TRIG(T, cos);
  TRIG(T, tan);
  CALL1(T, asin);
  CALL1(T, acos);
  CALL1(T, atan);
  CALL1(T, sinh);
  CALL1(T, cosh);
  CALL1(T, tanh);
  CALL1(T, asinh);
  CALL1(T, acosh);
  CALL1(T, atanh);
  CALL1(T, erf);
  CALL1(T, erfc);
  CALL1(T, sigmoid);
  CALL2(T, pow);
  CALL2(T, atan2);
  CALL2(T, hypot);
  CALL2(T, logaddexp);
  CALL2(T, logaddexp2);
  CALL2(T, xlogy);
  CALL2(T, xlog1py);
  CALL1(T, entr);
  CALL2(T, ldexp);
  CALL1(T, angle);
  TRIG(T, sinc);
  CALL2(T, nextafter);
  CALL2(T, trunc_divide);
  QUOTIENT(T, fmod);
  QUOTIENT(T, remainder);
  QUOTIENT(T, floor_divide);
}

template <class T> void add_ints() {
  add_common<T>();
  using U = std::make_unsigned_t<T>;
  // Wraps around, as unsigned arithmetic does.
  TWO(T, add, U(a) + U(b));
  TWO(T, sub, U(a) - U(b));
  TWO(T, mul, U(a) * U(b));
  ONE(T, neg, U(0) - U(a));
  ONE(T, square, U(a) * U(a));
  TWO(T, bitwise_and, a & b);
  TWO(T, bitwise_or, a | b);
  TWO(T, bitwise_xor, a ^ b);
  ONE(T, bitwise_not, ~a);
  CALL2(T, bitwise_left_shift);
  CALL2(T, bitwise_right_shift);
  CALL2(T, gcd);
  CALL2(T, lcm);
  TWO(T, pow, integer_pow(a, b));
  DIVISION(T, floor_divide, "floor_divide");
  DIVISION(T, trunc_divide, "div");
  DIVISION(T, remainder, "remainder");
  DIVISION(T, fmod, "fmod");
}

struct All {
  All() {
    add_floats<float>();
    add_floats<double>();
    add_ints<int32_t>();
    add_ints<int64_t>();
  }
} all;

}  // namespace

}  // namespace vt
