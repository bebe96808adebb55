// Softmax, its logarithm and their gradients along one dimension.
//
// Rows that lie along memory are worked on one by one while they are in the cache; other dimensions in
// blocks of neighbouring columns, so that every load is of neighbours.
#include <algorithm>

#include "vt/rows.h"
#include "vt/sum_exp.h"
#include "vt/turn.h"

namespace vt {
namespace {

// A NaN makes the sum NaN and so all of the row; so does a row of -inf, as in torch.
template <class C> void softmax_row(C* y, const C* x, int64_t n) {
  const Lanes<C> top = all<C>(row_max<C>(x, n));
  Lanes<C> total[4] = {};
  constexpr int W = WIDTH<C>;
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
    for (int k = 0; k < 4; ++k) {
      const Lanes<C> e = exp_below<C>(load<C>(x + i + k * W) - top);
      store<C>(y + i + k * W, e);
      total[k] += e;
    }
  for (; i + W <= n; i += W) {
    const Lanes<C> e = exp_below<C>(load<C>(x + i) - top);
    store<C>(y + i, e);
    total[0] += e;
  }
  if (i < n) {
    const Lanes<C> e = exp_below<C>(load_part<C>(x + i, n - i, -INF<C>) - top);
    store_part<C>(y + i, e, n - i);
    total[1] += load_part<C>(y + i, n - i, C(0));  // lanes past the end count nothing
  }
  const Lanes<C> scale = all<C>(C(1) / sum_of<C>((total[0] + total[1]) + (total[2] + total[3])));
  sweep<C>(n, [&](int64_t j, auto m) {
    __builtin_prefetch(x + n + j);  // of the next row, most likely
    store_some<C>(y + j, load_some<C>(y + j, m) * scale, m);
  });
}

template <class C> void log_softmax_row(C* y, const C* x, int64_t n) {
  const C top = row_max<C>(x, n);
  const Lanes<C> t = all<C>(top), norm = all<C>(std::log(sum_exp<C>(x, n, top)));
  sweep<C>(n, [&](int64_t j, auto m) { store_some<C>(y + j, (load_some<C>(x + j, m) - t) - norm, m); });
}

template <class C> void softmax_backward_row(C* out, const C* g, const C* y, int64_t n) {
  const C dot = sum_over<C>(n, [&](int64_t j, auto m) { return load_some<C>(g + j, m) * load_some<C>(y + j, m); });
  const Lanes<C> along = all<C>(dot);
  sweep<C>(n, [&](int64_t j, auto m) {
    store_some<C>(out + j, load_some<C>(y + j, m) * (load_some<C>(g + j, m) - along), m);
  });
}

template <class C> void log_softmax_backward_row(C* out, const C* g, const C* y, int64_t n) {
  const Lanes<C> sum = all<C>(sum_over<C>(n, [&](int64_t j, auto m) { return load_some<C>(g + j, m); }));
  sweep<C>(n, [&](int64_t j, auto m) {
    store_some<C>(out + j, load_some<C>(g + j, m) - exp_below<C>(load_some<C>(y + j, m)) * sum, m);
  });
}

// --- short rows: a lane each ------------------------------------------------------------------------

constexpr int64_t SHORT = 64;

template <class C, bool LOG> void short_rows(C* y, const C* x, int64_t rows, int64_t n) {
  constexpr int L = WIDTH<C>;
  if (n == 1) {
    // e^(x - x): one, or NaN where x is not finite.
    const Lanes<C> one = all<C>(LOG ? C(0) : C(1));
    return sweep<C>(rows, [&](int64_t j, auto m) {
      const Lanes<C> v = load_some<C>(x + j, m);
      store_some<C>(y + j, (v - v) + one, m);
    });
  }
  Lanes<C> v[SHORT];
  for (int64_t r = 0; r < rows; r += L, x += L * n, y += L * n) {
    const int64_t some = std::min<int64_t>(L, rows - r);
    rows_to_lanes<C>(v, x, some, n);
    Lanes<C> top = v[0], sum{};
    for (int64_t i = 1; i < n; ++i) top = larger<C>(top, v[i]);
    for (int64_t i = 0; i < n; ++i) {
      const Lanes<C> e = exp_below<C>(v[i] - top);
      sum += e;
      v[i] = LOG ? v[i] - top : e;
    }
    if constexpr (LOG) {
      const Lanes<C> norm = each<C>(sum, [](C s) { return vt::log(s); });
      for (int64_t i = 0; i < n; ++i) v[i] -= norm;
    } else {
      const Lanes<C> scale = C(1) / sum;
      for (int64_t i = 0; i < n; ++i) v[i] *= scale;
    }
    lanes_to_rows<C>(y, v, some, n);
  }
}

// --- columns: x[d * step + j] for j < n ------------------------------------------------------------

template <class C> void softmax_columns(C* y, int64_t ys, const C* x, int64_t xs, int64_t dim, int64_t n, C* top, C* sum) {
  column_max<C>(x, xs, dim, n, top);
  sweep<C>(n, [&](int64_t j, auto) { store<C>(sum + j, Lanes<C>{}); });
  for (int64_t d = 0; d < dim; ++d)
    sweep<C>(n, [&](int64_t j, auto m) {
      const Lanes<C> e = exp_below<C>(load_some<C>(x + d * xs + j, m) - load<C>(top + j));
      store_some<C>(y + d * ys + j, e, m);
      store<C>(sum + j, load<C>(sum + j) + e);
    });
  sweep<C>(n, [&](int64_t j, auto) { store<C>(sum + j, C(1) / load<C>(sum + j)); });
  for (int64_t d = 0; d < dim; ++d)
    sweep<C>(n, [&](int64_t j, auto m) {
      store_some<C>(y + d * ys + j, load_some<C>(y + d * ys + j, m) * load<C>(sum + j), m);
    });
}

template <class C> void log_softmax_columns(C* y, int64_t ys, const C* x, int64_t xs, int64_t dim, int64_t n, C* top, C* sum) {
  column_max<C>(x, xs, dim, n, top);
  column_sum_exp<C>(x, xs, dim, n, top, sum);
  for (int64_t j = 0; j < n; ++j) sum[j] = vt::log(sum[j]);
  for (int64_t d = 0; d < dim; ++d)
    sweep<C>(n, [&](int64_t j, auto m) {
      store_some<C>(y + d * ys + j, (load_some<C>(x + d * xs + j, m) - load<C>(top + j)) - load<C>(sum + j), m);
    });
}

template <class C, bool LOG>
void backward_columns(C* out, int64_t os, const C* g, int64_t gs, const C* y, int64_t ys, int64_t dim, int64_t n, C* sum) {
  sweep<C>(n, [&](int64_t j, auto) { store<C>(sum + j, Lanes<C>{}); });
  for (int64_t d = 0; d < dim; ++d)
    sweep<C>(n, [&](int64_t j, auto m) {
      Lanes<C> v = load_some<C>(g + d * gs + j, m);
      if constexpr (!LOG) v *= load_some<C>(y + d * ys + j, m);
      store<C>(sum + j, load<C>(sum + j) + v);
    });
  for (int64_t d = 0; d < dim; ++d)
    sweep<C>(n, [&](int64_t j, auto m) {
      const Lanes<C> v = load_some<C>(g + d * gs + j, m), p = load_some<C>(y + d * ys + j, m), t = load<C>(sum + j);
      if constexpr (LOG) store_some<C>(out + d * os + j, v - exp_below<C>(p) * t, m);
      else store_some<C>(out + d * os + j, p * (v - t), m);
    });
}

// --- any layout --------------------------------------------------------------------------------------

// Columns that neighbours share: the dimension, apart from `dim`, along which the result lies in memory.
int column_dim(const View& out, int dim) {
  int best = -1;
  for (int d = 0; d < out.ndim; ++d)
    if (d != dim && out.shape[d] > 1 && (best < 0 || out.strides[d] < out.strides[best])) best = d;
  return best;
}

bool by_rows(const View& v, int dim) { return v.strides[dim] == itemsize(v.dtype); }

Walk others(const View& v, int dim, int col) {
  Walk w;
  for (int d = 0; d < v.ndim; ++d)
    if (d != dim && d != col) w.add(v.shape[d], v.strides[d]);
  return w;
}

// Calls f(pointers of the block's operands, columns) for blocks of columns, in parallel.
template <class C, int N, class F> void for_blocks(const View* const (&views)[N], int dim, int col, int64_t cost, F&& f) {
  const int64_t length = views[0]->shape[dim], columns = views[0]->shape[col];
  Walk walks[N];
  for (int k = 0; k < N; ++k) walks[k] = others(*views[k], dim, col);
  int64_t width = std::clamp<int64_t>((int64_t(1) << 16) / std::max<int64_t>(length, 1), 32, 512);
  width = std::min((columns + 15) / 16 * 16, width / 16 * 16);
  const int64_t blocks = (columns + width - 1) / width, total = walks[0].count() * blocks;
  parallel_for(total, grain_for(length * width * cost), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      const int64_t r = k / blocks, first = k % blocks * width, n = std::min(width, columns - first);
      char* p[N];
      for (int i = 0; i < N; ++i) p[i] = views[i]->data + walks[i].offset(r) + first * views[i]->strides[col];
      f(p, n);
    }
  });
}

