// Vectors of 64 bytes, on every level: what reductions accumulate in.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of GCC's own header
#endif

namespace vt::v64 {

template <class T> struct Lanes {
  typedef T type __attribute__((vector_size(64)));
  static constexpr int64_t n = 64 / int64_t(sizeof(T));
};
template <class T> using Vec = typename Lanes<T>::type;

template <class T> inline Vec<T> load(const T* p) {
  Vec<T> v;
  std::memcpy(&v, p, 64);
  return v;
}
template <class T> inline Vec<T> splat(T x) { return x - Vec<T>{}; }

// The first n < lanes elements, the rest `fill`.
template <class T> inline Vec<T> load_part(const T* p, int64_t n, T fill) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const __m512i v = _mm512_mask_loadu_epi32((__m512i)splat(fill), __mmask16((1u << n) - 1), p);
    return (Vec<T>)v;
  } else if constexpr (sizeof(T) == 8) {
    const __m512i v = _mm512_mask_loadu_epi64((__m512i)splat(fill), __mmask8((1u << n) - 1), p);
    return (Vec<T>)v;
  }
#endif
  alignas(64) T part[Lanes<T>::n];
  for (int64_t i = 0; i < Lanes<T>::n; ++i) part[i] = fill;
  for (int64_t i = 0; i < n; ++i) part[i] = p[i];
  return load(part);
}

// Joins the lanes by halves; f takes vectors as well as numbers.
template <class T, class F> inline T across(const Vec<T>& v, F&& f) {
  typedef T Half __attribute__((vector_size(32)));
  typedef T Quarter __attribute__((vector_size(16)));
  struct Halves { Half a, b; };
  struct Quarters { Quarter a, b; };
  const Halves h = std::bit_cast<Halves>(v);
  const Quarters q = std::bit_cast<Quarters>(Half(f(h.a, h.b)));
  const Quarter r = f(q.a, q.b);
  T x = r[0];
  for (int i = 1; i < int(16 / sizeof(T)); ++i) x = f(x, T(r[i]));
  return x;
}

#if defined(__AVX512F__)
// One comparison tells of two vectors whether there is a NaN in them.
inline bool unordered(const Vec<float>& a, const Vec<float>& b) {
  return _mm512_cmp_ps_mask(__m512(a), __m512(b), _CMP_UNORD_Q) != 0;
}
inline bool unordered(const Vec<double>& a, const Vec<double>& b) {
  return _mm512_cmp_pd_mask(__m512d(a), __m512d(b), _CMP_UNORD_Q) != 0;
}
// `a` where `b` is NaN.
template <bool MAX> inline Vec<float> beyond(const Vec<float>& a, const Vec<float>& b) {
  return Vec<float>(MAX ? _mm512_max_ps(__m512(b), __m512(a)) : _mm512_min_ps(__m512(b), __m512(a)));
}
template <bool MAX> inline Vec<double> beyond(const Vec<double>& a, const Vec<double>& b) {
  return Vec<double>(MAX ? _mm512_max_pd(__m512d(b), __m512d(a)) : _mm512_min_pd(__m512d(b), __m512d(a)));
}
#endif

// The largest or smallest of n > 0 elements, NaN if there is one.
template <class T, bool MAX> inline T extreme(const T* p, int64_t n) {
  constexpr int64_t L = Lanes<T>::n;
  auto join = [](auto a, auto b) { return (MAX ? (b > a) | (b != b) : (b < a) | (b != b)) ? b : a; };
  T best = p[0];
  int64_t i = 0;
  if (n >= L) {
    Vec<T> a = load(p), b = a, c = a, d = a;
#if defined(__AVX512F__)
    if constexpr (std::is_floating_point_v<T>) {
      bool nan = unordered(a, a);
      for (; i + 4 * L <= n; i += 4 * L) {
        const Vec<T> v = load(p + i), w = load(p + i + L), x = load(p + i + 2 * L), y = load(p + i + 3 * L);
        nan |= unordered(v, w) | unordered(x, y);
        a = beyond<MAX>(a, v);
        b = beyond<MAX>(b, w);
        c = beyond<MAX>(c, x);
        d = beyond<MAX>(d, y);
      }
      if (nan) return std::numeric_limits<T>::quiet_NaN();
    }
#endif
    for (; i + 4 * L <= n; i += 4 * L) {
      a = join(a, load(p + i));
      b = join(b, load(p + i + L));
      c = join(c, load(p + i + 2 * L));
      d = join(d, load(p + i + 3 * L));
    }
    for (; i + L <= n; i += L) a = join(a, load(p + i));
    best = across<T>(join(join(a, b), join(c, d)), join);
  }
  for (; i < n; ++i) best = join(best, p[i]);
  return best;
}

// Sixteen floats as two vectors of doubles, added.
inline Vec<double> widened(const Vec<float>& v) {
  typedef float Half __attribute__((vector_size(32)));
  struct Halves { Half a, b; };
  const Halves h = std::bit_cast<Halves>(v);
  return __builtin_convertvector(h.a, Vec<double>) + __builtin_convertvector(h.b, Vec<double>);
}
inline Vec<double> widened(const Vec<double>& v) { return v; }
inline Vec<int64_t> widened(const Vec<int64_t>& v) { return v; }

}  // namespace vt::v64
