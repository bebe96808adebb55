// Variance and logsumexp: reductions whose accumulators are more than one number.
#include <algorithm>

#include "vt/kernel.h"
#include "vt/vec64.h"
#include "vt/math.h"
#include "vt/primitives.h"
#include "vt/reduce.h"
#include "vt/short_tile.h"

namespace vt {
namespace {

using namespace v64;

constexpr int64_t BLOCK = 1024;

template <class C> inline double added(const Vec<C>& v) {
  const Vec<double> wide = widened(v);
  return across<double>(wide, [](auto a, auto b) { return a + b; });
}

// --- variance ---------------------------------------------------------------------------------------

// Count, mean and sum of squared distances from it; joined as by Chan, Golub and LeVeque (1979).
struct Moments {
  double n, mean, squares;
  void join(double m, double other_mean, double other_squares) {
    const double all = n + m, away = other_mean - mean;
    squares += other_squares + away * away * (n * m / all);
    mean += away * (m / all);
    n = all;
  }
};

template <class C> struct Variance {
  static void init(void* acc, int64_t n) { std::memset(acc, 0, size_t(n) * sizeof(Moments)); }

  static double mean_of(const C* p, int64_t n) {
    constexpr int64_t L = Lanes<C>::n;
    Vec<C> a{}, b{};
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) a += load(p + i), b += load(p + i + L);
    for (; i + L <= n; i += L) a += load(p + i);
    if (i < n) b += load_part(p + i, n - i, C(0));
    return added<C>(a + b) / double(n);
  }
  // Distances from a number near the mean, which the mean so far is: squares of them cancel little.
  static void block(Moments& m, const C* p, int64_t n) {
    constexpr int64_t L = Lanes<C>::n;
    const C near = C(m.n == 0 ? mean_of(p, n) : m.mean);
    Vec<C> a{}, b{}, aa{}, bb{};
    int64_t i = 0;
    for (; i + 2 * L <= n; i += 2 * L) {
      const Vec<C> x = load(p + i) - near, y = load(p + i + L) - near;
      a += x, aa += x * x;
      b += y, bb += y * y;
    }
    for (; i + L <= n; i += L) {
      const Vec<C> x = load(p + i) - near;
      a += x, aa += x * x;
    }
    if (i < n) {
      const Vec<C> x = load_part(p + i, n - i, near) - near;
      b += x, bb += x * x;
    }
    const double s = added<C>(a + b), ss = added<C>(aa + bb);
    const double squares = ss - s * s / double(n);
    m.join(double(n), double(near) + s / double(n), squares < 0 ? 0 : squares);
  }
  // Short rows of one result are brought together first.
  static void together(Moments& m, const Tile& t) {
    alignas(64) C some[BLOCK];
    int64_t held = 0;
    for (int64_t r = 0; r < t.rows; ++r, held += t.cols) {
      if (held + t.cols > BLOCK) block(m, some, held), held = 0;
      std::copy_n(static_cast<const C*>(t.data) + r * t.row, t.cols, some + held);
    }
    block(m, some, held);
  }
  static void rows(void* acc, int64_t step, const Tile& t) {
    Moments* a = static_cast<Moments*>(acc);
    if (step == 0 && t.rows > 1 && t.cols > 0 && t.cols <= 128) return together(a[0], t);
    for (int64_t r = 0; r < t.rows; ++r) {
      const C* p = static_cast<const C*>(t.data) + r * t.row;
      for (int64_t i = 0; i < t.cols; i += BLOCK) block(a[r * step], p + i, t.cols - i < BLOCK ? t.cols - i : BLOCK);
    }
  }
  static void cols(void* acc, const Tile& t) {
    Moments* a = static_cast<Moments*>(acc);
    alignas(64) C near[COLUMNS], s[COLUMNS], ss[COLUMNS];
    const C* p = static_cast<const C*>(t.data);
    const int64_t n = t.cols;
    for (int64_t i = 0; i < n; ++i) s[i] = ss[i] = 0;
    if (a[n - 1].n == 0) {
      for (int64_t r = 0; r < t.rows; ++r) {
        const C* q = p + r * t.row;
        for (int64_t i = 0; i < n; ++i) s[i] += q[i];
      }
      const C count = C(t.rows);
      for (int64_t i = 0; i < n; ++i) near[i] = s[i] / count, s[i] = 0;
    } else {
      for (int64_t i = 0; i < n; ++i) near[i] = C(a[i].mean);
    }
    int64_t r = 0;
    for (; r + 4 <= t.rows; r += 4) {
      const C *q = p + r * t.row, *q1 = q + t.row, *q2 = q1 + t.row, *q3 = q2 + t.row;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const C x = q[i] - near[i], y = q1[i] - near[i], z = q2[i] - near[i], w = q3[i] - near[i];
        s[i] += (x + y) + (z + w);
        ss[i] += (x * x + y * y) + (z * z + w * w);
      }
    }
    for (; r < t.rows; ++r) {
      const C* q = p + r * t.row;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const C x = q[i] - near[i];
        s[i] += x;
        ss[i] += x * x;
      }
    }
    const double m = double(t.rows);
    for (int64_t i = 0; i < n; ++i) {
      const double squares = double(ss[i]) - double(s[i]) * double(s[i]) / m;
      a[i].join(m, double(near[i]) + double(s[i]) / m, squares < 0 ? 0 : squares);
    }
  }
  static void merge(void* acc, const void* other, int64_t n) {
    Moments* a = static_cast<Moments*>(acc);
    const Moments* b = static_cast<const Moments*>(other);
    for (int64_t i = 0; i < n; ++i) {
      if (a[i].n == 0) a[i] = b[i];
      else if (b[i].n != 0) a[i].join(b[i].n, b[i].mean, b[i].squares);
    }
  }
};

