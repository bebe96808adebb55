// Vectors of 64 bytes, on every level: what reductions accumulate in.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
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
