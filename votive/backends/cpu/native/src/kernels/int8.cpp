// Layers whose weight is int8 and whose input is 8 bits: linear and convolution, with floats or 8 bits as results.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "int8_product.h"
#include "vt/cast.h"
#include "vt/copy.h"
#include "vt/kernel.h"

namespace vt {
namespace {

using int8::MOST_ROWS;
using int8::PANEL;
using int8::WIDE;

// What 8 bits stand for: scale * (code - zero).
struct Steps {
  float scale;
  int32_t zero;
};

// A dense copy, or the array itself where it is dense and of the type.
struct Dense8 {
  Dense8(const View& v, Dtype as) : own(in_place(v, as) ? 0 : v.numel() * itemsize(as)), data(v.data) {
    if (in_place(v, as)) return;
    CopyDim dims[COPY_DIMS];
    int64_t step = itemsize(as);
    for (int d = v.ndim - 1; d >= 0; --d) {
      dims[d] = {v.shape[d], step, v.strides[d]};
      step *= v.shape[d];
    }
    data = own;
    copy_block(data, as, v.data, v.dtype, dims, v.ndim);
  }
  static bool in_place(const View& v, Dtype as) { return v.dtype == as && v.contiguous(); }
  Scratch<char> own;
  char* data;
};

// Where the result of row m, column 0 lies: `inner` rows follow one another, then comes the next picture.
struct Target {
  char* data;
  int64_t inner, outer_step, row_step, col_step;  // in elements
  Dtype dtype;
  int64_t at(int64_t m) const { return m / inner * outer_step + m % inner * row_step; }
};

// From sums to results: what is subtracted, multiplied and added, for each column.
struct Finish {
  Finish(int64_t N, int64_t K, Steps x, const int32_t* sums, const float* scales, const int32_t* zeros,
         const float* bias, Steps out, bool relu, Dtype dtype)
      : padded((N + WIDE - 1) / WIDE * WIDE), less(padded), factor(padded), extra(padded), weight_zero(zeros ? padded : 0),
        zeros(zeros != nullptr), relu(relu), out(out), low(dtype == Dtype::i8 ? -128 : 0), high(low + 255) {
    const bool real = dtype == Dtype::f32;
    for (int64_t n = 0; n < padded; ++n) {
      const bool there = n < N;
      const int32_t zero = there && zeros ? zeros[n] : 0;
      const float unit = there ? x.scale * scales[n] : 0;
      less[n] = there ? int32_t(uint32_t(x.zero) * uint32_t(sums[n]) - uint32_t(K) * uint32_t(x.zero) * uint32_t(zero)) : 0;
      factor[n] = real ? unit : unit / out.scale;
      const float b = there && bias ? bias[n] : 0;
      extra[n] = real ? b : b / (there ? unit : 1);
      if (zeros) weight_zero[n] = zero;
    }
    if (relu) low = std::max(low, out.zero);
  }
  int64_t padded;
  Scratch<int32_t> less;
  Scratch<float> factor, extra;
  Scratch<int32_t> weight_zero;
  bool zeros, relu;
  Steps out;
  int low, high;

