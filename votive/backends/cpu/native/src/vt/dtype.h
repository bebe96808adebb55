// Element types: their names, sizes, and the conversions of the narrow floats.
#pragma once
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>

namespace vt {

enum class Dtype : uint8_t {
  b1, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, c64, c128, none
};
constexpr int DTYPES = int(Dtype::none);

// Storage types of the narrow floats: arithmetic happens in float.
struct f16 { uint16_t bits; };
struct bf16 { uint16_t bits; };
using c64 = std::complex<float>;
using c128 = std::complex<double>;

inline float to_float(bf16 h) { return std::bit_cast<float>(uint32_t(h.bits) << 16); }

inline bf16 to_bf16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const uint32_t quiet = (u >> 16) | 0x40u;
  return bf16{uint16_t((u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded)};
}

// Branch-free, so that loops of it become vector code on every level.
inline float to_float(f16 h) {
  const uint32_t sign = uint32_t(h.bits & 0x8000u) << 16;
  const uint32_t rest = uint32_t(h.bits & 0x7fffu) << 13;
  // Subnormal halves become normal floats when scaled by 2^112 as a float product.
  const float scaled = std::bit_cast<float>(rest) * 0x1p112f;
  const uint32_t special = rest | 0x7f800000u;
  const uint32_t bits = rest >= 0x0f800000u ? special : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

inline f16 to_f16(float x) {
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t a = u & 0x7fffffffu;
  // Normal results: rebias the exponent and round to nearest even by integer carry.
  const uint32_t normal = (a - 0x38000000u + 0x0fffu + ((a >> 13) & 1u)) >> 13;
  // Subnormal results: adding 0.5 aligns the last bit of the half with the last bit of the float.
  const uint32_t small = std::bit_cast<uint32_t>(std::bit_cast<float>(a) + 0.5f) - 0x3f000000u;
  uint32_t r = a < 0x38800000u ? small : normal;
  r = a >= 0x477ff000u ? 0x7c00u : r;
  r = a > 0x7f800000u ? (0x7e00u | ((a >> 13) & 0x3ffu)) : r;
  return f16{uint16_t(r | sign)};
}

constexpr int64_t itemsize(Dtype d) {
  constexpr int64_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 0};
  return sizes[int(d)];
}

template <class T> struct dtype_of_;
template <> struct dtype_of_<bool> { static constexpr Dtype value = Dtype::b1; };
template <> struct dtype_of_<int8_t> { static constexpr Dtype value = Dtype::i8; };
template <> struct dtype_of_<int16_t> { static constexpr Dtype value = Dtype::i16; };
template <> struct dtype_of_<int32_t> { static constexpr Dtype value = Dtype::i32; };
template <> struct dtype_of_<int64_t> { static constexpr Dtype value = Dtype::i64; };
template <> struct dtype_of_<uint8_t> { static constexpr Dtype value = Dtype::u8; };
template <> struct dtype_of_<uint16_t> { static constexpr Dtype value = Dtype::u16; };
template <> struct dtype_of_<uint32_t> { static constexpr Dtype value = Dtype::u32; };
template <> struct dtype_of_<uint64_t> { static constexpr Dtype value = Dtype::u64; };
template <> struct dtype_of_<f16> { static constexpr Dtype value = Dtype::f16; };
template <> struct dtype_of_<bf16> { static constexpr Dtype value = Dtype::bf16; };
template <> struct dtype_of_<float> { static constexpr Dtype value = Dtype::f32; };
template <> struct dtype_of_<double> { static constexpr Dtype value = Dtype::f64; };
template <> struct dtype_of_<c64> { static constexpr Dtype value = Dtype::c64; };
template <> struct dtype_of_<c128> { static constexpr Dtype value = Dtype::c128; };
template <class T> constexpr Dtype dtype_of = dtype_of_<T>::value;

template <class T> constexpr bool is_narrow = std::is_same_v<T, f16> || std::is_same_v<T, bf16>;
template <class T> constexpr bool is_complex = std::is_same_v<T, c64> || std::is_same_v<T, c128>;

// The type in which arithmetic on elements of T is carried out.
template <class T> struct compute_of { using type = T; };
template <> struct compute_of<f16> { using type = float; };
template <> struct compute_of<bf16> { using type = float; };
template <class T> using compute_t = typename compute_of<T>::type;

// One element from type S to type D, as a C cast would, complex to real by its real part.
template <class D, class S> inline D convert(S x) {
  if constexpr (std::is_same_v<D, S>) return x;
  else if constexpr (is_narrow<S>) return convert<D>(to_float(x));
  else if constexpr (std::is_same_v<D, f16>) return to_f16(convert<float>(x));
  else if constexpr (std::is_same_v<D, bf16>) return to_bf16(convert<float>(x));
  else if constexpr (is_complex<S> && is_complex<D>) {
    using R = typename D::value_type;
    return D(R(x.real()), R(x.imag()));
  } else if constexpr (is_complex<S>) {
    if constexpr (std::is_same_v<D, bool>) return x.real() != 0 || x.imag() != 0;
    else return convert<D>(x.real());
  } else if constexpr (is_complex<D>) return D(typename D::value_type(x), 0);
  else if constexpr (std::is_same_v<D, bool>) return x != S(0);
  else if constexpr (std::is_floating_point_v<S> && std::is_integral_v<D>) {
    // Out of range is undefined in C: go through a wider type and wrap, as processors do.
    if constexpr (sizeof(D) <= 2) return D(int32_t(x));
    else if constexpr (std::is_same_v<D, uint64_t>)
      return x >= S(0x1p63) ? uint64_t(int64_t(x - S(0x1p63))) ^ (1ull << 63) : uint64_t(int64_t(x));
    else if constexpr (std::is_same_v<D, int32_t>) return int32_t(x);
    else return D(int64_t(x));
  } else return D(x);
}

}  // namespace vt
