// Running sums, products and recurrences along a dimension.
#include <algorithm>

#include "scan.h"
#include "vt/cast.h"
#include "vt/kernel.h"
#include "vt/lines.h"
#include "vt/math.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of GCC's own header
#endif
#endif

namespace vt {
namespace {

enum Kind { SUM, PRODUCT, LOGSUMEXP };

inline double log_add(double a, double b) {
  const double m = a > b || a != a ? a : b;
  if (m == -INF<double> || m == INF<double> || m != m) return m;
  return m + std::log1p(std::exp(-std::abs(a - b)));
}

// The accumulator has twice the digits: one by one is the only order that a running sum has.
template <class A, Kind K> inline A next(A a, A x) {
  if constexpr (K == LOGSUMEXP) return log_add(a, x);
  else if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    return K == SUM ? A(U(a) + U(x)) : A(U(a) * U(x));
  } else return K == SUM ? a + x : a * x;
}
template <Kind K, class A> constexpr A first = K == SUM ? A(0) : K == PRODUCT ? A(1) : A(-INF<double>);

// One dense row; gives the accumulator after it.
template <class C, class A, Kind K> A scan_row(C* out, const C* in, int64_t n, A acc) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<C, float> && K == SUM) {
    // Sixteen at a time: sums within the vector by shifts of 1, 2, 4, 8 lanes, then what came before.
    const __m512 zero = _mm512_setzero_ps();
    auto shifted = [&](__m512 v, auto by) {
      return _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(v), _mm512_castps_si512(zero), 16 - by.value));
    };
    __m512d before = _mm512_set1_pd(acc);
    const __m512i last = _mm512_set1_epi64(7);
    for (; i + 16 <= n; i += 16) {
      __m512 v = _mm512_loadu_ps(in + i);
      v = _mm512_add_ps(v, shifted(v, std::integral_constant<int, 1>{}));
      v = _mm512_add_ps(v, shifted(v, std::integral_constant<int, 2>{}));
      v = _mm512_add_ps(v, shifted(v, std::integral_constant<int, 4>{}));
      const __m512 upper = shifted(v, std::integral_constant<int, 8>{});
      v = _mm512_add_ps(v, upper);
      const __m512d low = _mm512_add_pd(before, _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
      const __m512d high = _mm512_add_pd(before, _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
      const __m512 both = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1);
      _mm512_storeu_ps(out + i, both);
      before = _mm512_permutexvar_pd(last, high);
    }
    acc = _mm512_cvtsd_f64(before);
  } else if constexpr (std::is_same_v<A, double> && K != LOGSUMEXP) {
    // Eight doubles at a time, shifted in by what changes nothing.
    const __m512d none = _mm512_set1_pd(first<K, double>);
    auto joined = [](__m512d a, __m512d b) { return K == SUM ? _mm512_add_pd(a, b) : _mm512_mul_pd(a, b); };
    auto shifted = [&](__m512d v, auto by) {
      return _mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(v), _mm512_castpd_si512(none), 8 - by.value));
    };
    __m512d before = _mm512_set1_pd(acc);
    const __m512i last = _mm512_set1_epi64(7);
    for (; i + 8 <= n; i += 8) {
      __m512d v;
      if constexpr (std::is_same_v<C, float>) v = _mm512_cvtps_pd(_mm256_loadu_ps(in + i));
      else v = _mm512_loadu_pd(in + i);
      v = joined(v, shifted(v, std::integral_constant<int, 1>{}));
      v = joined(v, shifted(v, std::integral_constant<int, 2>{}));
      v = joined(v, shifted(v, std::integral_constant<int, 4>{}));
      v = joined(v, before);
      if constexpr (std::is_same_v<C, float>) _mm256_storeu_ps(out + i, _mm512_cvtpd_ps(v));
      else _mm512_storeu_pd(out + i, v);
      before = _mm512_permutexvar_pd(last, v);
    }
    acc = _mm512_cvtsd_f64(before);
  }