  // Columns from j on, `n` of them, of `rows` rows whose codes sum up to `totals`.
  void operator()(int32_t* y, int64_t rows, int64_t m, int64_t j, int64_t n, const int32_t* totals, const Target& to) const {
    for (int64_t r = 0; r < rows; ++r, y += WIDE) {
      for (int k = 0; k < WIDE; ++k) y[k] = int32_t(uint32_t(y[k]) - uint32_t(less[j + k]));
      if (zeros)
        for (int k = 0; k < WIDE; ++k) y[k] = int32_t(uint32_t(y[k]) - uint32_t(weight_zero[j + k]) * uint32_t(totals[r]));
      const int64_t at = to.at(m + r) + j * to.col_step;
      if (to.dtype == Dtype::f32) {
        float v[WIDE];
        for (int k = 0; k < WIDE; ++k) v[k] = float(y[k]) * factor[j + k] + extra[j + k];
        if (relu)
          for (int k = 0; k < WIDE; ++k) v[k] = v[k] > 0 ? v[k] : 0;
        float* o = reinterpret_cast<float*>(to.data) + at;
        for (int64_t k = 0; k < n; ++k) o[k * to.col_step] = v[k];
      } else {
        uint8_t v[WIDE];
        for (int k = 0; k < WIDE; ++k) {
          const float f = std::nearbyint((float(y[k]) + extra[j + k]) * factor[j + k]) + float(out.zero);
          v[k] = uint8_t(int(std::min(std::max(f, float(low)), float(high))));
        }
        uint8_t* o = reinterpret_cast<uint8_t*>(to.data) + at;
        if (to.col_step == 1) std::memcpy(o, v, size_t(n));
        else
          for (int64_t k = 0; k < n; ++k) o[k * to.col_step] = v[k];
      }
    }
  }
};

// Rows m to m + rows of dense codes with all columns from `first` to `last`, in multiples of WIDE.
void multiply(int8::Sums sums, const uint8_t* x, int64_t step, int64_t rows, int64_t m, const int8_t* w, int64_t quads,
              int64_t N, int64_t first, int64_t last, int64_t K, const Finish& finish, const Target& to) {
  alignas(64) int32_t y[MOST_ROWS * WIDE] = {};
  int32_t totals[MOST_ROWS] = {};
  for (int64_t j = first; j < last; j += WIDE) {
    const int64_t n = std::min<int64_t>(WIDE, N - j), panels = (n + PANEL - 1) / PANEL;
    const int64_t passes = (rows + MOST_ROWS - 1) / MOST_ROWS, even = (rows + passes - 1) / passes;
    for (int64_t r = 0; r < rows; r += even) {
      const int64_t count = std::min(even, rows - r);
      if (finish.zeros)
        for (int64_t i = 0; i < count; ++i) {
          const uint8_t* row = x + (r + i) * step;
          uint32_t total = 0;
          for (int64_t k = 0; k < K; ++k) total += row[k];
          totals[i] = int32_t(total);
        }
      sums(x + r * step, step, count, w + j / PANEL * quads * 64, panels, quads, y);
      finish(y, count, m + r, j, n, totals, to);
    }
  }
}

// All rows with all columns; work is shared out by columns, and by rows where there are many.
void linear(int8::Sums sums, const uint8_t* x, int64_t step, int64_t M, const int8_t* w, int64_t quads, int64_t N,
            int64_t K, const Finish& finish, const Target& to) {
  constexpr int64_t ROWS = 96;
  const int64_t across = (N + WIDE - 1) / WIDE, down = (M + ROWS - 1) / ROWS;
  const int64_t cost = WIDE * std::min(M, ROWS) * quads / 8;
  parallel_for(across * down, grain_for(cost), [&](int64_t b, int64_t e) {
    for (int64_t t = b; t < e; ++t) {
      const int64_t m = t / across * ROWS, j = t % across * WIDE, rows = std::min(ROWS, M - m);
      multiply(sums, x + m * step, step, rows, m, w, quads, N, j, j + WIDE, K, finish, to);
    }
  });
}

// Codes of numbers: the product is added to the zero without rounding in between, as torch does.
template <class T> void quantize(const float* x, int64_t n, T* to, Steps s, float low, float high) {
  const float inverse = 1.0f / s.scale, zero = float(s.zero);
  for (int64_t i = 0; i < n; ++i) {
    const float v = std::nearbyint(std::fma(x[i], inverse, zero));
    const float c = v < high ? v : high;  // NaN becomes the highest code
    to[i] = T(int(c > low ? c : low));
  }
}

// Of 32 bits torch rounds the product first, too.
__attribute__((optimize("fp-contract=off"))) void quantize_wide(const float* x, int64_t n, int32_t* to, Steps s) {
  const float inverse = 1.0f / s.scale, zero = float(s.zero);
  for (int64_t i = 0; i < n; ++i) {
    const float product = x[i] * inverse;
    const float v = std::nearbyint(product + zero);
    to[i] = v >= 2147483648.0f ? std::numeric_limits<int32_t>::max()
            : v >= -2147483648.0f ? int32_t(v) : std::numeric_limits<int32_t>::min();
  }
}

// x, out; zero; scale
VT_KERNEL(quantize_affine) {
  const View &x = c.view(0), &out = c.view(1);
  const Steps s{float(c.f(0)), int32_t(c.i(0))};
  const Dense8 dense(x, Dtype::f32);
  const float* from = reinterpret_cast<const float*>(dense.data);
  parallel_for(x.numel(), 16384, [&](int64_t b, int64_t e) {
    if (out.dtype == Dtype::u8) quantize(from + b, e - b, out.as<uint8_t>() + b, s, 0, 255);
    else if (out.dtype == Dtype::i8) quantize(from + b, e - b, out.as<int8_t>() + b, s, -128, 127);
    else quantize_wide(from + b, e - b, out.as<int32_t>() + b, s);
  });
}

// Codes that are unsigned, rows of a multiple of four bytes.
struct Rows8 {
  Rows8(const View& x, int64_t K, int64_t M)
      : dense(x, x.dtype), copied(K % 4 != 0 || x.dtype == Dtype::i8), step(copied ? (K + 3) / 4 * 4 : K),
        own(copied ? M * step : 0) {
    const uint8_t flip = x.dtype == Dtype::i8 ? 0x80 : 0;
    const uint8_t* from = reinterpret_cast<const uint8_t*>(dense.data);
    data = copied ? own.get() : from;
    if (copied)
      for (int64_t m = 0; m < M; ++m) {
        uint8_t* to = own + m * step;
        for (int64_t k = 0; k < K; ++k) to[k] = from[m * K + k] ^ flip;
        for (int64_t k = K; k < step; ++k) to[k] = 0;
      }
  }
  Dense8 dense;
  bool copied;
  int64_t step;
  Scratch<uint8_t> own;
  const uint8_t* data;
};

const float* floats(const View& v) { return v ? v.as<float>() : nullptr; }

// x, packed, sums, scales, zeros or None, bias or None, out; zero, out zero, relu, way; scale, out scale
VT_KERNEL(int8_linear) {
  const View &x = c.view(0), &w = c.view(1), &sums = c.view(2), &scales = c.view(3), &zeros = c.view(4),
             &bias = c.view(5), &out = c.view(6);
  if (out.numel() == 0) return;
  const int64_t N = out.size(-1), M = out.numel() / N, K = x.size(-1), shift = x.dtype == Dtype::i8 ? 128 : 0;
  const Rows8 rows(x, K, M);
  const Finish finish(N, K, {float(c.f(0)), int32_t(c.i(0) + shift)}, sums.as<int32_t>(), floats(scales),
                      zeros ? zeros.as<int32_t>() : nullptr, floats(bias), {float(c.f(1)), int32_t(c.i(1))},
                      c.i(2) != 0, out.dtype);
  const Target to{out.data, M, 0, N, 1, out.dtype};
  linear(int8::sums(c.i(3)), rows.data, rows.step, M, w.as<int8_t>(), w.size(-2), N, K, finish, to);
}

struct Bounds {
  float least, most;
  bool finite;
};

// The least and the greatest of numbers and 0, lane by lane.
Bounds bounds(const float* x, int64_t n) {
  constexpr int LANES = 16;
  float least[LANES] = {}, most[LANES] = {}, wrong[LANES] = {};
  const auto look = [&](const float* v, int count) {
    for (int k = 0; k < count; ++k) {
      least[k] = v[k] < least[k] ? v[k] : least[k];
      most[k] = v[k] > most[k] ? v[k] : most[k];
      wrong[k] += v[k] * 0.0f;  // NaN for NaN and infinities
    }
  };
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) look(x + i, LANES);
  look(x + i, int(n - i));
  Bounds all{0, 0, true};
  for (int k = 0; k < LANES; ++k) {
    all.least = std::min(all.least, least[k]);
    all.most = std::max(all.most, most[k]);
    all.finite = all.finite && wrong[k] == 0;
  }
  return all;
}

// The step and zero of numbers between two bounds, which contain 0: as torch chooses them.
Steps choose(float least, float most, int high) {
  constexpr float SMALLEST = 6.1e-5f;
  least = std::min(least, 0.0f);
  most = std::max(most, 0.0f);
  double scale = (double(most) - least) / high;
  if (float(scale) == 0.0f || std::isinf(1.0f / float(scale))) scale = 0.1;
  if (scale < SMALLEST) {
    const float before = float(scale);
    scale = SMALLEST;
    if (least == 0) most = SMALLEST * high;
    else if (most == 0) least = -SMALLEST * high;
    else {
      least *= SMALLEST / before;
      most *= SMALLEST / before;
    }
  }
  const double zero = -least / scale;
  return {float(scale), int32_t(std::nearbyint(std::min(std::max(zero, 0.0), double(high))))};
}

// x, packed, sums, scales, zeros or None, bias or None, out; highest code, relu, way
VT_KERNEL(int8_linear_dynamic) {
  const View &x = c.view(0), &w = c.view(1), &sums = c.view(2), &scales = c.view(3), &zeros = c.view(4),
             &bias = c.view(5), &out = c.view(6);
  if (out.numel() == 0) return;
  const int64_t N = out.size(-1), M = out.numel() / N, K = x.size(-1), step = (K + 3) / 4 * 4;
  const Dense8 dense(x, Dtype::f32);
  const float* from = reinterpret_cast<const float*>(dense.data);
  const Bounds found = bounds(from, M * K);
  if (!found.finite) throw ValueError("linear: int8 needs finite numbers; the input holds infinities or NaN");
  const Steps s = choose(found.least, found.most, int(c.i(0)));
  Scratch<uint8_t> codes(M * step);
  parallel_for(M, grain_for(K), [&](int64_t b, int64_t e) {
    for (int64_t m = b; m < e; ++m) {
      quantize(from + m * K, K, codes + m * step, s, 0, float(c.i(0)));
      for (int64_t k = K; k < step; ++k) codes[m * step + k] = 0;
    }
  });
  const Finish finish(N, K, s, sums.as<int32_t>(), floats(scales), zeros ? zeros.as<int32_t>() : nullptr, floats(bias),
                      {1, 0}, c.i(1) != 0, out.dtype);
  const Target to{out.data, M, 0, N, 1, out.dtype};
  linear(int8::sums(c.i(2)), codes, step, M, w.as<int8_t>(), w.size(-2), N, K, finish, to);
}

// x (N, C, D, H, W), packed, sums, scales, zeros or None, bias or None, out (N, O, D, H, W);
// zero, out zero, relu, way, groups, then kernel, stride, padding, dilation of three dimensions each; scale, out scale
VT_KERNEL(int8_conv) {
  const View &x = c.view(0), &w = c.view(1), &sums = c.view(2), &scales = c.view(3), &zeros = c.view(4),
             &bias = c.view(5), &out = c.view(6);
  if (out.numel() == 0) return;
  const int64_t groups = c.i(4), *kernel = &c.ints[5], *stride = &c.ints[8], *padding = &c.ints[11], *dilation = &c.ints[14];
  const int64_t B = x.shape[0], C = x.shape[1], each = C / groups, O = out.shape[1], columns = O / groups;
  const int64_t *in = x.shape + 2, *to_shape = out.shape + 2;
  const int64_t pixels = in[0] * in[1] * in[2], places = to_shape[0] * to_shape[1] * to_shape[2];
  const int64_t taps = kernel[0] * kernel[1] * kernel[2], K = taps * each, step = (K + 3) / 4 * 4;
  const bool has_sign = x.dtype == Dtype::i8;
  const uint8_t flip = has_sign ? 0x80 : 0;
  const int32_t zero = int32_t(c.i(0)) + (has_sign ? 128 : 0);
  // Channels last, so that a tap is a run of bytes.
  const Dense8 dense(x, x.dtype);
  Scratch<uint8_t> last(B * pixels * C);
  parallel_for(B, 1, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      for (int64_t ch = 0; ch < C; ++ch) {
        const uint8_t* from = reinterpret_cast<const uint8_t*>(dense.data) + (i * C + ch) * pixels;
        uint8_t* to = last + i * pixels * C + ch;
        for (int64_t p = 0; p < pixels; ++p) to[p * C] = from[p] ^ flip;
      }
  });
  const int8::Sums product = int8::sums(c.i(3));
  const int64_t panels = (columns + PANEL - 1) / PANEL, quads = w.size(-2);
  constexpr int64_t ROWS = 48;
  const int64_t chunks = (places + ROWS - 1) / ROWS;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = g * columns;
    const Finish finish(columns, K, {float(c.f(0)), zero}, sums.as<int32_t>() + first, floats(scales) + first,
                        zeros ? zeros.as<int32_t>() + first : nullptr, bias ? floats(bias) + first : nullptr,
                        {float(c.f(1)), int32_t(c.i(1))}, c.i(2) != 0, out.dtype);
    const Target to{out.data + first * places * itemsize(out.dtype), places, O * places, 1, places, out.dtype};
    parallel_for(B * chunks, grain_for(ROWS * K * columns / 32), [&](int64_t begin, int64_t end) {
      Scratch<uint8_t> rows(ROWS * step);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t i = t / chunks, p0 = t % chunks * ROWS, count = std::min(ROWS, places - p0);
        const uint8_t* picture = last + i * pixels * C + g * each;
        for (int64_t r = 0; r < count; ++r) {
          const int64_t p = p0 + r, ow = p % to_shape[2], oh = p / to_shape[2] % to_shape[1],
                        od = p / (to_shape[2] * to_shape[1]);
          uint8_t* to_row = rows + r * step;
          for (int64_t a = 0; a < kernel[0]; ++a)
            for (int64_t b = 0; b < kernel[1]; ++b)
              for (int64_t d = 0; d < kernel[2]; ++d, to_row += each) {
                const int64_t z = od * stride[0] - padding[0] + a * dilation[0];
                const int64_t y = oh * stride[1] - padding[1] + b * dilation[1];
                const int64_t v = ow * stride[2] - padding[2] + d * dilation[2];
                const bool inside = z >= 0 && z < in[0] && y >= 0 && y < in[1] && v >= 0 && v < in[2];
                if (inside) std::memcpy(to_row, picture + ((z * in[1] + y) * in[2] + v) * C, size_t(each));
                else std::memset(to_row, int(zero), size_t(each));
              }
          for (int64_t k = K; k < step; ++k) rows[r * step + k] = 0;
        }
        multiply(product, rows, step, count, i * places + p0, w.as<int8_t>() + g * panels * quads * 64, quads, columns, 0,
                 columns, K, finish, to);
      }
    });
  }
}

}  // namespace
}  // namespace vt
