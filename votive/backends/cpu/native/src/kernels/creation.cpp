// New values: ranges, the identity, triangles.
#include <algorithm>

#include "vt/cast.h"
#include "vt/copy.h"
#include "vt/kernel.h"

namespace vt {

namespace {

// out[i] = f(i), computed in C; the result is dense.
template <class C, class F> void generate(const View& out, F&& f) {
  const int64_t n = out.numel(), item = itemsize(out.dtype);
  const bool direct = out.dtype == dtype_of<C>;
  const CastFn cast = cast_fn(dtype_of<C>, out.dtype);
  parallel_for(n, grain_for(2), [&](int64_t b, int64_t e) {
    constexpr int64_t CHUNK = 512;
    C part[CHUNK];
    for (int64_t i0 = b; i0 < e; i0 += CHUNK) {
      const int64_t m = std::min(CHUNK, e - i0);
      C* to = direct ? out.as<C>() + i0 : part;
#pragma GCC ivdep
      for (int64_t i = 0; i < m; ++i) to[i] = f(i0 + i);
      if (!direct) cast(out.data + i0 * item, item, reinterpret_cast<const char*>(part), sizeof(C), m);
    }
  });
}

double as_double(const Call& c, size_t k, bool is_int, size_t& ints, size_t& floats) {
  (void)k;
  return is_int ? double(c.ints[ints++]) : c.floats[floats++];
}

// arange(out, start, step, kinds): kinds says which of the two are integers (bits 0 and 1), and whether
// the result is (bit 2)
VT_KERNEL(arange) {
  const View& out = c.view(0);
  const int64_t kinds = c.i(0);
  size_t ints = 1, floats = 0;
  if (kinds & 4) {
    const int64_t start = kinds & 1 ? c.ints[ints++] : int64_t(c.floats[floats++]);
    const int64_t step = kinds & 2 ? c.ints[ints++] : int64_t(c.floats[floats++]);
    return generate<int64_t>(out, [=](int64_t i) { return int64_t(uint64_t(start) + uint64_t(i) * uint64_t(step)); });
  }
  const double start = as_double(c, 0, kinds & 1, ints, floats), step = as_double(c, 1, kinds & 2, ints, floats);
  generate<double>(out, [=](int64_t i) { return start + double(i) * step; });
}

// linspace(out, start, end, kinds)
VT_KERNEL(linspace) {
  const View& out = c.view(0);
  const int64_t kinds = c.i(0), n = out.shape[0];
  size_t ints = 1, floats = 0;
  const double start = as_double(c, 0, kinds & 1, ints, floats), end = as_double(c, 1, kinds & 2, ints, floats);
  const double step = n > 1 ? (end - start) / double(n - 1) : 0;
  // From the nearer end, so that both are exact.
  generate<double>(out, [=](int64_t i) {
    return i < n / 2 || n < 2 ? start + step * double(i) : end - step * double(n - 1 - i);
  });
}

// eye(out)
VT_KERNEL(eye) {
  const View& out = c.view(0);
  zero_bytes(out.data, out.numel() * itemsize(out.dtype));
  const int64_t one = 1, n = std::min(out.shape[0], out.shape[1]);
  cast_fn(Dtype::i64, out.dtype)(out.data, out.strides[0] + out.strides[1], reinterpret_cast<const char*>(&one), 0, n);
}

// Rows first..last-1 of one matrix whose rows are dense: what is kept is copied, the rest is zero.
void triangle_rows(char* to, int64_t to_row, const char* from, int64_t from_row, Dtype dtype, int64_t width,
                   int64_t diagonal, bool lower, int64_t first, int64_t last) {
  const int64_t item = itemsize(dtype);
  // Rows before `a` and from `z` on are kept or dropped as a whole.
  const int64_t a = std::clamp<int64_t>(lower ? -diagonal : 1 - diagonal, first, last);
  const int64_t z = std::clamp<int64_t>(lower ? width - 1 - diagonal : width - diagonal, a, last);
  const auto keep = [&](int64_t r0, int64_t r1) {
    if (r1 <= r0 || (to == from && to_row == from_row)) return;
    const CopyDim dims[] = {{r1 - r0, to_row, from_row}, {width, item, item}};
    copy_block(to + r0 * to_row, dtype, from + r0 * from_row, dtype, dims, 2);
  };
  const auto drop = [&](int64_t r0, int64_t r1) {
    if (to_row == width * item) r1 > r0 ? void(std::memset(to + r0 * to_row, 0, size_t((r1 - r0) * to_row))) : void();
    else
      for (int64_t r = r0; r < r1; ++r) std::memset(to + r * to_row, 0, size_t(width * item));
  };
  lower ? drop(first, a) : keep(first, a);
  lower ? keep(z, last) : drop(z, last);
  for (int64_t r = a; r < z; ++r) {
    // Kept: columns k0 .. k1 - 1.
    const int64_t cut = std::clamp<int64_t>(lower ? r + diagonal + 1 : r + diagonal, 0, width);
    const int64_t k0 = lower ? 0 : cut, k1 = lower ? cut : width;
    char* d = to + r * to_row;
    const char* x = from + r * from_row;
    if (width * item <= 256) {  // a few vectors, sooner chosen than cut
      for_sizes(dtype, [&](auto t) {
        using T = typename decltype(t)::type;
        T* out = reinterpret_cast<T*>(d);
        const T* in = reinterpret_cast<const T*>(x);
#pragma GCC ivdep
        for (int64_t k = 0; k < width; ++k) out[k] = k >= k0 && k < k1 ? in[k] : T{};
      });
      continue;
    }
    if (d != x) std::memcpy(d + k0 * item, x + k0 * item, size_t((k1 - k0) * item));
    std::memset(d, 0, size_t(k0 * item));
    std::memset(d + k1 * item, 0, size_t((width - k1) * item));
  }
}

// triangle(out, x, diagonal, lower): the last two dimensions are matrices
VT_KERNEL(triangle) {
  const View &out = c.view(0), &x = c.view(1);
  const int64_t diagonal = c.i(0), item = itemsize(out.dtype);
  const bool lower = c.i(1) != 0;
  const int n = out.ndim;
  const int64_t height = out.shape[n - 2], width = out.shape[n - 1];
  int64_t batch = 1;
  for (int d = 0; d < n - 2; ++d) batch *= out.shape[d];
  const bool rows = out.strides[n - 1] == item && x.strides[n - 1] == item;
  if (!rows) copy(out, x);
  if (width == 0) return;
  const View& from = rows ? x : out;
  alignas(16) const char nothing[16] = {};
  const CastFn same = cast_fn(out.dtype, out.dtype);
  parallel_for(batch * height, grain_for(width / 2 + 4), [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e;) {
      const int64_t first = t % height, last = std::min(height, first + e - t);
      int64_t rest = t / height, to = 0, at = 0;
      t += last - first;
      for (int d = n - 3; d >= 0; --d) {
        const int64_t j = rest % out.shape[d];
        rest /= out.shape[d];
        to += j * out.strides[d];
        at += j * from.strides[d];
      }
      if (rows) {
        triangle_rows(out.data + to, out.strides[n - 2], x.data + at, x.strides[n - 2], out.dtype, width, diagonal, lower,
                      first, last);
        continue;
      }
      const int64_t step = out.strides[n - 1];
      for (int64_t r = first; r < last; ++r) {
        const int64_t cut = std::clamp<int64_t>(lower ? r + diagonal + 1 : r + diagonal, 0, width);
        const int64_t k0 = lower ? 0 : cut, k1 = lower ? cut : width;
        char* d = out.data + to + r * out.strides[n - 2];
        same(d, step, nothing, 0, k0);
        same(d + k1 * step, step, nothing, 0, width - k1);
      }
    }
  });
}

// triangle_indices(out, row, col, offset, lower): out is (2, count), dense
VT_KERNEL(triangle_indices) {
  const View& out = c.view(0);
  const int64_t rows = c.i(0), cols = c.i(1), offset = c.i(2), n = out.shape[1];
  const bool lower = c.i(3) != 0;
  auto fill = [&](auto* o) {
    using T = std::remove_pointer_t<decltype(o)>;
    int64_t at = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t cut = std::clamp<int64_t>(lower ? r + offset + 1 : r + offset, 0, cols);
      const int64_t k0 = lower ? 0 : cut, m = (lower ? cut : cols) - k0;
      for (int64_t j = 0; j < m; ++j) o[at + j] = T(r);
      for (int64_t j = 0; j < m; ++j) o[n + at + j] = T(k0 + j);
      at += m;
    }
  };
  if (out.dtype == Dtype::i64) fill(out.as<int64_t>());
  else fill(out.as<int32_t>());
}

}  // namespace

}  // namespace vt