struct StoreVariance : Store {
  StoreVariance(Dtype out, double correction, bool root)
      : cast(cast_fn(Dtype::f64, out)), correction(correction), root(root) {}
  void operator()(void* acc, int64_t n, char* const* out, const int64_t* stride) const override {
    const Moments* a = static_cast<const Moments*>(acc);
    for (int64_t i = 0; i < n; ++i) {
      const double free = a[i].n - correction;
      double v = a[i].squares / (free > 0 ? free : 0);
      if (root) v = std::sqrt(v);
      cast(out[0] + i * stride[0], 8, reinterpret_cast<const char*>(&v), 8, 1);
      if (out[1] != nullptr) {
        const double mean = a[i].n > 0 ? a[i].mean : NOT_A_NUMBER<double>;
        cast(out[1] + i * stride[1], 8, reinterpret_cast<const char*>(&mean), 8, 1);
      }
    }
  }
  CastFn cast;
  double correction;
  bool root;
};

// --- logsumexp ----------------------------------------------------------------------------------------

// The largest so far, and the sum of exponentials after it was taken off.
struct Exponentials {
  double top, sum;
  // What is taken off: an infinite one is no help.
  static double shift(double top) { return std::isinf(top) ? 0 : top; }
  void raise(double other) {
    const double now = maximum(top, other);
    if (sum != 0) sum *= std::exp(shift(top) - shift(now));
    top = now;
  }
};

template <class C> struct LogSumExp {
  static void init(void* acc, int64_t n) {
    auto* a = static_cast<Exponentials*>(acc);
    for (int64_t i = 0; i < n; ++i) a[i] = {-INF<double>, 0};
  }
  static void block(Exponentials& a, const C* p, int64_t n) {
    alignas(64) C e[BLOCK];
    constexpr int64_t L = Lanes<C>::n;
    C top = p[0];
    int64_t i = 0;
    auto join = [](auto x, auto y) { return ((y > x) | (y != y)) ? y : x; };
    if (n >= L) {
      Vec<C> v = load(p);
      for (; i + L <= n; i += L) v = join(v, load(p + i));
      top = across<C>(v, join);
    }
    for (; i < n; ++i) top = join(top, p[i]);
    a.raise(double(top));
    const C off = C(Exponentials::shift(a.top));
#pragma GCC ivdep
    for (int64_t k = 0; k < n; ++k) e[k] = vt::exp(p[k] - off);
    Vec<C> s{};
    i = 0;
    for (; i + L <= n; i += L) s += load(e + i);
    if (i < n) s += load_part(e + i, n - i, C(0));
    a.sum += added<C>(s);
  }
  static void rows(void* acc, int64_t step, const Tile& t) {
    auto* a = static_cast<Exponentials*>(acc);
    if (step == 1 && t.cols <= SHORT_ROW && t.rows >= 8)
      return as_columns<C>(t, [&](int64_t first, const Tile& some) { cols(a + first, some); });
    for (int64_t r = 0; r < t.rows; ++r) {
      const C* p = static_cast<const C*>(t.data) + r * t.row;
      for (int64_t i = 0; i < t.cols; i += BLOCK) block(a[r * step], p + i, t.cols - i < BLOCK ? t.cols - i : BLOCK);
    }
  }
  static void cols(void* acc, const Tile& t) {
    auto* a = static_cast<Exponentials*>(acc);
    alignas(64) C off[COLUMNS], s[COLUMNS];
    const C* p = static_cast<const C*>(t.data);
    const int64_t n = t.cols;
    for (int64_t i = 0; i < n; ++i) off[i] = p[i];
    for (int64_t r = 1; r < t.rows; ++r) {
      const C* q = p + r * t.row;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) off[i] = ((q[i] > off[i]) | (q[i] != q[i])) ? q[i] : off[i];
    }
    for (int64_t i = 0; i < n; ++i) {
      a[i].raise(double(off[i]));
      off[i] = C(Exponentials::shift(a[i].top));
      s[i] = 0;
    }
    for (int64_t r = 0; r < t.rows; ++r) {
      const C* q = p + r * t.row;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) s[i] += vt::exp(q[i] - off[i]);
    }
    for (int64_t i = 0; i < n; ++i) a[i].sum += double(s[i]);
  }
  static void merge(void* acc, const void* other, int64_t n) {
    auto* a = static_cast<Exponentials*>(acc);
    const auto* b = static_cast<const Exponentials*>(other);
    for (int64_t i = 0; i < n; ++i) {
      a[i].raise(b[i].top);
      if (b[i].sum != 0) a[i].sum += b[i].sum * std::exp(Exponentials::shift(b[i].top) - Exponentials::shift(a[i].top));
    }
  }
};

