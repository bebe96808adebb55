// Copies, casts and fills: any dtype pair, any strides.
#include "vt/copy.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "vt/cast.h"
#include "vt/kernel.h"
#include "vt/transpose.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vt {

namespace {
using namespace copies;

constexpr int64_t PIECE = 1 << 16;    // bytes worth handing to a thread
constexpr int64_t STREAM = 24 << 20;  // beyond, a copy does not stay in cache: written around it

// --- dense memory ----------------------------------------------------------------------------

#if defined(__AVX512F__)
using Wide = __m512i;
inline void store_around(char* p, Wide v) { _mm512_stream_si512(reinterpret_cast<Wide*>(p), v); }
#elif defined(__AVX2__)
using Wide = __m256i;
inline void store_around(char* p, Wide v) { _mm256_stream_si256(reinterpret_cast<Wide*>(p), v); }
#elif defined(__x86_64__)
using Wide = __m128i;
inline void store_around(char* p, Wide v) { _mm_stream_si128(reinterpret_cast<Wide*>(p), v); }
#endif

void copy_piece(char* dst, const char* src, int64_t bytes, [[maybe_unused]] bool around) {
  int64_t i = 0;
#if defined(__x86_64__)
  if (around) {
    i = std::min<int64_t>(bytes, -reinterpret_cast<intptr_t>(dst) & int64_t(sizeof(Wide) - 1));
    std::memcpy(dst, src, size_t(i));
    for (; i + int64_t(sizeof(Wide)) <= bytes; i += sizeof(Wide)) {
      Wide v;
      std::memcpy(&v, src + i, sizeof(v));
      store_around(dst + i, v);
    }
    _mm_sfence();
  }
#endif
  std::memcpy(dst + i, src + i, size_t(bytes - i));
}

// `pattern` is 64 bytes of whole elements.
void fill_bytes(char* dst, const char* pattern, int64_t bytes) {
  // In lines, so that every piece starts with the pattern's first byte.
  parallel_for((bytes + 63) / 64, PIECE / 64, [&](int64_t b, int64_t e) {
    typedef uint64_t Line __attribute__((vector_size(64)));
    Line line;
    std::memcpy(&line, pattern, 64);
    for (; b + 1 < e; ++b) std::memcpy(dst + b * 64, &line, 64);
    std::memcpy(dst + b * 64, pattern, size_t(std::min<int64_t>(64, bytes - b * 64)));
  });
}

// --- blocks of rows: one call for two dimensions ------------------------------------------------

// rows x cols elements of type T from `src` to `dst`.
struct Rows {
  char* dst;
  const char* src;
  int64_t rows, d_row, s_row, cols, d_col, s_col;
};

template <class T> void rows_dense(const Rows& k) {
  const size_t bytes = size_t(k.cols) * sizeof(T);
  for (int64_t r = 0; r < k.rows; ++r) {
    char* d = k.dst + r * k.d_row;
    const char* s = k.src + r * k.s_row;
    if (bytes == 16) std::memcpy(d, s, 16);
    else if (bytes == 8) std::memcpy(d, s, 8);
    else if (bytes == 32) std::memcpy(d, s, 32);
    else if (bytes == 64) std::memcpy(d, s, 64);
    else std::memcpy(d, s, bytes);
  }
}

template <class T> void rows_repeated(const Rows& k) {
  for (int64_t r = 0; r < k.rows; ++r) {
    T* d = reinterpret_cast<T*>(k.dst + r * k.d_row);
    const T v = at<T>(k.src + r * k.s_row);
    for (int64_t c = 0; c < k.cols; ++c) d[c] = v;
  }
}

template <class T, int STEP> void rows_stepped(const Rows& k) {
  for (int64_t r = 0; r < k.rows; ++r) {
    T* d = reinterpret_cast<T*>(k.dst + r * k.d_row);
    const T* s = reinterpret_cast<const T*>(k.src + r * k.s_row);
#pragma GCC ivdep
    for (int64_t c = 0; c < k.cols; ++c) d[c] = s[c * STEP];
  }
}

template <class T> void rows_strided(const Rows& k) {
  for (int64_t r = 0; r < k.rows; ++r) {
    char* d = k.dst + r * k.d_row;
    const char* s = k.src + r * k.s_row;
#pragma GCC unroll 4
    for (int64_t c = 0; c < k.cols; ++c) at<T>(d + c * k.d_col) = at<T>(s + c * k.s_col);
  }
}

// --- choosing -----------------------------------------------------------------------------------

// Calls body(dst, src) for the elements b..e of the outer dimensions.
template <class F> void walk(const CopyDim* dims, int ndim, char* dst, const char* src, int64_t b, int64_t e, F&& body) {
  int64_t index[COPY_DIMS], rest = b;
  for (int k = ndim - 1; k >= 0; --k) {
    index[k] = rest % dims[k].n;
    rest /= dims[k].n;
    dst += index[k] * dims[k].d;
    src += index[k] * dims[k].s;
  }
  for (int64_t i = b; i < e; ++i) {
    body(dst, src);
    for (int k = ndim - 1; k >= 0; --k) {
      dst += dims[k].d;
      src += dims[k].s;
      if (++index[k] < dims[k].n) break;
      dst -= dims[k].n * dims[k].d;
      src -= dims[k].n * dims[k].s;
      index[k] = 0;
    }
  }
}

int64_t product(const CopyDim* dims, int ndim) {
  int64_t n = 1;
  for (int k = 0; k < ndim; ++k) n *= dims[k].n;
  return n;
}

// Outermost first by the result's strides, neighbours joined where both sides allow it. False: empty.
bool arrange(const CopyDim* given, int count, CopyDim* dims, int& ndim) {
  ndim = 0;
  for (int k = 0; k < count; ++k) {
    if (given[k].n == 0) return false;
    if (given[k].n == 1) continue;
    int p = ndim++;
    auto before = [](const CopyDim& a, const CopyDim& b) {
      return std::abs(a.d) != std::abs(b.d) ? std::abs(a.d) > std::abs(b.d) : std::abs(a.s) > std::abs(b.s);
    };
    for (; p > 0 && before(given[k], dims[p - 1]); --p) dims[p] = dims[p - 1];
    dims[p] = given[k];
  }
  int last = 0;
  for (int k = 1; k < ndim; ++k) {
    CopyDim& o = dims[last];
    const CopyDim& i = dims[k];
    if (o.d == i.n * i.d && o.s == i.n * i.s) o = {o.n * i.n, i.d, i.s};
    else dims[++last] = i;
  }
  if (ndim > 0) ndim = last + 1;
  return true;
}

// Dimension `along` is dense in the source, the last one in the result.
template <class T>
void copy_transposed(char* dst, Dtype to, const char* src, Dtype from, const CopyDim* dims, int ndim, int along) {
  CopyDim outer[COPY_DIMS];
  int n_outer = 0;
  for (int k = 0; k < ndim - 1; ++k)
    if (k != along) outer[n_outer++] = dims[k];
  const CopyDim row = dims[along], col = dims[ndim - 1];
  constexpr int64_t SIDE = 64, AREA = 8192;
  int64_t rows = std::min(row.n, SIDE), cols = std::min(col.n, SIDE);
  if (cols < SIDE) rows = std::min(row.n, AREA / cols);
  else if (rows < SIDE) cols = std::min(col.n, AREA / rows);
  const int64_t n_rows = (row.n + rows - 1) / rows, n_cols = (col.n + cols - 1) / cols;
  const bool same = to == from;
  const CastFn cast = same ? nullptr : cast_fn(from, to);
  const int64_t d_item = itemsize(to);
  parallel_for(product(outer, n_outer) * n_rows * n_cols, grain_for(rows * cols), [&](int64_t b, int64_t e) {
    Scratch<T> tile(same ? 1 : rows * cols);
    const int64_t tiles = n_rows * n_cols;
    for (int64_t t = b; t < e;) {
      const int64_t block = t / tiles, stop = std::min(e, (block + 1) * tiles);
      walk(outer, n_outer, dst, src, block, block + 1, [&](char* d0, const char* s0) {
        for (; t < stop; ++t) {
          const int64_t r0 = (t - block * tiles) / n_cols * rows, c0 = (t - block * tiles) % n_cols * cols;
          const int64_t nr = std::min(rows, row.n - r0), nc = std::min(cols, col.n - c0);
          char* d = d0 + r0 * row.d + c0 * col.d;
          const char* s = s0 + r0 * row.s + c0 * col.s;
          if (same) {
            transpose_tile<T>(d, row.d, s, col.s, nr, nc);
          } else {
            transpose_tile<T>(reinterpret_cast<char*>(tile.get()), nc * int64_t(sizeof(T)), s, col.s, nr, nc);
            for (int64_t r = 0; r < nr; ++r)
              cast(d + r * row.d, d_item, reinterpret_cast<const char*>(tile.get() + r * nc), sizeof(T), nc);
          }
        }
      });
    }
  });
}

template <class T> using RowsFn = void (*)(const Rows&);

template <class T> RowsFn<T> rows_fn(const CopyDim& col) {
  constexpr int64_t item = sizeof(T);
  if (col.d == item) {
    if (col.s == item) return rows_dense<T>;
    if (col.s == 0) return rows_repeated<T>;
    if (col.s == -item) return rows_stepped<T, -1>;
    if (col.s == 2 * item) return rows_stepped<T, 2>;
  }
  return rows_strided<T>;
}

template <class T> void copy_same(char* dst, const char* src, const CopyDim* dims, int ndim) {
  constexpr int64_t item = sizeof(T);
  const CopyDim col = dims[ndim - 1];
  // Every element a few times in a row.
  if (col.s == 0 && col.d == item && col.n <= 4 && ndim > 1) {
    const CopyDim row = dims[ndim - 2];
    if (row.s == item && row.d == col.n * item && sizeof(T) < 16) {
      const int64_t grain = grain_for(col.n);
      const int64_t n_outer = product(dims, ndim - 2);
      auto run = [&](char* d, const char* s, int64_t n) {
        if (col.n == 2) weave<T, 2>(d, s, 0, n);
        else if (col.n == 3) weave<T, 3>(d, s, 0, n);
        else weave<T, 4>(d, s, 0, n);
      };
      if (n_outer == 1)
        return parallel_for(row.n, grain, [&](int64_t b, int64_t e) { run(dst + b * row.d, src + b * row.s, e - b); });
      return parallel_for(n_outer, grain_for(row.n * col.n), [&](int64_t b, int64_t e) {
        walk(dims, ndim - 2, dst, src, b, e, [&](char* d, const char* s) { run(d, s, row.n); });
      });
    }
  }
  const RowsFn<T> fn = rows_fn<T>(col);
  if (ndim == 1 || (col.n * item >= 4 * PIECE && product(dims, ndim - 1) < 64)) {
    // Long rows: each is cut.
    walk(dims, ndim - 1, dst, src, 0, product(dims, ndim - 1), [&](char* d0, const char* s0) {
      parallel_for(col.n, PIECE / item, [&](int64_t b, int64_t e) {
        fn({d0 + b * col.d, s0 + b * col.s, 1, 0, 0, e - b, col.d, col.s});
      });
    });
    return;
  }
  const CopyDim row = dims[ndim - 2];
  const int64_t n_outer = product(dims, ndim - 2);
  const int64_t block = std::min(row.n, std::max<int64_t>(1, PIECE / (col.n * item)));
  const int64_t blocks = (row.n + block - 1) / block;
  parallel_for(n_outer * blocks, grain_for(block * col.n * item / 2), [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e;) {
      const int64_t at = t / blocks, stop = std::min(e, (at + 1) * blocks);
      walk(dims, ndim - 2, dst, src, at, at + 1, [&](char* d, const char* s) {
        const int64_t r0 = (t - at * blocks) * block, r1 = std::min(row.n, (stop - at * blocks) * block);
        fn({d + r0 * row.d, s + r0 * row.s, r1 - r0, row.d, row.s, col.n, col.d, col.s});
      });
      t = stop;
    }
  });
}

