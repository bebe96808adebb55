// Random numbers into memory, and dropout. The rules stand in the docstring of common/sampling.py.
//
// Element i is a function of (key, counter, i) alone, so any split of the work draws the same numbers.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <string>

#include "vt/cast.h"
#include "vt/kernel.h"
#include "vt/math.h"
#include "vt/philox.h"
#include "vt/rows.h"

namespace vt {
namespace {

constexpr int64_t BLOCK = 2048;  // elements worked on at a time

// The elements of an array in row-major order, whatever its strides.
template <class C> class Sequence {
 public:
  explicit Sequence(const View& v) : base(v.data), item(itemsize(v.dtype)) {
    for (int d = 0; d < v.ndim; ++d) walk.add(v.shape[d], v.strides[d]);
    if (walk.ndim == 0) walk.shape[0] = 1, walk.strides[0] = item, walk.ndim = 1;
    in = cast_fn(v.dtype, dtype_of<C>);
    out = cast_fn(dtype_of<C>, v.dtype);
    direct = v.dtype == dtype_of<C> && walk.ndim == 1 && walk.strides[0] == item;
  }
  bool direct;
  const C* load(int64_t first, int64_t n, C* scratch) const {
    if (direct) return reinterpret_cast<const C*>(base) + first;
    runs(first, n, [&](char* p, int64_t step, int64_t done, int64_t m) {
      in(reinterpret_cast<char*>(scratch + done), sizeof(C), p, step, m);
    });
    return scratch;
  }
  C* place(int64_t first, C* scratch) const { return direct ? reinterpret_cast<C*>(base) + first : scratch; }
  void store(int64_t first, int64_t n, const C* scratch) const {
    if (direct) return;
    runs(first, n, [&](char* p, int64_t step, int64_t done, int64_t m) {
      out(p, step, reinterpret_cast<const char*>(scratch + done), sizeof(C), m);
    });
  }

 private:
  Walk walk;
  char* base;
  int64_t item;
  CastFn in, out;

  template <class F> void runs(int64_t first, int64_t n, F&& f) const {
    const int last = walk.ndim - 1;
    const int64_t length = walk.shape[last], step = walk.strides[last];
    for (int64_t done = 0; done < n;) {
      const int64_t m = std::min(n - done, length - (first + done) % length);
      f(base + walk.offset(first + done), step, done, m);
      done += m;
    }
  }
};

// Calls f(first element, count, words) for blocks of elements that take `each` words.
template <class F> void for_words(int64_t n, int each, int64_t cost, uint64_t key, uint64_t counter, F&& f) {
  const int64_t blocks = (n + BLOCK - 1) / BLOCK;
  parallel_for(blocks, grain_for(std::min(n, BLOCK) * (cost + 3)), [&](int64_t b, int64_t e) {
    Scratch<uint32_t> words(std::min(n, BLOCK) * each + 4);
    for (int64_t k = b; k < e; ++k) {
      const int64_t first = k * BLOCK, count = std::min(BLOCK, n - first);
      philox_words(key, counter + uint64_t(first * each / 4), (count * each + 3) / 4, words);
      f(first, count, static_cast<const uint32_t*>(words));
    }
  });
}

// --- numbers of the unit interval ------------------------------------------------------------------------

inline uint64_t pair_of(const uint32_t* w, int64_t i) { return uint64_t(w[2 * i]) | uint64_t(w[2 * i + 1]) << 32; }

template <class C> inline C unit(const uint32_t* w, int64_t i, int digits) {
  if constexpr (sizeof(C) == 4) return float(int32_t(w[i] >> (32 - digits))) * (1.0f / float(1 << digits));
  else return double(int64_t(pair_of(w, i) >> 11)) * 0x1p-53;
}
template <class C> inline C open_unit(const uint32_t* w, int64_t i) {
  if constexpr (sizeof(C) == 4) return float(w[i]) * 0x1p-32f + 0x1p-33f;
  else return double(pair_of(w, i)) * 0x1p-64 + 0x1p-65;
}
template <class C> inline C centred_unit(const uint32_t* w, int64_t i) {
  if constexpr (sizeof(C) == 4) return float(int32_t(w[i])) * 0x1p-32f + 0x1p-33f;
  else return double(int64_t(pair_of(w, i))) * 0x1p-64 + 0x1p-65;
}

// Box and Muller (1958), equation 1. Whole pairs are computed: out has room for an even number.
template <class C> void box_muller(C* out, const uint32_t* w, int64_t n) {
  const C turn = C(2 * M_PI) * (sizeof(C) == 4 ? C(0x1p-32) : C(0x1p-64));
  for (int64_t j = 0; j < (n + 1) / 2; ++j) {
    const C radius = std::sqrt(vt::log(open_unit<C>(w, 2 * j)) * C(-2));
    C angle;
    if constexpr (sizeof(C) == 4) angle = float(w[2 * j + 1]) * turn;
    else angle = double(pair_of(w, 2 * j + 1)) * turn;
    out[2 * j] = radius * cos_near(angle);
    out[2 * j + 1] = radius * sin_near(angle);
  }
}

// --- parameters --------------------------------------------------------------------------------------------

// Numbers come as ints or floats by their Python type; bit k of `kinds` says that number k is an int.
struct Numbers {
  double value[2];
  Numbers(const Call& c, int count, int64_t first_int) {
    const int64_t kinds = c.ints.back();
    int64_t i = first_int, f = 0;
    for (int k = 0; k < count; ++k) value[k] = kinds >> k & 1 ? double(c.i(int(i++))) : c.f(int(f++));
  }
  double operator[](int k) const { return value[k]; }
};

std::string shown(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%g", v);
  return text;
}
// The text is made only when it is needed.
#define VT_REQUIRE(condition, text) \
  if (!(condition)) throw std::runtime_error(text)
double largest(Dtype d) {
  switch (d) {
    case Dtype::f16: return 65504;
    case Dtype::bf16: return 0x1.fep127;
    case Dtype::f32: return 0x1.fffffep127;
    default: return std::numeric_limits<double>::max();
  }
}
const char* name(Dtype d) {
  return d == Dtype::f16 ? "float16" : d == Dtype::bf16 ? "bfloat16" : d == Dtype::f32 ? "float32" : "float64";
}
int digits(Dtype d) { return d == Dtype::f16 ? 11 : d == Dtype::bf16 ? 8 : 24; }

// The number before `x` in its type.
template <class T> T before(T x) {
  if constexpr (is_narrow<T>) return T{uint16_t((x.bits & 0x7fff) == 0 ? 0x8001 : x.bits & 0x8000 ? x.bits + 1 : x.bits - 1)};
  else return std::nextafter(x, -INF<T>);
}

// Draws blocks in the compute type of a float result: fill(out, words, count).
template <class C, class F> void draw(const View& out, uint64_t key, uint64_t counter, int64_t cost, F&& fill) {
  const Sequence<C> to(out);
  constexpr int each = sizeof(C) == 4 ? 1 : 2;
  for_words(out.numel(), each, cost, key, counter, [&](int64_t first, int64_t n, const uint32_t* w) {
    Scratch<C> scratch(BLOCK + 1);
    fill(scratch.get(), to.direct && n % 2 == 0 ? to.place(first, scratch) : scratch.get(), w, n);
    if (to.direct && n % 2 != 0) std::copy_n(scratch.get(), n, to.place(first, scratch));
    to.store(first, n, scratch);
  });
}

VT_KERNEL(uniform) {  // out; key, counter, [ints], kinds; [floats]
  const View& out = c.view(0);
  const Numbers given(c, 2, 2);
  const double low = given[0], high = given[1], most = largest(out.dtype);
  const char* type = name(out.dtype);
  VT_REQUIRE(-most <= low && low <= most, std::string("from is out of bounds for ") + type);
  VT_REQUIRE(-most <= high && high <= most, std::string("to is out of bounds for ") + type);
  VT_REQUIRE(low <= high, "uniform_ expects to return a [from, to) range, but found from=" + shown(low) + " > to=" + shown(high));
  VT_REQUIRE(high - low <= most, "uniform_ expects to-from <= " + shown(most) + ", the largest " + type + ", but found to=" + shown(high) + " and from=" + shown(low) + " which result in to-from to exceed the limit");
  for_floats("uniform", out.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    using C = compute_t<T>;
    const int bits = digits(out.dtype);
    const T begin = convert<T>(C(low)), end = convert<T>(C(high));
    const C origin = convert<C>(begin), width = convert<C>(end) - origin, last = convert<C>(width > 0 ? before(end) : end);
    const bool plain = low == 0 && high == 1;
    draw<C>(out, uint64_t(c.i(0)), uint64_t(c.i(1)), 1, [&](C*, C* to, const uint32_t* w, int64_t n) {
      const int b = bits;
      for (int64_t i = 0; i < n; ++i) to[i] = unit<C>(w, i, b);
      if (plain) return;
      // The product is rounded before the sum, as on every device: hence two loops.
      const C by = width, from = origin, most = last;
      for (int64_t i = 0; i < n; ++i) to[i] *= by;
      for (int64_t i = 0; i < n; ++i) {
        const C v = convert<C>(convert<T>(to[i] + from));
        to[i] = v < most ? v : most;
      }
    });
  });
}

template <class C> void normals(const View& out, uint64_t key, uint64_t counter, double mean, double std, bool exponential) {
  draw<C>(out, key, counter, 12, [&](C*, C* to, const uint32_t* w, int64_t n) {
    const C shift = C(mean), scale = C(std);
    box_muller<C>(to, w, n);
    if (mean != 0 || std != 1)
      for (int64_t i = 0; i < n; ++i) to[i] = to[i] * scale + shift;
    if (exponential)
      for (int64_t i = 0; i < n; ++i) to[i] = vt::exp(to[i]);
  });
}

VT_KERNEL(normal) {  // out; key, counter, [ints], kinds; [floats]
  const Numbers given(c, 2, 2);
  VT_REQUIRE(given[1] >= 0, "normal expects std >= 0.0, but found std " + shown(given[1]));
  for_compute(c.view(0).dtype, [&](auto t) {
    normals<typename decltype(t)::type>(c.view(0), uint64_t(c.i(0)), uint64_t(c.i(1)), given[0], given[1], false);
  });
}

VT_KERNEL(log_normal) {  // as normal
  const Numbers given(c, 2, 2);
  VT_REQUIRE(given[1] > 0, "log_normal_ expects std > 0.0, but found std=" + shown(given[1]));
  for_compute(c.view(0).dtype, [&](auto t) {
    normals<typename decltype(t)::type>(c.view(0), uint64_t(c.i(0)), uint64_t(c.i(1)), given[0], given[1], true);
  });
}

VT_KERNEL(exponential) {  // out; key, counter, [ints], kinds; [floats]
  const View& out = c.view(0);
  const Numbers given(c, 1, 2);
  VT_REQUIRE(given[0] > 0, "exponential_ expects lambda > 0.0, but found lambda=" + shown(given[0]));
  for_compute(out.dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    draw<C>(out, uint64_t(c.i(0)), uint64_t(c.i(1)), 6, [&](C*, C* to, const uint32_t* w, int64_t n) {
      const C rate = C(given[0]), floor = out.dtype == Dtype::f16 ? C(0x1p-24) : sizeof(C) == 8 ? C(0x1p-55) : C(0x1p-26);
      for (int64_t i = 0; i < n; ++i) {
        const C v = -vt::log(open_unit<C>(w, i));
        to[i] = (v > floor ? v : floor) / rate;
      }
    });
  });
}