// Whether rows lie along memory and follow each other without gaps.
bool one_after_other(const View& v, int dim) {
  const int64_t item = itemsize(v.dtype), n = v.ndim > 0 ? v.shape[dim] : 1;
  if (v.contiguous()) return n == 1 || dim == v.ndim - 1;
  if (v.ndim > 2 || (n > 1 && v.strides[dim] != item)) return false;
  return v.ndim < 2 || v.shape[1 - dim] == 1 || v.strides[1 - dim] == n * item;
}

template <class C, bool LOG> void forward(const View& x, const View& y, int dim) {
  const int col = x.ndim > 0 ? column_dim(y, dim) : -1;
  const int64_t n = x.ndim > 0 ? x.shape[dim] : 1;
  if (n > 1 && col >= 0 && !(by_rows(x, dim) && by_rows(y, dim)) && x.shape[col] >= 8) {
    const Block<C> from(x, dim, col), to(y, dim, col);
    const View* views[] = {&x, &y};
    for_blocks<C, 2>(views, dim, col, 12, [&](char** p, int64_t m) {
      Scratch<C> a(from.direct ? 0 : n * m), b(to.direct ? 0 : n * m), top(m + 64), sum(m + 64);
      C* out = to.place(p[1], b);
      const C* in = from.load(p[0], a, m);
      if constexpr (LOG) log_softmax_columns<C>(out, to.step(m), in, from.step(m), n, m, top, sum);
      else softmax_columns<C>(out, to.step(m), in, from.step(m), n, m, top, sum);
      to.store(p[1], b, m);
    });
    return;
  }
  if (n <= SHORT && one_after_other(x, dim) && one_after_other(y, dim)) {
    const int64_t rows = x.numel() / n, block = 2048 / n;
    const CastFn in_cast = cast_fn(x.dtype, dtype_of<C>), out_cast = cast_fn(dtype_of<C>, y.dtype);
    const int64_t item = itemsize(x.dtype);
    const bool direct = x.dtype == dtype_of<C> && y.dtype == x.dtype;
    parallel_for((rows + block - 1) / block, grain_for(block * n * 12), [&](int64_t b, int64_t e) {
      alignas(64) C in[2048], out[2048];
      for (int64_t k = b; k < e; ++k) {
        const int64_t first = k * block * n, count = std::min(block, rows - k * block);
        if (direct) short_rows<C, LOG>(y.as<C>() + first, x.as<C>() + first, count, n);
        else {
          in_cast(reinterpret_cast<char*>(in), sizeof(C), x.data + first * item, item, count * n);
          short_rows<C, LOG>(out, in, count, n);
          out_cast(y.data + first * item, item, reinterpret_cast<const char*>(out), sizeof(C), count * n);
        }
      }
    });
    return;
  }
  const Rows<C> from(x, dim, dim + 1), to(y, dim, dim + 1);
  parallel_for(from.rows(), grain_for(n * 12), [&](int64_t b, int64_t e) {
    Scratch<C> in(from.direct ? 0 : n), out(to.direct ? 0 : n);
    for (int64_t r = b; r < e; ++r) {
      const C* row = from.load(r, in);
      C* result = to.place(r, out);
      if constexpr (LOG) log_softmax_row<C>(result, row, n);
      else softmax_row<C>(result, row, n);
      to.store(r, out);
    }
  });
}