#endif
  if constexpr (K == LOGSUMEXP) {
    // Where the values of a block lie close enough together, their exponentials are added up.
    constexpr int64_t BLOCK = 256;
    alignas(64) double e[BLOCK];
    for (; i < n; i += BLOCK) {
      const int64_t m = n - i < BLOCK ? n - i : BLOCK;
      double low = double(in[i]), high = low;
      for (int64_t k = 0; k < m; ++k) {
        const double v = double(in[i + k]);
        low = v < low || v != v ? v : low;
        high = v > high || v != v ? v : high;
      }
      // What came before may vanish beside a block, but nothing may vanish before it.
      const bool close = high - low < 300 && std::isfinite(low) && std::isfinite(high) && acc - high < 300 && acc == acc;
      if (!close) {
        for (int64_t k = 0; k < m; ++k) out[i + k] = C(acc = log_add(acc, double(in[i + k])));
        continue;
      }
      const double top = high > acc ? high : acc;
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) e[k] = vt::exp(double(in[i + k]) - top);
      double s = vt::exp(acc - top);
      for (int64_t k = 0; k < m; ++k) e[k] = s = s + e[k];
#pragma GCC ivdep
      for (int64_t k = 0; k < m; ++k) e[k] = top + vt::log(e[k]);
      for (int64_t k = 0; k < m; ++k) out[i + k] = C(e[k]);
      acc = e[m - 1];
    }
    return acc;
  }
  for (; i < n; ++i) {
    acc = next<A, K>(acc, A(in[i]));
    out[i] = C(acc);
  }
  return acc;
}

// Short dense rows, one after the other: N elements each, or `n` if N is 0.
template <class C, class A, Kind K, int N> void scan_short(C* out, const C* in, int64_t rows, int64_t n) {
  const int64_t m = N > 0 ? N : n;
  for (int64_t r = 0; r < rows; ++r, in += m, out += m) {
    A acc = first<K, A>;
#pragma GCC unroll 8
    for (int64_t i = 0; i < m; ++i) {
      acc = next<A, K>(acc, A(in[i]));
      out[i] = C(acc);
    }
  }
}
template <class C, class A, Kind K> void scan_rows(C* out, const C* in, int64_t rows, int64_t n) {
  if (K == LOGSUMEXP && n > 1)
    for (int64_t r = 0; r < rows; ++r) scan_row<C, A, K>(out + r * n, in + r * n, n, first<K, A>);
  else
    switch (n) {
      case 1: return void(std::copy(in, in + rows, out));
      case 2: return scan_short<C, A, K, 2>(out, in, rows, n);
      case 3: return scan_short<C, A, K, 3>(out, in, rows, n);
      case 4: return scan_short<C, A, K, 4>(out, in, rows, n);
      case 6: return scan_short<C, A, K, 6>(out, in, rows, n);
      case 8: return scan_short<C, A, K, 8>(out, in, rows, n);
      default: return scan_short<C, A, K, 0>(out, in, rows, n);
    }
}
// What the elements before a piece of a row come to.
template <class C, class A, Kind K> A total(const C* in, int64_t n) {
  A part[8];
  for (A& p : part) p = first<K, A>;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int j = 0; j < 8; ++j) part[j] = next<A, K>(part[j], A(in[i + j]));
  A acc = first<K, A>;
  for (A p : part) acc = next<A, K>(acc, p);
  for (; i < n; ++i) acc = next<A, K>(acc, A(in[i]));
  return acc;
}

