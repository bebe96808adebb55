// Conversion between every pair of element types.
#include "vt/cast.h"

#include "vt/halves.h"

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
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; ++i)
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

void cast_block(CastFn fn, int64_t src_item, char* dst, int64_t d_row, int64_t d_col, const char* src,
                int64_t s_row, int64_t s_col, int64_t rows, int64_t cols) {
  // Along what is dense, unless that is so short that starting over costs more than the jumps.
  const bool dense = s_row == src_item && s_col != src_item && rows > 1;
  const bool by_column = (dense && (rows >= 16 || cols < 4 * rows)) || (cols < 4 && rows > cols);
  if (by_column) {
    for (int64_t c = 0; c < cols; ++c) fn(dst + c * d_col, d_row, src + c * s_col, s_row, rows);
  } else {
    for (int64_t r = 0; r < rows; ++r) fn(dst + r * d_row, d_col, src + r * s_row, s_col, cols);
  }
}

}  // namespace vt
