// Sums, products, extremes and tests over dimensions: how tiles go into accumulators.
#include "vt/reduce.h"
#include "vt/short_tile.h"

#include <limits>

#include "vt/kernel.h"
#include "vt/vec64.h"
#include "vt/math.h"

namespace vt {
namespace {

using namespace v64;

constexpr int64_t BLOCK = 2048;  // so many floats are added up before they go into a double

struct Same {
  template <class V> static V of(V x) { return x; }
};
struct NotNan {
  template <class V> static V of(V x) { return x == x ? x : V{}; }
};
struct Abs {
  template <class V> static V of(V x) { return x <= V{} ? V{} - x : x; }
};
struct Square {
  template <class V> static V of(V x) { return x * x; }
};

// --- sums: in the lanes of the compute type for a block, then in a wide accumulator --------------

template <class C> using Wide = std::conditional_t<std::is_integral_v<C>, int64_t, double>;
// Bytes are added up as int32, narrow floats as float.
template <class C> using Short = std::conditional_t<std::is_same_v<C, uint8_t>, int32_t, compute_t<C>>;

template <class C, class Map> inline Wide<C> row_sum(const C* p, int64_t n) {
  using V = Vec<C>;
  using W = Wide<C>;
  constexpr int64_t L = Lanes<C>::n;
  auto add = [](auto x, auto y) { return x + y; };
  if (n <= 8 * L) {
    V a{}, b{};
    int64_t k = 0;
    for (; k + 2 * L <= n; k += 2 * L) {
      a += Map::of(load(p + k));
      b += Map::of(load(p + k + L));
    }
    if (k + L <= n) {
      a += Map::of(load(p + k));
      k += L;
    }
    if (k < n) b += Map::of(load_part(p + k, n - k, C(0)));
    return W(across<C>(a + b, add));
  }
  Vec<W> total{};
  int64_t i = 0;
  while (n - i >= L) {
    // Longer blocks would add small numbers to large ones.
    const int64_t end = n - i < BLOCK ? n : i + BLOCK;
    V a{}, b{}, c{}, d{};
    for (; i + 4 * L <= end; i += 4 * L) {
      a += Map::of(load(p + i));
      b += Map::of(load(p + i + L));
      c += Map::of(load(p + i + 2 * L));
      d += Map::of(load(p + i + 3 * L));
    }
    for (; i + L <= end; i += L) a += Map::of(load(p + i));
    total += widened((a + b) + (c + d));
  }
  if (i < n) total += widened(V(Map::of(load_part(p + i, n - i, C(0)))));
  return across<W>(total, add);
}

template <> inline int64_t row_sum<uint8_t, Same>(const uint8_t* p, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i += 1 << 20) {
    const int64_t end = n - i < 1 << 20 ? n : i + (1 << 20);
    uint32_t s = 0;
    for (int64_t k = i; k < end; ++k) s += p[k];
    total += s;
  }
  return total;
}

// Two halves of a word are two floats, but for the place of their bits.
template <> inline double row_sum<bf16, Same>(const bf16* p, int64_t n) {
  using V = Vec<float>;
  Vec<double> total{};
  int64_t i = 0;
  while (n - i >= 32) {
    const int64_t end = n - i < BLOCK ? n : i + BLOCK;
    V a{}, b{}, c{}, d{};
    auto low = [](Vec<uint32_t> w) { return std::bit_cast<V>(w << 16); };
    auto high = [](Vec<uint32_t> w) { return std::bit_cast<V>(w & 0xffff0000u); };
    auto words = [&](int64_t k) { return load(reinterpret_cast<const uint32_t*>(p + k)); };
    for (; i + 64 <= end; i += 64) {
      const Vec<uint32_t> v = words(i), w = words(i + 32);
      a += low(v);
      b += high(v);
      c += low(w);
      d += high(w);
    }
    for (; i + 32 <= end; i += 32) {
      const Vec<uint32_t> v = words(i);
      a += low(v);
      b += high(v);
    }
    total += widened((a + b) + (c + d));
  }
  double s = across<double>(total, [](auto x, auto y) { return x + y; });
  for (; i < n; ++i) s += double(to_float(p[i]));
  return s;
}

template <class C, class Map> struct Sum {
  using Acc = Wide<C>;
  static Short<C> one(C x) {
    if constexpr (std::is_same_v<Map, Same>) return convert<Short<C>>(x);
    else return Map::of(x);
  }
  static void init(void* acc, int64_t n) { std::memset(acc, 0, size_t(n) * sizeof(Acc)); }
  static void rows(void* acc, int64_t step, const Tile& t) {
    const C* p = static_cast<const C*>(t.data);
    Acc* a = static_cast<Acc*>(acc);
    if (t.cols >= 8) {
      for (int64_t r = 0; r < t.rows; ++r, p += t.row) a[r * step] += row_sum<C, Map>(p, t.cols);
      return;
    }
    for (int64_t r = 0; r < t.rows; ++r, p += t.row) {
      Acc s = 0;
      for (int64_t i = 0; i < t.cols; ++i) s += Acc(one(p[i]));
      a[r * step] += s;
    }
  }
  static void cols(void* acc, const Tile& t) {
    alignas(64) Short<C> part[COLUMNS];
    const C* p = static_cast<const C*>(t.data);
    const int64_t n = t.cols, step = t.row;
    int64_t r = 0;
    bool started = false;
    for (; r + 8 <= t.rows; r += 8, p += 8 * step) {
      const C *p1 = p + step, *p2 = p + 2 * step, *p3 = p + 3 * step, *p4 = p + 4 * step;
      const C *p5 = p + 5 * step, *p6 = p + 6 * step, *p7 = p + 7 * step;
      auto joined = [&](int64_t i) {
        return ((one(p[i]) + one(p1[i])) + (one(p2[i]) + one(p3[i]))) +
               ((one(p4[i]) + one(p5[i])) + (one(p6[i]) + one(p7[i])));
      };
      if (started) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) part[i] += joined(i);
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) part[i] = joined(i);
        started = true;
      }
    }
    if (!started)
      for (int64_t i = 0; i < n; ++i) part[i] = 0;
    for (; r < t.rows; ++r, p += step) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) part[i] += one(p[i]);
    }
    Acc* a = static_cast<Acc*>(acc);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) a[i] += Acc(part[i]);
  }
  static void merge(void* acc, const void* other, int64_t n) {
    Acc* a = static_cast<Acc*>(acc);
    const Acc* b = static_cast<const Acc*>(other);
    for (int64_t i = 0; i < n; ++i) a[i] += b[i];
  }
};

