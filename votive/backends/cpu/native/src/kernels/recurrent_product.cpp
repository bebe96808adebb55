// Products of a few rows with a weight that is used at every step of a recurrent network.
#include "recurrent.h"
#include "vt/gemm_micro.h"

namespace vt::recurrent {

namespace {

#if defined(__AVX512F__)
constexpr int MOST_ROWS = 12;
constexpr int panels_for(int rows) { return rows <= 2 ? 4 : rows <= 4 ? 3 : rows <= 6 ? 2 : 1; }
#else
constexpr int MOST_ROWS = 6;
constexpr int panels_for(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
#endif

template <class T> constexpr int64_t WIDE = 2 * Lanes<T>::count;

// R rows of a times P panels, of which the first `cols` columns are wanted. One row needs many sums side by side to
// hide the latency of an addition; many rows have them anyway.
template <class T, int R, int P>
void tile(int64_t K, const T* a, int64_t lda, const T* b, T* c, int64_t ldc, int64_t cols, bool add) {
  using V = typename Lanes<T>::type;
  using Loose = typename Lanes<T>::loose;
  constexpr int L = Lanes<T>::count;
  V acc[R][P][2] = {};
  const int64_t panel = K * WIDE<T>;
  for (int64_t k = 0; k < K; ++k, b += WIDE<T>) {
    V bv[P][2];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) {
      bv[p][0] = *reinterpret_cast<const Loose*>(b + p * panel);
      bv[p][1] = *reinterpret_cast<const Loose*>(b + p * panel + L);
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r) {
      const T x = a[r * lda + k];
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        acc[r][p][0] += x * bv[p][0];
        acc[r][p][1] += x * bv[p][1];
      }
    }
  }
  if (cols == P * WIDE<T>) {
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          auto* to = reinterpret_cast<Loose*>(c + r * ldc + p * WIDE<T> + v * L);
          *to = add ? V(*to + acc[r][p][v]) : acc[r][p][v];
        }
    return;
  }
  alignas(64) T line[P * WIDE<T>];
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p)
      for (int v = 0; v < 2; ++v) *reinterpret_cast<Loose*>(line + p * WIDE<T> + v * L) = acc[r][p][v];
    T* to = c + r * ldc;
    if (add)
      for (int64_t j = 0; j < cols; ++j) to[j] += line[j];
    else
      for (int64_t j = 0; j < cols; ++j) to[j] = line[j];
  }
}

template <class T, int R>
void columns(const Panels<T>& w, int64_t begin, int64_t end, const T* a, int64_t lda, T* c, int64_t ldc, bool add) {
  constexpr int P = panels_for(R);
  int64_t p = begin;
  const auto at = [&](auto count) {
    constexpr int n = decltype(count)::value;
    const int64_t j = p * WIDE<T>;
    tile<T, R, n>(w.K, a, lda, w.data + p * w.K * WIDE<T>, c + j, ldc, std::min<int64_t>(n * WIDE<T>, w.N - j), add);
    p += n;
  };
  while (p + P <= end) at(std::integral_constant<int, P>{});
  if constexpr (P > 2)
    if (p + 2 <= end) at(std::integral_constant<int, 2>{});
  while (p < end) at(std::integral_constant<int, 1>{});
}

template <class T, int R = 1>
void rows_of(int64_t rows, const Panels<T>& w, int64_t begin, int64_t end, const T* a, int64_t lda, T* c, int64_t ldc,
             bool add) {
  if constexpr (R < MOST_ROWS)
    if (rows > R) return rows_of<T, R + 1>(rows, w, begin, end, a, lda, c, ldc, add);
  columns<T, R>(w, begin, end, a, lda, c, ldc, add);
}

}  // namespace

template <class T> int64_t Panels<T>::size(int64_t K, int64_t N) { return (N + WIDE<T> - 1) / WIDE<T> * WIDE<T> * K; }

template <class T> void Panels<T>::pack(const T* w, int64_t s_k, int64_t s_n) {
  const int64_t panels = (N + WIDE<T> - 1) / WIDE<T>;
  parallel_for(panels, grain_for(WIDE<T> * K), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t j = p * WIDE<T>, items = std::min<int64_t>(WIDE<T>, N - j);
      T* to = data + j * K;
      pack_units<T>(reinterpret_cast<char*>(to), WIDE<T>, reinterpret_cast<const char*>(w + j * s_n),
                    s_n * int64_t(sizeof(T)), s_k * int64_t(sizeof(T)), items, K);
      if (items == WIDE<T>) continue;
      for (int64_t k = 0; k < K; ++k) std::fill(to + k * WIDE<T> + items, to + (k + 1) * WIDE<T>, T(0));
    }
  });
}

template <class T>
void multiply(const Panels<T>& w, int64_t rows, const T* a, int64_t lda, T* c, int64_t ldc, bool add) {
  const int64_t panels = (w.N + WIDE<T> - 1) / WIDE<T>, tiles = (rows + MOST_ROWS - 1) / MOST_ROWS;
  // The weight is read once per tile of rows, so tiles are of even height. Panels that stay in the first caches are
  // used for all rows before the next.
  constexpr int64_t NEAR = 256 << 10;
  const int64_t few = std::max<int64_t>(4, NEAR / (w.K * WIDE<T> * int64_t(sizeof(T))) / 4 * 4);
  auto part = [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; p += few)
      for (int64_t i = 0; i < tiles; ++i) {
        const int64_t from = i * rows / tiles, to = (i + 1) * rows / tiles;
        rows_of<T>(to - from, w, p, std::min(end, p + few), a + from * lda, lda, c + from * ldc, ldc, add);
      }
  };
  // Fused multiply-adds come 32 at a time.
  parallel_for(panels, std::max<int64_t>(4, grain_for(rows * w.K * WIDE<T> / 8)), part);
}

template struct Panels<float>;
template struct Panels<double>;
template void multiply<float>(const Panels<float>&, int64_t, const float*, int64_t, float*, int64_t, bool);
template void multiply<double>(const Panels<double>&, int64_t, const double*, int64_t, double*, int64_t, bool);

}  // namespace vt::recurrent
