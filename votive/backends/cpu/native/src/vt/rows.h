// The rows of an array of any layout and float type, as dense rows of the type that is computed in.
#pragma once
#include <algorithm>

#include "cast.h"
#include "copy.h"
#include "kernel.h"

namespace vt {

// Neighbouring dimensions that are one in memory are merged; those of size 1 go.
struct Walk {
  int ndim = 0;
  int64_t shape[32], strides[32];  // outermost first, in bytes

  void add(int64_t size, int64_t stride) {
    if (size == 1) return;
    if (ndim > 0 && strides[ndim - 1] == size * stride) {
      shape[ndim - 1] *= size;
      strides[ndim - 1] = stride;
    } else {
      shape[ndim] = size;
      strides[ndim++] = stride;
    }
  }
  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < ndim; ++d) n *= shape[d];
    return n;
  }
  // Byte offset of the k-th position in row-major order.
  int64_t offset(int64_t k) const {
    if (ndim == 1) return k * strides[0];
    int64_t o = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      o += k % shape[d] * strides[d];
      k /= shape[d];
    }
    return o;
  }
};

// All elements along the dimensions [from, to), for each index of the others.
template <class C> class Rows {
 public:
  Rows() = default;
  Rows(const View& v, int from, int to) : base(v.data), item(itemsize(v.dtype)) {
    for (int d = 0; d < v.ndim; ++d) (d >= from && d < to ? inner : outer).add(v.shape[d], v.strides[d]);
    bind(v.dtype);
  }
  // With the walks given: `outer` over rows, `inner` along one.
  Rows(const View& v, const Walk& rows, const Walk& row)
      : outer(rows), inner(row), base(v.data), item(itemsize(v.dtype)) { bind(v.dtype); }

  int64_t rows() const { return outer.count(); }
  int64_t length() const { return n; }
  bool direct = false;  // rows lie dense in the compute type: no copies

  char* at(int64_t r) const { return base + outer.offset(r); }
  const C* load(int64_t r, C* scratch) const {
    if (direct) return reinterpret_cast<const C*>(at(r));
    fetch(at(r), scratch, 0);
    return scratch;
  }
  // Where row r may be written; `store` brings it home.
  C* place(int64_t r, C* scratch) const { return direct ? reinterpret_cast<C*>(at(r)) : scratch; }
  void store(int64_t r, const C* scratch) const {
    if (!direct) put(at(r), scratch, 0);
  }

  // How many rows from r on, `most` at most, lie side by side in memory, so that they are rather moved together.
  int64_t abreast(int64_t r, int64_t most) const {
    const int last = outer.ndim - 1;
    if (direct || inner.ndim != 1 || last < 0 || outer.strides[last] != item) return 1;
    return std::min(most, outer.shape[last] - r % outer.shape[last]);
  }
  void load_abreast(int64_t r, int64_t count, C* to, int64_t pitch) const {
    const CopyDim dims[] = {{count, pitch * int64_t(sizeof(C)), item}, {n, sizeof(C), inner.strides[0]}};
    copy_block(reinterpret_cast<char*>(to), dtype_of<C>, at(r), dtype, dims, 2);
  }
  void store_abreast(int64_t r, int64_t count, const C* from, int64_t pitch) const {
    const CopyDim dims[] = {{count, item, pitch * int64_t(sizeof(C))}, {n, inner.strides[0], sizeof(C)}};
    copy_block(at(r), dtype, reinterpret_cast<const char*>(from), dtype_of<C>, dims, 2);
  }

 private:
  Dtype dtype = Dtype::none;
  Walk outer, inner;
  char* base = nullptr;
  int64_t item = 1, n = 1;
  CastFn in = nullptr, out = nullptr;

  void bind(Dtype d) {
    dtype = d;
    n = inner.count();
    in = cast_fn(d, dtype_of<C>);
    out = cast_fn(dtype_of<C>, d);
    direct = d == dtype_of<C> && (inner.ndim == 0 || (inner.ndim == 1 && inner.strides[0] == item));
  }
  // Rows made of short pieces are moved as blocks.
  bool in_pieces() const { return inner.ndim > 1 && inner.shape[inner.ndim - 1] < 16; }
  void pieces(CopyDim* dims, bool out) const {
    int64_t step = sizeof(C);
    for (int d = inner.ndim - 1; d >= 0; --d) {
      dims[d] = out ? CopyDim{inner.shape[d], inner.strides[d], step} : CopyDim{inner.shape[d], step, inner.strides[d]};
      step *= inner.shape[d];
    }
  }
  C* fetch(const char* p, C* to, int d) const {
    const int last = inner.ndim - 1;
    if (d == 0 && in_pieces()) {
      CopyDim dims[COPY_DIMS];
      pieces(dims, false);
      copy_block(reinterpret_cast<char*>(to), dtype_of<C>, p, dtype, dims, inner.ndim);
      return to + n;
    }
    if (d >= last) {
      const int64_t m = last < 0 ? 1 : inner.shape[last];
      in(reinterpret_cast<char*>(to), sizeof(C), p, last < 0 ? item : inner.strides[last], m);
      return to + m;
    }
    for (int64_t i = 0; i < inner.shape[d]; ++i) to = fetch(p + i * inner.strides[d], to, d + 1);
    return to;
  }
  const C* put(char* p, const C* from, int d) const {
    const int last = inner.ndim - 1;
    if (d == 0 && in_pieces()) {
      CopyDim dims[COPY_DIMS];
      pieces(dims, true);
      copy_block(p, dtype, reinterpret_cast<const char*>(from), dtype_of<C>, dims, inner.ndim);
      return from + n;
    }
    if (d >= last) {
      const int64_t m = last < 0 ? 1 : inner.shape[last];
      out(p, last < 0 ? item : inner.strides[last], reinterpret_cast<const char*>(from), sizeof(C), m);
      return from + m;
    }
    for (int64_t i = 0; i < inner.shape[d]; ++i) from = put(p + i * inner.strides[d], from, d + 1);
    return from;
  }
};