struct StoreLog : Store {
  explicit StoreLog(Dtype out) : cast(cast_fn(Dtype::f64, out)) {}
  void operator()(void* acc, int64_t n, char* const* out, const int64_t* stride) const override {
    const auto* a = static_cast<const Exponentials*>(acc);
    constexpr int64_t SOME = 256;
    alignas(64) double v[SOME];
    for (int64_t i0 = 0; i0 < n; i0 += SOME) {
      const int64_t m = std::min(SOME, n - i0);
      for (int64_t i = 0; i < m; ++i) v[i] = a[i0 + i].sum;
#pragma GCC ivdep
      for (int64_t i = 0; i < m; ++i) v[i] = vt::log(v[i]);
      for (int64_t i = 0; i < m; ++i) v[i] += Exponentials::shift(a[i0 + i].top);
      cast(out[0] + i0 * stride[0], stride[0], reinterpret_cast<const char*>(v), 8, m);
    }
  }
  CastFn cast;
};

template <class S> constexpr Reducer made(Dtype compute, int64_t bytes) {
  return Reducer{compute, bytes, S::init, S::rows, S::cols, S::merge};
}
constexpr Reducer variance[2] = {made<Variance<float>>(Dtype::f32, sizeof(Moments)),
                                 made<Variance<double>>(Dtype::f64, sizeof(Moments))};
constexpr Reducer logsumexp[2] = {made<LogSumExp<float>>(Dtype::f32, sizeof(Exponentials)),
                                  made<LogSumExp<double>>(Dtype::f64, sizeof(Exponentials))};

}  // namespace

// x, variance, mean or None, dimensions as a bit mask, root, correction
VT_KERNEL(reduce_variance) {
  const View &x = c.view(0), &out = c.view(1), &mean = c.view(2);
  const bool wide = x.dtype == Dtype::f64;
  ArraySource source(x.data, x.dtype, wide ? Dtype::f64 : Dtype::f32);
  char* outs[2] = {out.data, mean ? mean.data : nullptr};
  reduce(reduce_dims(x, uint64_t(c.i(0)), out, mean), source, variance[wide],
         StoreVariance(out.dtype, c.f(0), c.i(1) != 0), outs);
}

// x, out, dimensions as a bit mask
VT_KERNEL(reduce_logsumexp) {
  const View &x = c.view(0), &out = c.view(1);
  const bool wide = x.dtype != Dtype::f32 && x.dtype != Dtype::f16 && x.dtype != Dtype::bf16;
  ArraySource source(x.data, x.dtype, wide ? Dtype::f64 : Dtype::f32);
  source.cost = 6;
  char* outs[2] = {out.data, nullptr};
  reduce(reduce_dims(x, uint64_t(c.i(0)), out), source, logsumexp[wide], StoreLog(out.dtype), outs);
}

}  // namespace vt
