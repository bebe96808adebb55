// Cross entropy from logits, and likelihoods from their logarithms, with their gradients.
//
// A target stands for q: weight w of its class y, spread by smoothing s over all classes,
// q_c = (1 - s) w_y [c = y] + s w_c / classes; nothing where it is ignored. The loss is -sum_c q_c log p_c.
#include <algorithm>
#include <string>

#include "vt/moments.h"
#include "vt/sum_exp.h"

namespace vt {
namespace {

enum Reduction { NONE, MEAN, SUM };

// Class indices, dense; throws for one that is neither a class nor ignored.
struct Targets {
  int64_t count, ignored;
  Scratch<int64_t> at;

  Targets(const char* op, const View& t, int64_t classes, int64_t ignored) : count(t.numel()), ignored(ignored), at(t.numel() + 1) {
    if (count == 0) return;
    const int64_t* have = Rows<int64_t>(t, 0, t.ndim).load(0, at);
    if (have != at.get()) std::copy_n(have, count, at.get());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t y = at[i];
      if (y != ignored && (y < 0 || y >= classes))
        throw IndexError(std::string(op) + ": target " + std::to_string(y) + " is out of range for " + std::to_string(classes) +
                         " classes; use 0.." + std::to_string(classes - 1) + " or ignore_index=" + std::to_string(ignored) + ".");
    }
  }
  bool used(int64_t i) const { return at[i] != ignored; }
};

int class_dim(int ndim) { return ndim > 1 ? 1 : 0; }

// Sums of pieces, added up in order: loss and weight of the targets that count.
template <class F> void reduced(int64_t n, int64_t cost, double& loss, double& weight, F&& f) {
  const int64_t pieces = pieces_of(n, cost);
  Scratch<double> parts(2 * pieces);
  for_pieces(pieces, n, [&](int64_t p, int64_t b, int64_t e) {
    parts[2 * p] = parts[2 * p + 1] = 0;
    f(b, e, parts[2 * p], parts[2 * p + 1]);
  });
  loss = weight = 0;
  for (int64_t p = 0; p < pieces; ++p) loss += parts[2 * p], weight += parts[2 * p + 1];
}

// One number of the compute type into a 0-d result of any float type.
void put(const View& out, double v) { cast_fn(Dtype::f64, out.dtype)(out.data, 0, reinterpret_cast<char*>(&v), 0, 1); }
double get(const View& in) {
  double v;
  cast_fn(in.dtype, Dtype::f64)(reinterpret_cast<char*>(&v), 0, in.data, 0, 1);
  return v;
}

template <class C> struct Weights {
  Scratch<C> w;
  bool given;
  double sum;
  Weights(const View& v, int64_t classes) : w(classes + 64), given(bool(v)), sum(double(classes)) {
    if (!given) return;
    parameter<C>(v, classes, C(1), w);
    sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += w[c];
  }
  C at(int64_t y) const { return given ? w[y] : C(1); }
};

// sum_c w_c (x_c - top)
template <class C> C weighted_sum(const C* x, const Weights<C>& w, int64_t n, C top) {
  const Lanes<C> t = all<C>(top);
  const C* wp = w.w;
  if (!w.given) return sum_over<C>(n, [&](int64_t j, auto m) { return load_some<C>(x + j, m, top) - t; });
  return sum_over<C>(n, [&](int64_t j, auto m) { return (load_some<C>(x + j, m, top) - t) * load_some<C>(wp + j, m); });
}

// Targets whose logits are neighbours in memory are worked on side by side; so are those of few classes, since their
// rows would leave vectors empty.
constexpr int64_t COLUMNS = 128, FEW_CLASSES = 16;

bool side_by_side(const View& x) {
  if (x.ndim < 2) return false;
  const bool few = x.shape[1] <= FEW_CLASSES;
  if (x.ndim == 2) return few && x.shape[0] >= 8;
  Walk inner;
  for (int d = 2; d < x.ndim; ++d) inner.add(x.shape[d], x.strides[d]);
  return inner.ndim == 1 && inner.shape[0] >= 8 && (few || inner.strides[0] == itemsize(x.dtype));
}

// (samples, classes, everything else as one dimension)
struct Flat {
  int64_t shape[3], strides[3];
  View view;
  explicit Flat(const View& x) {
    shape[1] = x.shape[1], strides[1] = x.strides[1];
    if (x.ndim == 2) {  // samples are all there is
      shape[0] = 1, shape[2] = x.shape[0];
      strides[0] = 0, strides[2] = x.strides[0];
    } else {
      Walk inner;
      for (int d = 2; d < x.ndim; ++d) inner.add(x.shape[d], x.strides[d]);
      shape[0] = x.shape[0], shape[2] = inner.shape[0];
      strides[0] = x.strides[0], strides[2] = inner.strides[0];
    }
    view = View{x.data, 3, shape, strides, x.dtype};
  }
  int64_t blocks() const { return (shape[2] + COLUMNS - 1) / COLUMNS; }
  char* at(int64_t block, int64_t& first, int64_t& count) const {
    const int64_t from = block % blocks() * COLUMNS, sample = block / blocks();
    first = sample * shape[2] + from;
    count = std::min(COLUMNS, shape[2] - from);
    return view.data + sample * strides[0] + from * strides[2];
  }
};

// out: a loss for each target, or their sum or mean; tops and sums: of each row, when given.
template <class C>
void cross_entropy(const View& x, const View& target, const View& weight, const View& out, const View& total, C* tops, C* sums, int64_t ignored, Reduction kind, double smoothing) {
  const int dim = class_dim(x.ndim);
  const Rows<C> from(x, dim, dim + 1);
  const int64_t classes = x.shape[dim];
  const Targets t("cross_entropy", target, classes, ignored);
  const Weights<C> w(weight, classes);
  const Rows<C> to = kind == NONE ? Rows<C>(out, 0, 0) : Rows<C>();
  double loss, counted;
  const C own = C(1 - smoothing), share = classes > 0 ? C(smoothing / double(classes)) : C(0);
  const auto keep = [&](int64_t r, C value, double& run) {
    if (kind != NONE) {
      run += value;
      return;
    }
    C* place = to.place(r, &value);
    if (place != &value) *place = value;
    to.store(r, &value);
  };
  if (classes > 0 && side_by_side(x)) {
    const Flat flat(x);
    const Block<C> block(flat.view, 1, 2);
    reduced(flat.shape[0] * flat.blocks(), COLUMNS * classes * 8, loss, counted, [&](int64_t b, int64_t e, double& part, double& part_weight) {
      Scratch<C> in(block.direct ? 0 : classes * COLUMNS), top(COLUMNS + 64), sum(COLUMNS + 64), smooth(COLUMNS + 64);
      const C* wp = w.w;
      C* sp = smooth;
      double run = 0, run_weight = 0;
      for (int64_t k = b; k < e; ++k) {
        int64_t first, n;
        char* data = flat.at(k, first, n);
        const C* p = block.load(data, in, n);
        const int64_t step = block.step(n);
        column_max<C>(p, step, classes, n, top);
        column_sum_exp<C>(p, step, classes, n, top, sum);
        if (smoothing != 0) {
          std::fill_n(sp, n + 64, C(0));
          for (int64_t c = 0; c < classes; ++c)
            for (int64_t j = 0; j < n; ++j) sp[j] += (p[c * step + j] - top[j]) * (w.given ? wp[c] : C(1));
        }
        for (int64_t j = 0; j < n; ++j) {
          const int64_t r = first + j;
          if (tops != nullptr) tops[r] = top[j], sums[r] = sum[j];
          C value = 0;
          if (t.used(r)) {
            const int64_t y = t.at[r];
            const C norm = std::log(sum[j]);
            value = -w.at(y) * ((p[y * step + j] - top[j]) - norm);
            if (smoothing != 0) value = own * value - share * (sp[j] - C(w.sum) * norm);
            run_weight += w.at(y);
          }
          keep(r, value, run);
        }
      }
      part = run;
      part_weight = run_weight;
    });
  } else reduced(t.count, classes * 8, loss, counted, [&](int64_t b, int64_t e, double& part, double& part_weight) {
    InTurn<C> in(from, b, e);
    double run = 0, run_weight = 0;
    for (int64_t r = b; r < e; ++r) {
      C value = 0;
      if (classes > 0) {
        const C* p = in.load(r);
        const C top = row_max<C>(p, classes), sum = sum_exp<C>(p, classes, top), norm = std::log(sum);
        if (tops != nullptr) tops[r] = top, sums[r] = sum;
        if (t.used(r)) {
          const int64_t y = t.at[r];
          value = -w.at(y) * ((p[y] - top) - norm);
          if (smoothing != 0) value = own * value - share * (weighted_sum<C>(p, w, classes, top) - C(w.sum) * norm);
          run_weight += w.at(y);
        }
      }
      keep(r, value, run);
    }
    part = run;
    part_weight = run_weight;
  });
  if (kind != NONE) put(out, kind == MEAN ? loss / counted : loss);
  if (total) put(total, counted);
}

// g (Q softmax - q), with Q the sum of q.
template <class C>
void cross_entropy_backward(const View& g, const View& x, const View& target, const View& weight, const View& out, const View& total, const C* tops, const C* sums, int64_t ignored, Reduction kind, double smoothing) {
  const int dim = class_dim(x.ndim);
  const Rows<C> from(x, dim, dim + 1), to(out, dim, dim + 1);
  const Rows<C> by = kind == NONE ? Rows<C>(g, 0, 0) : Rows<C>();
  const int64_t classes = x.shape[dim];
  const Targets t("cross_entropy", target, classes, ignored);
  const Weights<C> w(weight, classes);
  const double scalar = kind == NONE ? 0 : kind == MEAN ? get(g) / get(total) : get(g);
  const C own = C(1 - smoothing), share = C(smoothing / double(classes)), spread = C(smoothing * w.sum / double(classes));
  const C* wp = w.w;
  if (side_by_side(x) && side_by_side(out)) {
    const Flat flat(x), flat_out(out);
    const Block<C> block(flat.view, 1, 2), result(flat_out.view, 1, 2);
    parallel_for(flat.shape[0] * flat.blocks(), grain_for(COLUMNS * classes * 8), [&](int64_t b, int64_t e) {
      Scratch<C> in(block.direct ? 0 : classes * COLUMNS), back(result.direct ? 0 : classes * COLUMNS);
      Scratch<C> top(COLUMNS + 64), sum(COLUMNS + 64), scale(COLUMNS + 64), spread_of(COLUMNS + 64), mine(COLUMNS + 64);
      for (int64_t k = b; k < e; ++k) {
        int64_t first, n;
        char* data = flat.at(k, first, n);
        const C* p = block.load(data, in, n);
        char* home = flat_out.at(k, first, n);
        C* q = result.place(home, back);
        const int64_t step = block.step(n), out_step = result.step(n);
        if (tops != nullptr) {
          std::copy_n(tops + first, n, top.get());
          std::copy_n(sums + first, n, sum.get());
        } else {
          column_max<C>(p, step, classes, n, top);
          column_sum_exp<C>(p, step, classes, n, top, sum);
        }
        for (int64_t j = 0; j < n; ++j) {
          const bool used = t.used(first + j);
          C factor = C(scalar), one;
          if (kind == NONE) factor = *by.load(first + j, &one);
          if (!used) factor = 0;
          mine[j] = used ? factor * own * w.at(t.at[first + j]) : C(0);
          scale[j] = (mine[j] + (used ? factor * spread : C(0))) / sum[j];
          spread_of[j] = factor * share;
        }
        const C *tp = top, *sp = scale, *fp = spread_of;
        for (int64_t c = 0; c < classes; ++c) {
          const Lanes<C> weight_c = all<C>(w.given ? wp[c] : C(1));
          sweep<C>(n, [&](int64_t j, auto m) {
            Lanes<C> v = exp_below<C>(load_some<C>(p + c * step + j, m) - load<C>(tp + j)) * load<C>(sp + j);
            if (smoothing != 0) v -= load<C>(fp + j) * weight_c;
            store_some<C>(q + c * out_step + j, v, m);
          });
        }
        for (int64_t j = 0; j < n; ++j)
          if (t.used(first + j)) q[t.at[first + j] * out_step + j] -= mine[j];
        result.store(home, back, n);
      }
    });
    return;
  }
  parallel_for(t.count, grain_for(classes * 8), [&](int64_t b, int64_t e) {
    InTurn<C> in(from, b, e), result(to, b, e);
    for (int64_t r = b; r < e; ++r) {
      const C* p = in.load(r);
      C* q = result.place(r);
      C factor = C(scalar), one;
      if (kind == NONE) factor = *by.load(r, &one);
      const bool used = t.used(r);
      if (!used) factor = 0;
      const C mine = used ? own * w.at(t.at[r]) : C(0);
      const C top = tops != nullptr ? tops[r] : row_max<C>(p, classes);
      const C sum = sums != nullptr ? sums[r] : sum_exp<C>(p, classes, top);
      const C scale = factor * (mine + (used ? spread : C(0))) / sum;
      const Lanes<C> high = all<C>(top), s = all<C>(scale), f = all<C>(factor * share);
      if (smoothing == 0 || !used) {
        sweep<C>(classes, [&](int64_t j, auto m) { store_some<C>(q + j, exp_below<C>(load_some<C>(p + j, m) - high) * s, m); });
      } else if (!w.given) {
        sweep<C>(classes, [&](int64_t j, auto m) { store_some<C>(q + j, exp_below<C>(load_some<C>(p + j, m) - high) * s - f, m); });
      } else {
        sweep<C>(classes, [&](int64_t j, auto m) {
          store_some<C>(q + j, exp_below<C>(load_some<C>(p + j, m) - high) * s - f * load_some<C>(wp + j, m), m);
        });
      }
      if (used) q[t.at[r]] -= factor * mine;
      result.store(r);
    }
  });
}

// Calls f(number of the target, address of its first class) for the targets [b, e).
template <class F> void for_targets(const View& v, int dim, int64_t b, int64_t e, F&& f) {
  Walk walk;
  for (int d = 0; d < v.ndim; ++d)
    if (d != dim) walk.add(v.shape[d], v.strides[d]);
  if (walk.ndim == 0) {
    if (b < e) f(b, v.data);
    return;
  }
  const int64_t n = walk.shape[walk.ndim - 1], step = walk.strides[walk.ndim - 1];
  for (int64_t r = b; r < e;) {
    const int64_t m = std::min(e - r, n - r % n);
    char* p = v.data + walk.offset(r);
    for (int64_t j = 0; j < m; ++j) f(r + j, p + j * step);
    r += m;
  }
}

template <class C>
void nll(const View& x, const View& target, const View& weight, const View& out, const View& total, int64_t ignored, Reduction kind) {
  const int dim = class_dim(x.ndim);
  const Rows<C> to = kind == NONE ? Rows<C>(out, 0, 0) : Rows<C>();
  const Targets t("nll_loss", target, x.shape[dim], ignored);
  const Weights<C> w(weight, x.shape[dim]);
  const int64_t step = x.strides[dim];
  double loss, counted;
  for_floats("nll_loss", x.dtype, [&](auto type) {
    using S = typename decltype(type)::type;
    reduced(t.count, 8, loss, counted, [&](int64_t b, int64_t e, double& part, double& part_weight) {
      double run = 0, run_weight = 0;
      for_targets(x, dim, b, e, [&](int64_t r, const char* p) {
        C value = 0;
        if (t.used(r)) {
          const int64_t y = t.at[r];
          value = -convert<C>(*reinterpret_cast<const S*>(p + y * step)) * w.at(y);
          run_weight += w.at(y);
        }
        if (kind == NONE) {
          C* place = to.place(r, &value);
          if (place != &value) *place = value;
          to.store(r, &value);
        } else run += value;
      });
      part = run;
      part_weight = run_weight;
    });
  });
  if (kind != NONE) put(out, kind == MEAN ? loss / counted : loss);
  if (total) put(total, counted);
}

template <class C>
void nll_backward(const View& g, const View& target, const View& weight, const View& out, const View& total, int64_t ignored, Reduction kind) {
  const int dim = class_dim(out.ndim);
  const Rows<C> by = kind == NONE ? Rows<C>(g, 0, 0) : Rows<C>();
  const Targets t("nll_loss", target, out.shape[dim], ignored);
  const Weights<C> w(weight, out.shape[dim]);
  const int64_t step = out.strides[dim];
  const double scalar = kind == NONE ? 0 : kind == MEAN ? get(g) / get(total) : get(g);
  const int64_t bytes = out.numel() * itemsize(out.dtype);  // the result is dense
  parallel_for(bytes, int64_t(1) << 18, [&](int64_t b, int64_t e) { std::memset(out.data + b, 0, size_t(e - b)); });
  for_floats("nll_loss", out.dtype, [&](auto type) {
    using S = typename decltype(type)::type;
    parallel_for(t.count, grain_for(8), [&](int64_t b, int64_t e) {
      for_targets(out, dim, b, e, [&](int64_t r, char* p) {
        if (!t.used(r)) return;
        C factor = C(scalar), one;
        if (kind == NONE) factor = *by.load(r, &one);
        *reinterpret_cast<S*>(p + t.at[r] * step) = convert<S>(C(-factor * w.at(t.at[r])));
      });
    });
  });
}

// x, target, weight, out, total or None, statistics (2, targets) or None; ignored, reduction; smoothing
VT_KERNEL(cross_entropy) {
  const View &x = c.view(0), &stats = c.view(5);
  for_compute(x.dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    C* tops = stats ? stats.as<C>() : nullptr;
    cross_entropy<C>(x, c.view(1), c.view(2), c.view(3), c.view(4), tops, tops == nullptr ? nullptr : tops + c.view(1).numel(), c.i(0), Reduction(c.i(1)), c.f(0));
  });
}

