// Steps of SGD, RMSprop, Adagrad, Adadelta, Lion, Rprop, ASGD, and of averages.
#include "optimizer_step.h"

namespace vt {
namespace {
using namespace steps;

// A step's numbers: count of tensors, mask of integers, numbers..., flags; then the lists.

VT_KERNEL(sgd_step) {
  Numbers number(c, 1);
  const double lr = number(), momentum = number(), dampening = number(), decay = number();
  const bool buffered = number.flag(), nesterov = number.flag(), maximize = number.flag();
  const int fresh = number.ints();
  if (momentum != 0 && !buffered) throw ValueError("_sgd_step: momentum needs a buffer for each parameter");
  if (momentum == 0) {
    return each(lists(c, {0, 1}, 1u), nothing, [&](auto x, int64_t n, int64_t) {
      using T = Value<decltype(x)>;
      T *p = x[0], *g = x[1];
      const Descent<T> descent{maximize, T(decay)};
      const T rate = T(-lr);
      VT_PLAIN for (int64_t k = 0; k < n; ++k) p[k] += descent(g[k], p[k]) * rate;
    });
  }
  each(lists(c, {0, 1, 2}, 5u), nothing, [&](auto x, int64_t n, int64_t i) {
    using T = Value<decltype(x)>;
    T *p = x[0], *g = x[1], *buf = x[2];
    const Descent<T> descent{maximize, T(decay)};
    const T rate = T(-lr), m = T(momentum), share = T(1 - dampening);
    const bool start = c.i(fresh + int(i));
    if (start) {
      VT_PLAIN for (int64_t k = 0; k < n; ++k) {
        const T d = descent(g[k], p[k]);
        buf[k] = d;
        p[k] += (nesterov ? d + d * m : d) * rate;
      }
    } else {
      VT_PLAIN for (int64_t k = 0; k < n; ++k) {
        const T d = descent(g[k], p[k]);
        const T b = buf[k] * m + d * share;
        buf[k] = b;
        p[k] += (nesterov ? d + b * m : b) * rate;
      }
    }
  });
}

VT_KERNEL(rmsprop_step) {
  Numbers number(c, 1);
  const double lr = number(), alpha = number(), eps = number(), decay = number(), momentum = number();
  const bool buffered = number.flag(), centered = number.flag(), maximize = number.flag();
  const int64_t n_tensors = c.i(0);
  const bool heavy = momentum > 0;
  if (heavy && !buffered) throw ValueError("_rmsprop_step: momentum needs a buffer for each parameter");
  const View* steps = c.views.data() + (3 + centered + buffered) * n_tensors;
  const auto before = [&](int64_t i) { advance(steps[i]); };
  const auto step = [&](auto is_centered, auto is_heavy, auto x, int64_t n) {
    using T = Value<decltype(x)>;
    constexpr bool mean = decltype(is_centered)::value, buffered = decltype(is_heavy)::value;
    T *p = x[0], *g = x[1], *v = x[2];
    [[maybe_unused]] T *avg = x[mean ? 3 : 2], *buf = x[2 + mean + buffered];
    const Descent<T> descent{maximize, T(decay)};
    const Lerp<T> lerp(1 - alpha);
    const Square<T> square(alpha);
    const T rate = T(-lr), small = T(eps), m = T(momentum);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = descent(g[k], p[k]);
      T spread = square(v[k], d);
      v[k] = spread;
      if constexpr (mean) {
        const T a = lerp(avg[k], d);
        avg[k] = a;
        spread = spread - a * a;
      }
      const T denom = std::sqrt(spread) + small;
      if constexpr (buffered) {
        const T b = buf[k] * m + d / denom;
        buf[k] = b;
        p[k] += b * rate;
      } else p[k] += d * rate / denom;
    }
  };
  using Yes = std::true_type;
  using No = std::false_type;
  if (centered && heavy) each(lists(c, {0, 1, 2, 3, 4}, 0b11101u), before, [&](auto x, int64_t n, int64_t) { step(Yes{}, Yes{}, x, n); });
  else if (centered) each(lists(c, {0, 1, 2, 3}, 0b1101u), before, [&](auto x, int64_t n, int64_t) { step(Yes{}, No{}, x, n); });
  else if (heavy) each(lists(c, {0, 1, 2, 3}, 0b1101u), before, [&](auto x, int64_t n, int64_t) { step(No{}, Yes{}, x, n); });
  else each(lists(c, {0, 1, 2}, 0b101u), before, [&](auto x, int64_t n, int64_t) { step(No{}, No{}, x, n); });
}

VT_KERNEL(adagrad_step) {
  Numbers number(c, 1);
  const double lr = number(), lr_decay = number(), eps = number(), decay = number();
  const bool maximize = number.flag();
  const int64_t n_tensors = c.i(0);
  Scratch<double> rates(n_tensors + 1);
  const auto before = [&](int64_t i) {
    const double t = advance(c.views[3 * n_tensors + i]);
    rates[i] = -lr / (1 + (t - 1) * lr_decay);
  };
  each(lists(c, {0, 1, 2}, 0b101u), before, [&](auto x, int64_t n, int64_t i) {
    using T = Value<decltype(x)>;
    T *p = x[0], *g = x[1], *total = x[2];
    const Descent<T> descent{maximize, T(decay)};
    const T rate = T(rates[i]), small = T(eps);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = descent(g[k], p[k]);
      const T s = total[k] + d * d;
      total[k] = s;
      p[k] += d * rate / (std::sqrt(s) + small);
    }
  });
}

