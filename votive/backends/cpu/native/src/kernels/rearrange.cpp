// Elements in other places: reversed and rolled.
#include <algorithm>

#include "vt/cast.h"
#include "vt/copy.h"
#include "vt/kernel.h"

namespace vt {

namespace {

// flip(out, x, dims..)
VT_KERNEL(flip) {
  const View &out = c.view(0), &x = c.view(1);
  CopyDim dims[COPY_DIMS];
  const char* src = x.data;
  for (int d = 0; d < x.ndim; ++d) dims[d] = {x.shape[d], out.strides[d], x.strides[d]};
  for (int64_t d : c.ints) {
    src += (x.shape[d] - 1) * x.strides[d];
    dims[d].s = -x.strides[d];
  }
  copy_block(out.data, out.dtype, src, x.dtype, dims, x.ndim);
}

// roll(out, x, pairs of (dim, shift) with 0 <= shift < size)
VT_KERNEL(roll) {
  const View &out = c.view(0), &x = c.view(1);
  const int count = int(c.ints.size() / 2);
  // Each rolled dimension falls into two parts: all combinations of them.
  for (int which = 0; which < 1 << count; ++which) {
    CopyDim dims[COPY_DIMS];
    for (int d = 0; d < x.ndim; ++d) dims[d] = {x.shape[d], out.strides[d], x.strides[d]};
    char* dst = out.data;
    const char* src = x.data;
    for (int k = 0; k < count; ++k) {
      const int64_t d = c.i(2 * k), shift = c.i(2 * k + 1), n = x.shape[d];
      if (which >> k & 1) {  // the end of x comes first
        src += (n - shift) * x.strides[d];
        dims[d].n = shift;
      } else {
        dst += shift * out.strides[d];
        dims[d].n = n - shift;
      }
    }
    copy_block(dst, out.dtype, src, x.dtype, dims, x.ndim);
  }
}

// roll_flat(out, x, shift): both dense
VT_KERNEL(roll_flat) {
  const View &out = c.view(0), &x = c.view(1);
  const int64_t bytes = x.numel() * itemsize(x.dtype), shift = c.i(0) * itemsize(x.dtype);
  copy_bytes(out.data + shift, x.data, bytes - shift);
  copy_bytes(out.data, x.data + bytes - shift, shift);
}

}  // namespace

}  // namespace vt