void copy_cast(char* dst, Dtype to, const char* src, Dtype from, const CopyDim* dims, int ndim) {
  const CastFn cast = cast_fn(from, to);
  const CopyDim col = dims[ndim - 1];
  const int64_t rows = product(dims, ndim - 1);
  if (rows == 1 || (col.n >= 4 * PIECE && rows < 64)) {
    walk(dims, ndim - 1, dst, src, 0, rows, [&](char* d, const char* s) {
      parallel_for(col.n, grain_for(1), [&](int64_t b, int64_t e) {
        cast(d + b * col.d, col.d, s + b * col.s, col.s, e - b);
      });
    });
    return;
  }
  parallel_for(rows, grain_for(col.n), [&](int64_t b, int64_t e) {
    walk(dims, ndim - 1, dst, src, b, e, [&](char* d, const char* s) { cast(d, col.d, s, col.s, col.n); });
  });
}

}  // namespace

void copy_bytes(char* dst, const char* src, int64_t bytes) {
  const bool around = bytes >= STREAM;
  parallel_for((bytes + 63) / 64, PIECE / 64, [&](int64_t b, int64_t e) {
    copy_piece(dst + b * 64, src + b * 64, std::min(bytes, e * 64) - b * 64, around);
  });
}

void zero_bytes(char* dst, int64_t bytes) {
  parallel_for(bytes, PIECE, [&](int64_t b, int64_t e) { std::memset(dst + b, 0, size_t(e - b)); });
}

