// Positions drawn with chances proportional to weights: the rule stands in reference/sampling_choice.py.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <stdexcept>

#include "vt/cast.h"
#include "vt/kernel.h"
#include "vt/philox.h"

namespace vt {
namespace {

enum Fault { NONE, INVALID, EMPTY };

// Cumulative weights of one row, scaled by a power of two, which is exact and keeps their sum finite.
Fault cumulate(double* w, int64_t n) {
  double most = 0;
  bool valid = true;
  for (int64_t i = 0; i < n; ++i) {
    valid = valid && w[i] >= 0 && w[i] <= 1.7976931348623157e308;
    most = std::max(most, w[i]);
  }
  if (!valid) return INVALID;
  if (most == 0) return EMPTY;
  int exponent;
  std::frexp(most, &exponent);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) w[i] = sum += std::ldexp(w[i], -exponent);
  return NONE;
}

// weights, out; key, counter. With replacement, or one position of each row.
VT_KERNEL(multinomial) {
  const View &weights = c.view(0), &out = c.view(1);
  const uint64_t key = uint64_t(c.i(0)), counter = uint64_t(c.i(1));
  const bool many = weights.ndim == 2;
  const int64_t rows = many ? weights.shape[0] : 1, n = weights.size(-1), samples = out.size(-1);
  const CastFn wide = cast_fn(weights.dtype, Dtype::f64);
  std::atomic<int> fault{NONE};
  parallel_for(rows, grain_for(4 * n + 16 * samples), [&](int64_t begin, int64_t end) {
    Scratch<double> sums(n);
    Scratch<uint32_t> words(2 * samples + 16);
    for (int64_t r = begin; r < end; ++r) {
      const char* from = weights.data + (many ? r * weights.strides[0] : 0);
      wide(reinterpret_cast<char*>(sums.get()), sizeof(double), from, weights.strides[weights.ndim - 1], n);
      const Fault found = cumulate(sums, n);
      if (found != NONE) {
        fault = found;
        return;
      }
      // A draw takes two words, a counter gives four.
      const int64_t first = 2 * r * samples, skip = first % 4;
      philox_words(key, counter + uint64_t(first / 4), (skip + 2 * samples + 3) / 4, words);
      char* to = out.data + (many ? r * out.strides[0] : 0);
      for (int64_t s = 0; s < samples; ++s) {
        const uint32_t* w = words + skip + 2 * s;
        const double u = double(int64_t((uint64_t(w[0]) | uint64_t(w[1]) << 32) >> 11)) * 0x1p-53;
        const double* end_of = sums + n;
        *reinterpret_cast<int64_t*>(to + s * out.strides[out.ndim - 1]) =
            std::upper_bound(static_cast<const double*>(sums), end_of, u * sums[n - 1]) - sums;
      }
    }
  });
  // In the words of common/sampling_bounds.py.
  if (fault == INVALID) throw std::runtime_error("probability tensor contains either `inf`, `nan` or element < 0");
  if (fault == EMPTY) throw std::runtime_error("invalid multinomial distribution (sum of probabilities <= 0)");
}

}  // namespace
}  // namespace vt
