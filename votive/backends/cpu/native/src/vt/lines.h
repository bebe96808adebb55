// Rows of arrays along one dimension, of any layout.
#pragma once
#include "view.h"

namespace vt {

// All rows along `dim` of arrays that agree in the other dimensions. A 0-d array is one row of one
// element.
struct Lines {
  int64_t count = 1;  // rows
  int64_t size = 1;   // elements of a row of the first array

  Lines(std::initializer_list<const View*> arrays, int64_t dim) {
    for (const View* v : arrays) views[n++] = v;
    const View& x = *views[0];
    along = x.ndim == 0 ? -1 : int(dim);
    if (along >= 0) size = x.shape[along];
    for (int d = 0; d < x.ndim; ++d)
      if (d != along) count *= x.shape[d];
  }
  // Byte stride along the row of array k.
  int64_t step(int k) const { return along < 0 ? itemsize(views[k]->dtype) : views[k]->strides[along]; }
  // The first element of row `index` of array k.
  char* row(int k, int64_t index) const {
    const View &x = *views[0], &v = *views[k];
    char* p = v.data;
    // Arrays that dropped the dimension are one shorter.
    const bool dropped = along >= 0 && v.ndim == x.ndim - 1;
    for (int d = x.ndim - 1; d >= 0; --d) {
      if (d == along) continue;
      p += index % x.shape[d] * v.strides[dropped && d > along ? d - 1 : d];
      index /= x.shape[d];
    }
    return p;
  }

 private:
  const View* views[4];
  int n = 0, along;
};

}  // namespace vt
