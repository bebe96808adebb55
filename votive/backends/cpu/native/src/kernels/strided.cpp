// Written through a window on memory: replaced, or added up where windows overlap, as at the end of istft and
// in the gradient of taking frames.
#include <algorithm>
#include <cstring>

#include "vt/copy.h"
#include "vt/kernel.h"

namespace vt {
namespace {

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

// `parts` numbers of type T make an element: 2 for complex ones.
template <class T> void add(Call& c, int parts) {
  const View &out = c.view(0), &src = c.view(1);
  const int outer = src.ndim - 2;
  const int64_t frames = src.shape[outer], length = src.shape[outer + 1];
  const int64_t hop = c.i(1), signals = c.i(2), extent = (frames - 1) * hop + length;
  const int64_t row = src.strides[outer], item = src.strides[outer + 1], dense = int64_t(sizeof(T)) * parts;
  std::memset(out.data, 0, size_t(out.numel() * dense));
  // Each piece of a signal gathers from the frames that reach into it.
  constexpr int64_t PIECE = 4096;
  const int64_t pieces = (extent + PIECE - 1) / PIECE;
  parallel_for(signals * pieces, grain_for(PIECE * (length / hop + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      int64_t signal = t / pieces, to = c.i(0);
      const char* from = src.data;
      for (int d = outer - 1; d >= 0; --d) {
        from += signal % src.shape[d] * src.strides[d];
        to += signal % src.shape[d] * c.i(3 + d);
        signal /= src.shape[d];
      }
      const int64_t first = t % pieces * PIECE, last = std::min(first + PIECE, extent);
      T* y = out.as<T>() + to * parts;
      const int64_t low = first < length ? 0 : (first - length) / hop + 1;
      const int64_t high = std::min(frames - 1, (last - 1) / hop);
      for (int64_t f = low; f <= high; ++f) {
        const int64_t start = f * hop, a = std::max(first, start), b = std::min(last, start + length);
        const char* p = from + f * row + (a - start) * item;
        if (item == dense) {
          const T* x = reinterpret_cast<const T*>(p);
          T* __restrict o = y + a * parts;
          for (int64_t k = 0; k < (b - a) * parts; ++k) o[k] += x[k];
        } else {
          for (int64_t k = a; k < b; ++k, p += item)
            for (int j = 0; j < parts; ++j) y[k * parts + j] += reinterpret_cast<const T*>(p)[j];
        }
      }
    }
  });
}

}  // namespace

// out, src, offset, hop, signals, distances of signals..
VT_KERNEL(overlap_add) {
  switch (c.view(1).dtype) {
    case Dtype::f32: return add<float>(c, 1);
    case Dtype::f64: return add<double>(c, 1);
    case Dtype::c64: return add<float>(c, 2);
    case Dtype::c128: return add<double>(c, 2);
    default: no_dtype("overlap_add");
  }
}

}  // namespace vt
