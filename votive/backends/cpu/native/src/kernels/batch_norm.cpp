// batch_norm in training and its gradient, and the running statistics that go with it.
//
// Channels whose planes lie along memory are worked on one after the other; channels that are themselves
// neighbours (channels_last, or no planes at all) side by side, as columns of one big matrix.
#include "vt/moments.h"

namespace vt {
namespace {

// Rows are planes: row i * channels + c is the plane of channel c in sample i.
template <class C> Rows<C> planes(const View& v) { return Rows<C>(v, 2, v.ndim); }

// Rows are positions: each holds all channels.
template <class C> Rows<C> positions(const View& v) { return Rows<C>(v, 1, 2); }

bool by_columns(const View& x) {
  int64_t plane = 1;
  for (int d = 2; d < x.ndim; ++d) plane *= x.shape[d];
  return plane < 8 || (x.strides[1] == itemsize(x.dtype) && x.shape[1] >= 8);
}

// Few channels of small planes: rows of either kind would be too short, so all samples make one plane per channel.
struct Joined {
  View v;
  explicit Joined(const View& x, const View& like) : v(x) {
    if (!x || !by_columns(like) || like.shape[1] >= 8 || x.ndim + 1 > MOST) return;
    shape[0] = 1;
    strides[0] = 0;
    shape[1] = x.shape[1];
    strides[1] = x.strides[1];
    shape[2] = x.shape[0];
    strides[2] = x.strides[0];
    for (int d = 2; d < x.ndim; ++d) shape[d + 1] = x.shape[d], strides[d + 1] = x.strides[d];
    v.ndim = x.ndim + 1;
    v.shape = shape;
    v.strides = strides;
  }
  Joined(const Joined&) = delete;

