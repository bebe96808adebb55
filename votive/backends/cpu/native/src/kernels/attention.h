// What the kernels of attention share: shapes, panels of queries in vector lanes, masks.
//
// Queries lie along vector lanes. A panel is WIDTH of them; scores of a block of keys are a matrix of
// keys x WIDTH, so that maxima and sums of softmax run down columns and keys and values are read as
// they lie. Query heads that share a key head are rows of one matrix. Keys and values may be rows of blocks, of which
// some at a time become numbers.
#pragma once
#include <algorithm>
#include <cmath>

#include "row_blocks.h"
#include "vt/cast.h"
#include "vt/gemm_micro.h"
#include "vt/kernel.h"
#include "vt/math.h"

namespace vt {
namespace {

template <class T> using Vec = typename Lanes<T>::type;
template <class T> constexpr int LANES = Lanes<T>::count;
template <class T> constexpr int WIDTH = 2 * LANES<T>;

template <class T> const Engine& engine() {
  if constexpr (std::is_same_v<T, float>) return float_engine();
  else return double_engine();
}

template <class T> inline const char* bytes(const T* p) { return reinterpret_cast<const char*>(p); }
template <class T> inline char* bytes(T* p) { return reinterpret_cast<char*>(p); }

// rows x WIDTH sums of a[row, k] * b[k, :], with b and c of WIDTH elements per row.
template <class T>
inline void product(int64_t rows, int64_t k, const T* a, int64_t a_row, int64_t a_k, const T* b, int64_t b_k, T* c,
                    int64_t c_row, bool add, int vectors = 2) {
  const Engine& e = engine<T>();
  constexpr int64_t S = sizeof(T);
  int64_t tiles = (rows + e.rows - 1) / e.rows;
  for (int64_t r = 0; r < rows; --tiles) {
    const int64_t n = (rows - r + tiles - 1) / tiles;  // tiles of nearly one height
    e.micro[n - 1][vectors - 1](k, bytes(a + r * a_row), a_row * S, a_k * S, bytes(b), b_k * S, bytes(c + r * c_row),
                                c_row * S, add);
    r += n;
  }
}

// e to the power of numbers that are not positive, NaN kept. Below the smallest normal number it is 0.
inline Vec<float> exp_down(Vec<float> x) {
  typedef int32_t Int __attribute__((vector_size(VECTOR)));
  constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const Vec<float> shifted = x * 1.44269504f + ROUND;
  const Vec<float> n = shifted - ROUND;
  const Vec<float> r = (x - n * 0.693145751953125f) - n * 1.428606765330187e-06f;
  // Minimax on |r| <= ln 2 / 2, relative error 3e-9.
  Vec<float> p = r * 0.0013814467238262296f + 0.008368780836462975f;
  p = p * r + 0.04166839271783829f;
  p = p * r + 0.1666651964187622f;
  p = p * r + 0.4999999403953552f;
  p = p * (r * r) + r + 1.0f;
  // The low bits of `shifted` are n.
  const Int power = (reinterpret_cast<Int>(shifted) + 127) << 23;
  const Vec<float> y = p * reinterpret_cast<Vec<float>>(power);
  return x < -87.33f ? Vec<float>{} : y;
}

inline Vec<double> exp_down(Vec<double> x) {
  alignas(64) double v[LANES<double>];
  for (int i = 0; i < LANES<double>; ++i) v[i] = x[i];
  for (int i = 0; i < LANES<double>; ++i) v[i] = exp(v[i]);
  Vec<double> y;
  for (int i = 0; i < LANES<double>; ++i) y[i] = v[i];
  return y;
}

template <class T> inline Vec<T> fill(T x) { return Vec<T>{} + x; }

// Strides in bytes of an array of four dimensions; missing and stretched ones are 0.
struct Strides4 {
  int64_t s[4] = {0, 0, 0, 0};
  explicit Strides4(const View& v) {
    for (int d = 0; d < v.ndim; ++d) s[4 - v.ndim + d] = v.shape[d] == 1 ? 0 : v.strides[d];
  }
};

struct Problem {
  const View &q, &k, &v, &mask;
  bool causal;
  int64_t offset;
  double scale;
  int64_t B, H, KH, G, Tq, Tk, D, Dv;
  Strides4 sm{View()};
  const rows::Format *k_format = nullptr, *v_format = nullptr;  // of rows of blocks

