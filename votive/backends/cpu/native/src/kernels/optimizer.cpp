// Optimizer steps over lists of tensors: one parallel pass over the elements of all of them.
//
// The arithmetic keeps the order of the reference's formulas. Half types are computed in float and
// rounded once.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "vt/cast.h"
#include "vt/kernel.h"
#include "vt/primitives.h"

namespace vt {
namespace {

constexpr int MAX_LISTS = 6;
constexpr int64_t BLOCK = 1024;   // elements brought into scratch at once
constexpr int64_t GRAIN = 16384;  // elements worth a thread

// Lists of equally many tensors, of which the l-th starts at view `first[l]`.
struct Lists {
  const View* first[MAX_LISTS];
  int count;  // of lists
  int64_t n;  // of tensors
  unsigned written;

  const View& at(int l, int64_t i) const { return first[l][i]; }
};

// Reads numbers that came as int or float, as `mask` says.
class Numbers {
 public:
  Numbers(const Call& c, int first_int) : c(c), mask(c.i(first_int)), next_int(first_int + 1) {}
  double operator()() {
    const bool integer = mask & 1;
    mask >>= 1;
    return integer ? double(c.i(next_int++)) : c.f(next_float++);
  }
  int64_t flag() { return c.i(next_int++); }
  int ints() const { return next_int; }

