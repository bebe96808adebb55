// Blocked matrix products of floats and doubles, and the loop over blocks for all element types.
#include "vt/gemm.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "vt/gemm_finish.h"
#include "vt/parallel.h"
#include "vt/scratch.h"

namespace vt {

namespace {

constexpr int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
constexpr int64_t parts(int64_t n, int64_t of) { return (n + of - 1) / of; }

constexpr int64_t MAX_DEPTH = 1024;   // units of k in a block: a few panels stay in the second cache
constexpr int64_t FEW_COLUMNS = 192;  // up to here B is small beside A
constexpr int64_t MAX_ITEMS = 4080;   // rows and columns of a block: its packed factors stay in the last cache
constexpr int64_t MAX_SUMS = 2040;    // the same where sums are kept aside

// Tasks of `cost` steps each, handed out one by one, so that threads end together.
template <class F> void share(int64_t tasks, int64_t cost, F&& task) {
  const int64_t threads = num_threads();
  if (threads == 1 || tasks <= grain_for(cost)) {
    for (int64_t t = 0; t < tasks; ++t) task(t);
    return;
  }
  std::atomic<int64_t> next{0};
  parallel_for(threads, 1, [&](int64_t, int64_t) {
    for (int64_t t; (t = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) task(t);
  });
}

// One block of C: rows [0, M) and columns [0, N) with all of K, from factors moved to its corner.
struct Block {
  const Engine& e;
  int64_t M, N, K;
  Factor A, B;
  Result C;

  int64_t width(int64_t panel) const {  // of a panel of B, in whole vectors
    const int64_t wide = 2 * e.lanes;
    return std::min<int64_t>(wide, up(N - panel * wide, e.lanes));
  }

  // Whether what is added at the end may lie in C.
  bool reads_itself() const {
    if (C.x == nullptr) return false;
    const auto last = [&](int64_t row, int64_t col) { return (M - 1) * row + (N - 1) * col; };
    return C.x <= C.data + last(C.row, C.col) && C.x + last(C.x_row, C.x_col) >= C.data;
  }

  // Asks for what the end of a tile reads and writes, so that it is there when the sums are.
  void fetch(int64_t i, int64_t j, int64_t rows, int64_t cols) const {
    const int64_t bytes = cols * C.size;
    const auto lines = [&](const char* p, int64_t row, int64_t col) {
      if (col != C.size || row == 0) return;
      for (int64_t r = i; r < i + rows; ++r)
        for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(p + r * row + j * col + b);
    };
    lines(C.data, C.row, C.col);
    if (C.x) lines(C.x, C.x_row, C.x_col);
  }

  void run();
};

void Block::run() {
  const int64_t wide = 2 * e.lanes, high = e.rows;
  const int64_t a_panels = parts(M, high), b_panels = parts(N, wide);

  // Sums of several blocks of k wait in C: as they are to stay (in_place), or to be finished after the last block
  // (within). Where C cannot hold them, or is read while it is written, they wait in scratch memory (aside).
  const bool holds = C.native && C.col == e.acc;
  const bool grows = C.beta == 1 && C.x == C.data && C.x_row == C.row && C.x_col == C.col;
  const bool in_place = holds && !C.activate && C.alpha == 1 && (C.beta == 0 || grows);
  const int64_t units = parts(K, e.depth), blocks = parts(units, MAX_DEPTH);
  const int64_t step = parts(units, blocks);
  const bool within = holds && !in_place && blocks > 1 && !reads_itself();
  const bool aside = !in_place && !within && blocks > 1;
  Result to = C;
  Scratch<char> sums(aside ? M * up(N, e.lanes) * e.acc : 0);
  if (aside) {
    to.data = sums;
    to.row = up(N, e.lanes) * e.acc;
    to.col = e.acc;
  }
  const bool stores = in_place || within || aside;

  // A factor is read in place if it holds units and packing would not pay. Rows that are a multiple of the cache's
  // stride apart push each other out of it.
  const bool a_rows = A.s_k == A.size;  // packed as rows of k, else as panels k x rows
  const bool collide = A.s_item % 2048 == 0 && K * A.size > 2048 && M > 8;
  const bool a_units = A.native && (e.depth == 1 || (a_rows && K % e.depth == 0));
  const bool a_place = a_units && (a_rows ? b_panels <= 24 && !collide : b_panels <= 4);
  // Rows may also be packed right before they are used, when there is little use.
  const bool a_soon = !a_place && a_rows && N <= FEW_COLUMNS;
  const bool b_place = B.native && e.depth == 1 && B.s_item == B.size && a_panels <= 4;
  const int64_t a_line = a_rows ? up(step * e.unit, 64) + 64 : e.unit;
  const int64_t a_panel = a_rows ? high * a_line : up(high * step * e.unit, 64) + 64;
  const int64_t b_panel = wide * step * e.unit;
  Scratch<char> a_pack(a_place || a_soon ? 0 : a_panels * a_panel);
  Scratch<char> b_pack(b_place ? b_panel : b_panels * b_panel);

  for (int64_t from = 0; from < units; from += step) {
    const int64_t n = std::min(step, units - from);  // units of k in this block
    const int64_t k0 = from * e.depth, kn = std::min(n * e.depth, K - k0);
    const bool first = from == 0, last = from + n == units;

    // Panels of a transposed A share lines of memory: several are packed by one task, a few steps of k at a time. It
    // does not help B, whose panels are whole lines.
    const bool dense = !a_rows && A.s_item == A.size;
    const int64_t bunch = dense ? std::clamp<int64_t>(a_panels / (2 * num_threads()), 1, 16) : 1;
    const int64_t a_work = a_place || a_soon ? 0 : parts(a_panels, bunch);
    const int64_t b_first = b_place ? N / wide : 0;  // an incomplete panel is packed in any case
    const auto pack_rows = [&](char* dst, int64_t p) {
      const int64_t i = p * high, count = std::min(high, M - i);
      const char* src = A.data + i * A.s_item + k0 * A.s_k;
      for (int64_t r = 0; r < count; ++r) {
        if (kn % e.depth) std::memset(dst + r * a_line + (n - 1) * e.unit, 0, size_t(e.unit));
        A.row(dst + r * a_line, e.unit / e.depth, src + r * A.s_item, A.size, kn);
      }
    };
    const auto pack_bunch = [&](int64_t begin, int64_t end) {
      const int64_t steps = end - begin == 1 ? kn : 16;  // of k, whole units
      for (int64_t k = 0; k < kn; k += steps)
        for (int64_t p = begin; p < end; ++p)
          A.pack(a_pack + p * a_panel + k / e.depth * high * e.unit, high,
                 A.data + p * high * A.s_item + (k0 + k) * A.s_k, A.s_item, A.s_k, std::min(high, M - p * high),
                 std::min(steps, kn - k));
    };
    share(a_work + b_panels - b_first, wide * n, [&](int64_t p) {
      if (p < a_work && a_rows) return pack_rows(a_pack + p * a_panel, p);
      if (p < a_work) return pack_bunch(p * bunch, std::min(a_panels, (p + 1) * bunch));
      const int64_t q = p - a_work + b_first, j = q * wide;
      B.pack(b_pack + (b_place ? 0 : q * b_panel), width(q), B.data + j * B.s_item + k0 * B.s_k, B.s_item, B.s_k,
             std::min(wide, N - j), kn);
    });

    const auto tile = [&](int64_t p, int64_t q, const char* soon) {
      const int64_t i = p * high, j = q * wide;
      const int64_t rows = std::min(high, M - i), cols = std::min(wide, N - j), span = width(q);
      const char* a = a_place ? A.data + i * A.s_item + k0 * A.s_k : a_soon ? soon : a_pack + p * a_panel;
      const int64_t ai = a_place ? A.s_item : a_line;
      const int64_t ak = a_place ? A.s_k * e.depth : a_rows ? e.unit : high * e.unit;
      const bool b_direct = b_place && cols == wide;
      const char* b = b_direct ? B.data + j * B.s_item + k0 * B.s_k : b_pack + (b_place ? 0 : q * b_panel);
      const int64_t bk = b_direct ? B.s_k : span * e.unit;
      const Micro micro = e.micro[rows - 1][span > e.lanes];
      if (!in_place && last) fetch(i, j, rows, cols);
      if (stores && (cols == span || aside)) {
        char* c = to.data + i * to.row + j * e.acc;
        micro(n, a, ai, ak, b, bk, c, to.row, !first || (in_place && grows));
        if (!in_place && last) C.finish(C, c, to.row / e.acc, i, j, rows, cols);
        return;
      }
      alignas(64) char buffer[MAX_ROWS * 2 * 64];
      micro(n, a, ai, ak, b, bk, buffer, wide * e.acc, false);
      if (first && !within) return C.finish(C, buffer, wide, i, j, rows, cols);
      const Result sum = first ? C.bare() : C.growing();  // what is there is sums, which are all that is left to add
      C.finish(sum, buffer, wide, i, j, rows, cols);
      if (within && last) C.finish(C, C.data + i * C.row + j * C.col, C.row / e.acc, i, j, rows, cols);
    };

    // Panels per task: both factors in the second cache, and a few tasks for every thread.
    int64_t tall = std::clamp<int64_t>((128 << 10) / (high * n * e.unit), 1, a_panels);
    int64_t long_ = std::clamp<int64_t>((512 << 10) / (wide * n * e.unit), 1, b_panels);
    const int64_t want = 4 * num_threads();
    while (parts(a_panels, tall) * parts(b_panels, long_) < want && (tall > 1 || long_ > 1))
      if (long_ == 1 || (tall > 1 && tall * high >= long_ * wide)) tall = parts(tall, 2);
      else long_ = parts(long_, 2);
    const int64_t down = parts(a_panels, tall), across = parts(b_panels, long_);
    share(down * across, tall * high * long_ * 2 * n, [&](int64_t t) {
      const int64_t p0 = t % down * tall, q0 = t / down * long_;
      Scratch<char> soon(a_soon ? a_panel : 0);
      for (int64_t p = p0; p < std::min(a_panels, p0 + tall); ++p) {
        if (a_soon) pack_rows(soon, p);
        for (int64_t q = q0; q < std::min(b_panels, q0 + long_); ++q) tile(p, q, soon);
      }
    });
  }
}

void blocks(const Engine& e, int64_t M, int64_t N, int64_t K, const Factor& A, const Factor& B, const Result& C) {
  const bool deep = parts(K, e.depth) > MAX_DEPTH && !(C.native && C.col == e.acc);
  const int64_t most = deep ? MAX_SUMS : MAX_ITEMS;
  for (int64_t j = 0; j < N; j += most)
    for (int64_t i = 0; i < M; i += most) {
      Block part{e, std::min(most, M - i), std::min(most, N - j), K, A, B, C};
      part.A.data += i * A.s_item;
      part.B.data += j * B.s_item;
      part.C.data += i * C.row + j * C.col;
      if (part.C.x) part.C.x += i * C.x_row + j * C.x_col;
      part.run();
    }
}

// Small products whose factors and result can stay where they are need nothing but micro-kernels.
bool tiny(const Engine& e, int64_t M, int64_t N, int64_t K, const Factor& A, const Factor& B, const Result& C) {
  constexpr int64_t MOST = 1 << 16;
  const bool fits = M * N * K <= MOST && K <= MAX_DEPTH && N % e.lanes == 0 && e.depth == 1;
  const bool bare = C.native && C.col == e.acc && C.alpha == 1 && C.beta == 0 && !C.activate;
  if (!fits || !bare || !A.native || !B.native || B.s_item != B.size) return false;
  const int64_t wide = 2 * e.lanes;
  for (int64_t i = 0; i < M; i += e.rows)
    for (int64_t j = 0; j < N; j += wide)
      e.micro[std::min<int64_t>(e.rows, M - i) - 1][N - j > e.lanes](
          K, A.data + i * A.s_item, A.s_item, A.s_k, B.data + j * B.s_item, B.s_k, C.data + i * C.row + j * e.acc,
          C.row, false);
  return true;
}

}  // namespace

void multiply(const Engine& e, int64_t M, int64_t N, int64_t K, const Factor& A, const Factor& B, const Result& C) {
  if (M == 0 || N == 0) return;
  if (K == 0) {
    alignas(64) const char zeros[256] = {};
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < N; j += 16) C.finish(C, zeros, 16, i, j, 1, std::min<int64_t>(16, N - j));
    return;
  }
  if (tiny(e, M, N, K, A, B, C)) return;
  // Vectors lie along the dimension in which C is dense. With few rows they rather lie along the rows
  // than that a large B is transposed.
  const bool by_columns = C.row == C.size && C.col != C.size && M > 1;
  // Not where sums are so short that turning the results costs more, or where whole vectors of rows are mostly empty.
  const bool fills = M <= 16 || up(M, e.lanes) - M <= M / 4;
  const bool few_rows = B.native && B.s_item != B.size && B.s_k == B.size && M <= FEW_COLUMNS && N >= 4 * M && K > M &&
                        fills;
  if (N > 1 && (by_columns || few_rows)) {
    Result T = C;
    T.transpose();
    return blocks(e, N, M, K, B, A, T);
  }
  blocks(e, M, N, K, A, B, C);
}

const Engine& float_engine() {
  static const Engine e = make_engine<Plain<float>>();
  return e;
}
const Engine& double_engine() {
  static const Engine e = make_engine<Plain<double>>();
  return e;
}

namespace {

template <class T> void dense(const Engine& e, int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C) {
  const CastFn copy = cast_fn(dtype_of<T>, dtype_of<T>);
  const Factor a{A.data, A.row, A.col, sizeof(T), pack_units<T>, copy, true};
  const Factor b{B.data, B.col, B.row, sizeof(T), pack_units<T>, copy, true};
  multiply(e, M, N, K, a, b, C);
}

using Finish = decltype(Result::finish);

Finish finish_for(Dtype to) {
  switch (to) {
    case Dtype::f32: return finish<float, float>;
    case Dtype::f64: return finish<double, double>;
    case Dtype::f16: return finish<float, f16>;
    case Dtype::bf16: return finish<float, bf16>;
    case Dtype::i8: return finish<uint32_t, int8_t>;
    case Dtype::u8: return finish<uint32_t, uint8_t>;
    case Dtype::i16: return finish<uint32_t, int16_t>;
    case Dtype::i32: return finish<uint32_t, int32_t>;
    default: return finish<uint64_t, int64_t>;
  }
}

}  // namespace

void product(Dtype from, Dtype to, int64_t M, int64_t N, int64_t K, Place A, Place B, Result C) {
  C.size = itemsize(to);
  C.native = to == Dtype::f32 || to == Dtype::f64 || to == Dtype::i32 || to == Dtype::i64;
  C.finish = finish_for(to);
  const bool floats = from == Dtype::f32 || from == Dtype::f64 || from == Dtype::f16 || from == Dtype::bf16;
  if (floats && product_shallow(from, to, M, N, K, A, B, C)) return;
  if (floats && K > 0 && M > 0 && M <= FEW && M <= N) {
    return few_rows(from, M, N, K, A, {B.data, B.col, B.row}, C);
  } else if (floats && K > 0 && N > 0 && N <= FEW) {
    C.transpose();
    return few_rows(from, N, M, K, {B.data, B.col, B.row}, A, C);
  }
  switch (from) {
    case Dtype::f32: return dense<float>(float_engine(), M, N, K, A, B, C);
    case Dtype::f64: return dense<double>(double_engine(), M, N, K, A, B, C);
    case Dtype::f16: case Dtype::bf16: return product_narrow(from, M, N, K, A, B, C);
    default: return product_integers(from, M, N, K, A, B, C);
  }
}

namespace {

template <class S, class T>
void typed(int64_t M, int64_t N, int64_t K, Matrix<const S> A, Matrix<const S> B, Matrix<T> C, bool accumulate) {
  constexpr int64_t from = sizeof(S), to = sizeof(T);
  Result c{};
  c.data = reinterpret_cast<char*>(C.data);
  c.row = C.row * to;
  c.col = C.col * to;
  if (accumulate) {
    c.x = c.data;
    c.x_row = c.row;
    c.x_col = c.col;
    c.beta = c.int_beta = 1;
  }
  product(dtype_of<S>, dtype_of<T>, M, N, K, {reinterpret_cast<const char*>(A.data), A.row * from, A.col * from},
          {reinterpret_cast<const char*>(B.data), B.row * from, B.col * from}, c);
}

}  // namespace

void gemm(int64_t M, int64_t N, int64_t K, Matrix<const float> A, Matrix<const float> B, Matrix<float> C,
          bool accumulate) {
  typed(M, N, K, A, B, C, accumulate);
}
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const double> A, Matrix<const double> B, Matrix<double> C,
          bool accumulate) {
  typed(M, N, K, A, B, C, accumulate);
}
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const bf16> A, Matrix<const bf16> B, Matrix<float> C,
          bool accumulate) {
  typed(M, N, K, A, B, C, accumulate);
}
void gemm(int64_t M, int64_t N, int64_t K, Matrix<const f16> A, Matrix<const f16> B, Matrix<float> C,
          bool accumulate) {
  typed(M, N, K, A, B, C, accumulate);
}

}  // namespace vt
