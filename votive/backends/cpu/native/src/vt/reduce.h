// Reductions over any dimensions of any layout: what a reduction is, where its elements come from,
// and the engine that brings the two together.
#pragma once
#include <cstdint>
#include <vector>

#include "dtype.h"
#include "elementwise.h"

namespace vt {

// A tile of elements of the reducer's compute type: rows `row` elements apart, columns dense.
struct Tile {
  const void* data;
  int64_t row, rows, cols;
  // The place of the first element in the logical order of the reduced elements, and the steps.
  int64_t base = 0, base_row = 0, base_col = 0;
};

// How elements are gathered into accumulators. Accumulators lie densely, `bytes` each.
struct Reducer {
  Dtype compute;
  int64_t bytes;
  void (*init)(void* acc, int64_t n);
  // Each row of the tile into one accumulator: `step` accumulators from one row to the next (0: all
  // rows go into one).
  void (*rows)(void* acc, int64_t step, const Tile& t);
  // Each column of the tile into the accumulator of its number. At most COLUMNS columns.
  void (*cols)(void* acc, const Tile& t);
  void (*merge)(void* acc, const void* other, int64_t n);
  bool indexed = false;  // looks at places: columns of several rows may not be folded
};
constexpr int64_t COLUMNS = 1024;
constexpr int64_t ROWS = 128;  // of a tile that is reduced by columns

// One dimension of the space that is reduced. Strides in bytes; `logical` in elements.
struct ReduceDim {
  int64_t n;
  int64_t in[MAX_INPUTS];
  int64_t out[2];
  int64_t logical;
  bool reduced;
};

// Where the elements come from. Several threads use one source, each with memory of its own.
struct Source {
  int inputs = 1;
  int64_t cost = 1;
  virtual ~Source() = default;
  // After the dimensions are ordered: `cols` along dimension 0, `rows` along dimension `second`.
  virtual void arrange(const std::vector<ReduceDim>& dims, int second) = 0;
  virtual bool direct() const = 0;  // tiles are the input's memory, so they may be large
  virtual int64_t memory(int64_t elements) const = 0;
  virtual void begin(char* /*memory*/, int64_t /*elements*/) const {}
  // The tile whose first element is `at[k]` bytes into input k.
  virtual void load(char* memory, int64_t elements, const int64_t* at, Tile& t) const = 0;
};

// Elements of one array, converted to the compute type on the way.
struct ArraySource : Source {
  ArraySource(const char* data, Dtype have, Dtype want);
  void arrange(const std::vector<ReduceDim>& dims, int second) override;
  bool direct() const override { return dense; }
  int64_t memory(int64_t elements) const override { return dense ? 0 : elements * itemsize(want); }
  void load(char* memory, int64_t elements, const int64_t* at, Tile& t) const override;

 private:
  const char* data;
  Dtype have, want;
  CastFn cast;
  bool dense = false;
  int64_t col = 0, row = 0;
};

// Values of a formula, which are never written down. `p` needs no layout: the dimensions have it.
struct FormulaSource : Source {
  FormulaSource(const Program& p, const char* const* in);
  void arrange(const std::vector<ReduceDim>& dims, int second) override;
  bool direct() const override { return false; }
  int64_t memory(int64_t elements) const override;
  void begin(char* memory, int64_t elements) const override;
  void load(char* memory, int64_t elements, const int64_t* at, Tile& t) const override;

 private:
  int64_t stride(int64_t elements) const { return (elements * itemsize(p.compute) + 127) & ~int64_t(63); }
  const Program& p;
  const char* const* in;
  int64_t col[MAX_INPUTS], row[MAX_INPUTS];
};

// Writes n results: accumulators to out + k * stride. May change the accumulators.
struct Store {
  virtual ~Store() = default;
  virtual void operator()(void* acc, int64_t n, char* const* out, const int64_t* stride) const = 0;
};

void reduce(std::vector<ReduceDim> dims, Source& source, const Reducer& reducer, const Store& store,
            char* const* out);

enum class Reduction { sum, nansum, sum_abs, sum_square, prod, max, min, max_abs, min_abs };
// The reducer for a compute type (f32, f64, i64; b1 and u8 for sum, max and min; i32 for max and min;
// bf16 for sum), or nullptr. Sums are accumulated in double or int64, the others in the compute type.
const Reducer* find_reducer(Reduction kind, Dtype compute);
// The type of its accumulators.
Dtype accumulator_of(Reduction kind, Dtype compute);

// value / divisor, then ** power, rounded to the type of the result.
struct StoreValue : Store {
  StoreValue(Dtype acc, Dtype out, double divisor = 1, double power = 1)
      : acc(acc), cast(cast_fn(acc, out)), divisor(divisor), power(power) {}
  void operator()(void* acc, int64_t n, char* const* out, const int64_t* stride) const override;
  Dtype acc;
  CastFn cast;
  double divisor, power;
};

// Dimensions of a reduction of `x` over those in `mask`, the results in `out` and `out1`, which have
// the kept dimensions or all.
std::vector<ReduceDim> reduce_dims(const View& x, uint64_t mask, const View& out, const View& out1 = View());

}  // namespace vt
