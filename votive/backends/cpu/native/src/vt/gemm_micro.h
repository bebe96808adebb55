// Micro-kernels and packing as templates. Everything is local to the including file, which may be
// compiled for more instructions than the others.
#pragma once
#include <algorithm>
#include <cstring>
#include <utility>

#include "gemm_core.h"

namespace vt {
namespace {

#if defined(__AVX512F__)
constexpr int VECTOR = 64, TILE_ROWS = 12;
#elif defined(__AVX__)
constexpr int VECTOR = 32, TILE_ROWS = 6;
#else
constexpr int VECTOR = 16, TILE_ROWS = 6;
#endif

// A vector of T at any address.
template <class T> struct Lanes {
  typedef T type __attribute__((vector_size(VECTOR)));
  typedef T loose __attribute__((vector_size(VECTOR), aligned(1), may_alias));
  static constexpr int count = VECTOR / int(sizeof(T));
};

// One T at any address: a unit of two narrow elements is aligned as one of them.
template <class T> inline T read(const char* p) {
  typedef T loose __attribute__((aligned(1), may_alias));
  return *reinterpret_cast<const loose*>(p);
}

// acc += broadcast(a) * b with elements as units.
template <class T> struct Plain {
  using Unit = T;
  using Acc = T;
  using AccVector = typename Lanes<T>::type;
  using UnitVector = typename Lanes<T>::type;
  static constexpr int depth = 1;
  static inline __attribute__((always_inline)) void step(AccVector& acc, Unit a, const UnitVector& b) { acc += a * b; }
};

template <class P, int R, int V>
void micro(int64_t K, const char* a, int64_t ai, int64_t ak, const char* b, int64_t bk, char* c, int64_t ci, bool add) {
  using Unit = typename P::Unit;
  using AV = typename P::AccVector;
  using UV = typename P::UnitVector;
  using AL = typename Lanes<typename P::Acc>::loose;
  using UL = typename Lanes<Unit>::loose;
  AV acc[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      acc[r][v] = AV{};
      __builtin_prefetch(c + r * ci + v * VECTOR, 1);
    }
  // Three rows from one pointer, so that the addresses stay in registers.
  constexpr int G = (R + 2) / 3;
  const char* p[G];
#pragma GCC unroll 8
  for (int g = 0; g < G; ++g) p[g] = a + 3 * g * ai;
  for (int64_t k = 0; k < K; ++k) {
    UV bv[V];
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) bv[v] = *reinterpret_cast<const UL*>(b + v * VECTOR);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Unit s = read<Unit>(p[r / 3] + (r % 3) * ai);
#pragma GCC unroll 2
      for (int v = 0; v < V; ++v) P::step(acc[r][v], s, bv[v]);
    }
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) p[g] += ak;
    b += bk;
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int v = 0; v < V; ++v) {
      auto* to = reinterpret_cast<AL*>(c + r * ci + v * VECTOR);
      *to = add ? AV(*to + acc[r][v]) : acc[r][v];
    }
}

template <class P, int... R> void fill_micro(Engine& e, std::integer_sequence<int, R...>) {
  ((e.micro[R][0] = micro<P, R + 1, 1>, e.micro[R][1] = micro<P, R + 1, 2>), ...);
}

template <class P> Engine make_engine() {
  Engine e{};
  e.rows = TILE_ROWS;
  e.lanes = Lanes<typename P::Acc>::count;
  e.unit = sizeof(typename P::Unit);
  e.depth = P::depth;
  e.acc = sizeof(typename P::Acc);
  fill_micro<P>(e, std::make_integer_sequence<int, TILE_ROWS>{});
  return e;
}

// --- packing -------------------------------------------------------------------------------------

template <int L, class Mask, int... I> constexpr Mask low_mask(int s, std::integer_sequence<int, I...>) {
  return Mask{(((I & s) == 0) ? I : L + I - s)...};
}
template <int L, class Mask, int... I> constexpr Mask high_mask(int s, std::integer_sequence<int, I...>) {
  return Mask{(((I & s) == 0) ? I + s : L + I)...};
}

// Swaps the off-diagonal halves of ever larger squares.
template <int S, class V, class Mask, int L> inline __attribute__((always_inline)) void exchange(V (&x)[L]) {
  constexpr auto seq = std::make_integer_sequence<int, L>{};
  const Mask low = low_mask<L, Mask>(S, seq), high = high_mask<L, Mask>(S, seq);
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i)
    if ((i & S) == 0) {
      const V a = x[i], b = x[i + S];
      x[i] = __builtin_shuffle(a, b, low);
      x[i + S] = __builtin_shuffle(a, b, high);
    }
}

// L items of L units along k, `s` bytes apart, to L rows of dst that are `width` units apart.
template <class U> inline void transpose_square(U* dst, int64_t width, const char* src, int64_t s) {
  constexpr int L = Lanes<U>::count;
  using V = typename Lanes<U>::type;
  using Loose = typename Lanes<U>::loose;
  using I = std::conditional_t<sizeof(U) == 4, int32_t, int64_t>;
  using Mask = typename Lanes<I>::type;
  V x[L];
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) x[i] = *reinterpret_cast<const Loose*>(src + i * s);
  exchange<1, V, Mask>(x);
  if constexpr (L > 2) exchange<2, V, Mask>(x);
  if constexpr (L > 4) exchange<4, V, Mask>(x);
  if constexpr (L > 8) exchange<8, V, Mask>(x);
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) *reinterpret_cast<Loose*>(dst + i * width) = x[i];
}

// Elements that are units.
template <class U>
void pack_units(char* to, int64_t width, const char* src, int64_t s_item, int64_t s_k, int64_t items, int64_t k) {
  U* dst = reinterpret_cast<U*>(to);
  constexpr int L = Lanes<U>::count;
  constexpr int64_t size = sizeof(U);
  using Loose = typename Lanes<U>::loose;
  if (items < width && items % L)  // whole vectors beyond are never part of a panel that is read
    for (int64_t j = 0; j < k; ++j) std::fill(dst + j * width + items, dst + (j + 1) * width, U(0));
  if (s_item == size) {
    if (items == width && width % L == 0) {
      for (int64_t j = 0; j < k; ++j) {
        for (int64_t i = 0; i < width; i += L)
          *reinterpret_cast<Loose*>(dst + i) = *reinterpret_cast<const Loose*>(src + i * size);
        dst += width;
        src += s_k;
      }
      return;
    }
    if (items == width && width == TILE_ROWS) {
      for (int64_t j = 0; j < k; ++j) std::memcpy(dst + j * TILE_ROWS, src + j * s_k, TILE_ROWS * sizeof(U));
      return;
    }
    for (int64_t j = 0; j < k; ++j) {
      const char* s = src + j * s_k;
      for (int64_t i = 0; i < items; ++i) dst[j * width + i] = read<U>(s + i * size);
    }
    return;
  }
  int64_t i = 0;
  if (s_k == size)
    for (; i + L <= items; i += L) {
      const char* s = src + i * s_item;
      int64_t j = 0;
      for (; j + L <= k; j += L) transpose_square<U>(dst + j * width + i, width, s + j * size, s_item);
      for (; j < k; ++j)
        for (int64_t q = 0; q < L; ++q) dst[j * width + i + q] = read<U>(s + q * s_item + j * size);
    }
  for (int64_t j = 0; j < k; ++j)
    for (int64_t q = i; q < items; ++q) dst[j * width + q] = read<U>(src + q * s_item + j * s_k);
}

}  // namespace
}  // namespace vt
