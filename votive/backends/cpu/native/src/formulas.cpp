// Formulas of operators and of their gradients, compiled whole: one pass instead of one per step.
#include <utility>

#include "vt/elementwise.h"
#include "vt/halves.h"
#include "vt/primitives.h"

namespace vt {
namespace {

template <class T, auto formula, size_t arrays, size_t... k>
void over_tile(void* out, const void* const* in, int64_t n, std::index_sequence<k...>) {
  T* o = static_cast<T*>(out);
  const T* a[] = {static_cast<const T*>(in[k])...};
  const T number[] = {*a[k]...};
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = T(formula((k < arrays ? a[k][i] : number[k])...));
}

template <class T, auto formula, size_t arity, size_t numbers> void add_with(const char* key) {
  constexpr auto fn = [](void* o, const void* const* in, int64_t n) {
    over_tile<T, formula, arity - numbers>(o, in, n, std::make_index_sequence<arity>());
  };
  add_tile(key, dtype_of<T>, fn, int(numbers));
}

// `constants` of the inputs stand for constants, so they are numbers; without any the last one or two may be.
template <class T, auto formula, size_t arity, size_t constants> void add_formula(const char* key) {
  add_with<T, formula, arity, 0>(key);
  if constexpr (constants > 0) {
    if constexpr (constants < arity) add_with<T, formula, arity, constants>(key);
  } else {
    if constexpr (arity > 1) add_with<T, formula, arity, 1>(key);
    if constexpr (arity > 2) add_with<T, formula, arity, 2>(key);
  }
}

// The same on tiles of a half type: a vector's worth at a time is widened, computed in float and rounded.
template <class H, auto formula, size_t arrays, size_t... k>
void over_halves(void* out, const void* const* in, int64_t n, std::index_sequence<k...>) {
  constexpr int W = WIDTH<float>;
  H* o = static_cast<H*>(out);
  const H* a[] = {static_cast<const H*>(in[k])...};
  const float number[] = {k < arrays ? 0.0f : *static_cast<const float*>(in[k])...};
  auto run = [&](H* to, const H* const* from) {
    alignas(VECTOR_BYTES) float x[sizeof...(k)][W], y[W];
    ((k < arrays ? store<float>(x[k], load_half<H>(from[k])) : void()), ...);
#pragma GCC ivdep
    for (int i = 0; i < W; ++i) y[i] = float(formula((k < arrays ? x[k][i] : number[k])...));
    store_half<H>(to, load<float>(y));
  };
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    const H* from[] = {a[k] + (k < arrays ? i : 0)...};
    run(o + i, from);
  }
  if (i == n) return;
  H rest[sizeof...(k)][W] = {}, result[W];
  const H* from[] = {rest[k]...};
  ((k < arrays ? void(std::memcpy(rest[k], a[k] + i, size_t(n - i) * sizeof(H))) : void()), ...);
  run(result, from);
  std::memcpy(o + i, result, size_t(n - i) * sizeof(H));
}

template <class H, auto formula, size_t arity, size_t numbers> void add_halves_with(const char* key) {
  constexpr auto fn = [](void* o, const void* const* in, int64_t n) {
    over_halves<H, formula, arity - numbers>(o, in, n, std::make_index_sequence<arity>());
  };
  add_tile(key, dtype_of<H>, fn, int(numbers));
}
template <auto formula, size_t arity, size_t numbers> void add_halves(const char* key) {
  add_halves_with<bf16, formula, arity, numbers>(key);
  add_halves_with<f16, formula, arity, numbers>(key);
}

#include "formulas.inc"

}  // namespace
}  // namespace vt