// --- what joins values of one type: products and extremes ------------------------------------------

template <class C> struct Times {
  static constexpr C start = C(1);
  // Integers wrap.
  template <class V> static V of(V a, V b) { return a * b; }
};
// NaN wins: a comparison with it is false, so it stays, and it is taken when it comes.
template <class C> struct Larger {
  static constexpr C start = std::numeric_limits<C>::has_infinity ? -std::numeric_limits<C>::infinity()
                                                                  : std::numeric_limits<C>::lowest();
  template <class V> static V of(V a, V b) { return ((b > a) | (b != b)) ? b : a; }
};
template <class C> struct Smaller {
  static constexpr C start = std::numeric_limits<C>::has_infinity ? std::numeric_limits<C>::infinity()
                                                                  : std::numeric_limits<C>::max();
  template <class V> static V of(V a, V b) { return ((b < a) | (b != b)) ? b : a; }
};

// Of truth values, which are bytes of 0 or 1.
struct Either {
  static constexpr uint8_t start = 0;
  template <class V> static V of(V a, V b) { return a | b; }
};
struct Both {
  static constexpr uint8_t start = 1;
  template <class V> static V of(V a, V b) { return a & b; }
};

template <class C, class Join, class Map> struct Fold {
  using U = std::conditional_t<std::is_same_v<C, int64_t>, uint64_t, C>;  // products wrap
  static C join(C a, C b) {
    if constexpr (std::is_same_v<Join, Times<C>> && std::is_same_v<C, int64_t>) return C(U(a) * U(b));
    else return Join::of(a, b);
  }
  static void init(void* acc, int64_t n) {
    C* a = static_cast<C*>(acc);
    for (int64_t i = 0; i < n; ++i) a[i] = Join::start;
  }
  static C row(const C* p, int64_t n) {
    if constexpr (std::is_same_v<Map, Same> && std::is_same_v<Join, Larger<C>>) return extreme<C, true>(p, n);
    if constexpr (std::is_same_v<Map, Same> && std::is_same_v<Join, Smaller<C>>) return extreme<C, false>(p, n);
    using V = Vec<C>;
    constexpr int64_t L = Lanes<C>::n;
    C s = Join::start;
    int64_t i = 0;
    if (n >= L) {
      V a = splat(Join::start), b = a, c = a, d = a;
      for (; i + 4 * L <= n; i += 4 * L) {
        a = Join::of(a, Map::of(load(p + i)));
        b = Join::of(b, Map::of(load(p + i + L)));
        c = Join::of(c, Map::of(load(p + i + 2 * L)));
        d = Join::of(d, Map::of(load(p + i + 3 * L)));
      }
      for (; i + L <= n; i += L) a = Join::of(a, Map::of(load(p + i)));
      s = across<C>(Join::of(Join::of(a, b), Join::of(c, d)), [](auto x, auto y) { return Join::of(x, y); });
    }
    for (; i < n; ++i) s = join(s, Map::of(p[i]));
    return s;
  }
  static void rows(void* acc, int64_t step, const Tile& t) {
    const C* p = static_cast<const C*>(t.data);
    C* a = static_cast<C*>(acc);
    if (step == 1 && t.cols <= SHORT_ROW && t.rows >= 8)
      return as_columns<C>(t, [&](int64_t first, const Tile& some) { cols(a + first, some); });
    for (int64_t r = 0; r < t.rows; ++r, p += t.row) a[r * step] = join(a[r * step], row(p, t.cols));
  }
  static void cols(void* acc, const Tile& t) {
    C* a = static_cast<C*>(acc);
    const C* p = static_cast<const C*>(t.data);
    const int64_t n = t.cols, step = t.row;
    constexpr int64_t L = Lanes<C>::n;
    int64_t r = 0;
    for (; r + 4 <= t.rows; r += 4, p += 4 * step) {
      const C *p1 = p + step, *p2 = p + 2 * step, *p3 = p + 3 * step;
      int64_t i = 0;
      for (; i + L <= n; i += L) {
        auto v = Join::of(load(a + i), Join::of(Map::of(load(p + i)), Map::of(load(p1 + i))));
        v = Join::of(v, Join::of(Map::of(load(p2 + i)), Map::of(load(p3 + i))));
        std::memcpy(a + i, &v, 64);
      }
      for (; i < n; ++i)
        a[i] = join(join(a[i], join(Map::of(p[i]), Map::of(p1[i]))), join(Map::of(p2[i]), Map::of(p3[i])));
    }
    for (; r < t.rows; ++r, p += step) {
      int64_t i = 0;
      for (; i + L <= n; i += L) {
        const auto v = Join::of(load(a + i), Map::of(load(p + i)));
        std::memcpy(a + i, &v, 64);
      }
      for (; i < n; ++i) a[i] = join(a[i], Map::of(p[i]));
    }
  }
  static void merge(void* acc, const void* other, int64_t n) {
    C* a = static_cast<C*>(acc);
    const C* b = static_cast<const C*>(other);
    for (int64_t i = 0; i < n; ++i) a[i] = join(a[i], b[i]);
  }
};

