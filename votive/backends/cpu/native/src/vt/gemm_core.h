// Matrix products, apart from element types: micro-kernels, packing, and the loop over blocks that joins them.
#pragma once
#include <cstdint>
#include <utility>

#include "cast.h"

namespace vt {

// A tile of C, rows x vectors, is (or grows by) the sum over k of a[row, k] * b[k, :]. Strides are in bytes; b and
// c are dense along the columns. a may have any strides, so it is packed only where that helps the caches.
using Micro = void (*)(int64_t k, const char* a, int64_t a_row, int64_t a_k, const char* b, int64_t b_k, char* c,
                       int64_t c_row, bool add);

constexpr int MAX_ROWS = 14;

// The micro-kernels of one arithmetic. A unit is what one step of k multiplies: an element, or a few along k.
struct Engine {
  int rows;   // of the largest tile
  int lanes;  // accumulators in a vector; a tile has one or two vectors in a row
  int unit;   // bytes of a unit
  int depth;  // elements of k in a unit
  int acc;    // bytes of an accumulator
  Micro micro[MAX_ROWS][2];  // by rows - 1 and vectors - 1
};

// Units dst[k / depth][width] from items (rows of A, columns of B); what is beyond `items` is zero.
using Pack = void (*)(char* dst, int64_t width, const char* src, int64_t s_item, int64_t s_k, int64_t items, int64_t k);

struct Factor {
  const char* data;
  int64_t s_item, s_k;  // bytes
  int64_t size;         // bytes of an element
  Pack pack;
  CastFn row;   // elements along k to a dense row of units
  bool native;  // elements are parts of units already, so memory can be read in place
};

// What becomes of a sum before it is stored; of a row of accumulators.
enum class Activation { none, relu, gelu, gelu_tanh, silu };
using Activate = void (*)(void* row, int64_t n);
Activate activation(Activation which, Dtype acc);  // f32 or f64; nullptr for none

// C = f(alpha * sum + beta * x), with or without f; with beta 0 x is not read. For a narrow C what f gets is rounded
// to it first, as if f were an operator of its own.
struct Result {
  char* data;
  int64_t row, col;  // bytes
  int64_t size;      // bytes of an element
  bool native;       // elements are accumulators
  const char* x = nullptr;
  int64_t x_row = 0, x_col = 0;
  double alpha = 1, beta = 0;
  int64_t int_alpha = 1, int_beta = 0;  // the same for integers
  Activate activate = nullptr;

  Result bare() const {  // C = sum
    Result r = *this;
    r.x = nullptr;
    r.alpha = r.int_alpha = 1;
    r.beta = r.int_beta = 0;
    r.activate = nullptr;
    return r;
  }
  Result growing() const {  // C += sum
    Result r = bare();
    r.x = data;
    r.x_row = row;
    r.x_col = col;
    r.beta = r.int_beta = 1;
    return r;
  }
  void transpose() {
    std::swap(row, col);
    std::swap(x_row, x_col);
  }
  // Writes a tile of accumulators (`ld` accumulators between rows) at row i, column j of C.
  void (*finish)(const Result&, const char* tile, int64_t ld, int64_t i, int64_t j, int64_t rows, int64_t cols);
};

void multiply(const Engine& e, int64_t M, int64_t N, int64_t K, const Factor& A, const Factor& B, const Result& C);

const Engine& float_engine();
const Engine& double_engine();

// A matrix by bytes: rows x columns with any strides.
struct Place {
  const char* data;
  int64_t row, col;
};

// C of type `to` from factors of type `from`, which is what arithmetic in the accumulators' type is rounded to;
// fills in what Result knows by types. The way is chosen by sizes and strides.
void product(Dtype from, Dtype to, int64_t M, int64_t N, int64_t K, Place A, Place B, Result C);

// For few rows of x: C[m, n] = sum over k of x[m, k] * w[n, k] at the speed of reading w. Floats only.
constexpr int64_t FEW = 4;
void few_rows(Dtype from, int64_t m, int64_t N, int64_t K, Place x, Place w, const Result& C);

// Sums of a few terms, of floats; false: too many, or the result lies badly.
bool product_shallow(Dtype from, Dtype to, int64_t M, int64_t N, int64_t K, Place A, Place B, Result C);

// By type: narrow floats widened or, for bfloat16 where there are instructions, in pairs; integers.
void product_narrow(Dtype from, int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C);
bool product_pairs(int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C);  // false: not on this processor
void product_integers(Dtype from, int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C);

}  // namespace vt