VT_KERNEL(cauchy) {  // out; key, counter, [ints], kinds; [floats]
  const View& out = c.view(0);
  const Numbers given(c, 2, 2);
  VT_REQUIRE(given[1] > 0, "cauchy_ expects sigma > 0.0, but found sigma=" + shown(given[1]));
  for_compute(out.dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    draw<C>(out, uint64_t(c.i(0)), uint64_t(c.i(1)), 10, [&](C*, C* to, const uint32_t* w, int64_t n) {
      const C median = C(given[0]), sigma = C(given[1]);
      for (int64_t i = 0; i < n; ++i) to[i] = tan_near(centred_unit<C>(w, i) * C(M_PI)) * sigma + median;
    });
  });
}

VT_KERNEL(geometric) {  // out; key, counter, [ints], kinds; [floats]
  const View& out = c.view(0);
  const Numbers given(c, 1, 2);
  VT_REQUIRE(0 < given[0] && given[0] < 1, "geometric_ expects p to be in (0, 1), but got p=" + shown(given[0]));
  for_compute(out.dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    draw<C>(out, uint64_t(c.i(0)), uint64_t(c.i(1)), 8, [&](C*, C* to, const uint32_t* w, int64_t n) {
      const C log_failure = C(std::log1p(-given[0]));
      for (int64_t i = 0; i < n; ++i) {
        const C v = std::ceil(vt::log(open_unit<C>(w, i)) / log_failure);
        to[i] = v > C(1) ? v : C(1);
      }
    });
  });
}

