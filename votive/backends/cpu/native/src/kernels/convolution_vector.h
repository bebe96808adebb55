// Vectors as GCC writes them, the register-blocked product of convolutions, and what else works on whole vectors.
#pragma once
#include <atomic>
#include <type_traits>

#include "vt/kernel.h"

namespace vt::conv {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64, MR = 8;
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32, MR = 4;
#else
constexpr int VECTOR_BYTES = 16, MR = 4;
#endif
constexpr int NV = 3;  // vectors of a full sliver: MR x NV accumulators fill the registers

template <class T> constexpr int64_t LANES = VECTOR_BYTES / sizeof(T);
template <class T> struct VecOf {
  typedef T type __attribute__((vector_size(VECTOR_BYTES)));
  typedef T loose __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};
template <class T> using Vec = typename VecOf<T>::type;
template <class T> inline Vec<T> load(const T* p) { return *reinterpret_cast<const typename VecOf<T>::loose*>(p); }
template <class T> inline void store(T* p, Vec<T> v) { *reinterpret_cast<typename VecOf<T>::loose*>(p) = v; }

// C (M x N vectors) = or += A (M x K; element (m, k) at m * ar + k * ak) B (K rows of N vectors, bs apart).
template <class T, int M, int N> inline void micro(int64_t K, const T* a, int64_t ar, int64_t ak, const T* b,
                                                   int64_t bs, T* c, int64_t ldc, bool accumulate) {
  using V = Vec<T>;
  V acc[M][N];
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) acc[m][n] = V{};
  for (int64_t k = 0; k < K; ++k) {
    V row[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) row[n] = load(b + n * LANES<T>);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      const T s = a[m * ar];
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) acc[m][n] += row[n] * s;
    }
    a += ak;
    b += bs;
  }
  if (accumulate) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m, c += ldc)
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) store(c + n * LANES<T>, load(c + n * LANES<T>) + acc[m][n]);
  } else {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m, c += ldc)
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) store(c + n * LANES<T>, acc[m][n]);
  }
}

template <class T, int N> void rows(int64_t M, int64_t K, const T* a, int64_t ar, int64_t ak, int64_t panel, const T* b,
                                    int64_t bs, T* c, int64_t ldc, bool accumulate) {
  int64_t m = 0;
  for (; m + MR <= M; m += MR) micro<T, MR, N>(K, a + m * panel, ar, ak, b, bs, c + m * ldc, ldc, accumulate);
  a += m * panel;
  if constexpr (MR > 4)
    if (M - m >= 4) {
      micro<T, 4, N>(K, a, ar, ak, b, bs, c + m * ldc, ldc, accumulate);
      m += 4, a += 4 * ar;
    }
  if (M - m >= 2) {
    micro<T, 2, N>(K, a, ar, ak, b, bs, c + m * ldc, ldc, accumulate);
    m += 2, a += 2 * ar;
  }
  if (M - m >= 1) micro<T, 1, N>(K, a, ar, ak, b, bs, c + m * ldc, ldc, accumulate);
}

// The same for any number of rows and up to NV vectors. Panels of MR rows begin `panel` * MR apart: ar
// for plain rows, K for rows that were packed in panels of MR (then ar = 1, ak = MR).
template <class T> void product(int64_t M, int64_t vectors, int64_t K, const T* a, int64_t ar, int64_t ak,
                                int64_t panel, const T* b, int64_t bs, T* c, int64_t ldc, bool accumulate) {
  if (vectors == 3) rows<T, 3>(M, K, a, ar, ak, panel, b, bs, c, ldc, accumulate);
  else if (vectors == 2) rows<T, 2>(M, K, a, ar, ak, panel, b, bs, c, ldc, accumulate);
  else rows<T, 1>(M, K, a, ar, ak, panel, b, bs, c, ldc, accumulate);
}

