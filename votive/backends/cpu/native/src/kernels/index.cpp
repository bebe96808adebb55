// Elements by positions along one dimension, or in the flattened tensor.
#include "index_rows.h"

namespace vt {
namespace {
using namespace indexed;

// The positions along one dimension, counted from the front.
struct Along {
  Along(const Indices& index, int64_t size, bool wrap) : own(wrap ? index.n : 0) {
    at.pos = index.data;
    at.n = index.n;
    if (!wrap) return;
    for (int64_t i = 0; i < index.n; ++i) own[i] = index[i] + (index[i] < 0 ? size : 0);
    at.pos = own;
  }
  Scratch<int64_t> own;
  Places at;
};

VT_KERNEL(index_select) {
  const View &out = c.view(0), &x = c.view(1);
  const int dim = int(c.i(0));
  Indices index(c.view(2));
  index.check<IndexError>("index_select", dim, x.shape[dim]);
  Dims lead, trail;
  for (int d = 0; d < dim; ++d) lead.add(x.shape[d], x.strides[d], 0);
  for (int d = dim + 1; d < x.ndim; ++d) trail.add(x.shape[d], x.strides[d], out.strides[d]);
  read_rows(out.data, x.data, x.dtype, lead, {index.data, x.strides[dim], index.n}, trail);
}

// lead and trail of `out` around `dim`, with the strides of a source whose shape matches apart from it. What is written
// across the memory of both, as when they are transposed, leads too: the places along `dim` are then neighbours.
void around(const View& out, int dim, const View& source, Dims& lead, Dims& trail) {
  for (int d = 0; d < dim; ++d) lead.add(out.shape[d], out.strides[d], source ? source.strides[d] : 0);
  bool across = out.ndim > dim + 1;
  for (int d = dim + 1; d < out.ndim; ++d)
    if (out.shape[d] != 1)
      across = across && out.strides[d] > out.strides[dim] && (!source || source.strides[d] > source.strides[dim]);
  for (int d = dim + 1; d < out.ndim; ++d)
    (across ? lead : trail).add(out.shape[d], out.strides[d], source ? source.strides[d] : 0);
}

// index_add(out, x, index, source, dim, alpha)
VT_KERNEL(index_add) {
  const View &out = c.view(0), &x = c.view(1);
  const int dim = int(c.i(0));
  Indices index(c.view(2), &out);
  index.check<std::runtime_error>("index_add", dim, out.shape[dim]);
  const bool whole = c.ints.size() > 1;
  const bool scaled = whole ? c.i(1) != 1 : c.f(0) != 1;
  with_source(c.view(3), out, combined(out.dtype), [&](const View& source) {
    start(out, x);
    in_float(out, [&](const View& out) {
      Dims lead, trail;
      around(out, dim, source, lead, trail);
      for_combined("index_add", out.dtype, [&](auto t) {
        using T = typename decltype(t)::type;
        if (scaled) {
          T* v = source.as<T>();
          const T a = whole ? convert<T>(c.i(1)) : convert<T>(c.f(0));
          parallel_for(source.numel(), grain_for(1), [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              if constexpr (std::is_same_v<T, bool>) v[i] = v[i] && a;
              else if constexpr (std::is_integral_v<T>) v[i] = T(uint64_t(v[i]) * uint64_t(a));
              else v[i] *= a;
            }
          });
        }
        write_rows<Add, T>(out.data, source.data, source.strides[dim], lead, {index.data, out.strides[dim], index.n},
                           trail);
      });
    });
  }, scaled);
}

// index_copy(out, x, index, source, dim)
VT_KERNEL(index_copy) {
  const View &out = c.view(0), &x = c.view(1);
  const int dim = int(c.i(0));
  Indices index(c.view(2), &out);
  index.check<IndexError>("index_copy", dim, out.shape[dim]);
  with_source(c.view(3), out, out.dtype, [&](const View& source) {
    start(out, x);
    Dims lead, trail;
    around(out, dim, source, lead, trail);
    assign_rows(out.dtype, out.data, source.data, source.strides[dim], lead, {index.data, out.strides[dim], index.n},
                trail);
  });
}

// index_fill(out, x, index, value, dim): the value is a number or an array of one element
VT_KERNEL(index_fill) {
  const View &out = c.view(0), &x = c.view(1);
  const int dim = int(c.i(0));
  Indices index(c.view(2), &out);
  const bool wrap = index.check<IndexError>("index_fill", dim, out.shape[dim], -out.shape[dim]);
  alignas(16) char v[16];
  if (c.views.size() > 3) cast_fn(c.view(3).dtype, out.dtype)(v, 0, c.view(3).data, 0, 1);
  else number_as(c, "index_fill", 1, out.dtype, v);
  start(out, x);
  Along along(index, out.shape[dim], wrap);
  along.at.step = out.strides[dim];
  Dims lead, trail;
  around(out, dim, View{}, lead, trail);
  assign_rows(out.dtype, out.data, v, 0, lead, along.at, trail);
}

[[noreturn]] void outside(const char* op, const Indices& index, int64_t size) {
  const auto [least, most] = index.extremes();
  throw IndexError(std::string(op) + ": out of range: tried to access index " +
                   std::to_string(least < -size ? least : most) + " on a tensor of " + std::to_string(size) +
                   " elements.");
}

bool flat_check(const char* op, const Indices& index, int64_t size) {
  const auto [least, most] = index.extremes();
  if (index.n && (least < -size || most >= size)) outside(op, index, size);
  return index.n && least < 0;
}

// take(out, x, index)
VT_KERNEL(take) {
  const View &out = c.view(0), &x = c.view(1);
  Indices index(c.view(2));
  const bool wrap = flat_check("take", index, x.numel());
  Along along(index, x.numel(), wrap);
  along.at.step = itemsize(x.dtype);
  Dense dense(x, x.dtype, false);
  read_rows(out.data, dense.data, x.dtype, Dims{}, along.at, Dims{});
}

// put(out, x, index, source, accumulate): out is dense
VT_KERNEL(put) {
  const View &out = c.view(0), &x = c.view(1), &source = c.view(3);
  Indices index(c.view(2), &out);
  const bool wrap = flat_check("put", index, out.numel());
  const bool accumulate = c.i(0) != 0;
  Along along(index, out.numel(), wrap);
  const Dtype as = accumulate ? combined(out.dtype) : out.dtype;
  Dense values(source, as, may_overlap(source, out));
  start(out, x);
  along.at.step = itemsize(as);
  if (!accumulate) return assign_rows(as, out.data, values.data, itemsize(as), Dims{}, along.at, Dims{});
  in_float(out, [&](const View& out) {
    for_combined("put", as, [&](auto t) {
      using T = typename decltype(t)::type;
      write_rows<Add, T>(out.data, values.data, itemsize(as), Dims{}, along.at, Dims{});
    });
  });
}

}  // namespace
}  // namespace vt