VT_KERNEL(adadelta_step) {
  Numbers number(c, 1);
  const double lr = number(), rho = number(), eps = number(), decay = number();
  const bool maximize = number.flag();
  const int64_t n_tensors = c.i(0);
  const auto before = [&](int64_t i) { advance(c.views[4 * n_tensors + i]); };
  each(lists(c, {0, 1, 2, 3}, 0b1101u), before, [&](auto x, int64_t n, int64_t) {
    using T = Value<decltype(x)>;
    T *p = x[0], *g = x[1], *v = x[2], *acc = x[3];
    const Descent<T> descent{maximize, T(decay)};
    const Square<T> square(rho);
    const T rate = T(-lr), small = T(eps);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = descent(g[k], p[k]);
      const T s = square(v[k], d);
      v[k] = s;
      const T delta = std::sqrt(acc[k] + small) / std::sqrt(s + small) * d;
      acc[k] = square(acc[k], delta);
      p[k] += delta * rate;
    }
  });
}

VT_KERNEL(lion_step) {
  Numbers number(c, 1);
  const double lr = number(), beta1 = number(), beta2 = number(), decay = number();
  const bool maximize = number.flag();
  each(lists(c, {0, 1, 2}, 0b101u), nothing, [&](auto x, int64_t n, int64_t) {
    using T = Value<decltype(x)>;
    T *p = x[0], *g = x[1], *m = x[2];
    const Descent<T> descent{maximize, T(0)};
    const T shrink = decay != 0 ? T(1 - lr * decay) : T(1);
    const T rate = T(-lr), ahead = T(beta1), rest = T(1 - beta1);
    const Lerp<T> lerp(1 - beta2);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = descent(g[k], p[k]);
      p[k] = p[k] * shrink + direction(m[k] * ahead + d * rest) * rate;
      m[k] = lerp(m[k], d);
    }
  });
}

VT_KERNEL(rprop_step) {
  Numbers number(c, 1);
  const double minus = number(), plus = number(), least = number(), most = number();
  const bool maximize = number.flag();
  const int64_t n_tensors = c.i(0);
  const auto before = [&](int64_t i) { advance(c.views[4 * n_tensors + i]); };
  each(lists(c, {0, 1, 2, 3}, 0b1101u), before, [&](auto x, int64_t n, int64_t) {
    using T = Value<decltype(x)>;
    T *p = x[0], *g = x[1], *prev = x[2], *size = x[3];
    const T shrink = T(minus), grow = T(plus), low = T(least), high = T(most);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = maximize ? -g[k] : g[k];
      const T turn = d * prev[k];
      const T factor = turn > T(0) ? grow : turn < T(0) ? shrink : turn == T(0) ? T(1) : turn;
      const T wide = size[k] * factor;
      const T s = wide < low ? low : wide > high ? high : wide;
      const T used = turn < T(0) ? T(0) : d;
      size[k] = s;
      prev[k] = used;
      p[k] -= direction(used) * s;
    }
  });
}

struct AsgdFactors {
  double rate, mu;
};

VT_KERNEL(asgd_step) {
  Numbers number(c, 1);
  const double lr = number(), lambd = number(), alpha = number(), t0 = number(), decay = number();
  const bool maximize = number.flag();
  const int64_t n_tensors = c.i(0);
  Scratch<AsgdFactors> by(n_tensors + 1);
  const auto before = [&](int64_t i) {
    const View &mu = c.views[3 * n_tensors + i], &eta = c.views[4 * n_tensors + i];
    by[i] = {read(eta), read(mu)};
    const double t = advance(c.views[5 * n_tensors + i]);
    write(eta, lr / std::pow(1 + lambd * lr * t, alpha));
    write(mu, 1 / std::max(1.0, t - t0));
  };
  each(lists(c, {0, 1, 2}, 0b101u), before, [&](auto x, int64_t n, int64_t i) {
    using T = Value<decltype(x)>;
    T *p = x[0], *g = x[1], *ax = x[2];
    const Descent<T> descent{maximize, T(decay)};
    const T shrink = T(1 - lambd * by[i].rate), rate = T(-by[i].rate), mu = T(by[i].mu);
    const bool whole = by[i].mu == 1;
    VT_PLAIN for (int64_t k = 0; k < n; ++k) {
      const T d = descent(g[k], p[k]);
      const T q = p[k] * shrink + d * rate;
      p[k] = q;
      ax[k] = whole ? q : ax[k] + (q - ax[k]) * mu;
    }
  });
}

VT_KERNEL(average_step) {
  Numbers number(c, 1);
  const double weight = number();
  each(lists(c, {0, 1}, 1u), nothing, [&](auto x, int64_t n, int64_t) {
    using T = Value<decltype(x)>;
    T *a = x[0], *v = x[1];
    const Lerp<T> lerp(weight);
    VT_PLAIN for (int64_t k = 0; k < n; ++k) a[k] = lerp(a[k], v[k]);
  });
}

}  // namespace
}  // namespace vt