// --- one word per element, whatever the type ---------------------------------------------------------------

// `value` with chance limit / 2^32, else zero.
template <class C> void choose(C* to, const uint32_t* w, int64_t n, uint32_t limit, bool always, C value) {
  if (always) std::fill_n(to, n, value);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = w[i] < limit ? value : C(0);
}

VT_KERNEL(bernoulli) {  // out, p or None; key, counter, [int], kinds; [float]
  const View &out = c.view(0), &p = c.view(1);
  const uint64_t key = uint64_t(c.i(0)), counter = uint64_t(c.i(1));
  const Sequence<float> to(out);
  if (!p) {
    const double chance = Numbers(c, 1, 2)[0];
    VT_REQUIRE(0 <= chance && chance <= 1, "bernoulli_ expects p to be in [0, 1], but got p=" + shown(chance));
    const double scaled = std::ceil(chance * 0x1p32);
    const bool always = scaled >= 0x1p32;
    const uint32_t threshold = always ? 0 : uint32_t(scaled);
    for_words(out.numel(), 1, 1, key, counter, [&](int64_t first, int64_t n, const uint32_t* w) {
      Scratch<float> scratch(BLOCK);
      float* v = to.place(first, scratch);
      choose(v, w, n, threshold, always, 1.0f);
      to.store(first, n, scratch);
    });
    return;
  }
  const Sequence<double> from(p);
  const int64_t total = out.numel();
  bool inside = true;
  Scratch<double> checked(BLOCK);
  for (int64_t first = 0; first < total; first += BLOCK) {
    const int64_t n = std::min(BLOCK, total - first);
    const double* v = from.load(first, n, checked);
    for (int64_t i = 0; i < n; ++i) inside = inside && v[i] >= 0 && v[i] <= 1;
  }
  VT_REQUIRE(inside, "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  for_words(total, 1, 2, key, counter, [&](int64_t first, int64_t n, const uint32_t* w) {
    Scratch<double> chances(BLOCK);
    Scratch<float> scratch(BLOCK);
    const double* chance = from.load(first, n, chances);
    float* v = to.place(first, scratch);
    for (int64_t i = 0; i < n; ++i) v[i] = double(w[i]) < std::ceil(chance[i] * 0x1p32) ? 1.0f : 0.0f;
    to.store(first, n, scratch);
  });
}

