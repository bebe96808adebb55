// Resizing bytes with weights of 16 bits, along w and then along h, rounded to bytes in between, as Pillow does.
#include <algorithm>

#include "vt/kernel.h"

namespace vt {
namespace {

// For one dimension: tap k of output o is input index[k][o] with weight[k][o] / 2^bits.
struct Taps {
  const int32_t *index = nullptr, *weight = nullptr;
  int64_t places, n = 1;
  int bits = 0;
  bool there;  // the dimension changes

  Taps(const View& at, const View& by, int64_t bits_, int64_t size) : places(size), bits(int(bits_)), there(bool(at)) {
    if (!there) return;
    index = at.as<int32_t>(), weight = by.as<int32_t>();
    n = at.size(0), places = at.size(1);
  }
};

void to_bytes(uint8_t* to, const int32_t* sums, int64_t n, int bits) {
  const int32_t half = 1 << (bits - 1);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const int32_t v = (sums[i] + half) >> bits;
    to[i] = uint8_t(v < 0 ? 0 : v > 255 ? 255 : v);
  }
}

// A row that was widened to 32 bits, so that its elements can be gathered.
void along_row(uint8_t* to, int32_t* sums, const int32_t* from, const Taps& t) {
  std::fill(sums, sums + t.places, 0);
  for (int64_t k = 0; k < t.n; ++k) {
    const int32_t *at = t.index + k * t.places, *by = t.weight + k * t.places;
#pragma GCC ivdep
    for (int64_t o = 0; o < t.places; ++o) sums[o] += by[o] * from[at[o]];
  }
  to_bytes(to, sums, t.places, t.bits);
}

// Output row o from rows of `width` bytes.
void along_column(uint8_t* to, int32_t* sums, const uint8_t* from, int64_t width, const Taps& t, int64_t o) {
  std::fill(sums, sums + width, 0);
  for (int64_t k = 0; k < t.n; ++k) {
    const int32_t by = t.weight[k * t.places + o];
    if (by == 0) continue;
    const uint8_t* row = from + t.index[k * t.places + o] * width;
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) sums[i] += by * int32_t(row[i]);
  }
  to_bytes(to, sums, width, t.bits);
}

}  // namespace

VT_KERNEL(resample_bytes) {
  const View &x = c.view(0), &y = c.view(1);
  const int64_t H = x.size(2), W = x.size(3), channels = x.size(1);
  const Taps down(c.view(2), c.view(3), c.i(0), H), across(c.view(4), c.view(5), c.i(1), W);
  const int64_t U = down.places, V = across.places;
  const int64_t cost = H * W + H * V * across.n / 2 + U * V * (down.n / 4 + 1);
  parallel_for(x.size(0) * channels, grain_for(cost), [&](int64_t begin, int64_t end) {
    Scratch<uint8_t> middle(H * V), row(V);
    Scratch<int32_t> line(W), sums(V);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / channels, ch = task % channels;
      const uint8_t* from = x.as<uint8_t>() + n * x.strides[0] + ch * x.strides[1];
      uint8_t* to = y.as<uint8_t>() + n * y.strides[0] + ch * y.strides[1];
      for (int64_t h = 0; h < H; ++h) {
        const uint8_t* at = from + h * x.strides[2];
        const int64_t step = x.strides[3];
        if (!across.there) {
          for (int64_t w = 0; w < W; ++w) middle[h * V + w] = at[w * step];
          continue;
        }
        int32_t* wide = line;
        if (step == 1) {
#pragma GCC ivdep
          for (int64_t w = 0; w < W; ++w) wide[w] = at[w];
        } else {
          for (int64_t w = 0; w < W; ++w) wide[w] = at[w * step];
        }
        along_row(middle + h * V, sums, line, across);
      }
      for (int64_t u = 0; u < U; ++u) {
        const uint8_t* done = middle + u * V;
        if (down.there) along_column(row, sums, middle, V, down, u), done = row;
        uint8_t* at = to + u * y.strides[2];
        if (y.strides[3] == 1) std::copy(done, done + V, at);
        else
          for (int64_t v = 0; v < V; ++v) at[v * y.strides[3]] = done[v];
      }
    }
  });
}

}  // namespace vt
