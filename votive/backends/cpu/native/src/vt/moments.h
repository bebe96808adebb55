// Mean and variance of rows, and what all norms share.
#pragma once
#include <algorithm>
#include <cmath>

#include "lanes.h"
#include "rows.h"

namespace vt {

// Sums of x - shift and of its square.
template <class C> struct Sums {
  C first = 0, second = 0;
};

template <class C> inline Sums<C> shifted_sums(const C* x, int64_t n, C shift) {
  constexpr int W = WIDTH<C>;
  const Lanes<C> s = all<C>(shift);
  Lanes<C> a{}, b{}, p{}, q{}, a2{}, b2{}, p2{}, q2{};
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    const Lanes<C> d = load<C>(x + i) - s, e = load<C>(x + i + W) - s;
    const Lanes<C> f = load<C>(x + i + 2 * W) - s, g = load<C>(x + i + 3 * W) - s;
    a += d;
    b += e;
    a2 += f;
    b2 += g;
    p += d * d;
    q += e * e;
    p2 += f * f;
    q2 += g * g;
  }
  for (; i + W <= n; i += W) {
    const Lanes<C> d = load<C>(x + i) - s;
    a += d;
    p += d * d;
  }
  if (i < n) {
    const Lanes<C> d = load_part<C>(x + i, n - i, shift) - s;
    b += d;
    q += d * d;
  }
  return {sum_of<C>((a + b) + (a2 + b2)), sum_of<C>((p + q) + (p2 + q2))};
}

// The mean is shift + rest: taking off the rounded mean alone would cost digits where it is large.
template <class C> struct Moments {
  C shift = 0, rest = 0, var = 0;
  C mean() const { return shift + rest; }
};

template <class C> inline Moments<C> from_sums(C shift, double first, double second, double n) {
  const double rest = first / n, var = second / n - rest * rest;
  return {shift, C(rest), C(var < 0 ? 0 : var)};
}

// Whether a shift so far from the mean has cost too many digits of the variance.
template <class C> inline bool too_far(const Moments<C>& m) {
  return double(m.rest) * m.rest > 64 * double(m.var) && m.var < INF<C>;
}

template <class C> inline Moments<C> moments_of(const C* x, int64_t n) {
  if (n == 0) return {};
  const Sums<C> s = shifted_sums<C>(x, n, x[0]);
  const Moments<C> m = from_sums<C>(x[0], s.first, s.second, double(n));
  if (!too_far<C>(m)) return m;
  const Sums<C> again = shifted_sums<C>(x, n, m.mean());
  return from_sums<C>(m.mean(), again.first, again.second, double(n));
}

template <class C> inline C reciprocal_root(C var, double eps) { return C(1 / std::sqrt(double(var) + eps)); }

// A parameter as a dense array: its values, or `otherwise` where it is missing.
template <class C> inline void parameter(const View& v, int64_t n, C otherwise, C* to) {
  if (!v) {
    std::fill_n(to, n, otherwise);
    return;
  }
  const C* have = Rows<C>(v, 0, v.ndim).load(0, to);
  if (have != to) std::copy_n(have, n, to);
}

// Runs f(piece, begin, end) over [0, n) cut into pieces, whose number depends on the work only.
inline int64_t pieces_of(int64_t n, int64_t cost) {
  const int64_t worth = n * std::max<int64_t>(cost, 1) / 32768;
  return std::clamp<int64_t>(std::min<int64_t>(worth, 2 * num_threads()), 1, std::max<int64_t>(n, 1));
}
template <class F> inline void for_pieces(int64_t pieces, int64_t n, F&& f) {
  parallel_for(pieces, 1, [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) f(p, p * n / pieces, (p + 1) * n / pieces);
  });
}

// Sums per column over many rows: short runs in C, carried on in double.
template <class C> class ColumnSums {
 public:
  ColumnSums(double* total, int64_t n) : total(total), part(n + 64), n(n) {
    std::fill_n(total, n, 0.0);
    std::fill_n(part.get(), n + 64, C(0));
  }
  C* row() { return part; }
  void next() {
    if (++count == 128) flush();
  }
  void flush() {
    C* p = part;
    for (int64_t j = 0; j < n; ++j) total[j] += p[j];
    std::fill_n(p, n, C(0));
    count = 0;
  }

 private:
  double* total;
  Scratch<C> part;
  int64_t n;
  int count = 0;
};

// out[j] = sum over pieces of part[p * step + j].
template <class C> inline void add_pieces(C* out, const double* part, int64_t pieces, int64_t step, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double t = 0;
    for (int64_t p = 0; p < pieces; ++p) t += part[p * step + j];
    out[j] = C(t);
  }
}

}  // namespace vt
