// layer_norm, rms_norm and group_norm with their gradients.
#include "normalization_short.h"

namespace vt {
namespace {

// --- layer_norm ------------------------------------------------------------------------------------

template <class C>
void layer_norm(const View& x, const View& weight, const View& bias, const View& y, const View& means, const View& rstds, int dims, double eps) {
  const int split = x.ndim - dims;
  const Rows<C> from(x, split, x.ndim), to(y, split, x.ndim);
  const int64_t n = from.length(), rows = from.rows();
  Scratch<C> w(n + 64), b(n + 64);
  parameter<C>(weight, n, C(1), w);
  parameter<C>(bias, n, C(0), b);
  C *mean = means.as<C>(), *rstd = rstds.as<C>();
  const C *wp = w, *bp = b;
  if (norm_short<C, true>(x, y, split, n, rows, wp, bp, mean, rstd, eps)) return;
  parallel_for(rows, grain_for(n * 3), [&](int64_t begin, int64_t end) {
    InTurn<C> in(from, begin, end), out(to, begin, end);
    for (int64_t r = begin; r < end; ++r) {
      const C* p = in.load(r);
      C* q = out.place(r);
      const Moments<C> m = moments_of<C>(p, n);
      const C root = reciprocal_root<C>(m.var, eps);
      mean[r] = m.mean();
      rstd[r] = root;
      const Lanes<C> shift = all<C>(m.shift), scale = all<C>(root), rest = all<C>(-m.rest * root);
      sweep<C>(n, [&](int64_t j, auto k) {
        const Lanes<C> v = (load_some<C>(p + j, k) - shift) * scale + rest;
        store_some<C>(q + j, v * load_some<C>(wp + j, k) + load_some<C>(bp + j, k), k);
      });
      out.store(r);
    }
  });
}

// With y = (x - mean) * rstd and h = g * weight: by the input rstd * (h - mean(h) - y * mean(h * y)), where
// rms_norm has no mean of h; by the weight the sum of g * y, by the bias that of g.
template <class C, bool CENTRED>
void backward(const View& g, const View& x, const C* mean, const C* rstd, const View& weight, const View& gx, const View& gw, const View& gb, int dims) {
  const int split = x.ndim - dims;
  const bool by_input = bool(gx), by_affine = bool(gw);
  const Rows<C> by(g, split, x.ndim), from(x, split, x.ndim);
  const Rows<C> to = by_input ? Rows<C>(gx, split, x.ndim) : Rows<C>();
  const int64_t n = from.length(), rows = from.rows();
  Scratch<C> w(n + 64);
  parameter<C>(weight, n, C(1), w);
  const C* wp = w;
  const int64_t pieces = pieces_of(rows, n * 6);
  Scratch<double> parts(by_affine ? pieces * 2 * n : 0);
  for_pieces(pieces, rows, [&](int64_t piece, int64_t begin, int64_t end) {
    InTurn<C> gs(by, begin, end), xs(from, begin, end), os(to, begin, by_input ? end : begin);
    double* part = parts.get() + piece * 2 * n;
    double none;
    ColumnSums<C> dw(by_affine ? part : &none, by_affine ? n : 0), db(by_affine ? part + n : &none, by_affine ? n : 0);
    C *dwp = dw.row(), *dbp = db.row();
    for (int64_t r = begin; r < end; ++r) {
      const C *p = gs.load(r), *q = xs.load(r);
      const Lanes<C> m = all<C>(CENTRED ? mean[r] : C(0)), s = all<C>(rstd[r]);
      Pair<C> sums;  // of h and of h * y
      if (by_affine) {
        sums = sums_over<C>(n, [&](int64_t j, auto k, Lanes<C>& across, Lanes<C>& along) {
          const Lanes<C> gv = load_some<C>(p + j, k), y = (load_some<C>(q + j, k) - m) * s;
          const Lanes<C> h = gv * load_some<C>(wp + j, k), gy = gv * y;
          store<C>(dwp + j, load<C>(dwp + j) + gy);
          if constexpr (CENTRED) {
            store<C>(dbp + j, load<C>(dbp + j) + gv);
            across += h;
          }
          along += h * y;
        });
        dw.next();
        db.next();
      } else {
        sums = sums_over<C>(n, [&](int64_t j, auto k, Lanes<C>& across, Lanes<C>& along) {
          const Lanes<C> y = (load_some<C>(q + j, k) - m) * s, h = load_some<C>(p + j, k) * load_some<C>(wp + j, k);
          across += h;
          along += h * y;
        });
      }
      if (!by_input) continue;
      const Lanes<C> a = all<C>(sums.second / C(n)), c = all<C>(CENTRED ? sums.first / C(n) : C(0));
      C* out = os.place(r);
      sweep<C>(n, [&](int64_t j, auto k) {
        const Lanes<C> y = (load_some<C>(q + j, k) - m) * s, h = load_some<C>(p + j, k) * load_some<C>(wp + j, k);
        store_some<C>(out + j, s * (h - c - y * a), k);
      });
      os.store(r);
    }
    if (by_affine) {
      dw.flush();
      db.flush();
    }
  });
  if (by_affine) {
    add_pieces<C>(gw.as<C>(), parts, pieces, 2 * n, n);
    if (gb) add_pieces<C>(gb.as<C>(), parts.get() + n, pieces, 2 * n, n);
  }
}

template <class C> void rms_norm(const View& x, const View& weight, const View& y, const View& rstds, int dims, double eps) {
  const int split = x.ndim - dims;
  const Rows<C> from(x, split, x.ndim), to(y, split, x.ndim);
  const int64_t n = from.length(), rows = from.rows();
  Scratch<C> w(n + 64);
  parameter<C>(weight, n, C(1), w);
  C* rstd = rstds.as<C>();
  const C* wp = w;
  if (norm_short<C, false>(x, y, split, n, rows, wp, nullptr, nullptr, rstd, eps)) return;
  parallel_for(rows, grain_for(n * 2), [&](int64_t begin, int64_t end) {
    InTurn<C> in(from, begin, end), out(to, begin, end);
    for (int64_t r = begin; r < end; ++r) {
      const C* p = in.load(r);
      C* q = out.place(r);
      const C squares = sum_over<C>(n, [&](int64_t j, auto k) {
        const Lanes<C> v = load_some<C>(p + j, k);
        return v * v;
      });
      rstd[r] = reciprocal_root<C>(n > 0 ? squares / C(n) : C(0), eps);
      const Lanes<C> scale = all<C>(rstd[r]);
      sweep<C>(n, [&](int64_t j, auto k) {
        store_some<C>(q + j, load_some<C>(p + j, k) * scale * load_some<C>(wp + j, k), k);
      });
      out.store(r);
    }
  });
}

// --- group_norm --------------------------------------------------------------------------------------

// (N, groups) rows of (channels of a group, everything else).
template <class C> Rows<C> grouped(const View& v, int64_t groups) {
  Walk outer, inner;
  const int64_t each = v.shape[1] / groups;
  outer.add(v.shape[0], v.strides[0]);
  outer.add(groups, each * v.strides[1]);
  inner.add(each, v.strides[1]);
  for (int d = 2; d < v.ndim; ++d) inner.add(v.shape[d], v.strides[d]);
  return Rows<C>(v, outer, inner);
}

template <class C>
void group_norm(const View& x, const View& weight, const View& bias, const View& y, const View& means, const View& rstds, int64_t groups, double eps) {
  const Rows<C> from = grouped<C>(x, groups), to = grouped<C>(y, groups);
  const int64_t channels = x.shape[1], each = channels / groups, rows = x.shape[0] * groups, n = from.length();
  const int64_t plane = each > 0 ? n / each : 0;
  Scratch<C> w(channels), b(channels);
  parameter<C>(weight, channels, C(1), w);
  parameter<C>(bias, channels, C(0), b);
  C *mean = means.as<C>(), *rstd = rstds.as<C>();
  const C *wp = w, *bp = b;
  parallel_for(rows, grain_for(n * 3), [&](int64_t begin, int64_t end) {
    InTurn<C> in(from, begin, end), out(to, begin, end);
    for (int64_t r = begin; r < end; ++r) {
      const C* p = in.load(r);
      C* q = out.place(r);
      const Moments<C> m = moments_of<C>(p, n);
      mean[r] = m.mean();
      rstd[r] = reciprocal_root<C>(m.var, eps);
      const int64_t first = r % groups * each;
      for (int64_t k = 0; k < each; ++k) {
        const C slope = rstd[r] * wp[first + k];
        const Lanes<C> shift = all<C>(m.shift), scale = all<C>(slope), b = all<C>(bp[first + k] - m.rest * slope);
        const C* in_plane = p + k * plane;
        C* out_plane = q + k * plane;
        sweep<C>(plane, [&](int64_t j, auto c) {
          store_some<C>(out_plane + j, (load_some<C>(in_plane + j, c) - shift) * scale + b, c);
        });
      }
      out.store(r);
    }
  });
}

template <class C>
void group_norm_backward(const View& g, const View& x, const C* mean, const C* rstd, const View& weight, const View& gx, const View& gw, const View& gb, int64_t groups) {
  const bool by_input = bool(gx);
  const Rows<C> by = grouped<C>(g, groups), from = grouped<C>(x, groups);
  const Rows<C> to = by_input ? grouped<C>(gx, groups) : Rows<C>();
  const int64_t channels = x.shape[1], each = channels / groups, samples = x.shape[0], rows = samples * groups;
  const int64_t n = from.length(), plane = each > 0 ? n / each : 0;
  Scratch<C> w(channels), sums(2 * samples * channels);
  parameter<C>(weight, channels, C(1), w);
  const C* wp = w;
  C *along = sums, *across = sums.get() + samples * channels;  // of each channel of each sample: g * y, and g
  parallel_for(rows, grain_for(n * 6), [&](int64_t begin, int64_t end) {
    InTurn<C> gs(by, begin, end), xs(from, begin, end), os(to, begin, by_input ? end : begin);
    for (int64_t r = begin; r < end; ++r) {
      const C *p = gs.load(r), *q = xs.load(r);
      const Lanes<C> m = all<C>(mean[r]), s = all<C>(rstd[r]);
      const int64_t first = r % groups * each, row = r / groups * channels + first;
      double sum_h = 0, sum_hy = 0;
      for (int64_t k = 0; k < each; ++k) {
        const C *gp = p + k * plane, *xp = q + k * plane;
        const Pair<C> found = sums_over<C>(plane, [&](int64_t j, auto c, Lanes<C>& a, Lanes<C>& b) {
          const Lanes<C> v = load_some<C>(gp + j, c);
          a += v;
          b += v * ((load_some<C>(xp + j, c) - m) * s);
        });
        across[row + k] = found.first;
        along[row + k] = found.second;
        sum_h += double(across[row + k]) * wp[first + k];
        sum_hy += double(along[row + k]) * wp[first + k];
      }
      if (!by_input) continue;
      C* out = os.place(r);
      const Lanes<C> mean_h = all<C>(C(sum_h / n)), mean_hy = all<C>(C(sum_hy / n));
      for (int64_t k = 0; k < each; ++k) {
        const C *gp = p + k * plane, *xp = q + k * plane;
        C* op = out + k * plane;
        const Lanes<C> weight_k = all<C>(wp[first + k]);
        sweep<C>(plane, [&](int64_t j, auto c) {
          const Lanes<C> y = (load_some<C>(xp + j, c) - m) * s;
          store_some<C>(op + j, s * (load_some<C>(gp + j, c) * weight_k - mean_h - y * mean_hy), c);
        });
      }
      os.store(r);
    }
  });
  if (!gw) return;
  C *dw = gw.as<C>(), *db = gb.as<C>();
  for (int64_t c = 0; c < channels; ++c) {
    double a = 0, b = 0;
    for (int64_t i = 0; i < samples; ++i) {
      a += along[i * channels + c];
      b += across[i * channels + c];
    }
    dw[c] = C(a);
    db[c] = C(b);
  }
}

VT_KERNEL(layer_norm) {  // x, weight, bias, y, mean, rstd; dims; eps
  for_compute(c.view(0).dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    layer_norm<C>(c.view(0), c.view(1), c.view(2), c.view(3), c.view(4), c.view(5), int(c.i(0)), c.f(0));
  });
}

VT_KERNEL(layer_norm_backward) {  // g, x, mean, rstd, weight, gx, gw or None, gb or None; dims
  for_compute(c.view(1).dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    backward<C, true>(c.view(0), c.view(1), c.view(2).as<C>(), c.view(3).as<C>(), c.view(4), c.view(5), c.view(6), c.view(7), int(c.i(0)));
  });
}

