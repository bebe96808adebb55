// Linear filters in time, and the sums of lagged products that their gradients need.
#include <algorithm>

#include "vt/cast.h"
#include "vt/kernel.h"

namespace vt {
namespace {

// Signals (batch, channel, time) of any layout, read or written as float64, from either end.
struct Signals {
  const View& v;
  bool from_end;
  int64_t step, channels;
  CastFn in, out;

  Signals(const View& v, bool from_end)
      : v(v), from_end(from_end), step(from_end ? -v.strides[2] : v.strides[2]), channels(v.shape[1]),
        in(cast_fn(v.dtype, Dtype::f64)), out(cast_fn(Dtype::f64, v.dtype)) {}
  // Sample n of signal `row`, counted from the end at which filtering begins.
  char* at(int64_t row, int64_t n) const {
    const int64_t i = from_end ? v.shape[2] - 1 - n : n;
    return v.data + row / channels * v.strides[0] + row % channels * v.strides[1] + i * v.strides[2];
  }
};

// One signal after the other, in tiles. Feedback carries rounding on, so it is computed in float64.
struct Filter {
  static constexpr int64_t TILE = 512;
  const Signals &x, &y;
  const View &a, &b;
  int64_t order;  // coefficients of a filter
  int64_t past;   // samples before a tile that it depends on

  Filter(const Signals& x, const Signals& y, const View& a, const View& b)
      : x(x), y(y), a(a), b(b), order(a.shape[1]), past(std::max<int64_t>(order - 1, 0)) {}

  void run(int64_t row) const {
    const int64_t samples = x.v.shape[2], channel = row % x.channels;
    Scratch<double> ca(order + 1), cb(order + 1), xs(past + TILE), ys(past + TILE);
    double *xt = xs + past, *yt = ys + past;
    std::fill_n(xs.get(), past, 0.0);
    std::fill_n(ys.get(), past, 0.0);
    const CastFn get = cast_fn(a.dtype, Dtype::f64);
    get(reinterpret_cast<char*>(ca.get()), 8, a.data + channel * a.strides[0], a.strides[1], order);
    get(reinterpret_cast<char*>(cb.get()), 8, b.data + channel * b.strides[0], b.strides[1], order);
    for (int64_t n0 = 0; n0 < samples; n0 += TILE) {
      const int64_t m = std::min(TILE, samples - n0);
      x.in(reinterpret_cast<char*>(xt), 8, x.at(row, n0), x.step, m);
      forward(yt, xt, cb, m);
      if (order > 1) feedback(yt, ca, m);
      y.out(y.at(row, n0), y.step, reinterpret_cast<const char*>(yt), 8, m);
      // The end of this tile is the past of the next; a short tile is the last.
      std::copy_n(xt + m - past, past, xs.get());
      std::copy_n(yt + m - past, past, ys.get());
    }
  }

  void forward(double* __restrict y, const double* x, const double* b, int64_t m) const {
    std::fill_n(y, m, 0.0);
    for (int64_t k = 0; k < order; ++k)
      for (int64_t n = 0; n < m; ++n) y[n] += b[k] * x[n - k];
  }

  // Oldest outputs first: only the last product waits for the sample before.
  void feedback(double* y, const double* a, int64_t m) const {
    const double a1 = a[1], a2 = order > 2 ? a[2] : 0.0;
    double y1 = y[-1], y2 = order > 2 ? y[-2] : 0.0;
    for (int64_t n = 0; n < m; ++n) {
      double s = y[n];
      for (int64_t k = order - 1; k > 2; --k) s -= a[k] * y[n - k];
      s = (s - a2 * y2) - a1 * y1;
      y2 = y1;
      y1 = y[n] = s;
    }
  }
};

}  // namespace

// x, a, b, out, from the end
VT_KERNEL(lfilter) {
  const Signals x(c.view(0), c.i(0) != 0), y(c.view(3), c.i(0) != 0);
  const View &a = c.view(1), &b = c.view(2);
  const int64_t rows = x.v.shape[0] * x.v.shape[1];
  if (rows == 0 || x.v.shape[2] == 0) return;
  const Filter filter(x, y, a, b);
  parallel_for(rows, grain_for(x.v.shape[2] * a.shape[1] * 2), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) filter.run(row);
  });
}

// g, x, out, from the end
VT_KERNEL(lag_products) {
  const View &g = c.view(0), &x = c.view(1), &out = c.view(2);
  const bool back = c.i(0) != 0;
  const int64_t channels = out.shape[0], taps = out.shape[1], batch = x.shape[0], samples = x.shape[2];
  const CastFn in = cast_fn(x.dtype, Dtype::f64), put = cast_fn(Dtype::f64, out.dtype);
  parallel_for(channels * taps, grain_for(batch * samples * 2), [&](int64_t begin, int64_t end) {
    constexpr int64_t TILE = 1024;
    alignas(64) double p[TILE], q[TILE];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t channel = t / taps, k = t % taps;
      double part[8] = {};
      for (int64_t s = 0; s < batch; ++s) {
        const char* pg = g.data + s * g.strides[0] + channel * g.strides[1] + (back ? 0 : k) * g.strides[2];
        const char* px = x.data + s * x.strides[0] + channel * x.strides[1] + (back ? k : 0) * x.strides[2];
        for (int64_t n0 = 0; n0 < samples - k; n0 += TILE) {
          const int64_t m = std::min(TILE, samples - k - n0);
          in(reinterpret_cast<char*>(p), 8, pg + n0 * g.strides[2], g.strides[2], m);
          in(reinterpret_cast<char*>(q), 8, px + n0 * x.strides[2], x.strides[2], m);
          int64_t i = 0;
          for (; i + 8 <= m; i += 8)
            for (int j = 0; j < 8; ++j) part[j] += p[i + j] * q[i + j];
          for (; i < m; ++i) part[0] += p[i] * q[i];
        }
      }
      double sum = 0;
      for (double v : part) sum += v;
      put(out.data + channel * out.strides[0] + k * out.strides[1], 8, reinterpret_cast<const char*>(&sum), 8, 1);
    }
  });
}

}  // namespace vt
