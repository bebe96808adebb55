// The noise of dropout on weights, drawn as `reference/sampling.py` says: element e of all weights is
// kept when word e of the draw is below a threshold.
#pragma once
#include "attention.h"

namespace vt {
namespace {

// Philox4x32-10: the words of counters low, low + 1, ... (with `high` above them).
inline void philox(uint64_t key, uint64_t low, uint64_t high, uint32_t* out, int64_t counters) {
  typedef uint64_t U __attribute__((vector_size(VECTOR)));
  constexpr int L = VECTOR / 8;
  U lane;
  for (int i = 0; i < L; ++i) lane[i] = uint64_t(i);
  for (int64_t n = 0; n < counters; n += L) {
    const U at = lane + (low + uint64_t(n));
    // The counter carries into its upper half where the lower one has wrapped.
    const U top = at < low ? U{} + (high + 1) : U{} + high;
    U a = (at << 32) | (at >> 32), b = (top << 32) | (top >> 32);
    uint64_t k0 = key & 0xffffffffu, k1 = key >> 32;
    for (int round = 0; round < 10; ++round) {
      const U x = (a >> 32) * 0xD2511F53ull, y = (b >> 32) * 0xCD9E8D57ull;
      a = (a << 32) ^ (k0 << 32) ^ y;
      b = (b << 32) ^ (k1 << 32) ^ x;
      k0 = (k0 + 0x9E3779B9u) & 0xffffffffu;
      k1 = (k1 + 0xBB67AE85u) & 0xffffffffu;
    }
    a = (a << 32) | (a >> 32), b = (b << 32) | (b >> 32);
    for (int i = 0; i < L && n + i < counters; ++i) {
      std::memcpy(out + 4 * (n + i), reinterpret_cast<const char*>(&a) + 8 * i, 8);
      std::memcpy(out + 4 * (n + i) + 2, reinterpret_cast<const char*>(&b) + 8 * i, 8);
    }
  }
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
    philox(drop.key, low, drop.high + (low < drop.low), words, (int64_t(skip) + n + 3) / 4);
    const uint32_t* w = words + skip;
    T* to = rows + r * n;
    for (int64_t j = 0; j < n; ++j) to[j] = uint64_t(w[j]) < drop.threshold ? kept : T(0);
  }
  std::fill(rows + count * n, rows + W * n, T(0));
  turn<T>(room, W, rows, n, W, n);
}

}  // namespace
}  // namespace vt
