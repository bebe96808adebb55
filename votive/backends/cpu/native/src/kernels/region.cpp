// Regions of elementwise calls, whose loops are compiled while a program runs: this finds lines and threads for them.
#include <algorithm>

#include "vt/kernel.h"

namespace vt {

namespace {

// One line of elements: addresses of results, then operands, their strides in bytes, how many elements.
using Line = void (*)(char* const* at, const int64_t* strides, int64_t n);

constexpr int MOST = 64;  // results and operands

struct Dim {
  int64_t size;
  int64_t stride[MOST];
};

// The dimensions of the results in the order of the first one's memory, joined where every array allows it.
int dims_of(const Call& c, Dim* dims) {
  const View& out = c.view(0);
  const int count = int(c.views.size());
  int order[32], used = 0;
  for (int d = 0; d < out.ndim; ++d)
    if (out.shape[d] != 1) order[used++] = d;
  std::stable_sort(order, order + used, [&](int a, int b) { return out.strides[a] > out.strides[b]; });
  int n = 0;
  for (int k = 0; k < used; ++k) {
    Dim dim{out.shape[order[k]], {}};
    for (int v = 0; v < count; ++v) {
      const View& x = c.view(v);
      const int d = order[k] - (out.ndim - x.ndim);
      dim.stride[v] = d < 0 || x.shape[d] == 1 ? 0 : x.strides[d];
    }
    bool joins = n > 0;
    for (int v = 0; v < count && joins; ++v) joins = dims[n - 1].stride[v] == dim.stride[v] * dim.size;
    if (joins) {
      dims[n - 1].size *= dim.size;
      std::copy_n(dim.stride, count, dims[n - 1].stride);
    } else dims[n++] = dim;
  }
  if (n == 0) dims[n++] = Dim{1, {}};
  return n;
}

// region(outs.., inputs.., address, cost)
VT_KERNEL(region) {
  const auto line = reinterpret_cast<Line>(c.i(0));
  const int count = int(c.views.size());
  if (count > MOST) throw ValueError("region: too many operands");
  Dim dims[32];
  const int n = dims_of(c, dims);
  const Dim& inner = dims[n - 1];
  int64_t lines = 1;
  for (int d = 0; d < n - 1; ++d) lines *= dims[d].size;
  const int64_t grain = grain_for(c.i(1));
  auto start = [&](int64_t row, char** at) {
    for (int v = 0; v < count; ++v) at[v] = c.view(v).data;
    for (int d = n - 2; d >= 0; --d) {
      const int64_t i = row % dims[d].size;
      row /= dims[d].size;
      for (int v = 0; v < count; ++v) at[v] += i * dims[d].stride[v];
    }
  };
  if (lines == 1) {
    parallel_for(inner.size, grain, [&](int64_t b, int64_t e) {
      char* at[MOST];
      for (int v = 0; v < count; ++v) at[v] = c.view(v).data + b * inner.stride[v];
      line(at, inner.stride, e - b);
    });
    return;
  }
  parallel_for(lines, std::max<int64_t>(1, grain / inner.size), [&](int64_t b, int64_t e) {
    char* at[MOST];
    for (int64_t r = b; r < e; ++r) {
      start(r, at);
      line(at, inner.stride, inner.size);
    }
  });
}

}  // namespace
}  // namespace vt
