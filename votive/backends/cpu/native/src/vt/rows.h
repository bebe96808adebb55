// The rows of an array of any layout and float type, as dense rows of the type that is computed in.
#pragma once
#include "cast.h"
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

 private:
  Walk outer, inner;
  char* base = nullptr;
  int64_t item = 1, n = 1;
  CastFn in = nullptr, out = nullptr;

  void bind(Dtype d) {
    n = inner.count();
    in = cast_fn(d, dtype_of<C>);
    out = cast_fn(dtype_of<C>, d);
    direct = d == dtype_of<C> && (inner.ndim == 0 || (inner.ndim == 1 && inner.strides[0] == item));
  }
  C* fetch(const char* p, C* to, int d) const {
    const int last = inner.ndim - 1;
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
    if (d >= last) {
      const int64_t m = last < 0 ? 1 : inner.shape[last];
      out(p, last < 0 ? item : inner.strides[last], reinterpret_cast<const char*>(from), sizeof(C), m);
      return from + m;
    }
    for (int64_t i = 0; i < inner.shape[d]; ++i) from = put(p + i * inner.strides[d], from, d + 1);
    return from;
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
    cast_block(in, itemsize(v.dtype), reinterpret_cast<char*>(scratch), n * int64_t(sizeof(C)), sizeof(C), p, v.strides[dim], v.strides[col], v.shape[dim], n);
    return scratch;
  }
  C* place(char* p, C* scratch) const { return direct ? reinterpret_cast<C*>(p) : scratch; }
  void store(char* p, const C* scratch, int64_t n) const {
    if (!direct)
      cast_block(out, sizeof(C), p, v.strides[dim], v.strides[col], reinterpret_cast<const char*>(scratch), n * int64_t(sizeof(C)), sizeof(C), v.shape[dim], n);
  }
};

// Calls f(Type<C>{}) with the type in which the given float type is computed.
template <class F> void for_compute(Dtype d, F&& f) {
  if (d == Dtype::f64) f(Type<double>{});
  else f(Type<float>{});
}

}  // namespace vt
