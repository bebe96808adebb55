// Rows of numbers as blocks that are written while a program runs: what caches of keys and values hold.
#pragma once
#include <cstdint>

namespace vt::rows {

struct Format {
  int64_t size, bytes;                                       // of a block
  void (*read)(const uint8_t* b, int64_t n, float* to);      // n blocks as numbers
  void (*write)(const float* x, int64_t n, uint8_t* b);      // numbers as n blocks, each rounded once
};

// By the number in native/row_blocks.py.
const Format& format(int64_t code);

}  // namespace vt::rows
