// Resizing bytes with weights of 16 bits, along w and then along h, rounded to bytes in between, as Pillow does.
#include <algorithm>

#include "vt/kernel.h"

namespace vt {
namespace {

// For one dimension: output o is made of inputs index[o][k] with weight[o][k] / 2^bits.
struct Taps {
  const int64_t* index = nullptr;
  const int32_t* weight = nullptr;
  int64_t places, n = 1;
  int bits = 0;
  bool there;  // the dimension changes

  Taps(const View& at, const View& by, int64_t bits_, int64_t size) : places(size), bits(int(bits_)), there(bool(at)) {
    if (!there) return;
    index = at.as<int64_t>(), weight = by.as<int32_t>();
    places = at.size(0), n = at.size(1);
  }
  uint8_t byte(int32_t sum) const { return uint8_t(std::clamp((sum + (1 << (bits - 1))) >> bits, 0, 255)); }
};

void along_row(uint8_t* to, const uint8_t* from, const Taps& t) {
  for (int64_t o = 0; o < t.places; ++o) {
    const int64_t* at = t.index + o * t.n;
    const int32_t* by = t.weight + o * t.n;
    int32_t sum = 0;
    for (int64_t k = 0; k < t.n; ++k) sum += by[k] * int32_t(from[at[k]]);
    to[o] = t.byte(sum);
  }
}

// One output row from `n` rows of `width` bytes.
void along_column(uint8_t* to, int32_t* sums, const uint8_t* from, int64_t width, const Taps& t, int64_t o) {
  std::fill(sums, sums + width, 0);
  for (int64_t k = 0; k < t.n; ++k) {
    const uint8_t* row = from + t.index[o * t.n + k] * width;
    const int32_t by = t.weight[o * t.n + k];
    if (by == 0) continue;
#pragma GCC ivdep
    for (int64_t i = 0; i < width; ++i) sums[i] += by * int32_t(row[i]);
  }
#pragma GCC ivdep
  for (int64_t i = 0; i < width; ++i) to[i] = t.byte(sums[i]);
}

}  // namespace

VT_KERNEL(resample_bytes) {
  const View &x = c.view(0), &y = c.view(1);
  const int64_t H = x.size(2), W = x.size(3), channels = x.size(1);
  const Taps down(c.view(2), c.view(3), c.i(0), H), across(c.view(4), c.view(5), c.i(1), W);
  const int64_t U = down.places, V = across.places;
  const int64_t cost = H * W + H * V * across.n + U * V * (down.n / 4 + 1);
  parallel_for(x.size(0) * channels, grain_for(cost), [&](int64_t begin, int64_t end) {
    Scratch<uint8_t> line(W), middle(H * V), row(V);
    Scratch<int32_t> sums(V);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t n = task / channels, ch = task % channels;
      const uint8_t* from = x.as<uint8_t>() + n * x.strides[0] + ch * x.strides[1];
      uint8_t* to = y.as<uint8_t>() + n * y.strides[0] + ch * y.strides[1];
      for (int64_t h = 0; h < H; ++h) {
        const uint8_t* at = from + h * x.strides[2];
        if (x.strides[3] != 1) {
          for (int64_t w = 0; w < W; ++w) line[w] = at[w * x.strides[3]];
          at = line;
        }
        if (across.there) along_row(middle + h * V, at, across);
        else std::copy(at, at + W, middle + h * V);
      }
      for (int64_t u = 0; u < U; ++u) {
        const uint8_t* done = middle + u * V;
        if (down.there) along_column(row, sums, middle, V, down, u), done = row;
        uint8_t* at = to + u * y.strides[2];
        for (int64_t v = 0; v < V; ++v) at[v * y.strides[3]] = done[v];
      }
    }
  });
}

}  // namespace vt