  Problem(const View& q, const View& k, const View& v, const View& mask, bool causal, int64_t offset, double scale)
      : q(q), k(k), v(v), mask(mask), causal(causal), offset(offset), scale(scale), B(q.shape[0]), H(q.shape[1]),
        KH(k.shape[1]), G(KH > 0 ? H / KH : 1), Tq(q.shape[2]), Tk(k.shape[2]), D(q.shape[3]), Dv(v.shape[3]) {
    if (mask) sm = Strides4(mask);
  }
  int64_t rows() const { return G * Tq; }
  // How many keys a query sees.
  int64_t limit(int64_t i) const { return causal ? std::clamp<int64_t>(i + offset + 1, 0, Tk) : Tk; }
  // Where row r of the queries that share key head h is, in an array like the query.
  const char* row(const View& x, int64_t b, int64_t h, int64_t r) const {
    const int64_t g = r / Tq, i = r - g * Tq;
    return x.data + b * x.strides[0] + (h * G + g) * x.strides[1] + i * x.strides[2];
  }
  const char* mask_row(int64_t b, int64_t h, int64_t r) const {
    const int64_t g = r / Tq, i = r - g * Tq;
    return mask.data + b * sm.s[0] + (h * G + g) * sm.s[1] + i * sm.s[2];
  }
};

// Rows of elements of T in memory: in place where they lie well, else in scratch memory.
template <class T> struct Rows {
  const T* data;
  int64_t row;  // in elements
};

// Rows of blocks, `at` bytes apart, as rows of numbers whose ends up to `cols` are zero.
template <class T>
void read_blocks(const rows::Format& f, const char* src, int64_t at, int64_t n, int64_t have, int64_t cols, T* room) {
  Scratch<float> wide(std::is_same_v<T, float> ? 0 : have);
  for (int64_t j = 0; j < n; ++j, src += at, room += cols) {
    if constexpr (std::is_same_v<T, float>) f.read(reinterpret_cast<const uint8_t*>(src), have / f.size, room);
    else {
      f.read(reinterpret_cast<const uint8_t*>(src), have / f.size, wide);
      std::copy(wide.get(), wide + have, room);
    }
    std::fill(room + have, room + cols, T(0));
  }
}

// Keys or values [from, from + n) of one head. Rows in place must be dense and near each other: far
// rows at powers of two would fight for the same lines of the first cache.
template <class T>
Rows<T> read_rows(const View& x, int64_t b, int64_t h, int64_t from, int64_t n, T* room,
                  const rows::Format* format = nullptr) {
  const int64_t at = x.strides[2];
  const char* src = x.data + b * x.strides[0] + h * x.strides[1] + from * at;
  constexpr int64_t S = sizeof(T);
  const int64_t cols = format ? x.shape[3] / format->bytes * format->size : x.shape[3];
  if (format) {
    read_blocks<T>(*format, src, at, n, cols, cols, room);
    return {room, cols};
  }
  const bool dense = x.dtype == dtype_of<T> && (cols == 1 || x.strides[3] == S);
  if (dense && at % S == 0 && (n == 1 || (at >= cols * S && at <= 2 * cols * S)))
    return {reinterpret_cast<const T*>(src), at / S};
  const CastFn fn = cast_fn(x.dtype, dtype_of<T>);
  for (int64_t j = 0; j < n; ++j) fn(bytes(room + j * cols), S, src + j * at, x.strides[3], cols);
  return {room, cols};
}

// dst[j * width + i] = src[i, j] for i < items, j < k; strides of src in elements.
template <class T>
__attribute__((noipa)) void turn(T* dst, int64_t width, const T* src, int64_t s_item, int64_t items, int64_t k) {
  pack_units<T>(bytes(dst), width, bytes(src), s_item * int64_t(sizeof(T)), sizeof(T), items, k);
}

// A panel of queries: rows [r0, r0 + count) as columns, times `factor`; the other columns are zero.
// `line` has room for WIDTH * cols.
template <class T>
void pack_panel(const Problem& p, const View& x, int64_t b, int64_t h, int64_t r0, int64_t count, T factor, T* line,
                T* out) {
  constexpr int W = WIDTH<T>;
  const int64_t cols = x.shape[3];
  const CastFn fn = cast_fn(x.dtype, dtype_of<T>);
  for (int64_t r = 0; r < count; ++r) fn(bytes(line + r * cols), sizeof(T), p.row(x, b, h, r0 + r), x.strides[3], cols);
  if (factor != T(1))
    for (int64_t k = 0; k < count * cols; ++k) line[k] *= factor;
  std::fill(line + count * cols, line + W * cols, T(0));
  turn<T>(out, W, line, cols, W, cols);
}

// The columns of a panel as rows of an array like the query, times `factor` of each column.
template <class T>
void unpack_panel(const Problem& p, const View& x, int64_t b, int64_t h, int64_t r0, int64_t count, const T* panel,
                  const T* factor, T* line) {
  constexpr int W = WIDTH<T>;
  const int64_t cols = x.shape[3];
  turn<T>(line, cols, panel, W, cols, W);
  const CastFn fn = cast_fn(dtype_of<T>, x.dtype);
  for (int64_t r = 0; r < count; ++r) {
    T* row = line + r * cols;
    const T f = factor[r];
    for (int64_t k = 0; k < cols; ++k) row[k] *= f;
    fn(const_cast<char*>(p.row(x, b, h, r0 + r)), x.strides[3], bytes(row), sizeof(T), cols);
  }
}

// The keys that each column of a panel sees. Columns without a query see what the last one sees.
template <class T> struct Limits {
  int64_t of[WIDTH<T>];
  int64_t least, most;
  Limits(const Problem& p, int64_t r0, int64_t count) {
    least = p.Tk, most = 0;
    for (int64_t c = 0; c < WIDTH<T>; ++c) {
      of[c] = p.limit((r0 + std::min(c, count - 1)) % p.Tq);
      least = std::min(least, of[c]);
      most = std::max(most, of[c]);
    }
  }
};

// Hides what the mask hides in scores of keys [from, from + n). False when nothing at all is left.
template <class T>
bool apply_mask(const Problem& p, int64_t b, int64_t h, int64_t r0, int64_t count, int64_t from, int64_t n, T* scores,
                T* room) {
  constexpr int W = WIDTH<T>;
  constexpr T hidden = -INF<T>;
  const bool hides = p.mask.dtype == Dtype::b1;
  const CastFn fn = cast_fn(p.mask.dtype, dtype_of<T>);
  const int64_t step = p.sm.s[3];
  const char* first = p.mask_row(b, h, r0);
  bool one = true;
  for (int64_t r = 1; r < count; ++r) one = one && p.mask_row(b, h, r0 + r) == first;
  if (one) {
    fn(bytes(room), sizeof(T), first + from * step, step, n);
    bool any = false;
    for (int64_t j = 0; j < n; ++j) {
      T* s = scores + j * W;
      const T m = room[j];
      if (hides && m != T(0)) {
        any = true;
        continue;
      }
      if (hides)
        for (int c = 0; c < W; ++c) s[c] = hidden;
      else
        for (int c = 0; c < W; ++c) s[c] += m;
    }
    return any || !hides;
  }
  // Rows of the mask become columns.
  T* turned = room + W * n;
  for (int64_t r = 0; r < count; ++r)
    fn(bytes(room + r * n), sizeof(T), p.mask_row(b, h, r0 + r) + from * step, step, n);
  std::fill(room + count * n, room + W * n, T(1));
  turn<T>(turned, W, room, n, W, n);
  if (hides)
    for (int64_t k = 0; k < n * W; ++k) scores[k] = turned[k] != T(0) ? scores[k] : hidden;
  else
    for (int64_t k = 0; k < n * W; ++k) scores[k] += turned[k];
  return true;
}
template <class T> int64_t mask_room(const Problem& p, int64_t block) { return p.mask ? 2 * WIDTH<T> * block : 1; }

// Hides keys beyond the limits of each column.
template <class T> void apply_limits(const Limits<T>& limits, int64_t from, int64_t n, T* scores) {
  constexpr int W = WIDTH<T>;
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  alignas(64) I seen[W];
  for (int c = 0; c < W; ++c) seen[c] = I(std::clamp<int64_t>(limits.of[c] - from, 0, n));
  for (int64_t j = std::max<int64_t>(0, limits.least - from); j < n; ++j) {
    T* s = scores + j * W;
    const I at = I(j);
    for (int c = 0; c < W; ++c) s[c] = at < seen[c] ? s[c] : -INF<T>;
  }
}

template <class F> void for_compute(const char* what, Dtype d, F&& f) {
  switch (d) {
    case Dtype::f64: return f(Type<double>{});
    case Dtype::f32: case Dtype::f16: case Dtype::bf16: return f(Type<float>{});
    default: no_dtype(what);
  }
}

}  // namespace
}  // namespace vt