// Columns `begin`..`end` beside each other, along `dim` from the first to the last.
template <class C, class A, Kind K> void scan_columns(const View& x, const View& out, int dim, int beside) {
  const CastFn in_cast = cast_fn(x.dtype, dtype_of<C>), out_cast = cast_fn(dtype_of<C>, out.dtype);
  const bool direct = x.dtype == dtype_of<C> && out.dtype == dtype_of<C>;
  const int64_t n = x.shape[dim], columns = x.shape[beside], blocks = (columns + WIDTH - 1) / WIDTH;
  int64_t others = 1;
  for (int d = 0; d < x.ndim; ++d)
    if (d != dim && d != beside) others *= x.shape[d];
  parallel_for(others * blocks, grain_for(n * std::min(columns, WIDTH) * 2), [&](int64_t begin, int64_t end) {
    alignas(64) A acc[WIDTH];
    alignas(64) C from[WIDTH], to[WIDTH];
    for (int64_t task = begin; task < end; ++task) {
      const int64_t c0 = task % blocks * WIDTH, m = std::min(WIDTH, columns - c0);
      int64_t rest = task / blocks;
      const char* p = x.data + c0 * x.strides[beside];
      char* q = out.data + c0 * out.strides[beside];
      for (int d = x.ndim - 1; d >= 0; --d) {
        if (d == dim || d == beside) continue;
        p += rest % x.shape[d] * x.strides[d];
        q += rest % x.shape[d] * out.strides[d];
        rest /= x.shape[d];
      }
      for (int64_t j = 0; j < m; ++j) acc[j] = first<K, A>;
      for (int64_t i = 0; i < n; ++i, p += x.strides[dim], q += out.strides[dim]) {
        const C* in = reinterpret_cast<const C*>(p);
        C* o = reinterpret_cast<C*>(q);
        if (!direct) {
          in_cast(reinterpret_cast<char*>(from), sizeof(C), p, x.strides[beside], m);
          in = from;
          o = to;
        }
#pragma GCC ivdep
        for (int64_t j = 0; j < m; ++j) {
          acc[j] = next<A, K>(acc[j], A(in[j]));
          o[j] = C(acc[j]);
        }
        if (!direct) out_cast(q, out.strides[beside], reinterpret_cast<const char*>(to), sizeof(C), m);
      }
    }
  });
}

template <class C, class A, Kind K> void scan(Call& c) {
  const View &x = c.view(0), &out = c.view(1);
  const int dim = int(c.i(0));
  const Lines rows({&x, &out}, dim);
  if (rows.count == 0 || rows.size == 0) return;
  const int64_t n = rows.size, xs = rows.step(0), os = rows.step(1), item = sizeof(C);
  if (x.ndim > 1 && !(xs == itemsize(x.dtype) && os == itemsize(out.dtype))) {
    const int beside = dense_beside(x, out, dim);
    if (beside >= 0) return scan_columns<C, A, K>(x, out, dim, beside);
  }
  const bool direct_in = x.dtype == dtype_of<C> && xs == item, direct_out = out.dtype == dtype_of<C> && os == item;
  const CastFn in_cast = cast_fn(x.dtype, dtype_of<C>), out_cast = cast_fn(dtype_of<C>, out.dtype);
  constexpr int64_t TILE = 2048;
  // Elements from..to of one row, after those that come to `acc`.
  auto run = [&](const char* p, char* q, int64_t from, int64_t to, A acc) {
    if (direct_in && direct_out) {
      scan_row<C, A, K>(reinterpret_cast<C*>(q) + from, reinterpret_cast<const C*>(p) + from, to - from, acc);
      return;
    }
    alignas(64) C buffer[TILE];
    for (int64_t i = from; i < to; i += TILE) {
      const int64_t m = std::min(TILE, to - i);
      in_cast(reinterpret_cast<char*>(buffer), item, p + i * xs, xs, m);
      acc = scan_row<C, A, K>(buffer, buffer, m, acc);
      out_cast(q + i * os, os, reinterpret_cast<const char*>(buffer), item, m);
    }
  };
  const int64_t cost = K == LOGSUMEXP ? 40 : 2;
  if (n <= SHORT && rows.dense(0) && rows.dense(1)) {
    const char* p = rows.row(0, 0);
    char* q = rows.row(1, 0);
    const int64_t x_item = itemsize(x.dtype), out_item = itemsize(out.dtype), block = TILE / n;
    parallel_for((rows.count + block - 1) / block, grain_for(block * n * cost), [&](int64_t begin, int64_t end) {
      alignas(64) C buffer[TILE];
      for (int64_t b = begin; b < end; ++b) {
        const int64_t from = b * block * n, count = std::min(block, rows.count - b * block);
        const C* in = reinterpret_cast<const C*>(p + from * x_item);
        C* to = direct_out ? reinterpret_cast<C*>(q + from * out_item) : buffer;
        if (!direct_in) in_cast(reinterpret_cast<char*>(buffer), item, p + from * x_item, xs, count * n), in = buffer;
        scan_rows<C, A, K>(to, in, count, n);
        if (!direct_out) out_cast(q + from * out_item, os, reinterpret_cast<const char*>(buffer), item, count * n);
      }
    });
    return;
  }
  if (rows.count == 1 && direct_in && direct_out && n * cost > 131072 && num_threads() > 1 && K != LOGSUMEXP) {
    // One long row: what each piece comes to, then the pieces.
    const int64_t pieces = std::min<int64_t>(num_threads(), 16);
    A before[17];
    const C* in = reinterpret_cast<const C*>(rows.row(0, 0));
    C* o = reinterpret_cast<C*>(rows.row(1, 0));
    // Blocks that fit into the cache of each thread are read from there the second time.
    const int64_t block = std::min<int64_t>(n, pieces * 65536);
    A carry = first<K, A>;
    for (int64_t b0 = 0; b0 < n; b0 += block) {
      const int64_t m = std::min(block, n - b0);
      parallel_for(pieces, 1, [&](int64_t s, int64_t e) {
        for (int64_t k = s; k < e; ++k) {
          const int64_t from = b0 + m * k / pieces, to = b0 + m * (k + 1) / pieces;
          before[k + 1] = k + 1 == pieces ? first<K, A> : total<C, A, K>(in + from, to - from);
        }
      });
      before[0] = carry;
      for (int64_t k = 1; k < pieces; ++k) before[k] = next<A, K>(before[k - 1], before[k]);
      A after[16];
      parallel_for(pieces, 1, [&](int64_t s, int64_t e) {
        for (int64_t k = s; k < e; ++k) {
          const int64_t from = b0 + m * k / pieces, to = b0 + m * (k + 1) / pieces;
          after[k] = scan_row<C, A, K>(o + from, in + from, to - from, before[k]);
        }
      });
      carry = after[pieces - 1];
    }
    return;
  }
  parallel_for(rows.count, grain_for(n * cost), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) run(rows.row(0, r), rows.row(1, r), 0, n, first<K, A>);
  });
}

