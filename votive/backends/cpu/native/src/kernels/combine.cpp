// Joining arrays along an old or a new dimension.
#include <algorithm>
#include <cstring>

#include "vt/copy.h"
#include "vt/kernel.h"

namespace vt {

namespace {

// join(out, inputs.., dim, fresh): `fresh` when the dimension is new
VT_KERNEL(join) {
  const View& out = c.view(0);
  const int dim = int(c.i(0));
  const bool fresh = c.i(1) != 0;
  const int count = int(c.views.size()) - 1;
  const int64_t item = itemsize(out.dtype);
  bool simple = out.contiguous();
  for (int k = 1; k <= count && simple; ++k) simple = c.view(k).dtype == out.dtype && c.view(k).contiguous();
  auto skipped = [&](const View& v) { return v.ndim == 1 && v.shape[0] == 0; };
  if (simple) {
    // Each input is `outer` dense pieces; a row of the result holds one of each.
    int64_t outer = 1, inner = item;
    for (int d = 0; d < dim; ++d) outer *= out.shape[d];
    for (int d = dim + 1; d < out.ndim; ++d) inner *= out.shape[d];
    const int64_t width = out.shape[dim] * inner;
    if (outer == 0 || width == 0) return;
    Scratch<int64_t> pieces(count + 1);
    int64_t* end = pieces;
    int64_t total = 0;
    for (int k = 0; k < count; ++k) {
      const View& v = c.view(k + 1);
      end[k] = total += skipped(v) && !fresh ? 0 : fresh ? inner : v.shape[dim] * inner;
    }
    if (outer == 1) {
      parallel_for(total, 1 << 16, [&](int64_t b, int64_t e) {
        int k = 0;
        while (end[k] <= b) ++k;
        for (int64_t at = b; at < e; ++k) {
          const int64_t begin = k ? end[k - 1] : 0, stop = std::min(e, end[k]);
          std::memcpy(out.data + at, c.view(k + 1).data + (at - begin), size_t(stop - at));
          at = stop;
        }
      });
      return;
    }
    if (width / count >= 32) {
      parallel_for(outer, std::max<int64_t>(1, (1 << 16) / width), [&](int64_t b, int64_t e) {
        for (int64_t r = b; r < e; ++r)
          for (int k = 0; k < count; ++k) {
            const int64_t begin = k ? end[k - 1] : 0, bytes = end[k] - begin;
            if (bytes) std::memcpy(out.data + r * width + begin, c.view(k + 1).data + r * bytes, size_t(bytes));
          }
      });
      return;
    }
    // Narrow pieces: input by input over blocks of rows that stay in cache.
    const int64_t block = std::max<int64_t>(16, 16384 / width);
    parallel_for((outer + block - 1) / block, std::max<int64_t>(1, (1 << 16) / (block * width)), [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) {
        const int64_t r0 = t * block, n = std::min(block, outer - r0);
        for (int k = 0; k < count; ++k) {
          const int64_t begin = k ? end[k - 1] : 0, bytes = end[k] - begin;
          if (bytes == 0) continue;
          const CopyDim dims[] = {{n, width, bytes}, {bytes / item, item, item}};
          copy_block(out.data + r0 * width + begin, out.dtype, c.view(k + 1).data + r0 * bytes, out.dtype, dims, 2);
        }
      }
    });
    return;
  }
  int64_t start = 0;
  for (int k = 1; k <= count; ++k) {
    const View& v = c.view(k);
    if (!fresh && skipped(v)) continue;
    CopyDim dims[COPY_DIMS];
    int n = 0;
    for (int d = 0; d < out.ndim; ++d) {
      if (fresh && d == dim) continue;
      dims[n] = {v.shape[n], out.strides[d], v.strides[n]};
      ++n;
    }
    copy_block(out.data + start * out.strides[dim], out.dtype, v.data, v.dtype, dims, n);
    start += fresh ? 1 : v.shape[dim];
  }
}

// split(out.., x, dim, removed): dense copies of the pieces along `dim`
VT_KERNEL(split) {
  const int count = int(c.views.size()) - 1;
  const View& x = c.view(count);
  const int dim = int(c.i(0));
  const bool removed = c.i(1) != 0;
  int64_t start = 0;
  for (int k = 0; k < count; ++k) {
    const View& out = c.view(k);
    CopyDim dims[COPY_DIMS];
    int n = 0;
    for (int d = 0; d < x.ndim; ++d) {
      if (removed && d == dim) continue;
      dims[n] = {out.shape[n], out.strides[n], x.strides[d]};
      ++n;
    }
    copy_block(out.data, out.dtype, x.data + start * x.strides[dim], x.dtype, dims, n);
    start += removed ? 1 : out.shape[dim];
  }
}

}  // namespace

}  // namespace vt
