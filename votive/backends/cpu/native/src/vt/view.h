// What a kernel sees of its arguments: arrays as pointers with strides, and numbers.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "dtype.h"

namespace vt {

// Errors that reach Python as the type of the same name.
struct IndexError : std::runtime_error { using runtime_error::runtime_error; };
struct ValueError : std::runtime_error { using runtime_error::runtime_error; };

// An array. A missing optional argument has `data == nullptr` and `ndim == -1`.
struct View {
  char* data = nullptr;
  int ndim = -1;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;  // in bytes
  Dtype dtype = Dtype::none;

  explicit operator bool() const { return ndim >= 0; }
  template <class T> T* as() const { return reinterpret_cast<T*>(data); }
  int64_t size(int d) const { return shape[d < 0 ? d + ndim : d]; }
  // In elements.
  int64_t stride(int d) const { return strides[d < 0 ? d + ndim : d] / itemsize(dtype); }
  int64_t numel() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= shape[d];
    return n;
  }
  // Row-major without gaps; dimensions of size 1 may have any stride.
  bool contiguous() const {
    int64_t step = itemsize(dtype);
    for (int d = ndim - 1; d >= 0; --d) {
      if (shape[d] == 0) return true;
      if (shape[d] != 1) {
        if (strides[d] != step) return false;
        step *= shape[d];
      }
    }
    return true;
  }
};

// Arguments of one call, in the order in which Python gave them, apart by kind.
struct Call {
  std::vector<View> views;
  std::vector<int64_t> ints;
  std::vector<double> floats;

  const View& view(int k) const { return views[k]; }
  int64_t i(int k) const { return ints[k]; }
  double f(int k) const { return floats[k]; }
};

using KernelFn = void (*)(Call&);

}  // namespace vt