 private:
  static constexpr int MOST = 16;
  int64_t shape[MOST], strides[MOST];
};

// --- forward ---------------------------------------------------------------------------------------------

template <class C> struct Channels {
  int64_t count;
  Scratch<C> weight, bias;
  C *mean, *var;

  Channels(const View& w, const View& b, const View& means, const View& vars, int64_t n)
      : count(n), weight(n + 64), bias(n + 64), mean(means.as<C>()), var(vars.as<C>()) {
    parameter<C>(w, n, C(1), weight);
    parameter<C>(b, n, C(0), bias);
  }
};

template <class C> void forward_planes(const View& x, const View& y, Channels<C>& ch, double eps) {
  const Rows<C> from = planes<C>(x), to = planes<C>(y);
  const int64_t samples = x.shape[0], channels = ch.count, n = from.length();
  const double total = double(samples) * double(n);
  parallel_for(channels, grain_for(samples * n * 3), [&](int64_t begin, int64_t end) {
    Scratch<C> in(from.direct ? 0 : n), out(to.direct ? 0 : n);
    for (int64_t c = begin; c < end; ++c) {
      Moments<C> m;
      const C* const once = samples == 1 ? from.load(c, in) : nullptr;  // a single row is fetched once
      const auto row = [&](int64_t i) { return once != nullptr ? once : from.load(i * channels + c, in); };
      m.shift = row(0)[0];
      for (int attempt = 0; attempt < 2; ++attempt) {
        double first = 0, second = 0;
        for (int64_t i = 0; i < samples; ++i) {
          const Sums<C> s = shifted_sums<C>(row(i), n, m.shift);
          first += s.first;
          second += s.second;
        }
        m = from_sums<C>(m.shift, first, second, total);
        if (!too_far<C>(m)) break;
        if (attempt == 0) m.shift = m.mean();
      }
      ch.mean[c] = m.mean();
      ch.var[c] = m.var;
      const C slope = reciprocal_root<C>(m.var, eps) * ch.weight[c];
      const Lanes<C> shift = all<C>(m.shift), scale = all<C>(slope), b = all<C>(ch.bias[c] - m.rest * slope);
      for (int64_t i = 0; i < samples; ++i) {
        const C* p = row(i);
        C* q = to.place(i * channels + c, out);
        sweep<C>(n, [&](int64_t j, auto k) { store_some<C>(q + j, (load_some<C>(p + j, k) - shift) * scale + b, k); });
        to.store(i * channels + c, out);
      }
    }
  });
}

template <class C> void forward_columns(const View& x, const View& y, Channels<C>& ch, double eps) {
  const Rows<C> from = positions<C>(x), to = positions<C>(y);
  const int64_t n = ch.count, rows = from.rows(), pieces = pieces_of(rows, n * 3);
  Scratch<C> shift(n + 64), scale(n + 64), offset(n + 64);
  Scratch<double> parts(pieces * 2 * n);
  {
    Scratch<C> in(n);
    std::copy_n(from.load(0, in), n, shift.get());
  }
  const C* sp = shift;
  for (int attempt = 0; attempt < 2; ++attempt) {
    for_pieces(pieces, rows, [&](int64_t piece, int64_t begin, int64_t end) {
      Scratch<C> in(from.direct ? 0 : n);
      double* part = parts.get() + piece * 2 * n;
      ColumnSums<C> first(part, n), second(part + n, n);
      C *a = first.row(), *b = second.row();
      for (int64_t r = begin; r < end; ++r) {
        const C* p = from.load(r, in);
        sweep<C>(n, [&](int64_t j, auto k) {
          const Lanes<C> d = load_some<C>(p + j, k) - load_some<C>(sp + j, k);
          store<C>(a + j, load<C>(a + j) + d);
          store<C>(b + j, load<C>(b + j) + d * d);
        });
        first.next();
        second.next();
      }
      first.flush();
      second.flush();
    });
    bool far = false;
    for (int64_t j = 0; j < n; ++j) {
      double first = 0, second = 0;
      for (int64_t p = 0; p < pieces; ++p) {
        first += parts[p * 2 * n + j];
        second += parts[p * 2 * n + n + j];
      }
      const Moments<C> m = from_sums<C>(shift[j], first, second, double(rows));
      far = far || too_far<C>(m);
      ch.mean[j] = m.mean();
      ch.var[j] = m.var;
      scale[j] = reciprocal_root<C>(m.var, eps) * ch.weight[j];
      offset[j] = ch.bias[j] - m.rest * scale[j];
    }
    if (!far || attempt == 1) break;
    std::copy_n(ch.mean, n, shift.get());
  }
  const C *scales = scale, *offsets = offset;
  parallel_for(rows, grain_for(n * 2), [&](int64_t begin, int64_t end) {
    Scratch<C> in(from.direct ? 0 : n), out(to.direct ? 0 : n);
    for (int64_t r = begin; r < end; ++r) {
      const C* p = from.load(r, in);
      C* q = to.place(r, out);
      sweep<C>(n, [&](int64_t j, auto k) {
        const Lanes<C> d = load_some<C>(p + j, k) - load_some<C>(sp + j, k);
        store_some<C>(q + j, d * load_some<C>(scales + j, k) + load_some<C>(offsets + j, k), k);
      });
      to.store(r, out);
    }
  });
}

// --- backward ----------------------------------------------------------------------------------------------
//
// With y = (x - mean) * rstd and m values per channel, by the input:
//   rstd * weight * (g - sum(g) / m - y * sum(g * y) / m) = a * g + b * (x - mean) + c,
// where b and c are zero if the statistics were given (`fixed`): only the batch's own depend on the input.

template <class C> struct Slopes {
  C a, b, c;
};
template <class C> Slopes<C> slopes(C rstd, C weight, double sum_g, double sum_gy, double m) {
  const double a = double(rstd) * double(weight);
  return {C(a), C(-a * double(rstd) * sum_gy / m), C(-a * sum_g / m)};
}

template <class C>
void backward_planes(const View& g, const View& x, const C* mean, const C* var, const C* weight, const View& gx, C* gw, C* gb, double eps, bool fixed) {
  const Rows<C> by = planes<C>(g), from = planes<C>(x), to = gx ? planes<C>(gx) : Rows<C>();
  const int64_t samples = x.shape[0], channels = x.shape[1], n = from.length();
  const double m = double(samples) * double(n);
  const bool sums = gw != nullptr || !fixed;
  parallel_for(channels, grain_for(samples * n * 5), [&](int64_t begin, int64_t end) {
    Scratch<C> gs(by.direct ? 0 : n), xs(from.direct ? 0 : n), os(to.direct ? 0 : n);
    for (int64_t c = begin; c < end; ++c) {
      const C rstd = reciprocal_root<C>(var[c], eps);
      const Lanes<C> centre = all<C>(mean[c]);
      double sum_g = 0, sum_gx = 0;
      for (int64_t i = 0; i < samples && sums; ++i) {
        const C *p = by.load(i * channels + c, gs), *q = from.load(i * channels + c, xs);
        const Pair<C> s = sums_over<C>(n, [&](int64_t j, auto k, Lanes<C>& a, Lanes<C>& b) {
          const Lanes<C> v = load_some<C>(p + j, k);
          a += v;
          b += v * (load_some<C>(q + j, k) - centre);
        });
        sum_g += s.first;
        sum_gx += s.second;
      }
      const double sum_gy = sum_gx * double(rstd);
      if (gw != nullptr) gw[c] = C(sum_gy), gb[c] = C(sum_g);
      if (!gx) continue;
      const Slopes<C> s = slopes<C>(rstd, weight[c], sum_g, sum_gy, m);
      const Lanes<C> sa = all<C>(s.a), sb = all<C>(s.b), sc = all<C>(s.c);
      for (int64_t i = 0; i < samples && fixed; ++i) {
        const C* p = by.load(i * channels + c, gs);
        C* out = to.place(i * channels + c, os);
        sweep<C>(n, [&](int64_t j, auto k) { store_some<C>(out + j, load_some<C>(p + j, k) * sa, k); });
        to.store(i * channels + c, os);
      }
      for (int64_t i = 0; i < samples && !fixed; ++i) {
        const C *p = by.load(i * channels + c, gs), *q = from.load(i * channels + c, xs);
        C* out = to.place(i * channels + c, os);
        sweep<C>(n, [&](int64_t j, auto k) {
          store_some<C>(out + j, load_some<C>(p + j, k) * sa + ((load_some<C>(q + j, k) - centre) * sb + sc), k);
        });
        to.store(i * channels + c, os);
      }
    }
  });
}

template <class C>
void backward_columns(const View& g, const View& x, const C* mean, const C* var, const C* weight, const View& gx, C* gw, C* gb, double eps, bool fixed) {
  const Rows<C> by = positions<C>(g), from = positions<C>(x), to = gx ? positions<C>(gx) : Rows<C>();
  const int64_t n = x.shape[1], rows = from.rows(), pieces = pieces_of(rows, n * 5);
  Scratch<double> parts(pieces * 2 * n);
  const bool sums = gw != nullptr || !fixed;
  if (!sums) std::fill_n(parts.get(), pieces * 2 * n, 0.0);
  for_pieces(sums ? pieces : 0, rows, [&](int64_t piece, int64_t begin, int64_t end) {
    Scratch<C> gs(by.direct ? 0 : n), xs(from.direct ? 0 : n);
    double* part = parts.get() + piece * 2 * n;
    ColumnSums<C> sum_g(part, n), sum_gx(part + n, n);
    C *a = sum_g.row(), *b = sum_gx.row();
    for (int64_t r = begin; r < end; ++r) {
      const C *p = by.load(r, gs), *q = from.load(r, xs);
      sweep<C>(n, [&](int64_t j, auto k) {
        const Lanes<C> v = load_some<C>(p + j, k), d = load_some<C>(q + j, k) - load_some<C>(mean + j, k);
        store<C>(a + j, load<C>(a + j) + v);
        store<C>(b + j, load<C>(b + j) + v * d);
      });
      sum_g.next();
      sum_gx.next();
    }
    sum_g.flush();
    sum_gx.flush();
  });
  Scratch<C> sa(n + 64), sb(n + 64), sc(n + 64);
  for (int64_t j = 0; j < n; ++j) {
    double sum_g = 0, sum_gx = 0;
    for (int64_t p = 0; p < pieces; ++p) {
      sum_g += parts[p * 2 * n + j];
      sum_gx += parts[p * 2 * n + n + j];
    }
    const C rstd = reciprocal_root<C>(var[j], eps);
    const double sum_gy = sum_gx * double(rstd);
    if (gw != nullptr) gw[j] = C(sum_gy), gb[j] = C(sum_g);
    const Slopes<C> s = slopes<C>(rstd, weight[j], sum_g, sum_gy, double(rows));
    sa[j] = s.a, sb[j] = s.b, sc[j] = s.c;
  }
  if (!gx) return;
  const C *ap = sa, *bp = sb, *cp = sc;
  parallel_for(rows, grain_for(n * 3), [&](int64_t begin, int64_t end) {
    Scratch<C> gs(by.direct ? 0 : n), xs(from.direct ? 0 : n), os(to.direct ? 0 : n);
    for (int64_t r = begin; r < end; ++r) {
      const C* p = by.load(r, gs);
      C* out = to.place(r, os);
      if (fixed) {
        sweep<C>(n, [&](int64_t j, auto k) {
          store_some<C>(out + j, load_some<C>(p + j, k) * load_some<C>(ap + j, k), k);
        });
        to.store(r, os);
        continue;
      }
      const C* q = from.load(r, xs);
      sweep<C>(n, [&](int64_t j, auto k) {
        const Lanes<C> d = load_some<C>(q + j, k) - load_some<C>(mean + j, k);
        store_some<C>(out + j, load_some<C>(p + j, k) * load_some<C>(ap + j, k) + (d * load_some<C>(bp + j, k) + load_some<C>(cp + j, k)), k);
      });
      to.store(r, os);
    }
  });
}

VT_KERNEL(batch_norm) {  // x, weight, bias, y, mean, var; eps
  const Joined from(c.view(0), c.view(0)), to(c.view(3), c.view(0));
  const View& x = from.v;
  for_compute(x.dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    Channels<C> ch(c.view(1), c.view(2), c.view(4), c.view(5), x.shape[1]);
    if (by_columns(x)) forward_columns<C>(x, to.v, ch, c.f(0));
    else forward_planes<C>(x, to.v, ch, c.f(0));
  });
}

VT_KERNEL(batch_norm_backward) {  // g, x, mean, var, weight, gx or None, gw or None, gb or None; fixed; eps
  const Joined by(c.view(0), c.view(1)), from(c.view(1), c.view(1)), to(c.view(5), c.view(1));
  const View &g = by.v, &x = from.v, &gx = to.v, &gw = c.view(6), &gb = c.view(7);
  for_compute(x.dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    const int64_t n = x.shape[1];
    Scratch<C> mean(n + 64), var(n + 64), weight(n + 64);
    parameter<C>(c.view(2), n, C(0), mean);
    parameter<C>(c.view(3), n, C(0), var);
    parameter<C>(c.view(4), n, C(1), weight);
    C *w = gw ? gw.as<C>() : nullptr, *b = gb ? gb.as<C>() : nullptr;
    (by_columns(x) ? backward_columns<C> : backward_planes<C>)(g, x, mean, var, weight, gx, w, b, c.f(0), c.i(0) != 0);
  });
}

