// Block formats by number, and inputs rounded to eight bits: what the kernels of weights in blocks share.
#pragma once
#include <cstdint>

#include "vt/scratch.h"

namespace vt::blocks {

constexpr int WHOLE = 256;    // elements that are taken together; rows end in zeros up to a multiple
constexpr int MOST_ROWS = 4;  // rows of an input that meet a row of blocks at a time

// Rows as codes of eight bits: for each 32 neighbours a scale, and the sums of what 32 and 16 of them stand for. For
// products of single precision they stay as they are.
class Rounded {
 public:
  Rounded(const float* x, int64_t rows, int64_t K, bool to_codes);
  const int64_t rows, wholes, width;
  const float* row(int64_t r) const { return x_ + r * width; }
  const int8_t* codes(int64_t row, int64_t whole) const { return codes_.get() + (row * wholes + whole) * WHOLE; }
  const float* scales(int64_t row, int64_t whole) const { return numbers_.get() + (row * wholes + whole) * 32; }
  const float* sums32(int64_t row, int64_t whole) const { return scales(row, whole) + 8; }
  const float* sums16(int64_t row, int64_t whole) const { return scales(row, whole) + 16; }

 private:
  const float* x_;
  Scratch<int8_t> codes_;
  Scratch<float> numbers_;
};

// y[r] = a row of blocks times row `row` + r of x, for `count` <= MOST_ROWS rows. `room` bytes from w on may be read.
using Dots = void (*)(const uint8_t* w, int64_t blocks, int64_t room, const Rounded& x, int64_t row, int64_t count,
                      float* y);

struct Format {
  const char* name;                                        // of the dtype, in capitals
  int64_t size, bytes;                                     // of a block
  void (*decode)(const uint8_t* b, int64_t n, float* to);  // n blocks as numbers
  Dots dots;                                               // with rows of codes; nullptr where codes are no integers
};

int64_t formats();
// By the place in quantized_list.h.
const Format& format(int64_t code);
// The products by VNNI; nullptr where the level or the processor has none, and where codes are no integers.
Dots vnni_dots(int64_t code);
// 256 elements of a row as codes from 0 to 255, with 16 scales and minima: x = scale u - least.
using Unfold = void (*)(const uint8_t* w, uint8_t* codes, float* scale, float* least);
struct Tile {
  Unfold unfold;
  int64_t size, bytes, sub;  // of a block; elements that share a scale
};
// As vnni_dots, for products of more rows; `unfold` is nullptr where there is none.
Tile vnni_tile(int64_t code);
// y[r][k] = row k of `count` <= 16 rows of blocks, `step` bytes apart, times row `row` + r of x, for `rows` rows.
void tile_products(const Tile& tile, const uint8_t* w, int64_t step, int64_t count, int64_t blocks, const Rounded& x,
                   int64_t row, int64_t rows, float (*y)[16]);
// The products of single precision, of formats whose codes are no integers.
Dots float_dots(int64_t code);

}  // namespace vt::blocks
