// Formulas of operators and of their gradients, compiled whole: one pass instead of one per step.
#include <utility>

#include "vt/elementwise.h"
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

#include "formulas.inc"

}  // namespace
}  // namespace vt
