// Formulas over arrays of any layout and type, tile by tile.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cast.h"
#include "view.h"

namespace vt {

// A primitive or a whole compiled formula on dense tiles of the compute type.
using TileFn = void (*)(void* out, const void* const* in, int64_t n);

// By name and compute type (f32, f64, i32, i64); nullptr when there is none. There may be others under the same name
// that read only the first element of their last `numbers` inputs, and for half types some that widen and round by the way;
// numbers are floats then.
TileFn find_tile(const std::string& name, Dtype compute, int numbers = 0);
void add_tile(const char* name, Dtype compute, TileFn fn, int numbers = 0);

struct Step {
  TileFn fn;
  int out;
  int in[8];
  int arity;
  int numbers;    // how many of its last inputs are one value
};

constexpr int MAX_DIMS = 16;
constexpr int MAX_INPUTS = 12;
constexpr int64_t TILE = 1024;  // elements of a register of the tile interpreter

// Where an operand's elements are, in the order of the loops (innermost first).
struct Operand {
  Dtype dtype;
  CastFn cast;           // between its type and the compute type
  CastFn back = nullptr; // when it is rounded on the way: from `via` to the compute type
  Dtype via = Dtype::none;
  int64_t strides[MAX_DIMS];
  bool scalar;  // one value for all elements
};

// A formula bound to layouts. Made once per plan, run many times, from any thread.
struct Program {
  Dtype compute;
  bool narrow = false;  // tiles are of a half type, numbers are floats
  std::vector<Step> steps;
  std::vector<double> constants;
  std::vector<int64_t> int_constants;
  int inputs = 0;
  int registers = 0;  // inputs, then constants, then temporaries
  int result = 0;     // the register that holds the value
  Operand in[MAX_INPUTS];
  Operand out;
  int ndim = 0;
  int64_t shape[MAX_DIMS];
  int64_t numel = 1;
  int64_t cost = 1;  // rough steps per element

  // Works on tiles of a half type if that is all there is: no tiles are widened then.
  void use_narrow(const std::string& step);

  // `shape` and byte strides as Python sees them, outermost first; strides broadcast to shape.
  void bind(const std::vector<int64_t>& shape, const std::vector<int64_t>& out_strides,
            const std::vector<std::vector<int64_t>>& in_strides);
  // Pointers to the first elements; for numbers, to a value of the compute type.
  void run(char* out, const char* const* in) const;
  void run_tiles(char* out, const char* const* in, int64_t begin, int64_t end) const;
  void run_rows(char* out, const char* const* in, const void* const* at, int64_t begin, int64_t end) const;

  // Whether a register holds one value for all elements, and whether a step wants it in every place of a tile.
  bool is_number(int r) const { return r < inputs ? in[r].scalar : r < registers - int(steps.size()); }
  bool is_spread(int r) const;

  // The tile: `cols` along dimension 0, `rows` along dimension `second`.
  int64_t cols = 1, rows = 1;
  int second = -1;
  int64_t tiles0 = 1, tiles1 = 1, tiles = 1;
  bool all_direct = false;
};

}  // namespace vt
