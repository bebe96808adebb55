// All gradients at once: scaled, searched for what is not finite, and their norm.
#include <atomic>

#include "optimizer_step.h"

namespace vt {
namespace {
using namespace steps;

// (n, grads..., inverse scale, found)
VT_KERNEL(check_and_unscale) {
  const int64_t n_tensors = c.i(0);
  const double factor = read(c.views[n_tensors]);
  std::atomic<bool> found{false};
  each(lists(c, {0}, 1u), nothing, [&](auto x, int64_t n, int64_t) {
    using T = Value<decltype(x)>;
    T* g = x[0];
    const T f = T(factor);
    // x - x is zero for finite numbers and NaN for the others.
    T bad = 0;
    if (factor != 1) {
      VT_PLAIN for (int64_t k = 0; k < n; ++k) {
        bad += (g[k] - g[k]);
        g[k] *= f;
      }
    } else {
      VT_PLAIN for (int64_t k = 0; k < n; ++k) bad += (g[k] - g[k]);
    }
    if (bad != bad) found.store(true, std::memory_order_relaxed);
  });
  if (found.load()) write(c.views[n_tensors + 1], 1.0);
}

// (n, tensors..., factor)
VT_KERNEL(scale_all) {
  const double factor = read(c.views[c.i(0)]);
  each(lists(c, {0}, 1u), nothing, [&](auto x, int64_t n, int64_t) {
    using T = Value<decltype(x)>;
    T* g = x[0];
    const T f = T(factor);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) g[k] *= f;
  });
}

constexpr int64_t NORM_BLOCK = 16384;  // fixed, so that sums do not depend on the number of threads

enum Order { ONE = 1, TWO = 2, LARGEST = 3 };

template <class T> double norm_of(const T* x, int64_t n, int64_t order) {
  constexpr int LANES = 16;
  double s[LANES] = {};
  const auto add = [&](auto term) {
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES)
      for (int j = 0; j < LANES; ++j) s[j] = term(s[j], double(x[k + j]));
    for (int j = 0; k < n; ++k, ++j) s[j] = term(s[j], double(x[k]));
  };
  if (order == TWO) add([](double t, double v) { return t + v * v; });
  else if (order == ONE) add([](double t, double v) { return t + std::abs(v); });
  else add([](double t, double v) { return maximum(t, std::abs(v)); });
  double total = s[0];
  for (int j = 1; j < LANES; ++j) total = order == LARGEST ? maximum(total, s[j]) : total + s[j];
  return total;
}

// (n, order, tensors..., total): each tensor's norm is rounded to its type, then their norm is taken.
VT_KERNEL(total_norm) {
  const int64_t n_tensors = c.i(0), order = c.i(1);
  const Lists a = lists(c, {0}, 0u);
  Scratch<int64_t> ends(n_tensors + 1);
  Scratch<char> flats(n_tensors + 1);
  int64_t blocks = 0;
  for (int64_t i = 0; i < n_tensors; ++i) {
    blocks += (a.at(0, i).numel() + NORM_BLOCK - 1) / NORM_BLOCK;
    ends[i] = blocks;
    flats[i] = flat(a, i);
  }
  Scratch<double> parts(blocks + 1);
  const auto join = [&](double x, double y) { return order == LARGEST ? maximum(x, y) : x + y; };
  parallel_for(blocks, 4, [&](int64_t begin, int64_t end) {
    int64_t i = std::upper_bound(ends.get(), ends.get() + n_tensors, begin) - ends.get();
    for (int64_t block = begin; block < end; ++block) {
      while (ends[i] <= block) ++i;
      const int64_t first = (block - (i > 0 ? ends[i - 1] : 0)) * NORM_BLOCK;
      const int64_t last = std::min(first + NORM_BLOCK, a.at(0, i).numel());
      double sum = 0;
      auto f = [&](auto x, int64_t n, int64_t) { sum = join(sum, norm_of(x[0], n, order)); };
      if (a.at(0, i).dtype == Dtype::f64) walk<double>(a, i, first, last, flats[i], f);
      else walk<float>(a, i, first, last, flats[i], f);
      parts[block] = sum;
    }
  });
  double total = 0;
  for (int64_t i = 0, block = 0; i < n_tensors; ++i) {
    double sum = 0;
    for (; block < ends[i]; ++block) sum = join(sum, parts[block]);
    double norm = order == TWO ? std::sqrt(sum) : sum;
    if (a.at(0, i).dtype != Dtype::f64) {
      char kept[8];
      cast_fn(Dtype::f64, a.at(0, i).dtype)(kept, 0, reinterpret_cast<const char*>(&norm), 0, 1);
      cast_fn(a.at(0, i).dtype, Dtype::f64)(reinterpret_cast<char*>(&norm), 0, kept, 0, 1);
    }
    total = join(total, order == TWO ? norm * norm : norm);
  }
  write(c.views[n_tensors], order == TWO ? std::sqrt(total) : total);
}

}  // namespace
}  // namespace vt