template <class S> constexpr Reducer made(Dtype compute, int64_t bytes) {
  return Reducer{compute, bytes, S::init, S::rows, S::cols, S::merge};
}
template <class C, class Map> const Reducer* sum() {
  static constexpr Reducer r = made<Sum<C, Map>>(dtype_of<C>, 8);
  return &r;
}
template <class C, class Join, class Map = Same> const Reducer* fold() {
  static constexpr Reducer r = made<Fold<C, Join, Map>>(dtype_of<C>, sizeof(C));
  return &r;
}

template <class C> const Reducer* of_floats(Reduction kind) {
  switch (kind) {
    case Reduction::sum: return sum<C, Same>();
    case Reduction::nansum: return sum<C, NotNan>();
    case Reduction::sum_abs: return sum<C, Abs>();
    case Reduction::sum_square: return sum<C, Square>();
    case Reduction::prod: return fold<C, Times<C>>();
    case Reduction::max: return fold<C, Larger<C>>();
    case Reduction::min: return fold<C, Smaller<C>>();
    case Reduction::max_abs: return fold<C, Larger<C>, Abs>();
    case Reduction::min_abs: return fold<C, Smaller<C>, Abs>();
  }
  return nullptr;
}

// |x| ** power.
struct PowerSource : ArraySource {
  PowerSource(const char* data, Dtype have, Dtype want, double power)
      : ArraySource(data, have, want), want(want), power(power) {
    cost = 12;
  }
  bool direct() const override { return false; }
  int64_t memory(int64_t elements) const override { return elements * itemsize(want); }
  void load(char* memory, int64_t elements, const int64_t* at, Tile& t) const override {
    ArraySource::load(memory, elements, at, t);
    if (want == Dtype::f32) raise<float>(memory, t);
    else raise<double>(memory, t);
    t.data = memory;
    t.row = t.cols;
  }

