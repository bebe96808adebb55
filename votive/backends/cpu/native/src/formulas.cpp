// Formulas of operators and of their gradients, compiled whole: one pass instead of one per step.
#include <utility>

#include "vt/elementwise.h"
#include "vt/primitives.h"

namespace vt {
namespace {

template <class T, auto formula, size_t... k>
void over_tile(void* out, const void* const* in, int64_t n, std::index_sequence<k...>) {
  T* o = static_cast<T*>(out);
  const T* a[] = {static_cast<const T*>(in[k])...};
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) o[i] = T(formula(a[k][i]...));
}

template <class T, auto formula, size_t arity> void add_formula(const char* key) {
  add_tile(key, dtype_of<T>, [](void* o, const void* const* in, int64_t n) {
    over_tile<T, formula>(o, in, n, std::make_index_sequence<arity>());
  });
}

#include "formulas.inc"

}  // namespace
}  // namespace vt
