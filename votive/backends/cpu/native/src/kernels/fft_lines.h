// Where the rows of two arrays along one dimension lie, and rows to the lanes of vectors and back.
#pragma once
#include "fft_numbers.h"

namespace vt::fft {

constexpr int DIMS = 32;

// Rows of x and y along `dim`, in an order in which neighbours lie next to each other if they can.
template <class C> class Lines {
 public:
  int64_t count = 1;
  int64_t x_step, y_step;  // numbers between neighbours of a row
  int x_parts, y_parts;    // numbers of an element: 2 if it is complex

  Lines(const View& x, const View& y, int dim) : x(x.as<C>()), y(y.as<C>()) {
    constexpr int64_t item = sizeof(C);
    x_parts = int(itemsize(x.dtype) / item), y_parts = int(itemsize(y.dtype) / item);
    x_step = x.strides[dim] / item, y_step = y.strides[dim] / item;
    if (x.shape[dim] <= 1) x_step = x_parts;
    if (y.shape[dim] <= 1) y_step = y_parts;
    if (x.ndim > DIMS) throw ValueError("fft: too many dimensions");
    int last = -1;
    for (int d = 0; d < x.ndim; ++d) {
      if (d == dim || x.shape[d] == 1) continue;
      if (x.strides[d] / item == x_parts || (last < 0 && y.strides[d] / item == y_parts)) last = d;
    }
    auto add = [&](int d) {
      const int64_t size = x.shape[d], of_x = x.strides[d] / item, of_y = y.strides[d] / item;
      count *= size;
      if (n > 0 && xs[n - 1] == size * of_x && ys[n - 1] == size * of_y) shape[n - 1] *= size, xs[n - 1] = of_x, ys[n - 1] = of_y;
      else shape[n] = size, xs[n] = of_x, ys[n++] = of_y;
    };
    for (int d = 0; d < x.ndim; ++d)
      if (d != dim && d != last && x.shape[d] != 1) add(d);
    if (last >= 0) add(last);
  }
  // Where `rows` rows from r on begin.
  void find(int64_t r, int64_t rows, C** from, C** to) const {
    if (n == 1) {
      for (int64_t k = 0; k < rows; ++k) from[k] = x + (r + k) * xs[0], to[k] = y + (r + k) * ys[0];
      return;
    }
    int64_t at[DIMS];
    C *p = x, *q = y;
    for (int d = n - 1; d >= 0; --d) {
      at[d] = r % shape[d];
      r /= shape[d];
      p += at[d] * xs[d], q += at[d] * ys[d];
    }
    for (int64_t k = 0; k < rows; ++k) {
      from[k] = p, to[k] = q;
      for (int d = n - 1; d >= 0; --d) {
        p += xs[d], q += ys[d];
        if (++at[d] < shape[d]) break;
        p -= at[d] * xs[d], q -= at[d] * ys[d];
        at[d] = 0;
      }
    }
  }
  bool dense_x() const { return x_step == x_parts; }
  bool dense_y() const { return y_step == y_parts; }

 private:
  C *x, *y;
  int n = 0;
  int64_t shape[DIMS], xs[DIMS], ys[DIMS];
};

// Whether the first elements of rows lie side by side.
template <class C> bool adjacent(C* const* p, int64_t rows, int parts) {
  for (int64_t l = 1; l < rows; ++l)
    if (p[l] != p[0] + l * parts) return false;
  return true;
}

// Elements of up to a vector's width of rows to lanes; where there are fewer, pointers repeat. Lanes of complex ones are pairs of vectors. Vector k goes to `to[k * spread]`.
template <class C>
void load_lanes(V<C>* to, C* const* p, int64_t rows, int64_t step, int parts, int64_t elements, bool swap, int spread = 1) {
  constexpr int L = WIDTH<C>;
  if (step != parts && adjacent(p, rows, parts)) {
    for (int64_t k = 0; k < elements; ++k)
      if (parts == 2) {
        const Complex<C> z = load_pairs_up_to<C>(p[0] + k * step, rows);
        to[2 * k * spread] = swap ? z.im : z.re, to[(2 * k + 1) * spread] = swap ? z.re : z.im;
      } else to[k * spread] = rows == L ? load<C>(p[0] + k * step) : load_part<C>(p[0] + k * step, rows, C(0));
    return;
  }
  const int64_t numbers = elements * parts;
  const int flip = swap ? 1 : 0;
  if (step == parts) {
    for (int64_t j = 0; j < numbers; j += L) {
      V<C> t[L];
      const int64_t some = numbers - j;
      if (some >= L)
#pragma GCC unroll 16
        for (int l = 0; l < L; ++l) t[l] = load<C>(p[l] + j);
      else
        for (int l = 0; l < L; ++l) t[l] = load_part<C>(p[l] + j, some, C(0));
      turn_square<C>(t);
      if (some >= L && !swap)
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) to[(j + i) * spread] = t[i];
      else
        for (int i = 0; i < L && i < some; ++i) to[((j + i) ^ flip) * spread] = t[i];
    }
    return;
  }
  for (int64_t k = 0; k < elements; ++k)
    for (int i = 0; i < parts; ++i) {
      V<C> v{};
      for (int64_t l = 0; l < rows; ++l) v[l] = p[l][k * step + i];
      to[((k * parts + i) ^ flip) * spread] = v;
    }
}

