// Steps of Adam and its kin.
#include "optimizer_step.h"

namespace vt {
namespace {
using namespace steps;

// A step's numbers: count of tensors, mask of integers, numbers..., flags; then the lists.

struct Corrections {
  double first, second;
};

VT_KERNEL(adam_step) {
  Numbers number(c, 1);
  const double lr = number(), beta1 = number(), beta2 = number(), eps = number(), decay = number();
  const bool amsgrad = number.flag(), maximize = number.flag(), decoupled = number.flag();
  const int64_t n_tensors = c.i(0);
  const View* steps = c.views.data() + (amsgrad ? 5 : 4) * n_tensors;
  Scratch<Corrections> by(n_tensors + 1);
  double last = -1;
  Corrections now{};
  const auto before = [&](int64_t i) {
    const double t = advance(steps[i]);
    if (t != last) now = {-lr / (1 - std::pow(beta1, t)), std::sqrt(1 - std::pow(beta2, t))};
    last = t;
    by[i] = now;
  };
  const auto step = [&](auto top, auto x, int64_t n, int64_t i) {
    using T = Value<decltype(x)>;
    constexpr bool largest = decltype(top)::value;
    T *p = x[0], *g = x[1], *m = x[2], *v = x[3];
    [[maybe_unused]] T* best = x[largest ? 4 : 3];
    const Descent<T> descent{maximize, decoupled ? T(0) : T(decay)};
    const T shrink = decoupled && decay != 0 ? T(1 - lr * decay) : T(1);
    const Lerp<T> lerp(1 - beta1);
    const Square<T> square(beta2);
    const T rate = T(by[i].first), root = T(by[i].second), small = T(eps);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = descent(g[k], p[k]);
      const T first = lerp(m[k], d);
      T second = square(v[k], d);
      m[k] = first;
      v[k] = second;
      if constexpr (largest) best[k] = second = maximum(best[k], second);
      p[k] = p[k] * shrink + first * rate / (std::sqrt(second) / root + small);
    }
  };
  if (amsgrad)
    each(lists(c, {0, 1, 2, 3, 4}, 0b11101u), before, [&](auto x, int64_t n, int64_t i) { step(std::true_type{}, x, n, i); });
  else
    each(lists(c, {0, 1, 2, 3}, 0b1101u), before, [&](auto x, int64_t n, int64_t i) { step(std::false_type{}, x, n, i); });
}

VT_KERNEL(adamax_step) {
  Numbers number(c, 1);
  const double lr = number(), beta1 = number(), beta2 = number(), eps = number(), decay = number();
  const bool maximize = number.flag();
  const int64_t n_tensors = c.i(0);
  Scratch<double> rates(n_tensors + 1);
  const auto before = [&](int64_t i) { rates[i] = -lr / (1 - std::pow(beta1, advance(c.views[4 * n_tensors + i]))); };
  each(lists(c, {0, 1, 2, 3}, 0b1101u), before, [&](auto x, int64_t n, int64_t i) {
    using T = Value<decltype(x)>;
    T *p = x[0], *g = x[1], *m = x[2], *u = x[3];
    const Descent<T> descent{maximize, T(decay)};
    const Lerp<T> lerp(1 - beta1);
    const T rate = T(rates[i]), small = T(eps), beta = T(beta2);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = descent(g[k], p[k]);
      const T first = lerp(m[k], d);
      const T top = maximum(u[k] * beta, std::abs(d) + small);
      m[k] = first;
      u[k] = top;
      p[k] += first * rate / top;
    }
  });
}

struct NadamFactors {
  double correction, by_grad, by_mean;
};

