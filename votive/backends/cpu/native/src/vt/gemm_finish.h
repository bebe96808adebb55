// Sums become results: scaled, added to what is given, rounded and stored, whole vectors at a time. Local to the
// including file, as micro-kernels are.
#pragma once
#include "gemm_load.h"

namespace vt {
namespace {

// Rows of sums to rows of memory that are dense. Values beyond `cols` may be read up to whole vectors.
template <class T, class D>
void finish_rows(const Result& out, const T* t, int64_t ld, int64_t i0, int64_t j0, int64_t rows, int64_t cols) {
  constexpr int L = Lanes<T>::count;
  using Loose = typename Lanes<T>::loose;
  const T alpha = std::is_integral_v<T> ? T(out.int_alpha) : T(out.alpha);
  const T beta = std::is_integral_v<T> ? T(out.int_beta) : T(out.beta);
  char* to = out.data + i0 * out.row + j0 * out.col;
  const bool bare = alpha == T(1) && beta == T(0);
  if (bare && cols < L && rows * cols <= 16 * L && (rows == 1 || out.row == cols * int64_t(sizeof(D)))) {
    // Short rows that follow each other: moved together, each over what was read too far of the one before.
    alignas(64) T joined[18 * L];
    for (int64_t i = 0; i < rows; ++i)
      *reinterpret_cast<Loose*>(joined + i * cols) = *reinterpret_cast<const Loose*>(t + i * ld);
    for (int64_t k = 0; k < rows * cols; k += L)
      put<D>(reinterpret_cast<D*>(to) + k, joined + k, std::min<int64_t>(L, rows * cols - k));
    return;
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; j += L) {
      const T* from = t + i * ld + j;
      const int64_t n = std::min<int64_t>(L, cols - j);
      D* at = reinterpret_cast<D*>(to + i * out.row) + j;
      if (bare) {
        put<D>(at, from, n);
        continue;
      }
      Vec<T> v = *reinterpret_cast<const Loose*>(from);
      if (alpha != T(1)) v = alpha * v;
      if (beta != T(0)) {
        const char* x = out.x + (i0 + i) * out.x_row + (j0 + j) * out.x_col;
        if (out.x_col == int64_t(sizeof(D))) v = v + beta * load_part<T>(reinterpret_cast<const D*>(x), n);
        else if (out.x_col == 0) v = v + beta * convert<T>(*reinterpret_cast<const D*>(x));
        else {
          T other[L] = {};
          for (int64_t k = 0; k < n; ++k) other[k] = convert<T>(*reinterpret_cast<const D*>(x + k * out.x_col));
          v = v + beta * *reinterpret_cast<const Loose*>(other);
        }
      }
      alignas(64) T sums[L];
      *reinterpret_cast<Loose*>(sums) = v;
      put<D>(at, sums, n);
    }
}

// A tile of accumulators between its dense form and places in memory that hold D: rows x n of any strides, n at most
// 256, or exactly W where W is not 0, which is what whole tiles have.
template <class T, class D, int W> struct Tile {
  static constexpr int L = Lanes<T>::count;
  static constexpr int HIGH = (TILE_ROWS + L - 1) / L * L;  // whole squares, for turning
  static constexpr int64_t size = sizeof(D);
  alignas(64) T values[W ? HIGH * W : 256];
  int64_t rows, n;

  // Which way a place is dense: along a row, or down the columns so that the tile is turned on the way.
  static bool is_turned(int64_t row, int64_t col) { return W != 0 && row == size && col != size; }

  // Adds beta times what is at a place.
  void add(T beta, const char* p, int64_t row, int64_t col) {
    if (is_turned(row, col)) {
      alignas(64) T other[HIGH * (W ? W : 1)], turned[HIGH * (W ? W : 1)] = {};
      for (int64_t j = 0; j < W; ++j)
        for (int64_t i = 0; i < rows; ++i) turned[j * HIGH + i] = convert<T>(reinterpret_cast<const D*>(p + j * col)[i]);
      for (int i = 0; i < HIGH; i += L)
        for (int j = 0; j < W; j += L)
          transpose_square<T>(other + i * W + j, W, reinterpret_cast<const char*>(turned + j * HIGH + i),
                              HIGH * sizeof(T));
      for (int64_t k = 0; k < rows * W; ++k) values[k] = values[k] + beta * other[k];
      return;
    }
    const int64_t count = W ? W : n;
    for (int64_t i = 0; i < rows; ++i, p += row) {
      T* line = values + i * count;
      if (col == size)
        for (int64_t j = 0; j < count; ++j) line[j] = line[j] + beta * convert<T>(reinterpret_cast<const D*>(p)[j]);
      else
        for (int64_t j = 0; j < count; ++j)
          line[j] = line[j] + beta * convert<T>(*reinterpret_cast<const D*>(p + j * col));
    }
  }

  void write(char* p, int64_t row, int64_t col) const {
    if (is_turned(row, col)) {
      alignas(64) T turned[HIGH * (W ? W : 1)];
      for (int i = 0; i < HIGH; i += L)
        for (int j = 0; j < W; j += L)
          transpose_square<T>(turned + j * HIGH + i, HIGH, reinterpret_cast<const char*>(values + i * W + j),
                              W * sizeof(T));
      for (int64_t j = 0; j < W; ++j, p += col) {
        const T* line = turned + j * HIGH;
        D* to = reinterpret_cast<D*>(p);
        if (rows == TILE_ROWS)
          for (int i = 0; i < TILE_ROWS; ++i) to[i] = convert<D>(line[i]);
        else
          for (int64_t i = 0; i < rows; ++i) to[i] = convert<D>(line[i]);
      }
      return;
    }
    const int64_t count = W ? W : n;
    for (int64_t i = 0; i < rows; ++i, p += row) {
      const T* line = values + i * count;
      if (col == size)
        for (int64_t j = 0; j < count; ++j) reinterpret_cast<D*>(p)[j] = convert<D>(line[j]);
      else
        for (int64_t j = 0; j < count; ++j) *reinterpret_cast<D*>(p + j * col) = convert<D>(line[j]);
    }
  }

  void round() {
    if constexpr (!std::is_same_v<T, D>)
      for (int64_t k = 0; k < rows * (W ? W : n); ++k) values[k] = convert<T>(convert<D>(values[k]));
  }
};

template <class T, class D, int W>
void finish_tile(const Result& out, const T* t, int64_t ld, int64_t i0, int64_t j0, int64_t rows, int64_t n) {
  Tile<T, D, W> tile;
  tile.rows = rows;
  tile.n = n;
  const int64_t count = W ? W : n;
  const T alpha = std::is_integral_v<T> ? T(out.int_alpha) : T(out.alpha);
  const T beta = std::is_integral_v<T> ? T(out.int_beta) : T(out.beta);
  for (int64_t i = 0; i < rows; ++i)
    if (alpha == T(1))
      for (int64_t j = 0; j < count; ++j) tile.values[i * count + j] = t[i * ld + j];
    else
      for (int64_t j = 0; j < count; ++j) tile.values[i * count + j] = alpha * t[i * ld + j];
  if (beta != T(0)) tile.add(beta, out.x + i0 * out.x_row + j0 * out.x_col, out.x_row, out.x_col);
  if constexpr (std::is_floating_point_v<T>) {
    if (out.activate) {
      tile.round();
      out.activate(tile.values, rows * count);
    }
  }
  tile.write(out.data + i0 * out.row + j0 * out.col, out.row, out.col);
}

// A tile whose columns are dense in memory is transposed first: its rows are then stored.
template <class T, class D>
void finish_columns(Result out, const T* t, int64_t ld, int64_t i0, int64_t j0, int64_t rows, int64_t cols) {
  constexpr int L = Lanes<T>::count, HIGH = (TILE_ROWS + L - 1) / L * L, WIDE = 2 * L;
  alignas(64) T padded[HIGH * WIDE], turned[WIDE * HIGH];
  const int64_t span = cols > L ? WIDE : L;
  for (int64_t i = 0; i < HIGH; ++i)
    for (int64_t j = 0; j < span; j += L) {
      using V = typename Lanes<T>::type;
      using Loose = typename Lanes<T>::loose;
      *reinterpret_cast<Loose*>(padded + i * WIDE + j) = i < rows ? V(*reinterpret_cast<const Loose*>(t + i * ld + j)) : V{};
    }
  for (int64_t i = 0; i < rows; i += L)
    for (int64_t j = 0; j < span; j += L)
      transpose_square<T>(turned + j * HIGH + i, HIGH, reinterpret_cast<const char*>(padded + i * WIDE + j),
                          WIDE * sizeof(T));
  out.transpose();
  finish_rows<T, D>(out, turned, HIGH, j0, i0, cols, rows);
}

template <class T, class D>
void finish(const Result& out, const char* tile, int64_t ld, int64_t i0, int64_t j0, int64_t rows, int64_t cols) {
  constexpr int L = Lanes<T>::count, WIDE = 2 * L;
  constexpr int64_t size = sizeof(D);
  const T* t = reinterpret_cast<const T*>(tile);
  // Whole vectors are read, also beyond the last column: the rows must have room for them. Sums that wait in the
  // result itself have neighbours there, which are none of ours.
  const bool roomy = ld >= (cols + L - 1) / L * L && tile != out.data + i0 * out.row + j0 * out.col;
  if (roomy && !out.activate && std::is_floating_point_v<T>) {
    if (out.col == size) return finish_rows<T, D>(out, t, ld, i0, j0, rows, cols);
    if (out.row == size && rows > 1 && rows <= TILE_ROWS) {
      for (int64_t j = 0; j < cols; j += WIDE)
        finish_columns<T, D>(out, t + j, ld, i0, j0 + j, rows, std::min<int64_t>(WIDE, cols - j));
      return;
    }
  }
  if (cols == WIDE && rows <= TILE_ROWS) return finish_tile<T, D, WIDE>(out, t, ld, i0, j0, rows, cols);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; j += 256)
      finish_tile<T, D, 0>(out, t + i * ld + j, ld, i0 + i, j0 + j, 1, std::min<int64_t>(256, cols - j));
}

}  // namespace
}  // namespace vt
