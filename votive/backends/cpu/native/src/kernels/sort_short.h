// Short rows, sorted a lane each: neighbours change places until every row is in order (odd-even transposition).
#pragma once
#include "vt/halves.h"
#include "vt/lines.h"
#include "vt/order.h"
#include "vt/turn.h"

namespace vt {

constexpr int64_t SHORT = 32;

// Whether the rows of x are such, and lie one after the other; keys must fit a lane.
template <class T> bool short_rows(const Lines& rows) {
  return sizeof(T) <= 4 && rows.size > 0 && rows.size <= SHORT && rows.dense(0);
}

// f(row, how many, keys in order, their places) for blocks of rows; both are row by row. Equal keys keep their order, since only
// neighbours change places.
template <class T, class F> void sorted_rows(const Lines& rows, typename KeyOf<T>::type flip, F&& f) {
  constexpr int L = WIDTH<float>;
  using K = typename KeyOf<T>::type;
  const int64_t n = rows.size, blocks = (rows.count + L - 1) / L;
  const T* x = reinterpret_cast<const T*>(rows.row(0, 0));
  parallel_for(blocks, grain_for(n * (n + 8) * 2), [&](int64_t begin, int64_t end) {
    alignas(64) uint32_t keys[L * SHORT], places[L * SHORT];
    WideBits k[SHORT], at[SHORT];
    // Lanes are moved as floats, whatever their bits are.
    auto floats = [](auto* p) { return reinterpret_cast<float*>(p); };
    for (int64_t b = begin; b < end; ++b) {
      const int64_t some = std::min<int64_t>(L, rows.count - b * L);
      const T* from = x + b * L * n;
#pragma GCC ivdep
      for (int64_t i = 0; i < some * n; ++i) keys[i] = K(KeyOf<T>::key(from[i]) ^ flip);
      rows_to_lanes<float>(reinterpret_cast<Lanes<float>*>(k), floats(keys), some, n);
      for (int64_t i = 0; i < n; ++i) at[i] = WideBits{} + uint32_t(i);
      for (int64_t pass = 0; pass < n; ++pass)
        for (int64_t i = pass & 1; i + 1 < n; i += 2) {
          const WideBits a = k[i], c = k[i + 1], p = at[i], q = at[i + 1];
          const auto swap = a > c;
          k[i] = swap ? c : a, k[i + 1] = swap ? a : c;
          at[i] = swap ? q : p, at[i + 1] = swap ? p : q;
        }
      lanes_to_rows<float>(floats(keys), reinterpret_cast<const Lanes<float>*>(k), some, n);
      lanes_to_rows<float>(floats(places), reinterpret_cast<const Lanes<float>*>(at), some, n);
      f(b * L, some, keys, places);
    }
  });
}

// The first `count` of each sorted row as values and places.
template <class T> void put_short(const Lines& rows, typename KeyOf<T>::type flip, int64_t count) {
  using K = typename KeyOf<T>::type;
  const int64_t n = rows.size, vs = rows.step(1), ps = rows.step(2);
  const bool whole = count == n && rows.dense(1) && rows.dense(2);
  sorted_rows<T>(rows, flip, [&](int64_t first, int64_t some, const uint32_t* keys, const uint32_t* places) {
    if (whole) {
      T* v = reinterpret_cast<T*>(rows.row(1, first));
      int64_t* w = reinterpret_cast<int64_t*>(rows.row(2, first));
      unsigned lossy = 0;
#pragma GCC ivdep
      for (int64_t i = 0; i < some * n; ++i) {
        const K k = K(K(keys[i]) ^ flip);
        v[i] = KeyOf<T>::value(k);
        lossy |= KeyOf<T>::lossy(k) ? 1u : 0u;
      }
#pragma GCC ivdep
      for (int64_t i = 0; i < some * n; ++i) w[i] = places[i];
      if (!lossy) return;
    }
    for (int64_t r = 0; r < some; ++r, keys += n, places += n) {
      const char* x = rows.row(0, first + r);
      char *v = rows.row(1, first + r), *w = rows.row(2, first + r);
      bool lossy = false;
      for (int64_t i = 0; i < count; ++i) {
        const K k = K(K(keys[i]) ^ flip);
        *reinterpret_cast<T*>(v + i * vs) = KeyOf<T>::value(k);
        *reinterpret_cast<int64_t*>(w + i * ps) = places[i];
        lossy |= KeyOf<T>::lossy(k);
      }
      // Zeros have lost their sign, NaNs their bits.
      for (int64_t i = 0; lossy && i < count; ++i)
        *reinterpret_cast<T*>(v + i * vs) = reinterpret_cast<const T*>(x)[places[i]];
    }
  });
}

// Rows of one element are in order: false if there are others, or gaps.
inline bool sorted_already(const Lines& rows, const View& x, const View& values, const View& places) {
  if (rows.size != 1 || !rows.dense(0) || !values.contiguous() || !places.contiguous()) return false;
  std::memcpy(values.data, rows.row(0, 0), size_t(rows.count) * size_t(itemsize(x.dtype)));
  std::memset(places.data, 0, size_t(rows.count) * sizeof(int64_t));
  return true;
}

}  // namespace vt
