// Elements by several index tensors.
#include <algorithm>
#include <vector>

#include "index_rows.h"

namespace vt {
namespace {
using namespace indexed;

// Byte offsets in `x` of the positions that index tensors, views first.., give for `dims`.
class Positions {
 public:
  Positions(Call& c, const char* op, const View& x, int first, int dims_at, const View* written)
      : count(int(c.views.size()) - first), n(common(c, first)), own(n) {
    for (int k = 0; k < count; ++k) {
      const int dim = int(c.i(dims_at + k));
      const View v = broadcast(c.view(first + k), k);
      Indices index(v, written);
      const int64_t size = x.shape[dim];
      const bool wrap = index.check<IndexError>(op, dim, size, -size);
      const int64_t step = x.strides[dim];
      int64_t* to = own;
      parallel_for(n, grain_for(2), [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const int64_t at = (wrap && index[i] < 0 ? index[i] + size : index[i]) * step;
          to[i] = k == 0 ? at : to[i] + at;
        }
      });
    }
    at = {own, 1, n};
  }
  Places at;
  int count;
  int ndim;
  int64_t shape[COPY_DIMS];

 private:
  int64_t common(Call& c, int first) {
    ndim = 0;
    for (int k = 0; k < count; ++k) ndim = std::max(ndim, c.view(first + k).ndim);
    std::fill(shape, shape + ndim, 1);
    for (int k = 0; k < count; ++k) {
      const View& v = c.view(first + k);
      for (int d = 0; d < v.ndim; ++d)
        if (v.shape[d] != 1) shape[d + ndim - v.ndim] = v.shape[d];
    }
    int64_t total = 1;
    for (int d = 0; d < ndim; ++d) total *= shape[d];
    return total;
  }
  View broadcast(const View& v, int) {
    View w = v;
    w.ndim = ndim;
    w.shape = shape;
    for (int d = 0; d < ndim; ++d) {
      const int k = d - (ndim - v.ndim);
      strides[d] = k < 0 || v.shape[k] == 1 ? 0 : v.strides[k];
    }
    w.strides = strides;
    return w;
  }
  int64_t strides[COPY_DIMS];
  int64_t n;
  Scratch<int64_t> own;
};

// Where the index stands in the result: in the place of its dimensions if they are side by side.
struct Kept {
  Kept(Call& c, int dims_at, int count, int ndim) {
    bool indexed[COPY_DIMS] = {}, together = true;
    for (int k = 0; k < count; ++k) {
      indexed[c.i(dims_at + k)] = true;
      together = together && c.i(dims_at + k) == c.i(dims_at) + k;
    }
    front = together ? int(c.i(dims_at)) : 0;
    for (int d = 0; d < ndim; ++d)
      if (!indexed[d]) dim[n++] = d;
  }
  int dim[COPY_DIMS], n = 0, front;
};

// index(out, x, indices.., dims..)
VT_KERNEL(index) {
  const View &out = c.view(0), &x = c.view(1);
  Positions positions(c, "indexing", x, 2, 0, nullptr);
  Kept kept(c, 0, positions.count, x.ndim);
  Dims lead, trail;
  for (int k = 0; k < kept.front; ++k) lead.add(x.shape[kept.dim[k]], x.strides[kept.dim[k]], 0);
  for (int k = kept.front; k < kept.n; ++k) {
    const int d = kept.dim[k];
    trail.add(x.shape[d], x.strides[d], out.strides[k + positions.ndim]);
  }
  read_rows(out.data, x.data, x.dtype, lead, positions.at, trail);
}

// Few floats added to elements of a half type, each place rounded once: places in their order, values of one in theirs.
template <class H> void add_few(char* out, const char* values, int64_t step, const Places& at) {
  std::vector<int64_t> order(at.n);
  for (int64_t i = 0; i < at.n; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return at.pos[a] < at.pos[b]; });
  for (int64_t i = 0; i < at.n;) {
    H& place = *reinterpret_cast<H*>(out + at[order[i]]);
    float sum = to_float(place);
    const int64_t here = at.pos[order[i]];
    for (; i < at.n && at.pos[order[i]] == here; ++i) sum += *reinterpret_cast<const float*>(values + order[i] * step);
    place = convert<H>(sum);
  }
}

// index_put(out, x, values, indices.., accumulate, dims..)
VT_KERNEL(index_put) {
  const View &out = c.view(0), &x = c.view(1);
  const bool accumulate = c.i(0) != 0;
  Positions positions(c, "index_put", out, 3, 1, &out);
  Kept kept(c, 1, positions.count, out.ndim);
  // The shape that values are broadcast to.
  int64_t shape[2 * COPY_DIMS], strides[2 * COPY_DIMS];
  int ndim = 0;
  for (int k = 0; k < kept.front; ++k) shape[ndim++] = out.shape[kept.dim[k]];
  const int first = ndim;
  for (int k = 0; k < positions.ndim; ++k) shape[ndim++] = positions.shape[k];
  const int last = ndim;
  for (int k = kept.front; k < kept.n; ++k) shape[ndim++] = out.shape[kept.dim[k]];
  View values = c.view(2);
  for (int d = 0; d < ndim; ++d) {
    const int k = d - (ndim - values.ndim);
    strides[d] = k < 0 || values.shape[k] == 1 ? 0 : values.strides[k];
  }
  values.ndim = ndim;
  values.shape = shape;
  values.strides = strides;
  auto write = [&](const View& out, const View& values) {
    Dims lead, trail, middle;
    for (int k = 0; k < kept.front; ++k) lead.add(shape[k], out.strides[kept.dim[k]], values.strides[k]);
    for (int k = kept.front; k < kept.n; ++k)
      trail.add(shape[k - kept.front + last], out.strides[kept.dim[k]], values.strides[k - kept.front + last]);
    const int64_t step = last > first ? values.strides[last - 1] : 0;
    if (!accumulate) return assign_rows(out.dtype, out.data, values.data, step, lead, positions.at, trail);
    // The offsets were counted in the result's own strides and type.
    for_combined("index_put", out.dtype, [&](auto t) {
      write_rows<Add, typename decltype(t)::type>(out.data, values.data, step, lead, positions.at, trail);
    });
  };
  // Along the index one step must lead from value to value.
  bool even = true;
  for (int k = first; k + 1 < last; ++k) even = even && strides[k] == shape[k + 1] * strides[k + 1];
  const bool half = combined(out.dtype) != out.dtype;
  auto run = [&](const View& values) {
    start(out, x);
    if (!accumulate || !half) return write(out, values);
    if (kept.n == 0 && positions.at.n * 16 < out.numel()) {
      const int64_t step = last > first ? values.strides[last - 1] : 0;
      if (out.dtype == Dtype::f16) return add_few<f16>(out.data, values.data, step, positions.at);
      return add_few<bf16>(out.data, values.data, step, positions.at);
    }
    in_float(out, [&](const View& wide) {
      // Places in the dense float copy.
      Positions again(c, "index_put", wide, 3, 1, nullptr);
      positions.at.pos = again.at.pos;
      write(wide, values);
    });
  };
  const Dtype as = accumulate ? combined(out.dtype) : out.dtype;
  with_source(values, out, as, run, !even);
}

}  // namespace
}  // namespace vt
