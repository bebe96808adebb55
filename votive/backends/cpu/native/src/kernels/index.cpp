// Slices and elements by index: reading, overwriting, adding.
//
// The indexed dimensions make one list of places (byte offsets). Around it lie the dimensions in front,
// `lead`, and those behind, `trail`: an operation moves L x N rows of trail elements.
#include "indices.h"
#include "vt/cast.h"

namespace vt {

namespace {

// Place p is at byte `pos[p] * step`.
struct Places {
  const int64_t* pos;
  int64_t step, n;
  int64_t operator[](int64_t p) const { return pos[p] * step; }
};

// Dimensions of `v` from b to e, outermost first; .d holds the byte strides of `v`, .s is for others.
struct Dims {
  CopyDim dim[COPY_DIMS];
  int count = 0;
  int64_t n = 1;

  void add(int64_t size, int64_t d, int64_t s) {
    n *= size;
    if (size == 1) return;
    if (count > 0) {
      CopyDim& o = dim[count - 1];
      if (o.d == size * d && o.s == size * s) {
        o = {o.n * size, d, s};
        return;
      }
    }
    dim[count++] = {size, d, s};
  }
  // Offsets of element i.
  void locate(int64_t i, int64_t& d, int64_t& s) const {
    for (int k = count - 1; k >= 0; --k) {
      const int64_t j = i % dim[k].n;
      i /= dim[k].n;
      d += j * dim[k].d;
      s += j * dim[k].s;
    }
  }
};

// --- reading ------------------------------------------------------------------------------------

// out, dense, = lead x places x trail of x; .d of the dimensions are x's strides, .s the result's.
void read_rows(char* out, const char* x, Dtype dtype, const Dims& lead, const Places& at, const Dims& trail) {
  const int64_t item = itemsize(dtype), bytes = trail.n * item;
  if (bytes == 0) return;
  const bool dense = trail.count == 0 || (trail.count == 1 && trail.dim[0].d == item);
  parallel_for(lead.n * at.n, grain_for(dense ? bytes / 4 + 2 : trail.n), [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e;) {
      const int64_t l = t / at.n, stop = std::min(e, (l + 1) * at.n);
      int64_t from = 0, unused = 0;
      lead.locate(l, from, unused);
      const char* base = x + from;
      int64_t p = t - l * at.n;
      const int64_t end = stop - l * at.n;
      char* d = out + t * bytes;
      if (trail.n == 1) {
        for_sizes(dtype, [&](auto type) {
          using T = typename decltype(type)::type;
          T* o = reinterpret_cast<T*>(d) - p;
          const int64_t* pos = at.pos;
          const int64_t step = at.step;
          if (step == int64_t(sizeof(T))) {
            const T* s = reinterpret_cast<const T*>(base);
#pragma GCC unroll 8
            for (int64_t i = p; i < end; ++i) o[i] = s[pos[i]];
          } else {
#pragma GCC unroll 8
            for (int64_t i = p; i < end; ++i) o[i] = *reinterpret_cast<const T*>(base + pos[i] * step);
          }
        });
      } else if (dense) {
        for (; p < end; ++p, d += bytes) {
          if (p + 4 < end) {
            const char* next = base + at[p + 4];
            for (int64_t line = 0; line < std::min<int64_t>(bytes, 512); line += 64) __builtin_prefetch(next + line);
          }
          std::memcpy(d, base + at[p], size_t(bytes));
        }
      } else {
        CopyDim dims[COPY_DIMS];
        for (int k = 0; k < trail.count; ++k) dims[k] = {trail.dim[k].n, trail.dim[k].s, trail.dim[k].d};
        for (; p < end; ++p, d += bytes) copy_block(d, dtype, base + at[p], dtype, dims, trail.count);
      }
      t = stop;
    }
  });
}

// --- writing ------------------------------------------------------------------------------------

struct Assign {
  template <class T> static void one(T& d, T s) { d = s; }
};
struct Add {
  template <class T> static void one(T& d, T s) {
    if constexpr (std::is_same_v<T, bool>) d = d | s;
    else if constexpr (std::is_integral_v<T>) d = T(std::make_unsigned_t<T>(d) + std::make_unsigned_t<T>(s));
    else d += s;
  }
};

template <class Op, class T> void write_row(char* d, const char* s, const Dims& trail) {
  if (trail.count == 0) return Op::template one<T>(*reinterpret_cast<T*>(d), *reinterpret_cast<const T*>(s));
  const CopyDim& in = trail.dim[trail.count - 1];
  auto line = [&](char* d, const char* s) {
    T* dt = reinterpret_cast<T*>(d);
    const T* st = reinterpret_cast<const T*>(s);
    if (in.d == int64_t(sizeof(T)) && in.s == int64_t(sizeof(T))) {
      if constexpr (std::is_same_v<Op, Assign>) std::memcpy(d, s, size_t(in.n) * sizeof(T));
      else {
#pragma GCC ivdep
        for (int64_t i = 0; i < in.n; ++i) Op::template one<T>(dt[i], st[i]);
      }
    } else if (in.d == int64_t(sizeof(T)) && in.s == 0) {
      const T v = *st;
#pragma GCC ivdep
      for (int64_t i = 0; i < in.n; ++i) Op::template one<T>(dt[i], v);
    } else {
      for (int64_t i = 0; i < in.n; ++i)
        Op::template one<T>(*reinterpret_cast<T*>(d + i * in.d), *reinterpret_cast<const T*>(s + i * in.s));
    }
  };
  if (trail.count == 1) return line(d, s);
  for (int64_t i = 0; i < trail.n / in.n; ++i) {
    int64_t to = 0, from = 0, rest = i;
    for (int k = trail.count - 2; k >= 0; --k) {
      const int64_t j = rest % trail.dim[k].n;
      rest /= trail.dim[k].n;
      to += j * trail.dim[k].d;
      from += j * trail.dim[k].s;
    }
    line(d + to, s + from);
  }
}

// Row (l, p) of `values`, p steps of `v_step` bytes, into place p. Of rows for one place the last one
// stays, or they add up in their order: a place belongs to one thread.
template <class Op, class T>
void write_rows(char* out, const char* values, int64_t v_step, const Dims& lead, const Places& at, const Dims& trail) {
  if (trail.n == 0 || lead.n == 0 || at.n == 0) return;
  auto row = [&](int64_t l, auto&& each) {
    int64_t to = 0, from = 0;
    lead.locate(l, to, from);
    each(out + to, values + from);
  };
  const int threads = num_threads();
  if (lead.n >= 4 * threads || threads == 1 || lead.n * at.n * trail.n < 16384) {
    parallel_for(lead.n, grain_for(at.n * (trail.n + 2)), [&](int64_t b, int64_t e) {
      for (int64_t l = b; l < e; ++l)
        row(l, [&](char* d, const char* s) {
          if (trail.n == 1)
            for (int64_t p = 0; p < at.n; ++p)
              Op::template one<T>(*reinterpret_cast<T*>(d + at[p]), *reinterpret_cast<const T*>(s + p * v_step));
          else
            for (int64_t p = 0; p < at.n; ++p) write_row<Op, T>(d + at[p], s + p * v_step, trail);
        });
    });
    return;
  }
  int64_t most = 0;
  for (int64_t p = 0; p < at.n; ++p) most = std::max(most, at.pos[p]);
  const int64_t share = most / threads + 1;
  parallel_for(threads, 1, [&](int64_t b, int64_t e) {
    const int64_t low = b * share, high = e * share;
    constexpr int64_t CHUNK = 1024;
    int32_t mine[CHUNK + 16];
    for (int64_t l = 0; l < lead.n; ++l)
      row(l, [&](char* d, const char* s) {
        for (int64_t p0 = 0; p0 < at.n; p0 += CHUNK) {
          const int64_t n = std::min(CHUNK, at.n - p0);
          const int64_t count = within(at.pos + p0, n, low, high, mine);
          if (trail.n == 1)
            for (int64_t i = 0; i < count; ++i) {
              const int64_t p = p0 + mine[i];
              Op::template one<T>(*reinterpret_cast<T*>(d + at[p]), *reinterpret_cast<const T*>(s + p * v_step));
            }
          else
            for (int64_t i = 0; i < count; ++i) {
              const int64_t p = p0 + mine[i];
              write_row<Op, T>(d + at[p], s + p * v_step, trail);
            }
        }
      });
  });
}

void assign_rows(Dtype dtype, char* out, const char* values, int64_t v_step, const Dims& lead, const Places& at,
                 const Dims& trail) {
  for_sizes(dtype, [&](auto t) {
    write_rows<Assign, typename decltype(t)::type>(out, values, v_step, lead, at, trail);
  });
}

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

// embedding(out, weight, indices)
VT_KERNEL(embedding) {
  const View &out = c.view(0), &w = c.view(1);
  Indices index(c.view(2));
  index.check<IndexError>("embedding", 0, w.shape[0]);
  Dims lead, trail;
  trail.add(w.shape[1], w.strides[1], itemsize(w.dtype));
  read_rows(out.data, w.data, w.dtype, lead, {index.data, w.strides[0], index.n}, trail);
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

// --- several index tensors ------------------------------------------------------------------------

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

// --- the flattened tensor -------------------------------------------------------------------------

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