VT_KERNEL(rms_norm) {  // x, weight, y, rstd; dims; eps
  for_compute(c.view(0).dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    rms_norm<C>(c.view(0), c.view(1), c.view(2), c.view(3), int(c.i(0)), c.f(0));
  });
}

VT_KERNEL(rms_norm_backward) {  // g, x, rstd, weight, gx, gw or None; dims
  for_compute(c.view(1).dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    backward<C, false>(c.view(0), c.view(1), nullptr, c.view(2).as<C>(), c.view(3), c.view(4), c.view(5), View{}, int(c.i(0)));
  });
}

VT_KERNEL(group_norm) {  // x, weight, bias, y, mean, rstd; groups; eps
  for_compute(c.view(0).dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    group_norm<C>(c.view(0), c.view(1), c.view(2), c.view(3), c.view(4), c.view(5), c.i(0), c.f(0));
  });
}

VT_KERNEL(group_norm_backward) {  // g, x, mean, rstd, weight, gx, gw or None, gb or None; groups
  for_compute(c.view(1).dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    group_norm_backward<C>(c.view(0), c.view(1), c.view(2).as<C>(), c.view(3).as<C>(), c.view(4), c.view(5), c.view(6), c.view(7), c.i(0));
  });
}

}  // namespace
}  // namespace vt
