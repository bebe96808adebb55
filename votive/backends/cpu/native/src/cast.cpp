// Conversion between every pair of element types.
#include "vt/cast.h"

#include <algorithm>

#include "vt/halves.h"
#include "vt/transpose.h"

namespace vt {

template <class D, class S> static void cast_dense(D* d, const S* s, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr ((std::is_same_v<D, float> && is_narrow<S>) || (is_narrow<D> && std::is_same_v<S, float>))
    for (; i + 16 <= n; i += 16) {
      if constexpr (is_narrow<S>) store<float>(d + i, load_half<S>(s + i));
      else store_half<D>(d + i, load<float>(s + i));
    }
#elif defined(__F16C__)
  if constexpr (std::is_same_v<D, float> && std::is_same_v<S, f16>) {
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(s + i))));
  } else if constexpr (std::is_same_v<D, f16> && std::is_same_v<S, float>) {
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(d + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  if constexpr (std::is_same_v<S, bool> && !std::is_same_v<D, bool>) {
    // Read as bytes: loads of bool are not turned into vector code.
    const uint8_t* bytes = reinterpret_cast<const uint8_t*>(s);
#pragma GCC ivdep
    for (; i < n; ++i) d[i] = convert<D>(uint8_t(bytes[i] != 0));
    return;
  }
#pragma GCC ivdep
  for (; i < n; ++i) d[i] = convert<D>(s[i]);
}

// Every second element side by side; returns how many were taken. The last one is left: the vector that ends with it
// would end one element later.
template <class T> static int64_t take_second(T* d, const T* s, int64_t n) {
  constexpr int N = VECTOR_BYTES / int(sizeof(T));
  typedef T V __attribute__((vector_size(VECTOR_BYTES)));
  int64_t i = 0;
  for (; i + N < n; i += N) {
    V a, b;
    std::memcpy(&a, s + 2 * i, sizeof a);
    std::memcpy(&b, s + 2 * i + N, sizeof b);
    const V v = [&]<size_t... K>(std::index_sequence<K...>) { return __builtin_shufflevector(a, b, (2 * int(K))...); }
    (std::make_index_sequence<N>{});
    std::memcpy(d + i, &v, sizeof v);
  }
  return i;
}
template <size_t BYTES> struct BitsOf;
template <> struct BitsOf<1> { using type = uint8_t; };
template <> struct BitsOf<2> { using type = uint16_t; };
template <> struct BitsOf<4> { using type = uint32_t; };
template <> struct BitsOf<8> { using type = uint64_t; };

template <class D, class S> static int64_t cast_second(D* d, const S* s, int64_t n) {
  using B = typename BitsOf<sizeof(S)>::type;
  const B* from = reinterpret_cast<const B*>(s);
  if constexpr (std::is_same_v<D, S>) return take_second(reinterpret_cast<B*>(d), from, n);
  else {
    constexpr int64_t SOME = 4 * VECTOR_BYTES / int64_t(sizeof(S));
    alignas(64) B dense[SOME];
    int64_t i = 0;
    while (i + SOME < n) {
      take_second(dense, from + 2 * i, SOME + 1);
      cast_dense(d + i, reinterpret_cast<const S*>(dense), SOME);
      i += SOME;
    }
    return i;
  }
}

// Types whose strided rows are worth code of their own.
template <class T>
constexpr bool is_common = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, bf16> || std::is_same_v<T, f16>;

// One value many times. The source's type is gone by now, so this is compiled once per result.
template <class D> static void repeat(char* dst, int64_t ds, D v, int64_t n) {
  if (ds == int64_t(sizeof(D))) {
    D* d = reinterpret_cast<D*>(dst);
    for (int64_t i = 0; i < n; ++i) d[i] = v;
    return;
  }
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<D*>(dst + i * ds) = v;
}

template <class D, class S> static void cast_row(char* dst, int64_t ds, const char* src, int64_t ss, int64_t n) {
  if (ds == int64_t(sizeof(D)) && ss == int64_t(sizeof(S))) {
    if constexpr (std::is_same_v<D, S>) std::memcpy(dst, src, size_t(n) * sizeof(D));
    else cast_dense(reinterpret_cast<D*>(dst), reinterpret_cast<const S*>(src), n);
    return;
  }
  if (ss == 0) {
    if (n == 0) return;  // there may be no element to read
    return repeat<D>(dst, ds, convert<D>(*reinterpret_cast<const S*>(src)), n);
  }
  int64_t i = 0;
  if constexpr (is_common<S> && is_common<D>)
    if (ds == int64_t(sizeof(D)) && ss == 2 * int64_t(sizeof(S)))
      i = cast_second(reinterpret_cast<D*>(dst), reinterpret_cast<const S*>(src), n);
#pragma GCC unroll 4
  for (; i < n; ++i)
    *reinterpret_cast<D*>(dst + i * ds) = convert<D>(*reinterpret_cast<const S*>(src + i * ss));
}

template <class T> constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;
template <class T, bool yes> struct UnsignedIf { using type = T; };
template <class T> struct UnsignedIf<T, true> { using type = std::make_unsigned_t<T>; };

// Casts with the same bits share a function: the sign of an integer matters to its result only from floats to four
// bytes and more, and that of its source only where it is widened.
template <class D, class S> static CastFn function() {
  constexpr bool any_sign = is_integer<D> && (std::is_integral_v<S> || sizeof(D) <= 2);
  constexpr bool cut = any_sign && is_integer<S> && sizeof(D) <= sizeof(S);
  return cast_row<typename UnsignedIf<D, any_sign>::type, typename UnsignedIf<S, cut>::type>;
}

namespace {
template <class... T> struct Types {};
using All = Types<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, f16, bf16, float,
                  double, c64, c128>;

struct Table {
  CastFn fn[DTYPES][DTYPES];
  Table() : Table(All{}) {}
  template <class... S> explicit Table(Types<S...>) { (fill<S>(fn[int(dtype_of<S>)], All{}), ...); }
  template <class S, class... D> static void fill(CastFn* row, Types<D...>) {
    ((row[int(dtype_of<D>)] = function<D, S>()), ...);
  }
};
}  // namespace

CastFn cast_fn(Dtype from, Dtype to) {
  static const Table table;
  return table.fn[int(from)][int(to)];
}

// Blocks that are read along their rows and written along their columns: converted to a dense block, then turned over.
namespace {
constexpr int64_t BLOCK = 2048;

template <class D> void turn(char* dst, int64_t d_row, const char* src, int64_t s_col, int64_t rows, int64_t cols) {
  copies::transpose<D, copies::square_side<D>()>(dst, d_row, src, s_col, rows, cols);
}
template <class D> void cast_turned(CastFn fn, char* dst, int64_t d_row, const char* src, int64_t s_item, int64_t s_col, int64_t rows, int64_t cols) {
  alignas(64) D dense[BLOCK];
  const int64_t item = sizeof(D), high = std::min<int64_t>(rows, 64), wide = BLOCK / high;
  for (int64_t r = 0; r < rows; r += high)
    for (int64_t c = 0; c < cols; c += wide) {
      const int64_t m = std::min(high, rows - r), n = std::min(wide, cols - c);
      if (m == rows && s_col == m * s_item) fn(reinterpret_cast<char*>(dense), item, src + c * s_col, s_item, n * m);
      else
        for (int64_t k = 0; k < n; ++k)
          fn(reinterpret_cast<char*>(dense + k * m), item, src + (c + k) * s_col + r * s_item, s_item, m);
      turn<D>(dst + r * d_row + c * item, d_row, reinterpret_cast<const char*>(dense), m * item, m, n);
    }
}
// A few rows of which each takes every second, third or fourth element of dense memory.
template <class T> bool taken_apart(char* dst, int64_t d_row, const char* src, int64_t rows, int64_t cols) {
  if (rows == 2) copies::unweave<T, 2>(dst, d_row, src, cols);
  else if (rows == 3) copies::unweave<T, 3>(dst, d_row, src, cols);
  else if (rows == 4) copies::unweave<T, 4>(dst, d_row, src, cols);
  else return false;
  return true;
}
bool taken_apart(CastFn fn, char* dst, int64_t d_row, const char* src, int64_t rows, int64_t cols) {
  if (fn == function<float, float>()) return taken_apart<uint32_t>(dst, d_row, src, rows, cols);
  if (fn == function<double, double>()) return taken_apart<uint64_t>(dst, d_row, src, rows, cols);
  if (fn == function<bf16, bf16>() || fn == function<f16, f16>()) return taken_apart<uint16_t>(dst, d_row, src, rows, cols);
  return false;
}
bool turned(CastFn fn, int64_t src_item, char* dst, int64_t d_row, int64_t d_col, const char* src, int64_t s_col,
            int64_t rows, int64_t cols) {
  if (rows < 8 || cols < 4) return false;
  if (d_col == 4) {
    if (fn == function<float, float>()) turn<float>(dst, d_row, src, s_col, rows, cols);
    else cast_turned<float>(fn, dst, d_row, src, src_item, s_col, rows, cols);
  } else if (d_col == 8) {
    if (fn == function<double, double>()) turn<double>(dst, d_row, src, s_col, rows, cols);
    else cast_turned<double>(fn, dst, d_row, src, src_item, s_col, rows, cols);
  } else if (d_col == 2) {
    if (fn == function<bf16, bf16>() || fn == function<f16, f16>()) turn<uint16_t>(dst, d_row, src, s_col, rows, cols);
    else cast_turned<uint16_t>(fn, dst, d_row, src, src_item, s_col, rows, cols);
  } else {
    return false;
  }
  return true;
}
}  // namespace

void cast_block(CastFn fn, int64_t src_item, int64_t dst_item, char* dst, int64_t d_row, int64_t d_col, const char* src,
                int64_t s_row, int64_t s_col, int64_t rows, int64_t cols) {
  if (s_col == src_item && d_col == dst_item && s_row == cols * src_item && d_row == cols * dst_item)
    return fn(dst, dst_item, src, src_item, rows * cols);
  if (rows <= 4 && s_row == src_item && s_col == rows * src_item && d_col == dst_item && taken_apart(fn, dst, d_row, src, rows, cols))
    return;
  // Along what is dense, unless that is so short that starting over costs more than the jumps.
  const bool dense = s_row == src_item && s_col != src_item && rows > 1;
  const bool by_column = (dense && (rows >= 16 || cols < 4 * rows)) || (cols < 4 && rows > cols);
  // One after the other they are converted as one, whatever their length.
  const bool joined = dense && rows <= 64 && s_col == rows * src_item;
  if ((by_column || joined) && dense && d_col == dst_item && turned(fn, src_item, dst, d_row, d_col, src, s_col, rows, cols))
    return;
  if (by_column) {
    for (int64_t c = 0; c < cols; ++c) fn(dst + c * d_col, d_row, src + c * s_col, s_row, rows);
  } else {
    for (int64_t r = 0; r < rows; ++r) fn(dst + r * d_row, d_col, src + r * s_row, s_col, cols);
  }
}

}  // namespace vt
