// Sorting, the largest few, the k-th, median, mode and runs of equals, row by row.
#include "sort_short.h"
#include "vt/kernel.h"

namespace vt {
namespace {

constexpr int64_t SHARED = 1 << 16;  // rows from here on are sorted by all threads together

template <class T> using Key = typename KeyOf<T>::type;

template <class T> inline T read(const char* p, int64_t step, int64_t i) {
  return *reinterpret_cast<const T*>(p + i * step);
}

// Items begin..end of a row; `flip` turns the order around (ties keep theirs).
template <class T> void make_items(Item<Key<T>>* to, const char* p, int64_t step, int64_t begin, int64_t end, Key<T> flip) {
  if (step == int64_t(sizeof(T))) {
    const T* x = reinterpret_cast<const T*>(p);
#pragma GCC ivdep
    for (int64_t i = begin; i < end; ++i) to[i] = item<Key<T>>(Key<T>(KeyOf<T>::key(x[i]) ^ flip), i);
  } else {
    for (int64_t i = begin; i < end; ++i) to[i] = item<Key<T>>(Key<T>(KeyOf<T>::key(read<T>(p, step, i)) ^ flip), i);
  }
}

// Writes items as values and places. `values` may be nullptr.
template <class T> void put(const Item<Key<T>>* items, int64_t begin, int64_t end, Key<T> flip, const char* x, int64_t xs,
                            char* values, int64_t vs, char* places, int64_t ps) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = place_of(items[i]);
    *reinterpret_cast<int64_t*>(places + i * ps) = at;
    if (values == nullptr) continue;
    const Key<T> k = Key<T>(Key<T>(key_of(items[i])) ^ flip);
    // Read only what the key has lost: reading all would be a walk through the whole row.
    *reinterpret_cast<T*>(values + i * vs) = KeyOf<T>::lossy(k) ? read<T>(x, xs, at) : KeyOf<T>::value(k);
  }
}

// The smallest and largest key of a row.
template <class T> std::pair<Key<T>, Key<T>> key_range(const char* p, int64_t step, int64_t n) {
  const int64_t pieces = n < SHARED ? 1 : std::min(num_threads(), 16);
  Key<T> lows[16], highs[16];
  parallel_for(pieces, 1, [&](int64_t b, int64_t e) {
    for (int64_t q = b; q < e; ++q) {
      Key<T> low = Key<T>(~Key<T>(0)), high = 0;
      const int64_t from = n * q / pieces, to = n * (q + 1) / pieces;
      if (step == int64_t(sizeof(T))) {
        const T* x = reinterpret_cast<const T*>(p);
        for (int64_t i = from; i < to; ++i) {
          const Key<T> k = KeyOf<T>::key(x[i]);
          low = k < low ? k : low;
          high = k > high ? k : high;
        }
      } else {
        for (int64_t i = from; i < to; ++i) {
          const Key<T> k = KeyOf<T>::key(read<T>(p, step, i));
          low = k < low ? k : low;
          high = k > high ? k : high;
        }
      }
      lows[q] = low;
      highs[q] = high;
    }
  });
  return {*std::min_element(lows, lows + pieces), *std::max_element(highs, highs + pieces)};
}

// Integers that lie close together: keys of 32 bits above the smallest. `false` when they do not.
template <class T> bool sort_close(const Lines& rows, int64_t r, uint64_t* a, uint64_t* b, bool descending, bool together) {
  const int64_t n = rows.size, xs = rows.step(0), vs = rows.step(1), ps = rows.step(2);
  const char* p = rows.row(0, r);
  const auto [low, high] = key_range<T>(p, xs, n);
  const uint64_t span = uint64_t(high) - uint64_t(low);
  if (span > 0xffffffffull) return false;
  int bytes = 1;
  while (bytes < 4 && span >> (8 * bytes)) ++bytes;
  auto each = [&](auto&& f) {
    if (together) parallel_for(n, 16384, f);
    else f(int64_t(0), n);
  };
  const uint64_t base = descending ? uint64_t(high) : uint64_t(low);
  each([&](int64_t s, int64_t e) {
    for (int64_t i = s; i < e; ++i) {
      const uint64_t k = KeyOf<T>::key(read<T>(p, xs, i));
      a[i] = item<uint32_t>(uint32_t(descending ? base - k : k - base), i);
    }
  });
  const uint64_t* sorted = together ? sort_items_together(a, b, n, bytes) : sort_items(a, b, n, bytes);
  char *v = rows.row(1, r), *w = rows.row(2, r);
  each([&](int64_t s, int64_t e) {
    for (int64_t i = s; i < e; ++i) {
      const uint64_t k = descending ? base - key_of(sorted[i]) : base + key_of(sorted[i]);
      *reinterpret_cast<T*>(v + i * vs) = KeyOf<T>::value(Key<T>(k));
      *reinterpret_cast<int64_t*>(w + i * ps) = place_of(sorted[i]);
    }
  });
  return true;
}