template <class C>
void store_lanes(const V<C>* from, C* const* p, int64_t rows, int64_t step, int parts, int64_t elements, bool swap, C scale, int spread = 1) {
  constexpr int L = WIDTH<C>;
  if (step != parts && adjacent(p, rows, parts)) {
    for (int64_t k = 0; k < elements; ++k)
      if (parts == 2) {
        const Complex<C> z = Complex<C>{from[2 * k * spread], from[(2 * k + 1) * spread]} * scale;
        store_pairs_up_to<C>(p[0] + k * step, swap ? z.swapped() : z, rows);
      } else {
        const V<C> v = from[(swap ? k ^ 1 : k) * spread] * scale;
        rows == L ? store<C>(p[0] + k * step, v) : store_part<C>(p[0] + k * step, v, rows);
      }
    return;
  }
  const int64_t numbers = elements * parts;
  const int flip = swap ? 1 : 0;
  if (step == parts) {
    for (int64_t j = 0; j < numbers; j += L) {
      V<C> t[L];
      const int64_t some = numbers - j;
      if (some >= L)
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) t[i] = from[((j + i) ^ flip) * spread] * scale;
      else
        for (int i = 0; i < L; ++i) t[i] = i < some ? from[((j + i) ^ flip) * spread] * scale : V<C>{};
      turn_square<C>(t);
      if (some >= L && rows == L)
#pragma GCC unroll 16
        for (int l = 0; l < L; ++l) store<C>(p[l] + j, t[l]);
      else
        for (int64_t l = 0; l < rows; ++l) some >= L ? store<C>(p[l] + j, t[l]) : store_part<C>(p[l] + j, t[l], some);
    }
    return;
  }
  for (int64_t k = 0; k < elements; ++k)
    for (int i = 0; i < parts; ++i) {
      const V<C> v = from[((k * parts + i) ^ flip) * spread] * scale;
      for (int64_t l = 0; l < rows; ++l) p[l][k * step + i] = v[l];
    }
}

// One row to dense memory and back.
template <class C> void gather(C* to, const C* from, int64_t step, int parts, int64_t elements) {
  for (int64_t k = 0; k < elements; ++k)
    for (int i = 0; i < parts; ++i) to[k * parts + i] = from[k * step + i];
}
template <class C> void spread_out(C* to, const C* from, int64_t step, int parts, int64_t elements) {
  for (int64_t k = 0; k < elements; ++k)
    for (int i = 0; i < parts; ++i) to[k * step + i] = from[k * parts + i];
}

}  // namespace vt::fft
