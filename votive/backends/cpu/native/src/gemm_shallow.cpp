// Products whose sums are a few terms long: results are stored as fast as they are summed up, so nothing is blocked. The
// factor with the columns is widened once, and a few vectors of it stay in registers while rows go by.
#include <algorithm>

#include "vt/gemm_load.h"
#include "vt/parallel.h"
#include "vt/scratch.h"

namespace vt {
namespace {

constexpr int64_t DEEPEST = 8;
constexpr int64_t SOME_ROWS = 64;

// How the given matrix lies that is added.
enum class Given { none, one_row, rows, one_column };

template <class D, class T> inline void put_vector(D* to, const Vec<T>& v, int64_t n) {
  alignas(64) T sums[Lanes<T>::count];
  *reinterpret_cast<Vec<T>*>(sums) = v;
  put<D>(to, sums, n);
}

// Rows 0..rows-1 of V vectors of columns from j on; a is dense.
template <class T, class D, int K, int V>
void strip(const Result& C, Given given, const T* a, const T* b, int64_t line, int64_t i0, int64_t j, int64_t rows, int64_t cols) {
  constexpr int64_t L = Lanes<T>::count;
  using Loose = typename Lanes<T>::loose;
  Vec<T> part[K][V], extra[V] = {};
  for (int k = 0; k < K; ++k)
    for (int v = 0; v < V; ++v) part[k][v] = *reinterpret_cast<const Loose*>(b + k * line + v * L);
  const T alpha = T(C.alpha), beta = T(C.beta);
  const auto width = [&](int v) { return std::min<int64_t>(L, cols - v * L); };
  const auto load_x = [&](const char* x) {
    for (int v = 0; v < V; ++v)
      if (width(v) > 0) extra[v] = beta * load_part<T>(reinterpret_cast<const D*>(x) + v * L, width(v));
  };
  if (given == Given::one_row) load_x(C.x + j * C.x_col);
  // What is stored too far of one row is overwritten by the next, where that begins and is not read before.
  const bool runs_on = j == 0 && C.row == cols * C.size && given != Given::rows && given != Given::one_column;
  for (int64_t i = 0; i < rows; ++i, a += K) {
    Vec<T> sum[V];
    for (int v = 0; v < V; ++v) sum[v] = a[0] * part[0][v];
#pragma GCC unroll 8
    for (int k = 1; k < K; ++k)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[v] += a[k] * part[k][v];
    if (alpha != T(1))
      for (int v = 0; v < V; ++v) sum[v] = alpha * sum[v];
    if (given != Given::none) {
      const char* x = C.x + (i0 + i) * C.x_row + j * C.x_col;
      if (given == Given::rows) load_x(x);
      if (given == Given::one_column)
        for (int v = 0; v < V; ++v) extra[v] = Vec<T>{} + beta * convert<T>(*reinterpret_cast<const D*>(x));
      for (int v = 0; v < V; ++v) sum[v] += extra[v];
    }
    D* to = reinterpret_cast<D*>(C.data + (i0 + i) * C.row) + j;
    const bool over = runs_on && i + 1 < rows;
    for (int v = 0; v < V; ++v)
      if (width(v) > 0) put_vector<D, T>(to + v * L, sum[v], over ? L : width(v));
  }
}

template <class T, class D, int K, int64_t V>
void shallow(int64_t M, int64_t N, CastFn widen, int64_t item, Place A, Place B, const Result& C, Given given) {
  constexpr int64_t L = Lanes<T>::count, size = sizeof(T);
  const int64_t line = (N + V * L - 1) / (V * L) * (V * L);
  Scratch<T> b(K * line);
  std::fill(b.get(), b + K * line, T(0));
  cast_block(widen, item, size, reinterpret_cast<char*>(b.get()), line * size, size, B.data, B.row, B.col, K, N);
  parallel_for(M, grain_for(N * (K + 2) / 4), [&](int64_t begin, int64_t end) {
    T a[SOME_ROWS * K];
    for (int64_t i = begin; i < end; i += SOME_ROWS) {
      const int64_t rows = std::min(SOME_ROWS, end - i);
      cast_block(widen, item, size, reinterpret_cast<char*>(a), K * size, size, A.data + i * A.row, A.row, A.col, rows, K);
      for (int64_t j = 0; j < N; j += V * L)
        strip<T, D, K, V>(C, given, a, b + j, line, i, j, rows, std::min<int64_t>(V * L, N - j));
    }
  });
}

template <class T, class D>
void by_depth(int64_t M, int64_t N, int64_t K, CastFn widen, int64_t item, Place A, Place B, const Result& C, Given given) {
  const bool narrow = N <= Lanes<T>::count;
  const auto run = [&]<int... I>(std::integer_sequence<int, I...>) {
    const auto depth = [&](auto k) {
      constexpr int D_ = decltype(k)::value, WIDE = D_ <= 3 ? 4 : 2;
      if (narrow) shallow<T, D, D_, 1>(M, N, widen, item, A, B, C, given);
      else shallow<T, D, D_, WIDE>(M, N, widen, item, A, B, C, given);
    };
    ((K == I + 1 ? depth(std::integral_constant<int, I + 1>{}) : void()), ...);
  };
  run(std::make_integer_sequence<int, DEEPEST>{});
}

// An activation of what was stored: it gets the very sums that it would get as an operator of its own.
template <class T, class D> void activated(int64_t M, int64_t N, const Result& C) {
  parallel_for(M, grain_for(N * 8), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      D* row = reinterpret_cast<D*>(C.data + i * C.row);
      if constexpr (std::is_same_v<T, D>) {
        C.activate(row, N);
        continue;
      }
      alignas(64) T values[256];
      for (int64_t j = 0; j < N; j += 256) {
        const int64_t n = std::min<int64_t>(256, N - j);
        for (int64_t k = 0; k < n; ++k) values[k] = convert<T>(row[j + k]);
        C.activate(values, n);
        for (int64_t k = 0; k < n; ++k) row[j + k] = convert<D>(values[k]);
      }
    }
  });
}