template <class T> void sort_rows(Call& c, bool descending) {
  using I = Item<Key<T>>;
  const View &x = c.view(0), &values = c.view(1), &places = c.view(2);
  const Lines rows({&x, &values, &places}, c.i(0));
  const Key<T> flip = descending ? Key<T>(~Key<T>(0)) : Key<T>(0);
  const int64_t n = rows.size, xs = rows.step(0), vs = rows.step(1), ps = rows.step(2);
  const int bytes = sizeof(Key<T>);
  if (sorted_already(rows, x, values, places)) return;
  if constexpr (sizeof(T) <= 4)
    if (short_rows<T>(rows)) return put_short<T>(rows, flip, n);
  if (n >= SHARED && rows.count < 2 * num_threads()) {
    Scratch<I> a(n), b(n);
    I *first = a, *second = b;
    for (int64_t r = 0; r < rows.count; ++r) {
      if constexpr (std::is_integral_v<T>)
        if (sort_close<T>(rows, r, reinterpret_cast<uint64_t*>(first), reinterpret_cast<uint64_t*>(second), descending, true)) continue;
      const char* p = rows.row(0, r);
      parallel_for(n, 16384, [&](int64_t s, int64_t e) { make_items<T>(first, p, xs, s, e, flip); });
      const I* sorted = sort_items_together(first, second, n, bytes);
      char *v = rows.row(1, r), *w = rows.row(2, r);
      parallel_for(n, 16384, [&](int64_t s, int64_t e) { put<T>(sorted, s, e, flip, p, xs, v, vs, w, ps); });
    }
    return;
  }
  parallel_for(rows.count, grain_for(n * 8 * bytes), [&](int64_t begin, int64_t end) {
    Scratch<I> a(n), b(n);
    for (int64_t r = begin; r < end; ++r) {
      if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
        if (n > 0 && sort_close<T>(rows, r, reinterpret_cast<uint64_t*>(a.get()), reinterpret_cast<uint64_t*>(b.get()), descending, false)) continue;
      const char* p = rows.row(0, r);
      make_items<T>(a, p, xs, 0, n, flip);
      const I* sorted = sort_items(a.get(), b.get(), n, bytes);
      put<T>(sorted, 0, n, flip, p, xs, rows.row(1, r), vs, rows.row(2, r), ps);
    }
  });
}

// The k smallest of a row's items, in any order, into `best`, which has room for `room` > k items.
template <class T> void smallest(Item<Key<T>>* best, int64_t k, int64_t room, const char* p, int64_t step, int64_t n, Key<T> flip) {
  using K = Key<T>;
  int64_t have = 0;
  K limit = K(~K(0));  // keys above it are of no interest
  bool full = false;
  auto cut = [&] {
    std::nth_element(best, best + (k - 1), best + have);
    limit = K(key_of(best[k - 1]));
    have = k;
    full = true;
  };
  constexpr int64_t BLOCK = 256;
  alignas(64) K keys[BLOCK];
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t m = std::min(BLOCK, n - i);
    if (step == int64_t(sizeof(T))) {
      const T* x = reinterpret_cast<const T*>(p) + i;
#pragma GCC ivdep
      for (int64_t j = 0; j < m; ++j) keys[j] = K(KeyOf<T>::key(x[j]) ^ flip);
    } else {
      for (int64_t j = 0; j < m; ++j) keys[j] = K(KeyOf<T>::key(read<T>(p, step, i + j)) ^ flip);
    }
    if (full) {
      // Most blocks hold nothing new. Equal keys come too late.
      int any = 0;
      for (int64_t j = 0; j < m; ++j) any |= keys[j] < limit;
      if (!any) continue;
    }
    for (int64_t j = 0; j < m; ++j) {
      best[have] = item<K>(keys[j], i + j);
      have += !full | (keys[j] < limit);
    }
    if (have + BLOCK > room) cut();
  }
  if (have > k) cut();
}

