// Primitives on tiles of half types: signs are bits, the rest widens and rounds vector by vector. That costs less than to
// widen tiles first; longer formulas are quicker on wide tiles.
#include "vt/elementwise.h"
#include "vt/halves.h"
#include "vt/primitives.h"

namespace vt {
namespace {

// f(vectors) over tiles; the last inputs, if they are `numbers`, are one float each.
// Where results are among the inputs (`EXACT`), a number is rounded first and nothing after.
template <class H, int arity, int numbers, bool EXACT = false, class F> void over(void* out, const void* const* in, int64_t n, F f) {
  constexpr int W = WIDTH<float>, arrays = arity - numbers;
  const H* a[2] = {static_cast<const H*>(in[0]), static_cast<const H*>(in[arrays > 1 ? 1 : 0])};
  H* o = static_cast<H*>(out);
  const float given = numbers > 0 ? *static_cast<const float*>(in[arity - 1]) : 0.0f;
  const Lanes<float> number = all<float>(EXACT ? to_float(convert<H>(given)) : given);
  auto run = [&](H* to, const H* x, const H* y) {
    const Lanes<float> v = load_half<H>(x);
    if constexpr (arity == 1) store_half<H>(to, f(v));
    else if constexpr (EXACT) store_exact<H>(to, f(v, numbers > 0 ? number : load_half<H>(y)));
    else store_half<H>(to, f(v, numbers > 0 ? number : load_half<H>(y)));
  };
  int64_t i = 0;
  for (; i + W <= n; i += W) run(o + i, a[0] + i, a[1] + i);
  if (i == n) return;
  H x[W] = {}, y[W] = {}, r[W];
  std::memcpy(x, a[0] + i, size_t(n - i) * sizeof(H));
  if (arrays > 1) std::memcpy(y, a[1] + i, size_t(n - i) * sizeof(H));
  run(r, x, y);
  std::memcpy(o + i, r, size_t(n - i) * sizeof(H));
}

template <class H, class F> void add_one(const char* name, F) {
  add_tile(name, dtype_of<H>, [](void* o, const void* const* in, int64_t n) { over<H, 1, 0>(o, in, n, F{}); });
}
template <class H, class F> void add_two(const char* name, F) {
  add_tile(name, dtype_of<H>, [](void* o, const void* const* in, int64_t n) { over<H, 2, 0>(o, in, n, F{}); });
  add_tile(name, dtype_of<H>, [](void* o, const void* const* in, int64_t n) { over<H, 2, 1>(o, in, n, F{}); }, 1);
}

template <class H, class F> void add_choice(const char* name, F) {
  add_tile(name, dtype_of<H>, [](void* o, const void* const* in, int64_t n) { over<H, 2, 0, true>(o, in, n, F{}); });
  add_tile(name, dtype_of<H>, [](void* o, const void* const* in, int64_t n) { over<H, 2, 1, true>(o, in, n, F{}); }, 1);
}

// Bits of elements, no matter of which of the types.
template <class H, class F> void add_bits(const char* name, F) {
  add_tile(name, dtype_of<H>, [](void* o, const void* const* in, int64_t n) {
    uint16_t* to = static_cast<uint16_t*>(o);
    const uint16_t* a = static_cast<const uint16_t*>(in[0]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = F{}(a[i]);
  });
}

template <class H> void add_halves() {
  using V = Lanes<float>;
  add_bits<H>("neg", [](uint16_t a) { return uint16_t(a ^ 0x8000u); });
  add_bits<H>("abs", [](uint16_t a) { return uint16_t(a & 0x7fffu); });
  add_tile("copysign", dtype_of<H>, [](void* o, const void* const* in, int64_t n) {
    uint16_t* to = static_cast<uint16_t*>(o);
    const uint16_t *a = static_cast<const uint16_t*>(in[0]), *b = static_cast<const uint16_t*>(in[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = uint16_t((a[i] & 0x7fffu) | (b[i] & 0x8000u));
  });
  add_two<H>("add", [](V a, V b) { return a + b; });
  add_two<H>("sub", [](V a, V b) { return a - b; });
  add_two<H>("mul", [](V a, V b) { return a * b; });
  add_two<H>("div", [](V a, V b) { return a / b; });
  add_choice<H>("maximum", [](V a, V b) { return vt::maximum(a, b); });
  add_choice<H>("minimum", [](V a, V b) { return vt::minimum(a, b); });
  add_choice<H>("fmax", [](V a, V b) { return vt::fmax(a, b); });
  add_choice<H>("fmin", [](V a, V b) { return vt::fmin(a, b); });
  add_one<H>("square", [](V a) { return a * a; });
  add_one<H>("sqrt", [](V a) { return each<float>(a, [](float v) { return vt::sqrt(v); }); });
  add_one<H>("floor", [](V a) { return each<float>(a, [](float v) { return vt::floor(v); }); });
  add_one<H>("ceil", [](V a) { return each<float>(a, [](float v) { return vt::ceil(v); }); });
  add_one<H>("trunc", [](V a) { return each<float>(a, [](float v) { return vt::trunc(v); }); });
  add_one<H>("round", [](V a) { return each<float>(a, [](float v) { return vt::round(v); }); });
  add_one<H>("reciprocal", [](V a) { return 1.0f / a; });
}

struct Halves {
  Halves() {
    add_halves<bf16>();
    add_halves<f16>();
  }
} halves;

}  // namespace
}  // namespace vt