// A product also where nothing is kept, so that NaN stays NaN.
template <class C> void multiply(C* y, const C* x, const uint32_t* w, int64_t n, uint32_t limit, bool always, C scale) {
  if (always)
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale;
  else
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * (w[i] < limit ? scale : C(0));
}

template <class C> void drop(const View& x, const View& out, uint64_t key, uint64_t counter, double p) {
  const Sequence<C> from(x), to(out);
  const double threshold = std::ceil((1 - p) * 0x1p32);
  const C scale = p < 1 ? C(1 / (1 - p)) : C(0);
  const bool all = threshold >= 0x1p32;
  const uint32_t limit = all ? 0 : uint32_t(threshold);
  for_words(out.numel(), 1, 1, key, counter, [&](int64_t first, int64_t n, const uint32_t* w) {
    Scratch<C> in(from.direct ? 0 : BLOCK), scratch(to.direct ? 0 : BLOCK);
    multiply(to.place(first, scratch), from.load(first, n, in), w, n, limit, all, scale);
    to.store(first, n, scratch);
  });
}

VT_KERNEL(dropout) {  // x, out; key, counter; p
  for_compute(c.view(0).dtype, [&](auto t) {
    drop<typename decltype(t)::type>(c.view(0), c.view(1), uint64_t(c.i(0)), uint64_t(c.i(1)), c.f(0));
  });
}

// --- integers -------------------------------------------------------------------------------------------------

void integers(const View& out, uint64_t key, uint64_t counter, uint64_t low, uint64_t span) {
  const Sequence<int64_t> to(out);
  for_words(out.numel(), 2, 2, key, counter, [&](int64_t first, int64_t n, const uint32_t* w) {
    Scratch<int64_t> scratch(to.direct ? 0 : BLOCK);
    int64_t* v = to.place(first, scratch);
    const uint64_t origin = low, wide = span;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t q = pair_of(w, i);
      v[i] = int64_t((wide == 0 ? q : uint64_t((unsigned __int128)(q) * wide >> 64)) + origin);
    }
    to.store(first, n, scratch);
  });
}

