// Elements as unsigned keys whose order is theirs: NaN above every number, both zeros equal.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "dtype.h"
#include "parallel.h"
#include "scratch.h"

namespace vt {

// --- keys --------------------------------------------------------------------------------------------

template <class T> struct KeyOf {
  using type = std::make_unsigned_t<T>;
  static constexpr type top = std::is_signed_v<T> ? type(type(1) << (8 * sizeof(T) - 1)) : type(0);
  static type key(T x) { return type(type(x) ^ top); }
  static T value(type k) { return T(type(k ^ top)); }
  static bool lossy(type) { return false; }  // whether the value cannot be had back from the key
};
template <> struct KeyOf<bool> {
  using type = uint8_t;
  static type key(bool x) { return x; }
  static bool value(type k) { return k != 0; }
  static bool lossy(type) { return false; }
};
template <class T, class U> struct FloatKey {
  using type = U;
  static constexpr U sign = U(U(1) << (8 * sizeof(U) - 1));
  static constexpr U zero = sign, nan = U(~U(0));
  static constexpr U infinity = sizeof(U) == 8   ? U(0x7ff0000000000000ull)
                                : sizeof(U) == 4 ? U(0x7f800000u)
                                : std::is_same_v<T, f16> ? U(0x7c00u)
                                                         : U(0x7f80u);
  static U key(T x) {
    U u = std::bit_cast<U>(x);
    const U size = U(u & U(~sign));
    u = size == 0 ? U(0) : u;
    const U flip = U((u & sign) != 0 ? nan : sign);
    return size > infinity ? nan : U(u ^ flip);
  }
  static T value(U k) { return std::bit_cast<T>(U(k ^ ((k & sign) != 0 ? sign : nan))); }
  static bool lossy(U k) { return k == zero || k == nan; }
};
template <> struct KeyOf<float> : FloatKey<float, uint32_t> {};
template <> struct KeyOf<double> : FloatKey<double, uint64_t> {};
template <> struct KeyOf<f16> : FloatKey<f16, uint16_t> {};
template <> struct KeyOf<bf16> : FloatKey<bf16, uint16_t> {};

// --- items: a key and where it stood. Sorting items by value is sorting keys stably. -----------------------

struct Long {
  uint64_t key, place;
  friend bool operator<(const Long& a, const Long& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};
template <class Key> using Item = std::conditional_t<sizeof(Key) == 8, Long, uint64_t>;

template <class Key> inline Item<Key> item(Key k, int64_t place) {
  if constexpr (sizeof(Key) == 8) return Long{k, uint64_t(place)};
  else return uint64_t(k) << 32 | uint64_t(place);
}
inline uint64_t key_of(const Long& i) { return i.key; }
inline uint64_t key_of(uint64_t i) { return i >> 32; }
inline int64_t place_of(const Long& i) { return int64_t(i.place); }
inline int64_t place_of(uint64_t i) { return int64_t(i & 0xffffffffu); }

// Sorts n items whose keys have `bytes` bytes. The result is in `a` or in `b`, which is returned.
template <class I> I* sort_items(I* a, I* b, int64_t n, int bytes) {
  if (n <= 24) {
    for (int64_t i = 1; i < n; ++i) {
      const I x = a[i];
      int64_t j = i;
      for (; j > 0 && x < a[j - 1]; --j) a[j] = a[j - 1];
      a[j] = x;
    }
    return a;
  }
  if (n <= 64 * bytes) {
    std::sort(a, a + n);
    return a;
  }
  // By one byte after the other, the lowest first; a byte that all keys share is passed over.
  Scratch<uint32_t> counts(int64_t(bytes) * 256);
  std::fill_n(counts.get(), bytes * 256, 0u);
  for (int64_t i = 0; i < n; ++i) {
    uint64_t k = key_of(a[i]);
    for (int d = 0; d < bytes; ++d, k >>= 8) ++counts[d * 256 + (k & 255)];
  }
  for (int d = 0; d < bytes; ++d) {
    uint32_t* at = counts + d * 256;
    if (at[key_of(a[0]) >> (8 * d) & 255] == uint32_t(n)) continue;
    uint32_t sum = 0;
    for (int k = 0; k < 256; ++k) {
      const uint32_t c = at[k];
      at[k] = sum;
      sum += c;
    }
    for (int64_t i = 0; i < n; ++i) b[at[key_of(a[i]) >> (8 * d) & 255]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

// The same with the work of each pass shared by the threads.
template <class I> I* sort_items_together(I* a, I* b, int64_t n, int bytes) {
  const int64_t pieces = std::min(num_threads(), 16);
  Scratch<uint32_t> counts(pieces * 256);
  uint32_t* at = counts;
  for (int d = 0; d < bytes; ++d) {
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        uint32_t mine[256] = {};
        for (int64_t i = n * p / pieces; i < n * (p + 1) / pieces; ++i) ++mine[key_of(a[i]) >> (8 * d) & 255];
        std::copy_n(mine, 256, at + p * 256);
      }
    });
    uint32_t sum = 0;
    bool shared = false;
    for (int k = 0; k < 256; ++k) {
      const uint32_t before = sum;
      for (int64_t p = 0; p < pieces; ++p) {
        const uint32_t c = at[p * 256 + k];
        at[p * 256 + k] = sum;
        sum += c;
      }
      shared = shared || sum - before == uint32_t(n);
    }
    if (shared) continue;
    parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        uint32_t mine[256];
        std::copy_n(at + p * 256, 256, mine);
        for (int64_t i = n * p / pieces; i < n * (p + 1) / pieces; ++i)
          b[mine[key_of(a[i]) >> (8 * d) & 255]++] = a[i];
      }
    });
    std::swap(a, b);
  }
  return a;
}

}  // namespace vt
