// Resampling by a filter for each phase, its transpose, and what its taps receive.
#include <algorithm>

#include "vt/cast.h"
#include "vt/kernel.h"
#include "vt/rows.h"

namespace vt {
namespace {

// Where result n begins to read, and with which row of the kernel.
struct Phases {
  int64_t orig, fresh, offset;
  int64_t start(int64_t n) const { return n / fresh * orig + n % fresh * orig / fresh - offset; }
};

template <class C> inline C dot(const C* a, const C* b, int64_t n) {
  C part[8] = {};
  int64_t k = 0;
  for (; k + 8 <= n; k += 8)
    for (int j = 0; j < 8; ++j) part[j] += a[k + j] * b[k + j];
  C sum = ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
  for (; k < n; ++k) sum += a[k] * b[k];
  return sum;
}

// All rows of a matrix, dense and in the type that is computed in.
template <class C> struct Dense {
  Rows<C> rows;
  Scratch<C> room;
  const C* data;
  Dense(const View& v) : rows(v, 0, 2), room(rows.direct ? 0 : v.numel()), data(rows.load(0, room)) {}
};

template <class C> void resample(Call& c) {
  const View &x = c.view(0), &kernel = c.view(1), &out = c.view(2);
  const Phases phases{c.i(0), kernel.shape[0], c.i(1)};
  const int64_t taps = kernel.shape[1], size = x.shape[1], length = out.shape[1];
  const Dense<C> weight(kernel);
  const Rows<C> in(x, 1, 2), to(out, 1, 2);
  constexpr int64_t PIECE = 2048;
  const int64_t pieces = (length + PIECE - 1) / PIECE;
  parallel_for(x.shape[0] * pieces, grain_for(PIECE * taps), [&](int64_t begin, int64_t end) {
    Scratch<C> xs(in.direct ? 0 : size), ys(PIECE);
    const CastFn put = cast_fn(dtype_of<C>, out.dtype);
    int64_t loaded = -1;
    const C* signal = nullptr;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / pieces, n0 = t % pieces * PIECE, m = std::min(PIECE, length - n0);
      if (row != loaded) signal = in.load(row, xs), loaded = row;
      for (int64_t i = 0; i < m; ++i) {
        const int64_t n = n0 + i, at = phases.start(n);
        const C* w = weight.data + n % phases.fresh * taps;
        const int64_t from = std::max<int64_t>(0, -at), upto = std::min(taps, size - at);
        ys[i] = upto > from ? dot(w + from, signal + at + from, upto - from) : C(0);
      }
      put(to.at(row) + n0 * out.strides[1], out.strides[1], reinterpret_cast<const char*>(ys.get()), sizeof(C), m);
    }
  });
}

template <class C> void transpose(Call& c) {
  const View &g = c.view(0), &kernel = c.view(1), &out = c.view(2);
  const Phases phases{c.i(0), kernel.shape[0], c.i(1)};
  const int64_t taps = kernel.shape[1], length = g.shape[1], size = out.shape[1];
  const Dense<C> weight(kernel);
  const Rows<C> in(g, 1, 2), to(out, 1, 2);
  parallel_for(g.shape[0], grain_for(length * taps), [&](int64_t begin, int64_t end) {
    Scratch<C> gs(in.direct ? 0 : length), xs(to.direct ? 0 : size);
    for (int64_t row = begin; row < end; ++row) {
      const C* from = in.load(row, gs);
      C* x = to.place(row, xs);
      std::fill_n(x, size, C(0));
      for (int64_t n = 0; n < length; ++n) {
        const int64_t at = phases.start(n);
        const C* w = weight.data + n % phases.fresh * taps;
        const int64_t first = std::max<int64_t>(0, -at), upto = std::min(taps, size - at);
        C* p = x + at;
#pragma GCC ivdep
        for (int64_t k = first; k < upto; ++k) p[k] += w[k] * from[n];
      }
      to.store(row, xs);
    }
  });
}

template <class C> void products(Call& c) {
  const View &g = c.view(0), &x = c.view(1), &out = c.view(2);
  const Phases phases{c.i(0), out.shape[0], c.i(1)};
  const int64_t taps = out.shape[1], length = g.shape[1], size = x.shape[1];
  const Dense<C> grad(g), signal(x);
  const CastFn put = cast_fn(Dtype::f64, out.dtype);
  parallel_for(out.shape[0], grain_for(g.shape[0] * (length / phases.fresh + 1) * taps), [&](int64_t begin, int64_t end) {
    Scratch<double> sums(taps);
    for (int64_t phase = begin; phase < end; ++phase) {
      std::fill_n(sums.get(), taps, 0.0);
      for (int64_t row = 0; row < g.shape[0]; ++row)
        for (int64_t n = phase; n < length; n += phases.fresh) {
          const int64_t at = phases.start(n);
          const double v = grad.data[row * length + n];
          const C* p = signal.data + row * size + at;
          const int64_t upto = std::min(taps, size - at);
          for (int64_t k = std::max<int64_t>(0, -at); k < upto; ++k) sums[k] += v * p[k];
        }
      put(out.data + phase * out.strides[0], out.strides[1], reinterpret_cast<const char*>(sums.get()), 8, taps);
    }
  });
}

}  // namespace

// x, kernel, out, orig, offset
VT_KERNEL(polyphase) {
  for_compute(c.view(0).dtype, [&](auto type) { resample<typename decltype(type)::type>(c); });
}

// g, kernel, out, orig, offset
VT_KERNEL(polyphase_transposed) {
  for_compute(c.view(0).dtype, [&](auto type) { transpose<typename decltype(type)::type>(c); });
}

// g, x, out, orig, offset
VT_KERNEL(polyphase_products) {
  for_compute(c.view(0).dtype, [&](auto type) { products<typename decltype(type)::type>(c); });
}

}  // namespace vt