// `high` may be 2^63, whose bits are those of the smallest integer: which no `high` could be.
VT_KERNEL(random_between) {  // out; key, counter, low, high, smallest, largest of the type
  const __int128 low = c.i(2), high = c.i(3) == INT64_MIN ? __int128(1) << 63 : __int128(c.i(3));
  const auto text = [](__int128 v) { return v == __int128(1) << 63 ? std::string("9223372036854775808") : std::to_string(int64_t(v)); };
  constexpr const char* names[] = {"bool", "int8", "int16", "int32", "int64", "uint8"};
  const char* type = names[int(c.view(0).dtype)];
  VT_REQUIRE(low < high, "random_ expects 'from' to be less than 'to', but got from=" + text(low) + " >= to=" + text(high));
  VT_REQUIRE(c.i(4) <= low && low <= c.i(5), std::string("from is out of bounds for ") + type);
  VT_REQUIRE(c.i(4) <= high - 1 && high - 1 <= c.i(5), std::string("to - 1 is out of bounds for ") + type);
  integers(c.view(0), uint64_t(c.i(0)), uint64_t(c.i(1)), uint64_t(low), uint64_t(high - low));
}

VT_KERNEL(random_integers) {  // out; key, counter, low, span (0 for 2^64); for floats: first, last
  const View& out = c.view(0);
  const uint64_t low = uint64_t(c.i(2)), span = uint64_t(c.i(3));
  const auto pick = [=](uint64_t q) { return int64_t((span == 0 ? q : uint64_t((unsigned __int128)(q) * span >> 64)) + low); };
  const uint64_t key = uint64_t(c.i(0)), counter = uint64_t(c.i(1));
  if (c.floats.empty()) return integers(out, key, counter, low, span);
  for_compute(out.dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    const Sequence<C> to(out);
    const C least = C(c.f(0)), most = C(c.f(1));
    for_words(out.numel(), 2, 2, key, counter, [&](int64_t first, int64_t n, const uint32_t* w) {
      Scratch<C> scratch(to.direct ? 0 : BLOCK);
      C* v = to.place(first, scratch);
      for (int64_t i = 0; i < n; ++i) {
        const C x = C(pick(pair_of(w, i)));
        v[i] = x < least ? least : x > most ? most : x;
      }
      to.store(first, n, scratch);
    });
  });
}

// Positions in the order of 64-bit keys: by as many upper bits as there are positions, digit by digit; what is
// still out of order then is a step or two from its place.
VT_KERNEL(random_order) {  // out; key, counter
  const View& out = c.view(0);
  const int64_t n = out.numel();
  if (n == 0) return;
  if (n >= int64_t(1) << 32) throw std::bad_alloc();
  Scratch<uint64_t> a(n), b(n);
  Scratch<uint32_t> low(n);
  uint64_t *from = a, *to = b;
  uint32_t* lows = low;
  for_words(n, 2, 1, uint64_t(c.i(0)), uint64_t(c.i(1)), [&](int64_t first, int64_t m, const uint32_t* w) {
    for (int64_t i = 0; i < m; ++i) {
      lows[first + i] = w[2 * i];
      from[first + i] = uint64_t(w[2 * i + 1]) << 32 | uint64_t(first + i);
    }
  });
  const int bits = n < 32 ? 0 : std::bit_width(uint64_t(n)) + 2, passes = (bits + 10) / 11;
  for (int pass = 0; pass < passes; ++pass) {
    const int begin = bits * pass / passes, digit = bits * (pass + 1) / passes - begin, shift = 64 - bits + begin;
    const uint64_t mask = (uint64_t(1) << digit) - 1;
    uint32_t places[1 << 11];
    std::fill_n(places, mask + 1, 0u);
    for (int64_t i = 0; i < n; ++i) ++places[from[i] >> shift & mask];
    uint32_t sum = 0;
    for (uint64_t d = 0; d <= mask; ++d) {
      const uint32_t here = places[d];
      places[d] = sum;
      sum += here;
    }
    for (int64_t i = 0; i < n; ++i) to[places[from[i] >> shift & mask]++] = from[i];
    std::swap(from, to);
  }
  const auto after = [lows](uint64_t x, uint64_t y) {
    return x >> 32 != y >> 32 ? x >> 32 > y >> 32 : lows[uint32_t(x)] > lows[uint32_t(y)];
  };
  for (int64_t i = 1; i < n; ++i) {
    const uint64_t x = from[i];
    int64_t j = i;
    for (; j > 0 && after(from[j - 1], x); --j) from[j] = from[j - 1];
    from[j] = x;
  }
  const Sequence<int64_t> result(out);
  for (int64_t first = 0; first < n; first += BLOCK) {
    const int64_t m = std::min(BLOCK, n - first);
    Scratch<int64_t> scratch(BLOCK);
    int64_t* v = result.place(first, scratch);
    for (int64_t i = 0; i < m; ++i) v[i] = int64_t(uint32_t(from[first + i]));
    result.store(first, m, scratch);
  }
}

}  // namespace
}  // namespace vt