template <class C, bool LOG> void backward(const View& g, const View& y, const View& out, int dim) {
  const int col = y.ndim > 0 ? column_dim(out, dim) : -1;
  const int64_t n = y.ndim > 0 ? y.shape[dim] : 1;
  const int64_t cost = LOG ? 10 : 3;
  if (col >= 0 && !(by_rows(y, dim) && by_rows(out, dim)) && y.shape[col] >= 8) {
    const Block<C> by(g, dim, col), from(y, dim, col), to(out, dim, col);
    const View* views[] = {&g, &y, &out};
    for_blocks<C, 3>(views, dim, col, cost, [&](char** p, int64_t m) {
      Scratch<C> a(by.direct ? 0 : n * m), b(from.direct ? 0 : n * m), c(to.direct ? 0 : n * m), sum(m + 64);
      const C *gp = by.load(p[0], a, m), *yp = from.load(p[1], b, m);
      backward_columns<C, LOG>(to.place(p[2], c), to.step(m), gp, by.step(m), yp, from.step(m), n, m, sum);
      to.store(p[2], c, m);
    });
    return;
  }
  const Rows<C> by(g, dim, dim + 1), from(y, dim, dim + 1), to(out, dim, dim + 1);
  parallel_for(from.rows(), grain_for(n * cost), [&](int64_t b, int64_t e) {
    Scratch<C> gs(by.direct ? 0 : n), ys(from.direct ? 0 : n), os(to.direct ? 0 : n);
    for (int64_t r = b; r < e; ++r) {
      const C *gr = by.load(r, gs), *yr = from.load(r, ys);
      C* result = to.place(r, os);
      if constexpr (LOG) log_softmax_backward_row<C>(result, gr, yr, n);
      else softmax_backward_row<C>(result, gr, yr, n);
      to.store(r, os);
    }
  });
}