template <class T, class D>
void product(int64_t M, int64_t N, int64_t K, CastFn widen, int64_t item, Place A, Place B, const Result& C, Given given) {
  by_depth<T, D>(M, N, K, widen, item, A, B, C, given);
  if (C.activate) activated<T, D>(M, N, C);
}

}  // namespace

bool product_shallow(Dtype from, Dtype to, int64_t M, int64_t N, int64_t K, Place A, Place B, Result C) {
  if (K < 1 || K > DEEPEST || M < 1 || M * N < 512) return false;
  if (C.col != C.size && C.row == C.size && N > 1) {
    C.transpose();
    std::swap(M, N);
    const Place a = A;
    A = {B.data, B.col, B.row}, B = {a.data, a.col, a.row};
  }
  const int64_t lanes = VECTOR / (from == Dtype::f64 ? 8 : 4);
  if (C.col != C.size || N < lanes - lanes / 4) return false;
  Given given = Given::none;
  if (C.beta != 0) {
    if (C.x_col == C.size) given = C.x_row == 0 ? Given::one_row : Given::rows;
    else if (C.x_col == 0) given = Given::one_column;
    else return false;
  }
  const CastFn widen = cast_fn(from, from == Dtype::f64 ? Dtype::f64 : Dtype::f32);
  const int64_t item = itemsize(from);
  if (from == Dtype::f64) product<double, double>(M, N, K, widen, item, A, B, C, given);
  else if (to == Dtype::f32) product<float, float>(M, N, K, widen, item, A, B, C, given);
  else if (to == Dtype::bf16) product<float, bf16>(M, N, K, widen, item, A, B, C, given);
  else if (to == Dtype::f16) product<float, f16>(M, N, K, widen, item, A, B, C, given);
  else return false;
  return true;
}

}  // namespace vt