// With given statistics: (x - mean) * (rsqrt(var + eps) * weight) + bias.
template <class C> void by_statistics(const View& x, const View& y, const C* mean, const C* scale, const C* bias) {
  const int64_t channels = x.shape[1];
  if (by_columns(x)) {
    const Rows<C> from = positions<C>(x), to = positions<C>(y);
    parallel_for(from.rows(), grain_for(channels * 2), [&](int64_t begin, int64_t end) {
      Scratch<C> in(from.direct ? 0 : channels), out(to.direct ? 0 : channels);
      for (int64_t r = begin; r < end; ++r) {
        const C* p = from.load(r, in);
        C* q = to.place(r, out);
        sweep<C>(channels, [&](int64_t j, auto k) {
          const Lanes<C> d = load_some<C>(p + j, k) - load_some<C>(mean + j, k);
          store_some<C>(q + j, d * load_some<C>(scale + j, k) + load_some<C>(bias + j, k), k);
        });
        to.store(r, out);
      }
    });
    return;
  }
  const Rows<C> from = planes<C>(x), to = planes<C>(y);
  const int64_t n = from.length();
  parallel_for(from.rows(), grain_for(n * 2), [&](int64_t begin, int64_t end) {
    Scratch<C> in(from.direct ? 0 : n), out(to.direct ? 0 : n);
    for (int64_t r = begin; r < end; ++r) {
      const C* p = from.load(r, in);
      C* q = to.place(r, out);
      const Lanes<C> m = all<C>(mean[r % channels]), s = all<C>(scale[r % channels]), b = all<C>(bias[r % channels]);
      sweep<C>(n, [&](int64_t j, auto k) { store_some<C>(q + j, (load_some<C>(p + j, k) - m) * s + b, k); });
      to.store(r, out);
    }
  });
}

