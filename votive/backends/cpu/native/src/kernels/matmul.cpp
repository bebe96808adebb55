// Products of matrices, vectors and batches of them, alone or added to something.
#include <algorithm>
#include <utility>

#include "vt/gemm_core.h"
#include "vt/kernel.h"

namespace vt {
namespace {

// Leading dimensions, merged where all arrays allow it.
struct Batch {
  static constexpr int MOST = 32, ARRAYS = 4;
  int ndim = 0;
  int64_t shape[MOST], s[ARRAYS][MOST];  // bytes, of a, b, c, x
  int64_t count = 1;

  void add(int64_t n, const int64_t (&step)[ARRAYS]) {  // outermost first
    count *= n;
    if (n == 1) return;
    if (ndim > 0) {
      bool merge = true;
      for (int q = 0; q < ARRAYS; ++q) merge = merge && s[q][ndim - 1] == n * step[q];
      if (merge) {
        shape[ndim - 1] *= n;
        for (int q = 0; q < ARRAYS; ++q) s[q][ndim - 1] = step[q];
        return;
      }
    }
    if (ndim == MOST) throw ValueError("matmul: too many dimensions");
    shape[ndim] = n;
    for (int q = 0; q < ARRAYS; ++q) s[q][ndim] = step[q];
    ++ndim;
  }

