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
    even = true;
    for (int k = 0; k < n; ++k) even = find_apart(k) && even;
  }
  // Byte stride along the row of array k.
  int64_t step(int k) const { return along < 0 ? itemsize(views[k]->dtype) : views[k]->strides[along]; }
  // The first element of row `index` of array k.
  char* row(int k, int64_t index) const {
    const View &x = *views[0], &v = *views[k];
    if (apart[k] >= 0) return v.data + index * apart[k];
    char* p = v.data;
    for (int d = x.ndim - 1; d >= 0; --d) {
      if (d == along) continue;
      p += index % x.shape[d] * stride(k, d);
      index /= x.shape[d];
    }
    return p;
  }
  // Whether array k is its rows, one after the other, without gaps.
  bool dense(int k) const {
    const int64_t item = itemsize(views[k]->dtype);
    return (size == 1 || step(k) == item) && (count == 1 || apart[k] == size * item);
  }
  // Whether the rows of every array are equally far apart, and how far those of array k are, in bytes.
  bool even;
  int64_t apart[4];

 private:
  const View* views[4];
  int n = 0, along;

  int64_t stride(int k, int d) const {
    // Arrays that dropped the dimension are one shorter.
    const bool dropped = along >= 0 && views[k]->ndim == views[0]->ndim - 1;
    return views[k]->strides[dropped && d > along ? d - 1 : d];
  }
  bool find_apart(int k) {
    const View& x = *views[0];
    int64_t inner = 1, step = -1;
    for (int d = x.ndim - 1; d >= 0; --d) {
      if (d == along || x.shape[d] == 1) continue;
      if (step < 0) step = stride(k, d);
      if (stride(k, d) != step * inner) {
        step = -1;
        break;
      }
      inner *= x.shape[d];
    }
    apart[k] = count == 1 ? 0 : step;
    return apart[k] >= 0;
  }
};

}  // namespace vt
