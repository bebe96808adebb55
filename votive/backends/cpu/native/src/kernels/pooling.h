// What the kernels of pools share.
#pragma once
#include <limits>

#include "convolution_padded.h"

namespace vt::conv {

// Element k of an array of int64 that may be missing: then its values are 1.
struct Numbers {
  const int64_t* data;
  explicit Numbers(const View& v) : data(v ? v.as<int64_t>() : nullptr) {}
  int64_t operator[](int64_t k) const { return data == nullptr ? 1 : data[k]; }
};

template <class T> constexpr T LOWEST =
    std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();

inline bool channels_last(const Image& x, const Image& y) {
  return x.dtype == y.dtype && x.c > 1 && x.sc == itemsize(x.dtype) && y.sc == x.sc && x.step[2] != x.sc;
}

template <class F> void for_pooled(Dtype d, F&& f) {
  if (d == Dtype::f64) f(Type<double>{});
  else if (d == Dtype::f32 || d == Dtype::f16 || d == Dtype::bf16) f(Type<float>{});
  else f(Type<int64_t>{});
}

}  // namespace vt::conv