// to[c * to_row + r] = from[r * from_row + c], eight by eight where that is floats.
template <class T> void transpose(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t cols) {
  const int64_t whole = sizeof(T) == 4 ? rows / 8 * 8 : 0;
  if constexpr (sizeof(T) == 4) {
    typedef float V8 __attribute__((vector_size(32)));
    typedef float L8 __attribute__((vector_size(32), aligned(4), may_alias));
    typedef int32_t I8 __attribute__((vector_size(32)));
    const I8 low = {0, 8, 1, 9, 4, 12, 5, 13}, high = {2, 10, 3, 11, 6, 14, 7, 15};
    const I8 even = {0, 1, 8, 9, 4, 5, 12, 13}, odd = {2, 3, 10, 11, 6, 7, 14, 15};
    const I8 front = {0, 1, 2, 3, 8, 9, 10, 11}, back = {4, 5, 6, 7, 12, 13, 14, 15};
    for (int64_t r = 0; r < whole; r += 8) {
      int64_t c = 0;
      for (; c + 8 <= cols; c += 8) {
        V8 a[8], b[8];
        for (int m = 0; m < 8; ++m) a[m] = *reinterpret_cast<const L8*>(from + (r + m) * from_row + c);
        for (int m = 0; m < 4; ++m) {
          b[2 * m] = __builtin_shuffle(a[2 * m], a[2 * m + 1], low);
          b[2 * m + 1] = __builtin_shuffle(a[2 * m], a[2 * m + 1], high);
        }
        for (int h = 0; h < 8; h += 4) {
          a[h + 0] = __builtin_shuffle(b[h], b[h + 2], even), a[h + 1] = __builtin_shuffle(b[h], b[h + 2], odd);
          a[h + 2] = __builtin_shuffle(b[h + 1], b[h + 3], even), a[h + 3] = __builtin_shuffle(b[h + 1], b[h + 3], odd);
        }
        for (int m = 0; m < 4; ++m) {
          *reinterpret_cast<L8*>(to + (c + m) * to_row + r) = __builtin_shuffle(a[m], a[m + 4], front);
          *reinterpret_cast<L8*>(to + (c + m + 4) * to_row + r) = __builtin_shuffle(a[m], a[m + 4], back);
        }
      }
      for (; c < cols; ++c)
        for (int m = 0; m < 8; ++m) to[c * to_row + r + m] = from[(r + m) * from_row + c];
    }
  }
  for (int64_t r = whole; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to[c * to_row + r] = from[r * from_row + c];
}

// out[j] = in[2 j]. Nothing behind the last element taken is read.
template <class T> void every_second(T* out, const T* in, int64_t n) {
  constexpr int64_t L = LANES<T>;
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  if (n < L) {
    for (int64_t j = 0; j < n; ++j) out[j] = in[2 * j];
    return;
  }
  Vec<I> even, end;
  for (int i = 0; i < int(L); ++i) {
    even[i] = I(2 * i);
    end[i] = I(2 * i < L ? 2 * i : 2 * i + 1);  // the second vector begins one element earlier
  }
  int64_t j = 0;
  for (; j + L < n; j += L) store(out + j, __builtin_shuffle(load(in + 2 * j), load(in + 2 * j + L), even));
  j = n - L;
  store(out + j, __builtin_shuffle(load(in + 2 * j), load(in + 2 * j + L - 1), end));
}

template <class T> bool has_nan(const T* x, int64_t n) {
  int64_t i = 0;
  auto odd = Vec<T>{} != Vec<T>{};
  for (; i + LANES<T> <= n; i += LANES<T>) odd |= load(x + i) != load(x + i);
  bool found = false;
  for (int j = 0; j < int(LANES<T>); ++j) found = found || odd[j] != 0;
  for (; i < n; ++i) found = found || x[i] != x[i];
  return found;
}

template <class T> bool all_finite(const T* x, int64_t n) {
  int64_t i = 0;
  Vec<T> none = {};  // x - x of every element: 0, or NaN
  for (; i + LANES<T> <= n; i += LANES<T>) none += load(x + i) - load(x + i);
  T each[LANES<T>], last = 0;
  store(each, none);
  for (; i < n; ++i) last += x[i] - x[i];
  return last == 0 && !has_nan(each, LANES<T>);
}

// f(item) for every item, taken one by one by all threads.
template <class F> void share(int64_t items, F&& f) {
  const int64_t threads = std::min<int64_t>(num_threads(), items);
  if (threads <= 1) {
    for (int64_t i = 0; i < items; ++i) f(i);
    return;
  }
  std::atomic<int64_t> next{0};
  parallel_for(threads, 1, [&](int64_t, int64_t) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < items;) f(i);
  });
}

}  // namespace vt::conv
