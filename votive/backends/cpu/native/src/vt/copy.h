// Moving elements between any two layouts, converting them where the types differ.
#pragma once
#include "view.h"

namespace vt {

// One dimension of a copy: its size and the byte strides on both sides.
struct CopyDim {
  int64_t n, d, s;
};
constexpr int COPY_DIMS = 40;

// The elements of a block, given by its dimensions in any order. Strides of the source may be zero or
// negative. The two sides must not overlap.
void copy_block(char* dst, Dtype to, const char* src, Dtype from, const CopyDim* dims, int ndim);

// `src`, broadcast, over `dst`; as if `src` was read before the first write.
void copy(const View& dst, const View& src);

// Whether two arrays may share a byte.
bool may_overlap(const View& a, const View& b);

// Dense memory, with all threads.
void copy_bytes(char* dst, const char* src, int64_t bytes);
void zero_bytes(char* dst, int64_t bytes);

// One value, of the type of `dst`, everywhere.
void fill(const View& dst, const void* value);

}  // namespace vt