void copy_block(char* dst, Dtype to, const char* src, Dtype from, const CopyDim* given, int count) {
  CopyDim dims[COPY_DIMS];
  int ndim;
  if (!arrange(given, count, dims, ndim)) return;
  if (ndim == 0) {
    cast_fn(from, to)(dst, 0, src, 0, 1);
    return;
  }
  const int64_t d_item = itemsize(to), s_item = itemsize(from);
  const CopyDim& col = dims[ndim - 1];
  if (to == from && ndim == 1 && col.d == d_item && col.s == s_item) return copy_bytes(dst, src, col.n * d_item);
  if (col.d == d_item && col.s != s_item && col.s != 0 && s_item < 16)
    for (int k = ndim - 2; k >= 0; --k)
      if (dims[k].s == s_item) {
        if (std::min(dims[k].n, col.n) >= 2)
          return for_sizes(from, [&](auto t) {
            copy_transposed<typename decltype(t)::type>(dst, to, src, from, dims, ndim, k);
          });
        break;
      }
  if (to == from)
    return for_sizes(from, [&](auto t) { copy_same<typename decltype(t)::type>(dst, src, dims, ndim); });
  copy_cast(dst, to, src, from, dims, ndim);
}

static std::pair<const char*, const char*> span(const View& v) {
  int64_t low = 0, high = 0;
  for (int d = 0; d < v.ndim; ++d) (v.strides[d] < 0 ? low : high) += (v.shape[d] - 1) * v.strides[d];
  return {v.data + low, v.data + high + itemsize(v.dtype)};
}