// y[k] = gain[k] * y[k - 1] + x[k], or from the end.
template <class C, class A> void recur(Call& c) {
  const View &gain = c.view(0), &x = c.view(1), &out = c.view(2);
  const Lines rows({&gain, &x, &out}, c.i(0));
  if (rows.count == 0) return;
  const bool back = c.i(1) != 0;
  const int64_t n = rows.size;
  const CastFn gain_in = cast_fn(gain.dtype, dtype_of<C>), x_in = cast_fn(x.dtype, dtype_of<C>);
  const CastFn put = cast_fn(dtype_of<C>, out.dtype);
  parallel_for(rows.count, grain_for(n * 4), [&](int64_t begin, int64_t end) {
    Scratch<C> g(n), v(n);
    for (int64_t r = begin; r < end; ++r) {
      gain_in(reinterpret_cast<char*>(g.get()), sizeof(C), rows.row(0, r), rows.step(0), n);
      x_in(reinterpret_cast<char*>(v.get()), sizeof(C), rows.row(1, r), rows.step(1), n);
      A y = A(0);
      for (int64_t k = 0; k < n; ++k) {
        const int64_t i = back ? n - 1 - k : k;
        // Nothing comes before the first, not even NaN times zero.
        y = k == 0 ? A(v[i]) : A(g[i]) * y + A(v[i]);
        v[i] = C(y);
      }
      put(rows.row(2, r), rows.step(2), reinterpret_cast<const char*>(v.get()), sizeof(C), n);
    }
  });
}

}  // namespace

// x, out, dim, kind, compute type
VT_KERNEL(scan) {
  const auto compute = Dtype(c.i(2));
  const auto kind = Kind(c.i(1));
  if (compute == Dtype::f32) {
    if (kind == SUM) return scan<float, double, SUM>(c);
    if (kind == PRODUCT) return scan<float, double, PRODUCT>(c);
    return scan<float, double, LOGSUMEXP>(c);
  }
  if (compute == Dtype::f64) {
    if (kind == SUM) return scan<double, double, SUM>(c);
    if (kind == PRODUCT) return scan<double, double, PRODUCT>(c);
    return scan<double, double, LOGSUMEXP>(c);
  }
  if (kind == SUM) return scan<int64_t, int64_t, SUM>(c);
  return scan<int64_t, int64_t, PRODUCT>(c);
}

// gain, x, out, dim, from the end
VT_KERNEL(recurrence) {
  if (c.view(1).dtype == Dtype::f64) recur<double, double>(c);
  else recur<float, double>(c);
}

}  // namespace vt
