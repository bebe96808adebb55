// What running sums and extremes share: columns side by side.
#pragma once
#include "vt/view.h"

namespace vt {

constexpr int64_t WIDTH = 256;  // columns that are scanned side by side
constexpr int64_t SHORT = 32;    // elements of a row up to which rows go in one loop

// The dimension other than `dim` in which x and out are dense, or -1.
inline int dense_beside(const View& x, const View& out, int dim) {
  for (int d = x.ndim - 1; d >= 0; --d)
    if (d != dim && x.shape[d] > 1 && x.strides[d] == itemsize(x.dtype) && out.strides[d] == itemsize(out.dtype)) return d;
  return -1;
}

}  // namespace vt
