// Binary search in sorted rows, and counting into bins.
#include <algorithm>

#include "vt/cast.h"
#include "vt/kernel.h"
#include "vt/lines.h"

namespace vt {
namespace {

// Where values go into sorted bounds. All searches take the same steps, several side by side; a
// comparison with NaN fails, which moves right.
template <class C, bool RIGHT> void find(int64_t* to, const C* x, int64_t m, const C* bounds, int64_t n) {
  constexpr int64_t ABREAST = 16;
  auto onward = [](C found, C v) { return RIGHT ? !(found > v) : !(found >= v); };
  for (int64_t i = 0; i < m; i += ABREAST) {
    const int64_t k = std::min(ABREAST, m - i);
    C v[ABREAST];
    int64_t base[ABREAST];
    for (int64_t j = 0; j < ABREAST; ++j) v[j] = x[i + (j < k ? j : 0)], base[j] = 0;
    for (int64_t left = n; left > 1;) {
      const int64_t half = left / 2;
#pragma GCC ivdep
      for (int64_t j = 0; j < ABREAST; ++j) base[j] += onward(bounds[base[j] + half - 1], v[j]) ? half : 0;
      left -= half;
    }
    for (int64_t j = 0; j < k; ++j) to[i + j] = n == 0 ? 0 : base[j] + (onward(bounds[base[j]], v[j]) ? 1 : 0);
  }
}

template <class C, bool RIGHT> void search(Call& c) {
  const View &bounds = c.view(0), &x = c.view(1), &out = c.view(2);
  const int64_t n = bounds.size(-1);
  const CastFn bounds_in = cast_fn(bounds.dtype, dtype_of<C>), x_in = cast_fn(x.dtype, dtype_of<C>);
  const CastFn put = cast_fn(Dtype::i64, out.dtype);
  const int64_t item = sizeof(C);
  // Rows of values; each has a row of bounds, or all share one.
  const Lines values({&x, &out}, x.ndim - 1);
  const bool shared = bounds.ndim == 1;
  const Lines limits({&bounds}, bounds.ndim - 1);
  if (values.count == 0 || values.size == 0) return;
  constexpr int64_t TILE = 1024;
  const int64_t tiles = (values.size + TILE - 1) / TILE;
  Scratch<C> once(shared ? n : 0);
  if (shared) bounds_in(reinterpret_cast<char*>(once.get()), item, bounds.data, bounds.strides[0], n);
  const C* common = once;
  int64_t steps = 1;
  while (n >> steps) ++steps;
  parallel_for(values.count * tiles, grain_for(std::min(TILE, values.size) * steps), [&](int64_t begin, int64_t end) {
    Scratch<C> row(shared ? 0 : n);
    alignas(64) C v[TILE];
    alignas(64) int64_t found[TILE];
    int64_t held = -1;
    for (int64_t task = begin; task < end; ++task) {
      const int64_t r = task / tiles, i = task % tiles * TILE, m = std::min(TILE, values.size - i);
      if (!shared && held != r) {
        bounds_in(reinterpret_cast<char*>(row.get()), item, limits.row(0, r), limits.step(0), n);
        held = r;
      }
      x_in(reinterpret_cast<char*>(v), item, values.row(0, r) + i * values.step(0), values.step(0), m);
      find<C, RIGHT>(found, v, m, shared ? common : row.get(), n);
      put(values.row(1, r) + i * values.step(1), values.step(1), reinterpret_cast<const char*>(found), 8, m);
    }
  });
}

template <class C> void search_either(Call& c) { c.i(1) ? search<C, true>(c) : search<C, false>(c); }

// Counts of each thread's part, added up at the end. `count(begin, end, counts)`.
template <class A, class F> void count_parts(int64_t n, int64_t bins, A* total, F&& count) {
  const int64_t pieces = bins > 65536 || n < 65536 ? 1 : std::min<int64_t>(num_threads(), 8);
  Scratch<A> parts(pieces * bins);
  A* all = parts;
  std::fill_n(all, pieces * bins, A(0));
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) count(n * p / pieces, n * (p + 1) / pieces, all + p * bins);
  });
  for (int64_t b = 0; b < bins; ++b) {
    A s = all[b];
    for (int64_t p = 1; p < pieces; ++p) s += all[p * bins + b];
    total[b] = s;
  }
}

