// Products of unsigned with signed bytes, summed in 32 bits: 64 columns of a weight at a time with a few rows.
//
// A weight lies in panels of 16 columns: for each 4 neighbours along k, those 4 bytes of each column.
#pragma once
#include <cstdint>

namespace vt::int8 {

constexpr int PANEL = 16;    // columns of a panel
constexpr int WIDE = 64;     // columns that are summed at a time
constexpr int MOST_ROWS = 6;

// y[r][n] = sum over k of x[r][k] w[k][n] for `rows` <= MOST_ROWS rows, `step` bytes apart, and `panels` <= 4 panels,
// which are `quads` times 64 bytes long. x is read up to a multiple of 4 bytes. y has rows of WIDE.
using Sums = void (*)(const uint8_t* x, int64_t step, int64_t rows, const int8_t* w, int64_t panels, int64_t quads,
                      int32_t* y);

// The best that the processor has; `way` forces one: 1 plain, 2 AVX2, 3 VNNI (where it is missing, the next lower one).
Sums sums(int64_t way);

}  // namespace vt::int8