bool may_overlap(const View& a, const View& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  const auto [a0, a1] = span(a);
  const auto [b0, b1] = span(b);
  return a0 < b1 && b0 < a1;
}

void copy(const View& dst, const View& src) {
  if (src.dtype == Dtype::none || dst.dtype == Dtype::none || src.ndim > dst.ndim || dst.ndim > COPY_DIMS)
    throw ValueError("copy: not for these arrays");
  CopyDim dims[COPY_DIMS];
  const int lead = dst.ndim - src.ndim;
  bool same = dst.data == src.data && dst.dtype == src.dtype && lead == 0;
  for (int d = 0; d < dst.ndim; ++d) {
    const int64_t n = d < lead ? 1 : src.shape[d - lead];
    if (n != dst.shape[d] && n != 1) throw ValueError("copy: shapes do not broadcast");
    dims[d] = {dst.shape[d], dst.strides[d], n == 1 ? 0 : src.strides[d - lead]};
    same = same && (dst.shape[d] == 1 || dims[d].d == dims[d].s);
  }
  if (same) return;
  if (may_overlap(dst, src)) {
    const int64_t item = itemsize(src.dtype), n = src.numel();
    Scratch<char> held(n * item);
    CopyDim in[COPY_DIMS];
    int64_t step = item;
    for (int d = src.ndim - 1; d >= 0; --d) {
      in[d] = {src.shape[d], step, src.strides[d]};
      if (src.shape[d] != 1) dims[d + lead].s = step;
      step *= src.shape[d];
    }
    copy_block(held, src.dtype, src.data, src.dtype, in, src.ndim);
    copy_block(dst.data, dst.dtype, held, src.dtype, dims, dst.ndim);
    return;
  }
  copy_block(dst.data, dst.dtype, src.data, src.dtype, dims, dst.ndim);
}

void fill(const View& dst, const void* value) {
  CopyDim given[COPY_DIMS], dims[COPY_DIMS];
  for (int d = 0; d < dst.ndim; ++d) given[d] = {dst.shape[d], dst.strides[d], 0};
  int ndim;
  if (!arrange(given, dst.ndim, dims, ndim)) return;
  const int64_t item = itemsize(dst.dtype);
  if (ndim == 0) {
    std::memcpy(dst.data, value, size_t(item));
    return;
  }
  if (ndim == 1 && dims[0].d == item) {
    const char* bytes = static_cast<const char*>(value);
    bool zero = true;
    char pattern[64];
    for (int64_t i = 0; i < 64; ++i) {
      pattern[i] = bytes[i % item];
      zero = zero && pattern[i] == 0;
    }
    return zero ? zero_bytes(dst.data, dims[0].n * item) : fill_bytes(dst.data, pattern, dims[0].n * item);
  }
  for_sizes(dst.dtype, [&](auto t) {
    copy_same<typename decltype(t)::type>(dst.data, static_cast<const char*>(value), dims, ndim);
  });
}

namespace {

// Memory as it came.
VT_KERNEL(nothing) {}

VT_KERNEL(copy) { copy(c.view(0), c.view(1)); }

// fill(out, value): a number, or an array of one element.
VT_KERNEL(fill) {
  const View& out = c.view(0);
  if (out.dtype == Dtype::none) throw ValueError("fill: not for this array");
  alignas(16) char value[16];
  if (c.views.size() > 1) cast_fn(c.view(1).dtype, out.dtype)(value, 0, c.view(1).data, 0, 1);
  else if (!c.ints.empty()) cast_fn(Dtype::i64, out.dtype)(value, 0, reinterpret_cast<const char*>(&c.ints[0]), 0, 1);
  else cast_fn(Dtype::f64, out.dtype)(value, 0, reinterpret_cast<const char*>(&c.floats[0]), 0, 1);
  fill(out, value);
}

}  // namespace

}  // namespace vt