template <class C> void histogram(Call& c) {
  const View &x = c.view(0), &out = c.view(1);
  const int64_t bins = c.i(0), n = x.numel();
  const C low = C(c.f(0)), high = C(c.f(1)), width = high - low, many = C(bins);
  const CastFn in = cast_fn(x.dtype, dtype_of<C>);
  Scratch<int64_t> counts(bins);
  const int64_t item = itemsize(x.dtype);
  count_parts<int64_t>(n, bins, counts.get(), [&](int64_t begin, int64_t end, int64_t* to) {
    constexpr int64_t TILE = 1024;
    alignas(64) C v[TILE];
    alignas(64) int64_t at[TILE];
    for (int64_t i = begin; i < end; i += TILE) {
      const int64_t m = std::min(TILE, end - i);
      in(reinterpret_cast<char*>(v), sizeof(C), x.data + i * item, item, m);
#pragma GCC ivdep
      for (int64_t j = 0; j < m; ++j) {
        const bool inside = (v[j] >= low) & (v[j] <= high);
        const int64_t b = int64_t((inside ? v[j] - low : C(0)) * many / width);
        // The last bin includes its right edge.
        at[j] = inside ? (b < bins - 1 ? b : bins - 1) : -1;
      }
      for (int64_t j = 0; j < m; ++j)
        if (at[j] >= 0) ++to[at[j]];
    }
  });
  cast_fn(Dtype::i64, out.dtype)(out.data, itemsize(out.dtype), reinterpret_cast<const char*>(counts.get()), 8, bins);
}

}  // namespace

// bounds, x, out, compute type, right
VT_KERNEL(searchsorted) {
  switch (Dtype(c.i(0))) {
    case Dtype::f32: return search_either<float>(c);
    case Dtype::f64: return search_either<double>(c);
    default: return search_either<int64_t>(c);
  }
}

// x (dense), out, bins, low, high
VT_KERNEL(histc) { c.view(0).dtype == Dtype::f64 ? histogram<double>(c) : histogram<float>(c); }

// x, result: smallest and largest
VT_KERNEL(extent) {
  const View &x = c.view(0), &out = c.view(1);
  for_ints("bincount", x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    const int64_t n = x.numel(), step = x.stride(0);
    const T* p = x.as<T>();
    T low = p[0], high = p[0];
    auto widen = [&](T v) {
      low = v < low ? v : low;
      high = v > high ? v : high;
    };
    if (step == 1)
      for (int64_t i = 0; i < n; ++i) widen(p[i]);
    else
      for (int64_t i = 0; i < n; ++i) widen(p[i * step]);
    out.as<int64_t>()[0] = int64_t(low);
    out.as<int64_t>()[1] = int64_t(high);
  });
}

// x, weights or None, counts
VT_KERNEL(bincount) {
  const View &x = c.view(0), &weights = c.view(1), &out = c.view(2);
  const int64_t n = x.numel(), bins = out.numel(), step = x.stride(0);
  for_ints("bincount", x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    const T* p = x.as<T>();
    if (!weights)
      return count_parts<int64_t>(n, bins, out.as<int64_t>(), [&](int64_t begin, int64_t end, int64_t* to) {
        // Two tables side by side: the same bin twice in a row need not wait for its own store.
        Scratch<int64_t> other(bins);
        std::fill_n(other.get(), bins, int64_t(0));
        int64_t* also = other;
        int64_t i = begin;
        for (; i + 2 <= end; i += 2) {
          ++to[p[i * step]];
          ++also[p[(i + 1) * step]];
        }
        if (i < end) ++to[p[i * step]];
        for (int64_t b = 0; b < bins; ++b) to[b] += also[b];
      });
    // Added up in double, as NumPy does; the result is of the type of the weights.
    Scratch<double> total(bins);
    const CastFn in = cast_fn(weights.dtype, Dtype::f64);
    count_parts<double>(n, bins, total.get(), [&](int64_t begin, int64_t end, double* to) {
      constexpr int64_t TILE = 1024;
      double w[TILE];
      for (int64_t i = begin; i < end; i += TILE) {
        const int64_t m = std::min(TILE, end - i);
        in(reinterpret_cast<char*>(w), 8, weights.data + i * weights.strides[0], weights.strides[0], m);
        for (int64_t j = 0; j < m; ++j) to[p[(i + j) * step]] += w[j];
      }
    });
    cast_fn(Dtype::f64, out.dtype)(out.data, itemsize(out.dtype), reinterpret_cast<const char*>(total.get()), 8, bins);
  });
}

}  // namespace vt
