// Conversion of rows and small blocks between any two element types and strides.
#pragma once
#include "dtype.h"

namespace vt {

// n elements from src (byte stride ss) to dst (byte stride ds).
using CastFn = void (*)(char* dst, int64_t ds, const char* src, int64_t ss, int64_t n);
CastFn cast_fn(Dtype from, Dtype to);

// rows x cols elements; strides in bytes. The loop order follows the source where that is the
// better one, so that a transposed block is read along its memory.
void cast_block(CastFn fn, int64_t src_item, int64_t dst_item, char* dst, int64_t d_row, int64_t d_col, const char* src,
                int64_t s_row, int64_t s_col, int64_t rows, int64_t cols);

}  // namespace vt