  void at(int64_t index, int64_t (&offset)[ARRAYS]) const {
    for (int64_t& o : offset) o = 0;
    for (int d = ndim - 1; d >= 0; --d) {
      const int64_t i = index % shape[d];
      index /= shape[d];
      for (int q = 0; q < ARRAYS; ++q) offset[q] += i * s[q][d];
    }
  }
};

// The byte stride of the batch dimension that is `back` places before the matrix, 0 where broadcast.
int64_t batch_stride(const View& v, int matrix, int back) {
  const int d = v.ndim - matrix - back;
  return d < 0 || v.shape[d] == 1 ? 0 : v.strides[d];
}

bool is_whole(Dtype d) { return d != Dtype::f32 && d != Dtype::f64 && d != Dtype::f16 && d != Dtype::bf16; }

struct Scale {  // for floats and for integers
  double real;
  int64_t whole;
};

// out = f(alpha * a @ b + beta * x). `b_swapped`: b holds the transposed matrix.
void run(const View& a, const View& b, bool b_swapped, const View& out, const View& x = {}, Scale beta = {0, 0},
         Scale alpha = {1, 1}, Activation f = Activation::none) {
  const int am = std::min(a.ndim, 2), bm = std::min(b.ndim, 2);
  const int64_t K = a.size(-1);
  int64_t M = am == 2 ? a.size(-2) : 1;
  const int64_t N = bm == 2 ? b.size(b_swapped ? -2 : -1) : 1;
  const int cm = (am == 2) + (bm == 2);
  Place A{a.data, am == 2 ? a.strides[a.ndim - 2] : 0, a.strides[a.ndim - 1]};
  Place B{b.data, 0, 0};
  if (bm == 1) B.row = b.strides[b.ndim - 1];
  else {
    B.row = b.strides[b.ndim - 2];
    B.col = b.strides[b.ndim - 1];
    if (b_swapped) std::swap(B.row, B.col);
  }
  Result C{};
  C.data = out.data;
  const int64_t item = itemsize(out.dtype);
  C.col = bm == 2 ? out.strides[out.ndim - 1] : item;
  C.row = am == 2 ? out.strides[out.ndim - cm] : 0;
  C.alpha = alpha.real;
  C.int_alpha = alpha.whole;
  // What broadcasts against the result counts its dimensions from the end.
  const auto step = [](const View& v, int back) {
    const int d = v.ndim - back;
    return d < 0 || v.shape[d] == 1 ? int64_t(0) : v.strides[d];
  };
  C.activate = activation(f, out.dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32);
  if (x && (is_whole(out.dtype) ? beta.whole != 0 : beta.real != 0)) {
    C.x = x.data;
    C.beta = beta.real;
    C.int_beta = beta.whole;
    if (bm == 2) C.x_col = step(x, 1);
    if (am == 2) C.x_row = step(x, cm);
  }

  Batch batch;
  const int dims = out.ndim - cm;
  for (int d = 0; d < dims; ++d) {
    const int back = dims - d;
    const int64_t steps[] = {batch_stride(a, am, back), batch_stride(b, bm, back), out.strides[d],
                             C.x ? batch_stride(x, cm, back) : 0};
    batch.add(out.shape[d], steps);
  }
  if (batch.count == 0) return;
  // One matrix for a whole batch: the batch is more rows.
  if (batch.ndim == 1 && batch.s[1][0] == 0 && batch.count > 1) {
    const int64_t n = batch.shape[0];
    const auto folds = [&](int q, int64_t row) { return M == 1 || batch.s[q][0] == M * row; };
    if (folds(0, A.row) && folds(2, C.row) && (!C.x || folds(3, C.x_row))) {
      if (M == 1) {
        A.row = batch.s[0][0];
        C.row = batch.s[2][0];
        C.x_row = batch.s[3][0];
      }
      M *= n;
      batch.ndim = 0;
      batch.count = 1;
    }
  }
  const auto one = [&](int64_t index) {
    int64_t at[Batch::ARRAYS];
    batch.at(index, at);
    Result R = C;
    R.data += at[2];
    if (R.x) R.x += at[3];
    product(a.dtype, out.dtype, M, N, K, {A.data + at[0], A.row, A.col}, {B.data + at[1], B.row, B.col}, R);
  };
  if (batch.count == 1) return one(0);
  const int64_t steps = std::max<int64_t>(1, M * N * K / 16);
  // Threads share large products when there are not enough of them to go round.
  if (batch.count < 2 * num_threads() && steps > (1 << 18)) {
    for (int64_t i = 0; i < batch.count; ++i) one(i);
    return;
  }
  parallel_for(batch.count, grain_for(steps), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}

// a, b, out
VT_KERNEL(matmul) { run(c.view(0), c.view(1), false, c.view(2)); }

// x, weight, bias or None, out
VT_KERNEL(linear) {
  const Scale once{c.view(2) ? 1.0 : 0.0, c.view(2) ? 1 : 0};
  run(c.view(0), c.view(1), true, c.view(3), c.view(2), once);
}

// x, weight, bias or None, out; the activation
VT_KERNEL(linear_activated) {
  const Scale once{c.view(2) ? 1.0 : 0.0, c.view(2) ? 1 : 0};
  run(c.view(0), c.view(1), true, c.view(3), c.view(2), once, {1, 1}, Activation(c.i(0)));
}

// beta and alpha, each as an integer or as a float, as the numbers at `kinds` say; further ones follow from `ints`.
std::pair<Scale, Scale> scales(const Call& c, int kinds, Dtype out) {
  int ints = kinds + 2, floats = 0;
  const auto scale = [&](bool is_whole) {
    if (!is_whole) {
      const double f = c.f(floats++);
      return Scale{f, int64_t(f)};  // a fractional factor of integers is cut off
    }
    const int64_t n = c.i(ints++);
    return Scale{double(n), n};
  };
  const Scale beta = scale(c.i(kinds)), alpha = scale(c.i(kinds + 1));
  const int bits = int(8 * itemsize(out)) - (out == Dtype::u8 ? 0 : 1);
  if (is_whole(out) && bits < 63)
    for (const Scale& s : {beta, alpha})
      if (s.whole >= (int64_t(1) << bits) || s.whole < -(int64_t(1) << bits))
        throw std::overflow_error("addmm: beta and alpha must fit into the tensors' type.");
  return {beta, alpha};
}

// x, a, b, out; what kinds beta and alpha are, then themselves
VT_KERNEL(addmm) {
  const auto [beta, alpha] = scales(c, 0, c.view(3).dtype);
  run(c.view(1), c.view(2), false, c.view(3), c.view(0), beta, alpha);
}

// The same behind the activation.
VT_KERNEL(addmm_activated) {
  const auto [beta, alpha] = scales(c, 1, c.view(3).dtype);
  run(c.view(1), c.view(2), false, c.view(3), c.view(0), beta, alpha, Activation(c.i(0)));
}

}  // namespace
}  // namespace vt
