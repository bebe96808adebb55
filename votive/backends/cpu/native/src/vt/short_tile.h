// Tiles of many short rows, reduced as columns: every step is then on neighbours.
#pragma once
#include <algorithm>

#include "reduce.h"

namespace vt {

constexpr int64_t SHORT_ROW = 16;

// f(first row, tile) with the rows of a tile as columns, some at a time.
template <class C, class F> void as_columns(const Tile& t, F&& f) {
  constexpr int64_t SOME = std::min<int64_t>(COLUMNS, 128);
  alignas(64) C turned[SHORT_ROW * SOME];
  const C* p = static_cast<const C*>(t.data);
  for (int64_t r0 = 0; r0 < t.rows; r0 += SOME, p += SOME * t.row) {
    const int64_t n = std::min(SOME, t.rows - r0);
    for (int64_t j = 0; j < t.cols; ++j)
#pragma GCC ivdep
      for (int64_t r = 0; r < n; ++r) turned[j * SOME + r] = p[r * t.row + j];
    Tile columns = t;
    columns.data = turned, columns.row = SOME, columns.rows = t.cols, columns.cols = n;
    f(r0, columns);
  }
}

}  // namespace vt