VT_KERNEL(nadam_step) {
  Numbers number(c, 1);
  const double lr = number(), beta1 = number(), beta2 = number(), eps = number(), decay = number(),
               momentum_decay = number();
  const bool decoupled = number.flag(), maximize = number.flag();
  const int64_t n_tensors = c.i(0);
  Scratch<NadamFactors> by(n_tensors + 1);
  const auto before = [&](int64_t i) {
    const double t = advance(c.views[5 * n_tensors + i]);
    const double mu = beta1 * (1.0 - 0.5 * std::pow(0.96, t * momentum_decay));
    const double next = beta1 * (1.0 - 0.5 * std::pow(0.96, (t + 1) * momentum_decay));
    const View& kept = c.views[4 * n_tensors + i];
    // In the type in which it is kept: a float32 product must not be rounded from float64.
    const double product = kept.dtype == Dtype::f32 ? write(kept, double(float(read(kept)) * float(mu)))
                                                    : write(kept, read(kept) * mu);
    by[i] = {1 - std::pow(beta2, t), -lr * (1.0 - mu) / (1.0 - product), -lr * next / (1.0 - product * next)};
  };
  each(lists(c, {0, 1, 2, 3}, 0b1101u), before, [&](auto x, int64_t n, int64_t i) {
    using T = Value<decltype(x)>;
    T *p = x[0], *g = x[1], *m = x[2], *v = x[3];
    const Descent<T> descent{maximize, decoupled ? T(0) : T(decay)};
    const T shrink = decoupled && decay != 0 ? T(1 - lr * decay) : T(1);
    const Lerp<T> lerp(1 - beta1);
    const Square<T> square(beta2);
    const T correction = T(by[i].correction), by_grad = T(by[i].by_grad), by_mean = T(by[i].by_mean), small = T(eps);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = descent(g[k], p[k]);
      const T first = lerp(m[k], d), second = square(v[k], d);
      m[k] = first;
      v[k] = second;
      const T denom = std::sqrt(second / correction) + small;
      p[k] = p[k] * shrink + d * by_grad / denom + first * by_mean / denom;
    }
  });
}

struct RadamFactors {
  double correction, root, rectifier;
};

VT_KERNEL(radam_step) {
  Numbers number(c, 1);
  const double lr = number(), beta1 = number(), beta2 = number(), eps = number(), decay = number();
  const bool decoupled = number.flag(), maximize = number.flag();
  const int64_t n_tensors = c.i(0);
  Scratch<RadamFactors> by(n_tensors + 1);
  const double longest = 2 / (1 - beta2) - 1;
  const auto before = [&](int64_t i) {
    const double t = advance(c.views[4 * n_tensors + i]), power = std::pow(beta2, t), correction = 1 - power;
    const double rho = longest - 2 * t * power / correction;
    double rectifier = -1;
    if (rho > 5.0)
      rectifier = std::sqrt((rho - 4) * (rho - 2) * longest / ((longest - 4) * (longest - 2) * rho));
    by[i] = {1 - std::pow(beta1, t), std::sqrt(correction), rectifier};
  };
  each(lists(c, {0, 1, 2, 3}, 0b1101u), before, [&](auto x, int64_t n, int64_t i) {
    using T = Value<decltype(x)>;
    T *p = x[0], *g = x[1], *m = x[2], *v = x[3];
    const Descent<T> descent{maximize, decoupled ? T(0) : T(decay)};
    const T shrink = decoupled && decay != 0 ? T(1 - lr * decay) : T(1);
    const Lerp<T> lerp(1 - beta1);
    const Square<T> square(beta2);
    const T correction = T(by[i].correction), root = T(by[i].root), rectifier = T(by[i].rectifier), small = T(eps),
            rate = T(lr);
    const bool rectified = by[i].rectifier >= 0;
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = descent(g[k], p[k]);
      const T first = lerp(m[k], d), second = square(v[k], d);
      m[k] = first;
      v[k] = second;
      const T update = first / correction * rate;
      const T scaled = update * (root / (std::sqrt(second) + small)) * rectifier;
      p[k] = p[k] * shrink - (rectified ? scaled : update);
    }
  });
}

}  // namespace
}  // namespace vt
