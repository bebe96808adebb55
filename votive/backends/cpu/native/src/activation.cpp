// Activations of rows of sums, before a matrix product stores them. The formulas are those of the operators.
#include "vt/gemm_core.h"
#include "vt/primitives.h"

namespace vt {

namespace {

template <class T, class F> void over(void* row, int64_t n, F f) {
  T* x = static_cast<T*>(row);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) x[i] = f(x[i]);
}

template <class T> void relu(void* row, int64_t n) {
  over<T>(row, n, [](T x) { return maximum(x, T(0)); });
}
template <class T> void gelu(void* row, int64_t n) {
  over<T>(row, n, [](T x) { return T(0.5) * x * (T(1) + erf(x * T(0.7071067811865476))); });
}
// Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", section 2.
template <class T> void gelu_tanh(void* row, int64_t n) {
  over<T>(row, n, [](T x) {
    const T inner = T(0.7978845608028654) * (x + T(0.044715) * (x * x * x));
    return T(0.5) * x * (T(1) + tanh(inner));
  });
}
template <class T> void silu(void* row, int64_t n) {
  over<T>(row, n, [](T x) { return x * sigmoid(x); });
}

template <class T> Activate of_type(Activation which) {
  switch (which) {
    case Activation::relu: return relu<T>;
    case Activation::gelu: return gelu<T>;
    case Activation::gelu_tanh: return gelu_tanh<T>;
    case Activation::silu: return silu<T>;
    default: return nullptr;
  }
}

}  // namespace

Activate activation(Activation which, Dtype acc) {
  return acc == Dtype::f64 ? of_type<double>(which) : of_type<float>(which);
}

}  // namespace vt