template <class T> void topk_rows(Call& c) {
  using I = Item<Key<T>>;
  const View &x = c.view(0), &values = c.view(1), &places = c.view(2);
  const Lines rows({&x, &values, &places}, c.i(0));
  const int64_t k = c.i(1), n = rows.size, xs = rows.step(0);
  const bool sorted = c.i(3) != 0;
  if (k == 0) return;
  const Key<T> flip = c.i(2) ? Key<T>(~Key<T>(0)) : Key<T>(0);
  if (k == 1 && sorted_already(rows, x, values, places)) return;
  if constexpr (sizeof(T) <= 4)
    if (sorted && short_rows<T>(rows)) return put_short<T>(rows, flip, k);
  // Cutting often keeps the limit sharp, so that most blocks are passed over.
  const int64_t room = k + std::max<int64_t>(k, 64) + 257;
  const bool whole = k > n / 4;
  parallel_for(rows.count, grain_for(n * (whole ? 16 : 2)), [&](int64_t begin, int64_t end) {
    const int64_t size = whole ? n : std::min(room, n + 257);
    Scratch<I> a(size), b(size);
    for (int64_t r = begin; r < end; ++r) {
      const char* p = rows.row(0, r);
      I* found = a;
      if (whole) {
        make_items<T>(a, p, xs, 0, n, flip);
        found = sort_items(a.get(), b.get(), n, int(sizeof(Key<T>)));
      } else {
        smallest<T>(a, k, size, p, xs, n, flip);
        if (sorted) found = sort_items(a.get(), b.get(), k, int(sizeof(Key<T>)));
      }
      if (!sorted) std::sort(found, found + k, [](const I& s, const I& t) { return place_of(s) < place_of(t); });
      put<T>(found, 0, k, flip, p, xs, rows.row(1, r), rows.step(1), rows.row(2, r), rows.step(2));
    }
  });
}

// The item of rank k among n, by the upper bits of the keys first: few share them.
template <class T> Item<Key<T>> ranked(Item<Key<T>>* items, Item<Key<T>>* some, int64_t n, int64_t k) {
  constexpr int bits = 8 * int(sizeof(Key<T>)), shift = bits > 12 ? bits - 12 : 0;
  if (n < 2048) {
    std::nth_element(items, items + k, items + n);
    return items[k];
  }
  constexpr int64_t bins = int64_t(1) << (bits - shift);
  Scratch<uint32_t> counts(bins);
  std::fill_n(counts.get(), bins, 0u);
  for (int64_t i = 0; i < n; ++i) ++counts[key_of(items[i]) >> shift];
  int64_t bin = 0;
  while (k >= counts[bin]) k -= counts[bin++];
  int64_t m = 0;
  for (int64_t i = 0; i < n; ++i) {
    some[m] = items[i];
    m += int64_t(key_of(items[i]) >> shift) == bin;
  }
  std::nth_element(some, some + k, some + m);
  return some[k];
}

enum Rank { KTH, MEDIAN, NANMEDIAN, MODE };

// The smallest of the most frequent values, where it occurs last. A NaN equals nothing.
template <class T> Item<Key<T>> most_frequent(Item<Key<T>>* a, Item<Key<T>>* b, int64_t n) {
  const auto* s = sort_items(a, b, n, int(sizeof(Key<T>)));
  int64_t best = -1, longest = 0, from = 0;
  for (int64_t i = 0; i < n; ++i) {
    bool starts = i == 0 || key_of(s[i]) != key_of(s[i - 1]);
    if constexpr (std::is_floating_point_v<T> || is_narrow<T>) starts = starts || Key<T>(key_of(s[i])) == KeyOf<T>::nan;
    if (starts) from = i;
    if (i - from + 1 > longest) longest = i - from + 1, best = i;
  }
  return s[best];
}

// Numbers before the first NaN of a row in order are all it has.
template <class T> void short_ranks(const Lines& rows, Rank kind, int64_t rank) {
  const int64_t n = rows.size;
  sorted_rows<T>(rows, Key<T>(0), [&](int64_t first, int64_t some, const uint32_t* keys, const uint32_t* places) {
    for (int64_t r = 0; r < some; ++r, keys += n, places += n) {
      int64_t numbers = n, k = rank;
      if constexpr (std::is_floating_point_v<T> || is_narrow<T>)
        while (kind != KTH && numbers > 0 && Key<T>(keys[numbers - 1]) == KeyOf<T>::nan) --numbers;
      if (kind == MEDIAN) k = numbers < n ? numbers : (n - 1) / 2;
      if (kind == NANMEDIAN) k = numbers < 1 ? 0 : (numbers - 1) / 2;
      *reinterpret_cast<T*>(rows.row(1, first + r)) = reinterpret_cast<const T*>(rows.row(0, first + r))[places[k]];
      *reinterpret_cast<int64_t*>(rows.row(2, first + r)) = places[k];
    }
  });
}

