// Echoes that come back: a recurrence whose delays change with time, and its transpose.
#include "vt/cast.h"
#include "vt/kernel.h"

namespace vt {
namespace {

// Sample n of channel `c` of echo j.
template <class T> T read(const View& v, int64_t j, int64_t c, int64_t n) {
  return *reinterpret_cast<const T*>(v.data + j * v.strides[0] + c * v.strides[1] + n * v.strides[2]);
}

}  // namespace

// x, gain, lag, out, transposed
VT_KERNEL(delay_feedback) {
  const View &x = c.view(0), &gain = c.view(1), &lag = c.view(2), &out = c.view(3);
  const bool transposed = c.i(0) != 0;
  const int64_t echoes = gain.shape[0], channels = x.shape[1], time = x.shape[2];
  const CastFn in = cast_fn(x.dtype, Dtype::f64), put = cast_fn(Dtype::f64, out.dtype);
  const CastFn weigh = cast_fn(gain.dtype, Dtype::f64);
  parallel_for(x.shape[0] * channels, grain_for(time * echoes * 8), [&](int64_t begin, int64_t end) {
    // Feedback carries rounding on, so it is computed in float64.
    Scratch<double> y(time), w(echoes * time);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t b = row / channels, ch = row % channels;
      in(reinterpret_cast<char*>(y.get()), 8, x.data + b * x.strides[0] + ch * x.strides[1], x.strides[2], time);
      for (int64_t j = 0; j < echoes; ++j)
        weigh(reinterpret_cast<char*>(w + j * time), 8, gain.data + j * gain.strides[0] + ch * gain.strides[1], gain.strides[2], time);
      for (int64_t k = 0; k < time; ++k) {
        const int64_t n = transposed ? time - 1 - k : k;
        for (int64_t j = 0; j < echoes; ++j) {
          const int64_t by = read<int64_t>(lag, j, ch, n), m = n - by;
          if (by < 1) throw ValueError("delay_feedback: lags must be at least 1, got " + std::to_string(by) + ".");
          if (m < 0) continue;
          if (transposed) y[m] += w[j * time + n] * y[n];
          else y[n] += w[j * time + n] * y[m];
        }
      }
      put(out.data + b * out.strides[0] + ch * out.strides[1], out.strides[2], reinterpret_cast<const char*>(y.get()), 8, time);
    }
  });
}

}  // namespace vt
