// Fourier transforms: which way the rows of each dimension go, and the kernels.
//
// Short rows go side by side, a lane of a vector each (fft_many.h); few or long ones are themselves cut into lanes
// (fft_few.h). A real row of even length is a complex one of half the length whose even numbers are the real
// parts; real rows of odd length go in pairs, as the two parts of a complex one.
#include "fft_few.h"
#include "fft_many.h"

namespace vt {
namespace {

using fft::Lines;

// Whether rows go side by side, where `length` is that of the complex transform and `paired` if it has two rows.
template <class C> bool side_by_side(const Lines<C>& lines, int64_t length, bool paired) {
  const int64_t rows = paired ? (lines.count + 1) / 2 : lines.count;
  const double moved = lines.dense_x() && lines.dense_y() ? 0.0 : 10.0 * double(length);
  const auto costs = fft::kept<fft::Costs<C>>(length);
  const double many = double((rows + WIDTH<C> - 1) / WIDTH<C>) * (costs->lanes + 12.0 * double(length));
  return many <= double(rows) * (costs->row + moved);
}

template <class C> void along_complex(const View& x, const View& y, int dim, bool inverse, C scale) {
  const Lines<C> lines(x, y, dim);
  const int64_t n = y.shape[dim];
  if (side_by_side(lines, n, false)) fft::many_complex<C>(lines, n, inverse, scale);
  else fft::few_complex<C>(lines, n, inverse, scale);
}

template <class C> void along_real(const View& x, const View& y, int dim, bool whole, bool inverse, C scale) {
  const Lines<C> lines(x, y, dim);
  const int64_t n = x.shape[dim];
  const bool odd = n % 2 != 0, many = side_by_side(lines, odd ? n : n / 2, odd);
  auto run = odd ? (many ? fft::many_from_odd<C> : fft::few_from_odd<C>) : many ? fft::many_from_even<C> : fft::few_from_even<C>;
  run(lines, n, whole, inverse, scale);
}

template <class C> void along_half(const View& x, const View& y, int dim, bool forward, C scale) {
  const Lines<C> lines(x, y, dim);
  const int64_t n = y.shape[dim];
  const bool odd = n % 2 != 0, many = side_by_side(lines, odd ? n : n / 2, odd);
  auto run = odd ? (many ? fft::many_to_odd<C> : fft::few_to_odd<C>) : many ? fft::many_to_even<C> : fft::few_to_even<C>;
  run(lines, n, forward, scale);
}

// The first number says whether the transform is a forward one, the others are dimensions.
template <class C> void complex_to_complex(Call& c) {
  const View &x = c.view(0), &out = c.view(1);
  const bool inverse = c.i(0) == 0, real = itemsize(x.dtype) < itemsize(out.dtype);
  const int last = int(c.ints.size()) - 1;
  if (real) along_real<C>(x, out, int(c.i(last)), true, inverse, C(c.f(0)));
  else along_complex<C>(x, out, int(c.i(last)), inverse, C(c.f(0)));
  for (int k = last - 1; k >= 1; --k) along_complex<C>(out, out, int(c.i(k)), inverse, C(1));
}

template <class C> void real_to_complex(Call& c) {
  const View &x = c.view(0), &out = c.view(1);
  const bool inverse = c.i(0) == 0;
  const int last = int(c.ints.size()) - 1;
  along_real<C>(x, out, int(c.i(last)), false, inverse, C(c.f(0)));
  for (int k = last - 1; k >= 1; --k) along_complex<C>(out, out, int(c.i(k)), inverse, C(1));
}

template <class C> void complex_to_real(Call& c) {
  const View &x = c.view(0), &out = c.view(1);
  const bool forward = c.i(0) != 0;
  const int last = int(c.ints.size()) - 1;
  if (last == 1) return along_half<C>(x, out, int(c.i(1)), forward, C(c.f(0)));
  // Only the last transform gives real numbers; those before it need room of their own.
  Scratch<C> room(2 * x.numel());
  int64_t strides[fft::DIMS], step = 2 * sizeof(C);
  if (x.ndim > fft::DIMS) throw ValueError("fft: too many dimensions");
  for (int d = x.ndim - 1; d >= 0; --d) strides[d] = step, step *= x.shape[d];
  View between = x;
  between.data = reinterpret_cast<char*>(room.get());
  between.strides = strides;
  for (int k = 1; k < last; ++k) along_complex<C>(k == 1 ? x : between, between, int(c.i(k)), !forward, C(1));
  along_half<C>(between, out, int(c.i(last)), forward, C(c.f(0)));
}

bool wide(const View& v) { return v.dtype == Dtype::f64 || v.dtype == Dtype::c128; }

}  // namespace

// x, out, scale, forward, dims; half a spectrum along the last of them
VT_KERNEL(fft_r2c) { wide(c.view(0)) ? real_to_complex<double>(c) : real_to_complex<float>(c); }
VT_KERNEL(fft_c2r) { wide(c.view(0)) ? complex_to_real<double>(c) : complex_to_real<float>(c); }
VT_KERNEL(fft_c2c) { wide(c.view(0)) ? complex_to_complex<double>(c) : complex_to_complex<float>(c); }

}  // namespace vt
