// Conversion between every pair of element types.
#include "vt/cast.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace vt {

template <class D, class S> static void cast_dense(D* d, const S* s, int64_t n) {
  int64_t i = 0;
#if defined(__F16C__)
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

template <class D, class S> static void cast_row(char* dst, int64_t ds, const char* src, int64_t ss, int64_t n) {
  if (ds == int64_t(sizeof(D)) && ss == int64_t(sizeof(S))) {
    if constexpr (std::is_same_v<D, S>) std::memcpy(dst, src, size_t(n) * sizeof(D));
    else cast_dense(reinterpret_cast<D*>(dst), reinterpret_cast<const S*>(src), n);
    return;
  }
  if (ss == 0) {
    if (n == 0) return;  // there may be no element to read
    const D v = convert<D>(*reinterpret_cast<const S*>(src));
    if (ds == int64_t(sizeof(D))) {
      D* d = reinterpret_cast<D*>(dst);
      for (int64_t i = 0; i < n; ++i) d[i] = v;
      return;
    }
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<D*>(dst + i * ds) = v;
    return;
  }
#pragma GCC unroll 4
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<D*>(dst + i * ds) = convert<D>(*reinterpret_cast<const S*>(src + i * ss));
}

template <class S> static void fill_table(CastFn* row) {
  row[int(Dtype::b1)] = cast_row<bool, S>;
  row[int(Dtype::i8)] = cast_row<int8_t, S>;
  row[int(Dtype::i16)] = cast_row<int16_t, S>;
  row[int(Dtype::i32)] = cast_row<int32_t, S>;
  row[int(Dtype::i64)] = cast_row<int64_t, S>;
  row[int(Dtype::u8)] = cast_row<uint8_t, S>;
  row[int(Dtype::u16)] = cast_row<uint16_t, S>;
  row[int(Dtype::u32)] = cast_row<uint32_t, S>;
  row[int(Dtype::u64)] = cast_row<uint64_t, S>;
  row[int(Dtype::f16)] = cast_row<f16, S>;
  row[int(Dtype::bf16)] = cast_row<bf16, S>;
  row[int(Dtype::f32)] = cast_row<float, S>;
  row[int(Dtype::f64)] = cast_row<double, S>;
  row[int(Dtype::c64)] = cast_row<c64, S>;
  row[int(Dtype::c128)] = cast_row<c128, S>;
}

namespace {
struct Table {
  CastFn fn[DTYPES][DTYPES];
  Table() {
    fill_table<bool>(fn[int(Dtype::b1)]);
    fill_table<int8_t>(fn[int(Dtype::i8)]);
    fill_table<int16_t>(fn[int(Dtype::i16)]);
    fill_table<int32_t>(fn[int(Dtype::i32)]);
    fill_table<int64_t>(fn[int(Dtype::i64)]);
    fill_table<uint8_t>(fn[int(Dtype::u8)]);
    fill_table<uint16_t>(fn[int(Dtype::u16)]);
    fill_table<uint32_t>(fn[int(Dtype::u32)]);
    fill_table<uint64_t>(fn[int(Dtype::u64)]);
    fill_table<f16>(fn[int(Dtype::f16)]);
    fill_table<bf16>(fn[int(Dtype::bf16)]);
    fill_table<float>(fn[int(Dtype::f32)]);
    fill_table<double>(fn[int(Dtype::f64)]);
    fill_table<c64>(fn[int(Dtype::c64)]);
    fill_table<c128>(fn[int(Dtype::c128)]);
  }
};
}  // namespace

CastFn cast_fn(Dtype from, Dtype to) {
  static const Table table;
  return table.fn[int(from)][int(to)];
}

void cast_block(CastFn fn, int64_t src_item, char* dst, int64_t d_row, int64_t d_col, const char* src,
                int64_t s_row, int64_t s_col, int64_t rows, int64_t cols) {
  const bool by_column = (s_row == src_item && s_col != src_item && rows > 1) || (cols < 4 && rows > cols);
  if (by_column) {
    for (int64_t c = 0; c < cols; ++c) fn(dst + c * d_col, d_row, src + c * s_col, s_row, rows);
  } else {
    for (int64_t r = 0; r < rows; ++r) fn(dst + r * d_row, d_col, src + r * s_row, s_col, cols);
  }
}

}  // namespace vt