 private:
  const Call& c;
  int64_t mask;
  int next_int, next_float = 0;
};

bool dense(const View& v) {
  if (v.contiguous()) return true;
  if (v.ndim > 8) return false;
  int64_t stride[8], size[8];
  int m = 0;
  for (int d = 0; d < v.ndim; ++d)
    if (v.shape[d] != 1) {
      int j = m++;
      for (; j > 0 && stride[j - 1] > v.strides[d]; --j) stride[j] = stride[j - 1], size[j] = size[j - 1];
      stride[j] = v.strides[d], size[j] = v.shape[d];
    }
  int64_t step = itemsize(v.dtype);
  for (int j = 0; j < m; ++j) {
    if (stride[j] != step) return false;
    step *= size[j];
  }
  return true;
}

// Whether the i-th tensors of all lists can be walked as one run of memory.
bool flat(const Lists& a, int64_t i) {
  const View& p = a.at(0, i);
  if (!dense(p)) return false;
  for (int l = 1; l < a.count; ++l) {
    const View& v = a.at(l, i);
    for (int d = 0; d < p.ndim; ++d)
      if (p.shape[d] > 1 && v.strides[d] != p.strides[d]) return false;
  }
  return true;
}

// Copies elements [begin, begin + n) in row-major order between a view and a dense buffer.
void transfer(const View& v, int64_t begin, int64_t n, char* buffer, Dtype kind, bool store) {
  const CastFn fn = store ? cast_fn(kind, v.dtype) : cast_fn(v.dtype, kind);
  const int64_t item = itemsize(kind);
  if (v.ndim == 0) {
    if (store) fn(v.data, 0, buffer, 0, 1);
    else fn(buffer, 0, v.data, 0, 1);
    return;
  }
  const int last = v.ndim - 1;
  const int64_t cols = v.shape[last];
  while (n > 0) {
    int64_t row = begin / cols;
    const int64_t col = begin - row * cols;
    const int64_t m = std::min(n, cols - col);
    char* at = v.data + col * v.strides[last];
    for (int d = last - 1; d >= 0; --d) {
      at += row % v.shape[d] * v.strides[d];
      row /= v.shape[d];
    }
    if (store) fn(at, v.strides[last], buffer, item, m);
    else fn(buffer, item, at, v.strides[last], m);
    begin += m, n -= m, buffer += m * item;
  }
}

// f(T* const* x, count, i): x holds one pointer per list to `count` elements of the i-th tensors.
template <class T, class F> void walk(const Lists& a, int64_t i, int64_t begin, int64_t end, bool flat, F& f) {
  T* x[MAX_LISTS];
  const Dtype have = a.at(0, i).dtype;
  if (flat && have == dtype_of<T>) {
    for (int l = 0; l < a.count; ++l) x[l] = a.at(l, i).template as<T>() + begin;
    return f(static_cast<T* const*>(x), end - begin, i);
  }
  Scratch<T> room(BLOCK * a.count);
  for (int l = 0; l < a.count; ++l) x[l] = room + l * BLOCK;
  const CastFn in = cast_fn(have, dtype_of<T>), out = cast_fn(dtype_of<T>, have);
  const int64_t item = itemsize(have);
  for (int64_t b = begin; b < end; b += BLOCK) {
    const int64_t n = std::min(BLOCK, end - b);
    for (int l = 0; l < a.count; ++l) {
      const View& v = a.at(l, i);
      if (flat) in(reinterpret_cast<char*>(x[l]), sizeof(T), v.data + b * item, item, n);
      else transfer(v, b, n, reinterpret_cast<char*>(x[l]), dtype_of<T>, false);
    }
    f(static_cast<T* const*>(x), n, i);
    for (int l = 0; l < a.count; ++l)
      if (a.written >> l & 1) {
        const View& v = a.at(l, i);
        if (flat) out(v.data + b * item, item, reinterpret_cast<const char*>(x[l]), sizeof(T), n);
        else transfer(v, b, n, reinterpret_cast<char*>(x[l]), dtype_of<T>, true);
      }
  }
}

// Whether a tensor is listed twice: then it is stepped twice, one after the other.
bool repeated(const Lists& a) {
  int64_t slots = 64;
  while (slots < 2 * a.n) slots *= 2;
  Scratch<char*> table(slots);
  std::fill(table.get(), table.get() + slots, nullptr);
  for (int64_t i = 0; i < a.n; ++i) {
    char* p = a.at(0, i).data;
    if (p == nullptr || a.at(0, i).numel() == 0) continue;
    uint64_t h = (uint64_t(p) >> 4) * 0x9e3779b97f4a7c15ull >> 20;
    for (;; ++h) {
      char*& slot = table[int64_t(h & uint64_t(slots - 1))];
      if (slot == p) return true;
      if (slot == nullptr) {
        slot = p;
        break;
      }
    }
  }
  return false;
}

// Runs f over all elements of all tensors. `before(i)` comes once per tensor, in order.
template <class B, class F> void each(const Lists& a, B before, F f) {
  Scratch<int64_t> ends(a.n + 1);
  Scratch<char> flats(a.n + 1);
  int64_t total = 0;
  for (int64_t i = 0; i < a.n; ++i) {
    total += a.at(0, i).numel();
    ends[i] = total;
    flats[i] = flat(a, i);
  }
  auto part = [&](int64_t i, int64_t b, int64_t e) {
    if (a.at(0, i).dtype == Dtype::f64) walk<double>(a, i, b, e, flats[i], f);
    else walk<float>(a, i, b, e, flats[i], f);
  };
  if (repeated(a)) {
    for (int64_t i = 0; i < a.n; ++i) {
      before(i);
      part(i, 0, a.at(0, i).numel());
    }
    return;
  }
  for (int64_t i = 0; i < a.n; ++i) before(i);
  parallel_for(total, GRAIN, [&](int64_t begin, int64_t end) {
    int64_t i = std::upper_bound(ends.get(), ends.get() + a.n, begin) - ends.get();
    while (begin < end) {
      const int64_t start = i > 0 ? ends[i - 1] : 0, stop = std::min(end, ends[i]);
      if (begin < stop) part(i, begin - start, stop - start);
      begin = std::max(begin, stop), ++i;
    }
  });
}

double read(const View& v) {
  double x;
  cast_fn(v.dtype, Dtype::f64)(reinterpret_cast<char*>(&x), 0, v.data, 0, 1);
  return x;
}

// Stores a number in a tensor's own type and gives back what was kept of it.
double write(const View& v, double x) {
  cast_fn(Dtype::f64, v.dtype)(v.data, 0, reinterpret_cast<const char*>(&x), 0, 1);
  return read(v);
}

double advance(const View& step) { return write(step, read(step) + 1); }

Lists lists(const Call& c, std::initializer_list<int> which, unsigned written) {
  Lists a{};
  a.n = c.i(0);
  a.written = written;
  for (int l : which) a.first[a.count++] = c.views.data() + l * a.n;
  return a;
}

// The gradient to descend along. The options are the same for all elements.
template <class T> struct Descent {
  bool maximize;
  T decay;
  T operator()(T g, T p) const {
    const T s = maximize ? -g : g;
    return decay != T(0) ? s + p * decay : s;
  }
};

// Towards `end`, computed from the nearer of the two.
template <class T> struct Lerp {
  T weight, rest;
  bool near;
  explicit Lerp(double w) : weight(T(w)), rest(T(1 - w)), near(w < 0.5) {}
  T operator()(T x, T end) const {
    const T d = end - x;
    return near ? x + d * weight : end - d * rest;
  }
};

template <class T> struct Square {
  T beta, rest;
  explicit Square(double b) : beta(T(b)), rest(T(1 - b)) {}
  T operator()(T v, T g) const { return v * beta + g * rest * g; }
};

// Of NaN, NaN.
template <class T> T direction(T x) { return x > T(0) ? T(1) : x < T(0) ? T(-1) : x; }

#define VT_PLAIN _Pragma("GCC ivdep")
template <class P> using Value = std::remove_pointer_t<std::remove_cv_t<std::remove_pointer_t<P>>>;
constexpr auto nothing = [](int64_t) {};

// --- the steps: (count of tensors, mask of integers, numbers..., flags) in front of the lists ------

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

// --- gradients: scaling, norms -----------------------------------------------------------------------

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