// Views of the operands with dimensions merged where all of them allow it; `dim` stays apart.
template <int N> struct Merged {
  View views[N];
  int64_t shape[32], strides[N][32];
  int dim = 0;

  Merged(const View* const (&given)[N], int along) {
    const View& v = *given[0];
    int n = 0;
    bool open = false;  // whether the last dimension may take up the next one
    for (int d = 0; d < v.ndim; ++d) {
      if (d != along && v.shape[d] == 1) continue;
      bool fits = open && d != along;
      for (int k = 0; k < N && fits; ++k) fits = strides[k][n - 1] == v.shape[d] * given[k]->strides[d];
      if (!fits) shape[n++] = 1;
      if (d == along) dim = n - 1;
      shape[n - 1] *= v.shape[d];
      for (int k = 0; k < N; ++k) strides[k][n - 1] = given[k]->strides[d];
      open = d != along;
    }
    for (int k = 0; k < N; ++k) views[k] = View{given[k]->data, n, shape, strides[k], given[k]->dtype};
  }
};

template <bool LOG> void run_forward(Call& c) {
  if (c.view(0).numel() == 0) return;
  const View* given[] = {&c.view(0), &c.view(1)};
  const Merged<2> m(given, int(c.i(0)));
  for_compute(c.view(0).dtype, [&](auto t) {
    forward<typename decltype(t)::type, LOG>(m.views[0], m.views[1], m.dim);
  });
}

template <bool LOG> void run_backward(Call& c) {
  if (c.view(1).numel() == 0) return;
  const View* given[] = {&c.view(0), &c.view(1), &c.view(2)};
  const Merged<3> m(given, int(c.i(0)));
  for_compute(c.view(1).dtype, [&](auto t) {
    backward<typename decltype(t)::type, LOG>(m.views[0], m.views[1], m.views[2], m.dim);
  });
}

VT_KERNEL(softmax) { run_forward<false>(c); }
VT_KERNEL(log_softmax) { run_forward<true>(c); }
VT_KERNEL(softmax_backward) { run_backward<false>(c); }
VT_KERNEL(log_softmax_backward) { run_backward<true>(c); }

}  // namespace
}  // namespace vt
