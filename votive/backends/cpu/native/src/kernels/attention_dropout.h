// The noise of dropout on weights, drawn as `common/sampling.py` says: element e of all weights is
// kept when word e of the draw is below a threshold.
#pragma once
#include "attention.h"
#include "vt/philox.h"

namespace vt {
namespace {

// The words of `n` counters from low + high * 2^64 on.
inline void draw_words(uint64_t key, uint64_t low, uint64_t high, int64_t n, uint32_t* out) {
  const uint64_t left = 0 - low;  // until the lower half wraps
  if (left == 0 || left >= uint64_t(n)) return philox_words(key, low, n, out, high);
  philox_words(key, low, int64_t(left), out, high);
  philox_words(key, 0, n - int64_t(left), out + 4 * left, high + 1);
}

struct Dropout {
  bool on = false;
  uint64_t key = 0, low = 0, high = 0, threshold = 0;
  double kept = 1;

  Dropout() = default;
  // Six integers of 32 bits from `first` on: the key and the counter, least significant first.
  Dropout(const Call& c, int first, double p) : on(p > 0) {
    const auto word = [&](int k) { return uint64_t(c.i(first + k)); };
    key = word(0) | word(1) << 32;
    low = word(2) | word(3) << 32;
    high = word(4) | word(5) << 32;
    threshold = uint64_t(std::ceil((1 - p) * 0x1p32));
    kept = p < 1 ? 1 / (1 - p) : 0;
  }
};

template <class T> int64_t noise_room(const Dropout& d, int64_t block) { return d.on ? 2 * WIDTH<T> * block : 1; }

// Noise of keys [from, from + n) for the columns of a panel: n x WIDTH factors at the start of `room`.
template <class T>
void draw_noise(const Problem& p, const Dropout& drop, int64_t b, int64_t h, int64_t r0, int64_t count, int64_t from,
                int64_t n, T* room) {
  constexpr int64_t W = WIDTH<T>;
  Scratch<uint32_t> words(n + 8);
  T* rows = room + W * n;
  const T kept = T(drop.kept);
  for (int64_t r = 0; r < count; ++r) {
    const int64_t g = (r0 + r) / p.Tq, i = (r0 + r) % p.Tq;
    const uint64_t first = ((uint64_t(b) * p.H + h * p.G + g) * p.Tq + i) * p.Tk + from, skip = first % 4;
    const uint64_t low = drop.low + first / 4;
    draw_words(drop.key, low, drop.high + (low < drop.low), (int64_t(skip) + n + 3) / 4, words);
    const uint32_t* w = words + skip;
    T* to = rows + r * n;
    for (int64_t j = 0; j < n; ++j) to[j] = uint64_t(w[j]) < drop.threshold ? kept : T(0);
  }
  std::fill(rows + count * n, rows + W * n, T(0));
  turn<T>(room, W, rows, n, W, n);
}

}  // namespace
}  // namespace vt