template <class T> void rank_rows(Call& c) {
  using I = Item<Key<T>>;
  View x = c.view(0);
  const View &values = c.view(1), &places = c.view(2);
  // Without places it is all of a dense array, as one row.
  const int64_t all = x.numel(), dense = sizeof(T);
  if (!places) x.ndim = 1, x.shape = &all, x.strides = &dense;
  const Lines rows = places ? Lines({&x, &values, &places}, c.i(0)) : Lines({&x, &values}, 0);
  const auto kind = Rank(c.i(1));
  const int64_t n = rows.size, xs = rows.step(0);
  constexpr bool floats = std::is_floating_point_v<T> || is_narrow<T>;
  if (places && sorted_already(rows, x, values, places)) return;
  if constexpr (sizeof(T) <= 4)
    if (places && kind != MODE && short_rows<T>(rows)) return short_ranks<T>(rows, kind, c.i(2));
  parallel_for(rows.count, grain_for(n * (kind == MODE ? 32 : 8)), [&](int64_t begin, int64_t end) {
    Scratch<I> a(n), b(n + 1);
    for (int64_t r = begin; r < end; ++r) {
      const char* p = rows.row(0, r);
      make_items<T>(a, p, xs, 0, n, Key<T>(0));
      int64_t k = kind == KTH ? c.i(2) : (n - 1) / 2, at = -1;
      if constexpr (floats) {
        if (kind == MEDIAN || kind == NANMEDIAN) {
          int64_t nans = 0;
          for (int64_t i = 0; i < n; ++i) nans += Key<T>(key_of(a[i])) == KeyOf<T>::nan;
          if (nans > 0 && kind == MEDIAN)
            for (at = 0; Key<T>(key_of(a[at])) != KeyOf<T>::nan;) ++at;
          if (kind == NANMEDIAN) k = n - nans < 1 ? 0 : (n - nans - 1) / 2;
        }
      }
      if (at < 0) at = place_of(kind == MODE ? most_frequent<T>(a, b, n) : ranked<T>(a, b, n, k));
      *reinterpret_cast<T*>(rows.row(1, r)) = read<T>(p, xs, at);
      if (places) *reinterpret_cast<int64_t*>(rows.row(2, r)) = at;
    }
  });
}

// Sorted values, which of the distinct ones each element is, where runs begin; the number of runs.
template <class T, class I> void runs_of(Call& c, uint64_t base, int bytes) {
  const View &x = c.view(0), &values = c.view(1), &which = c.view(2), &counts = c.view(3), &number = c.view(4);
  const int64_t n = x.numel();
  const bool consecutive = c.i(0) != 0;
  Scratch<I> a(n), b(n);
  I *items = a, *other = b;
  parallel_for(n, 16384, [&](int64_t s, int64_t e) {
    const T* p = x.as<T>();
    using K = std::conditional_t<std::is_same_v<I, Long>, uint64_t, uint32_t>;
    for (int64_t i = s; i < e; ++i) items[i] = item<K>(K(uint64_t(KeyOf<T>::key(p[i])) - base), i);
  });
  if (!consecutive) items = n >= SHARED ? sort_items_together(items, other, n, bytes) : sort_items(items, other, n, bytes);
  const T* from = x.as<T>();
  int64_t run = -1, start = 0;
  for (int64_t i = 0; i < n; ++i) {
    bool starts = i == 0 || key_of(items[i]) != key_of(items[i - 1]);
    if constexpr (std::is_floating_point_v<T> || is_narrow<T>)
      starts = starts || Key<T>(key_of(items[i])) == KeyOf<T>::nan;
    if (starts) {
      if (run >= 0) counts.as<int64_t>()[run] = i - start;
      ++run;
      start = i;
      values.as<T>()[run] = from[place_of(items[i])];
    }
    which.as<int64_t>()[place_of(items[i])] = run;
  }
  if (run >= 0) counts.as<int64_t>()[run] = n - start;
  *number.as<int64_t>() = run + 1;
}

template <class T> void runs(Call& c) {
  const int64_t n = c.view(0).numel();
  if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
    if (n > 0) {
      const auto [low, high] = key_range<T>(c.view(0).data, sizeof(T), n);
      const uint64_t span = uint64_t(high) - uint64_t(low);
      int bytes = 1;
      while (bytes < 8 && span >> (8 * bytes)) ++bytes;
      if (bytes <= 4) return runs_of<T, uint64_t>(c, uint64_t(low), bytes);
    }
  }
  runs_of<T, Item<Key<T>>>(c, 0, int(sizeof(Key<T>)));
}

}  // namespace

// x, values, places, dim, descending
VT_KERNEL(sort) {
  for_reals("sort", c.view(0).dtype, [&](auto t) { sort_rows<typename decltype(t)::type>(c, c.i(1) != 0); });
}
// x, values, places, dim, k, largest, sorted
VT_KERNEL(topk) {
  for_reals("topk", c.view(0).dtype, [&](auto t) { topk_rows<typename decltype(t)::type>(c); });
}
// x, values, places or None, dim, kind, rank
VT_KERNEL(rank) {
  for_reals("kthvalue", c.view(0).dtype, [&](auto t) { rank_rows<typename decltype(t)::type>(c); });
}
// x (dense), values, which, counts, number of runs, consecutive
VT_KERNEL(runs) {
  for_reals("unique", c.view(0).dtype, [&](auto t) { runs<typename decltype(t)::type>(c); });
}

}  // namespace vt