// g, x, target, weight, out, total or None, statistics or None; ignored, reduction; smoothing
VT_KERNEL(cross_entropy_backward) {
  const View &x = c.view(1), &stats = c.view(6);
  if (x.numel() == 0) return;
  for_compute(x.dtype, [&](auto t) {
    using C = typename decltype(t)::type;
    const C* tops = stats ? stats.as<C>() : nullptr;
    cross_entropy_backward<C>(c.view(0), x, c.view(2), c.view(3), c.view(4), c.view(5), tops, tops == nullptr ? nullptr : tops + c.view(2).numel(), c.i(0), Reduction(c.i(1)), c.f(0));
  });
}

// x, target, weight, out, total or None; ignored, reduction
VT_KERNEL(nll) {
  for_compute(c.view(0).dtype, [&](auto t) {
    nll<typename decltype(t)::type>(c.view(0), c.view(1), c.view(2), c.view(3), c.view(4), c.i(0), Reduction(c.i(1)));
  });
}

// g, target, weight, out, total or None; ignored, reduction
VT_KERNEL(nll_backward) {
  for_compute(c.view(3).dtype, [&](auto t) {
    nll_backward<typename decltype(t)::type>(c.view(0), c.view(1), c.view(2), c.view(3), c.view(4), c.i(0), Reduction(c.i(1)));
  });
}

}  // namespace
}  // namespace vt
