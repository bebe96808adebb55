// Transposition of small blocks in registers.
#pragma once
#include <cstring>
#include <utility>

#include "kernel.h"

namespace vt::copies {

template <class T> T& at(char* p) { return *reinterpret_cast<T*>(p); }
template <class T> const T& at(const char* p) { return *reinterpret_cast<const T*>(p); }

// A square of N x N elements in registers: swapping halves, quarters, ... of pairs of rows.
template <class T, int N> struct Square {
  typedef T V __attribute__((vector_size(N * sizeof(T))));

  template <int W, size_t... K> static V low(V a, V b, std::index_sequence<K...>) {
    return __builtin_shufflevector(a, b, (int(K) & W ? N + int(K) - W : int(K))...);
  }
  template <int W, size_t... K> static V high(V a, V b, std::index_sequence<K...>) {
    return __builtin_shufflevector(a, b, (int(K) & W ? N + int(K) : int(K) + W)...);
  }
  template <int W> static inline __attribute__((always_inline)) void stage(V* v) {
    using Lanes = std::make_index_sequence<N>;
#pragma GCC unroll 32
    for (int i = 0; i < N; ++i) {
      if (i & W) continue;
      const V a = v[i], b = v[i + W];
      v[i] = low<W>(a, b, Lanes{});
      v[i + W] = high<W>(a, b, Lanes{});
    }
    if constexpr (2 * W < N) stage<2 * W>(v);
  }
  static void transpose(char* dst, int64_t d_row, const char* src, int64_t s_row) {
    V v[N];
#pragma GCC unroll 32
    for (int i = 0; i < N; ++i) std::memcpy(&v[i], src + i * s_row, sizeof(V));
    stage<1>(v);
#pragma GCC unroll 32
    for (int i = 0; i < N; ++i) std::memcpy(dst + i * d_row, &v[i], sizeof(V));
  }
};

// dst[r][c] = src[c][r]: both dense along their second index.
template <class T, int N> void transpose(char* dst, int64_t d_row, const char* src, int64_t s_row, int64_t rows, int64_t cols) {
  constexpr int64_t item = sizeof(T);
  if constexpr (N >= 4) {
    if (rows < N || cols < N) return transpose<T, N / 2>(dst, d_row, src, s_row, rows, cols);
    // The last squares lie over their neighbours rather than leave a rest.
    for (int64_t r = 0; r < rows; r += N) {
      const int64_t r0 = std::min(r, rows - N);
      for (int64_t c = 0; c < cols; c += N) {
        const int64_t c0 = std::min(c, cols - N);
        Square<T, N>::transpose(dst + r0 * d_row + c0 * item, d_row, src + c0 * s_row + r0 * item, s_row);
      }
    }
  } else if (rows >= cols) {
    for (int64_t c = 0; c < cols; ++c)
      for (int64_t r = 0; r < rows; ++r) at<T>(dst + r * d_row + c * item) = at<T>(src + c * s_row + r * item);
  } else {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c) at<T>(dst + r * d_row + c * item) = at<T>(src + c * s_row + r * item);
  }
}

// Few dense columns, as channels between planes and pixels; a stride of 0 repeats.
template <class T, int C> void weave(char* dst, const char* src, int64_t s_row, int64_t rows) {
  T* d = reinterpret_cast<T*>(dst);
  const T* s[C];
  for (int c = 0; c < C; ++c) s[c] = reinterpret_cast<const T*>(src + c * s_row);
#pragma GCC ivdep
  for (int64_t r = 0; r < rows; ++r)
    for (int c = 0; c < C; ++c) d[r * C + c] = s[c][r];
}
template <class T, int R> void unweave(char* dst, int64_t d_row, const char* src, int64_t cols) {
  const T* s = reinterpret_cast<const T*>(src);
  T* d[R];
  for (int r = 0; r < R; ++r) d[r] = reinterpret_cast<T*>(dst + r * d_row);
#pragma GCC ivdep
  for (int64_t c = 0; c < cols; ++c)
    for (int r = 0; r < R; ++r) d[r][c] = s[c * R + r];
}

template <class T> constexpr int square_side() {
#if defined(__AVX512F__)
  constexpr int bytes = sizeof(T) >= 4 ? 64 : sizeof(T) == 2 ? 32 : 16;
#elif defined(__AVX2__)
  constexpr int bytes = sizeof(T) == 1 ? 16 : 32;
#else
  constexpr int bytes = 16;
#endif
  return bytes / int(sizeof(T));
}

template <class T> void transpose_tile(char* dst, int64_t d_row, const char* src, int64_t s_row, int64_t rows, int64_t cols) {
  if constexpr (sizeof(T) == 16) {
    transpose<T, 1>(dst, d_row, src, s_row, rows, cols);
  } else {
    constexpr int64_t item = sizeof(T);
    if (d_row == cols * item) {
      if (cols == 2) return weave<T, 2>(dst, src, s_row, rows);
      if (cols == 3) return weave<T, 3>(dst, src, s_row, rows);
      if (cols == 4) return weave<T, 4>(dst, src, s_row, rows);
    }
    if (s_row == rows * item) {
      if (rows == 2) return unweave<T, 2>(dst, d_row, src, cols);
      if (rows == 3) return unweave<T, 3>(dst, d_row, src, cols);
      if (rows == 4) return unweave<T, 4>(dst, d_row, src, cols);
    }
    transpose<T, square_side<T>()>(dst, d_row, src, s_row, rows, cols);
  }
}

}  // namespace vt::copies