 private:
  template <class C> void raise(char* memory, const Tile& t) const {
    C* to = reinterpret_cast<C*>(memory);
    const C p = C(power);
    for (int64_t r = 0; r < t.rows; ++r) {
      const C* from = static_cast<const C*>(t.data) + r * t.row;
#pragma GCC ivdep
      for (int64_t i = 0; i < t.cols; ++i) to[r * t.cols + i] = vt::pow(std::abs(from[i]), p);
    }
  }
  Dtype want;
  double power;
};

}  // namespace

const Reducer* find_reducer(Reduction kind, Dtype compute) {
  const bool adds = kind == Reduction::sum || kind == Reduction::nansum;
  switch (compute) {
    case Dtype::f32: return of_floats<float>(kind);
    case Dtype::f64: return of_floats<double>(kind);
    case Dtype::i64:
      if (adds) return sum<int64_t, Same>();
      if (kind == Reduction::prod) return fold<int64_t, Times<int64_t>>();
      if (kind == Reduction::max) return fold<int64_t, Larger<int64_t>>();
      if (kind == Reduction::min) return fold<int64_t, Smaller<int64_t>>();
      return nullptr;
    case Dtype::bf16: return kind == Reduction::sum ? sum<bf16, Same>() : nullptr;
    case Dtype::i32:
      if (kind == Reduction::max) return fold<int32_t, Larger<int32_t>>();
      if (kind == Reduction::min) return fold<int32_t, Smaller<int32_t>>();
      return nullptr;
    case Dtype::b1:
      if (adds) return sum<uint8_t, Same>();
      if (kind == Reduction::max) return fold<uint8_t, Either>();
      if (kind == Reduction::min) return fold<uint8_t, Both>();
      return nullptr;
    case Dtype::u8:
      if (adds) return sum<uint8_t, Same>();
      if (kind == Reduction::max) return fold<uint8_t, Larger<uint8_t>>();
      if (kind == Reduction::min) return fold<uint8_t, Smaller<uint8_t>>();
      return nullptr;
    default: return nullptr;
  }
}

Dtype accumulator_of(Reduction kind, Dtype compute) {
  if (kind > Reduction::sum_square) return compute;
  return compute == Dtype::u8 || compute == Dtype::i64 ? Dtype::i64 : Dtype::f64;
}

// x, out, dimensions as a bit mask, kind, compute type, divisor, power of the result, of an element
VT_KERNEL(reduce) {
  View x = c.view(0);
  const View& out = c.view(1);
  const auto kind = Reduction(c.i(1));
  const auto compute = Dtype(c.i(2));
  const Reducer* reducer = find_reducer(kind, compute);
  if (reducer == nullptr) no_dtype("reduce");
  std::vector<ReduceDim> dims = reduce_dims(x, uint64_t(c.i(0)), out);
  Dtype have = x.dtype, made = out.dtype;
  if (compute != Dtype::b1 && (have == Dtype::c64 || have == Dtype::c128)) {
    // Real and imaginary parts are two neighbours of the real type.
    have = made = have == Dtype::c64 ? Dtype::f32 : Dtype::f64;
    ReduceDim parts{};
    parts.n = 2;
    parts.in[0] = parts.out[0] = itemsize(have);
    dims.push_back(parts);
  }
  StoreValue store(accumulator_of(kind, reducer->compute), made, c.f(0), c.f(1));
  char* outs[2] = {out.data, nullptr};
  if (kind == Reduction::sum && c.f(2) != 1) {
    PowerSource source(x.data, have, compute, c.f(2));
    return reduce(std::move(dims), source, *reducer, store, outs);
  }
  ArraySource source(x.data, have, compute);
  reduce(std::move(dims), source, *reducer, store, outs);
}

}  // namespace vt