// The rows [begin, end) one after the other; those side by side are fetched, or brought home, by square blocks.
template <class C> class InTurn {
 public:
  InTurn(const Rows<C>& rows, int64_t begin, int64_t end)
      : rows(rows), end(end), pitch(rows.length() + 64 / int64_t(sizeof(C))),  // no multiple of a cache's stride
        most(begin < end && pitch <= LONGEST && rows.abreast(0, SIDE) > 1 ? SIDE : 1),
        memory(rows.direct ? 0 : most * pitch) {}
  const C* load(int64_t r) {
    if (most == 1) return rows.load(r, memory);
    if (r >= first + count) {
      group(r);
      rows.load_abreast(r, count, memory, pitch);
    }
    return memory + (r - first) * pitch;
  }
  C* place(int64_t r) {
    if (most == 1) return rows.place(r, memory);
    if (r >= first + count) group(r);
    return memory + (r - first) * pitch;
  }
  void store(int64_t r) {
    if (most == 1) return rows.store(r, memory);
    if (r + 1 == first + count) rows.store_abreast(first, count, memory, pitch);
  }

 private:
  static constexpr int64_t SIDE = 16, LONGEST = 1 << 15;
  const Rows<C>& rows;
  int64_t end, pitch, most, first = 0, count = 0;
  Scratch<C> memory;

  void group(int64_t r) {
    first = r;
    count = rows.abreast(r, std::min(most, end - r));
  }
};

// One block of an operand as dense columns: where it lies, or a copy in `scratch`.
template <class C> struct Block {
  const View& v;
  int dim, col;
  CastFn in, out;
  bool direct;

  Block(const View& v, int dim, int col) : v(v), dim(dim), col(col) {
    in = cast_fn(v.dtype, dtype_of<C>);
    out = cast_fn(dtype_of<C>, v.dtype);
    direct = v.dtype == dtype_of<C> && v.strides[col] == int64_t(sizeof(C));
  }
  int64_t step(int64_t n) const { return direct ? v.strides[dim] / int64_t(sizeof(C)) : n; }
  const C* load(char* p, C* scratch, int64_t n) const {
    if (direct) return reinterpret_cast<const C*>(p);
    cast_block(in, itemsize(v.dtype), sizeof(C), reinterpret_cast<char*>(scratch), n * int64_t(sizeof(C)), sizeof(C), p, v.strides[dim], v.strides[col], v.shape[dim], n);
    return scratch;
  }
  C* place(char* p, C* scratch) const { return direct ? reinterpret_cast<C*>(p) : scratch; }
  void store(char* p, const C* scratch, int64_t n) const {
    if (!direct)
      cast_block(out, sizeof(C), itemsize(v.dtype), p, v.strides[dim], v.strides[col], reinterpret_cast<const char*>(scratch), n * int64_t(sizeof(C)), sizeof(C), v.shape[dim], n);
  }
};

// Calls f(Type<C>{}) with the type in which the given float type is computed.
template <class F> void for_compute(Dtype d, F&& f) {
  if (d == Dtype::f64) f(Type<double>{});
  else f(Type<float>{});
}

}  // namespace vt
