// Elements in other places: reversed, rolled, and written through a window.
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

// A window on `out`: its offset in bytes, then byte strides for the dimensions of `src`.
CopyDim* window(const View& src, const Call& c, CopyDim* dims) {
  for (int d = 0; d < src.ndim; ++d) dims[d] = {src.shape[d], c.i(d + 1), src.strides[d]};
  return dims;
}

// write_window(out, x, src, offset, strides..): x, with src through the window
VT_KERNEL(write_window) {
  const View &out = c.view(0), &x = c.view(1), &src = c.view(2);
  copy(out, x);
  CopyDim dims[COPY_DIMS];
  copy_block(out.data + c.i(0), out.dtype, src.data, src.dtype, window(src, c, dims), src.ndim);
}

// into_window(out, src, offset, strides..): zeros, with src through a window that nowhere overlaps itself
VT_KERNEL(into_window) {
  const View &out = c.view(0), &src = c.view(1);
  const int64_t item = itemsize(out.dtype), bytes = out.numel() * item;
  CopyDim dims[COPY_DIMS];
  window(src, c, dims);
  // A window on one dense stretch: zeros before and after it only.
  int64_t step = item;
  bool dense = src.numel() > 0;
  for (int d = src.ndim - 1; d >= 0 && dense; --d) {
    dense = src.shape[d] == 1 || dims[d].d == step;
    step *= src.shape[d];
  }
  if (dense) {
    zero_bytes(out.data, c.i(0));
    zero_bytes(out.data + c.i(0) + step, bytes - c.i(0) - step);
  } else {
    zero_bytes(out.data, bytes);
  }
  copy_block(out.data + c.i(0), out.dtype, src.data, src.dtype, dims, src.ndim);
}

}  // namespace

}  // namespace vt