VT_KERNEL(batch_norm_by) {  // x, mean, var, weight, bias, y; eps
  const Joined from(c.view(0), c.view(0)), to(c.view(5), c.view(0));
  const View& x = from.v;
  for_compute(x.dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    const int64_t n = x.shape[1];
    Scratch<C> mean(n + 64), scale(n + 64), weight(n + 64), bias(n + 64);
    parameter<C>(c.view(1), n, C(0), mean);
    parameter<C>(c.view(2), n, C(0), scale);
    parameter<C>(c.view(3), n, C(1), weight);
    parameter<C>(c.view(4), n, C(0), bias);
    C* s = scale;
    for (int64_t j = 0; j < n; ++j) s[j] = C(1) / std::sqrt(s[j] + C(c.f(0))) * weight[j];
    by_statistics<C>(x, to.v, mean, s, bias);
  });
}

// running = mean over rows of (running * (1 - momentum) + row * momentum), rounded to its type at each step.
template <class T, class C> void move(const View& running, const C* rows, int64_t n, int64_t channels, double momentum, double count) {
  using R = compute_t<T>;
  const int64_t step = running.stride(0);
  T* to = running.as<T>();
  const R keep = R(1 - momentum), take = convert<R>(convert<T>(momentum));
  for (int64_t c = 0; c < channels; ++c) {
    double total = 0;
    R last = 0;
    for (int64_t i = 0; i < n; ++i) {
      R value;
      if (count < 0) value = convert<R>(convert<T>(rows[i * channels + c]));
      else {
        const R squares = convert<R>(convert<T>(C(rows[i * channels + c] * C(count))));
        value = convert<R>(convert<T>(R(squares / R(count - 1))));
      }
      const R kept = convert<R>(convert<T>(R(convert<R>(to[c * step]) * keep)));
      last = convert<R>(convert<T>(R(kept + value * take)));
      total += last;
    }
    to[c * step] = n == 1 ? convert<T>(last) : convert<T>(R(total / double(n)));
  }
}

VT_KERNEL(move_statistics) {  // running mean, running var, means, variances; count; momentum
  const View &mean = c.view(0), &var = c.view(1), &means = c.view(2), &vars = c.view(3);
  const int64_t channels = mean.shape[0], n = channels > 0 ? means.numel() / channels : 0;
  if (n == 0) return;
  for_compute(means.dtype, [&](auto s) {
    using C = typename decltype(s)::type;
    for_floats("batch_norm", mean.dtype, [&](auto t) {
      move<typename decltype(t)::type, C>(mean, means.as<C>(), n, channels, c.f(0), -1);
    });
    for_floats("batch_norm", var.dtype, [&](auto t) {
      move<typename decltype(t)::type, C>(var, vars.as<C>(), n, channels, c.f(0), double(c.i(0)));
    });
  });
}

}  // namespace
}  // namespace vt
