// Elements taken by tables of positions, one table per dimension: padding and nearest neighbours; and
// the way back, which adds them up.
#include "conv_core.h"

namespace vt { namespace {
using namespace conv;

constexpr int MOST = 8;  // dimensions

// Stretches of a table whose entries go up or down by a constant; entries of -1 name the fill value.
struct Stretch {
  int64_t at, len, from, step;
};
std::vector<Stretch> stretches(const int64_t* table, int64_t n) {
  std::vector<Stretch> out;
  for (int64_t i = 0; i < n;) {
    int64_t j = i + 1;
    const int64_t step = j < n && table[i] >= 0 && table[j] >= 0 ? table[j] - table[i] : 0;
    if (table[i] < 0) while (j < n && table[j] < 0) ++j;
    else while (j < n && table[j] >= 0 && table[j] - table[j - 1] == step) ++j;
    out.push_back({i, j - i, table[i], step});
    i = j;
  }
  return out;
}

template <class S> void take(const View& x, const View& out, const View* tables, S fill) {
  const int n = x.ndim;
  const int64_t item = sizeof(S);
  // The innermost loop runs along the output's memory.
  int inner = n - 1;
  for (int d = n - 1; d >= 0; --d)
    if (out.shape[d] > 1 && (out.shape[inner] == 1 || out.strides[d] < out.strides[inner])) inner = d;
  int order[MOST], outer = 0;
  for (int d = 0; d < n; ++d)
    if (d != inner) order[outer++] = d;
  const int64_t len = out.shape[inner], os = out.strides[inner], xs = x.strides[inner];
  const int64_t* table = tables[inner] ? tables[inner].as<int64_t>() : nullptr;
  std::vector<Stretch> parts;
  if (table == nullptr) parts.push_back({0, len, 0, 1});
  else parts = stretches(table, len);
  const bool one_by_one = table != nullptr && int64_t(parts.size()) * 4 > len && os == item;
  const int64_t lines = out.numel() / len;
  parallel_for(lines, grain_for(len / 2 + 8), [&](int64_t b, int64_t e) {
    int64_t at[MOST] = {};
    for (int64_t r = b, k = outer - 1; k >= 0; --k) at[k] = r % out.shape[order[k]], r /= out.shape[order[k]];
    const char* last = nullptr;
    const char* last_to = nullptr;
    for (int64_t u = b; u < e; ++u) {
      const char* from = x.data;
      char* to = out.data;
      bool blank = false;
      for (int k = 0; k < outer; ++k) {
        const int d = order[k];
        const int64_t i = tables[d] ? tables[d].as<int64_t>()[at[k]] : at[k];
        blank = blank || i < 0;
        from += i * x.strides[d];
        to += at[k] * out.strides[d];
      }
      S* dst = reinterpret_cast<S*>(to);
      if (blank) {
        if (os == item) std::fill(dst, dst + len, fill);
        else
          for (int64_t i = 0; i < len; ++i) *reinterpret_cast<S*>(to + i * os) = fill;
        last = nullptr;
      } else if (from == last && os == item) std::memcpy(to, last_to, size_t(len * item));  // the same line again
      else {
        if (one_by_one && xs == item) {
          const S* src = reinterpret_cast<const S*>(from);
          for (int64_t i = 0; i < len; ++i) dst[i] = table[i] < 0 ? fill : src[table[i]];
        } else
          for (const Stretch& p : parts) {
            const char* src = from + p.from * xs;
            char* target = to + p.at * os;
            if (p.from < 0)
              for (int64_t i = 0; i < p.len; ++i) *reinterpret_cast<S*>(target + i * os) = fill;
            else if (p.step * xs == item && os == item) std::memcpy(target, src, size_t(p.len * item));
            else
              for (int64_t i = 0; i < p.len; ++i)
                *reinterpret_cast<S*>(target + i * os) = *reinterpret_cast<const S*>(src + i * p.step * xs);
          }
        last = from;
        last_to = to;
      }
      for (int k = outer - 1; k >= 0; --k) {
        if (++at[k] < out.shape[order[k]]) break;
        at[k] = 0;
      }
    }
  });
}

// x, out, a table or nothing per dimension, then an array of one element with the fill value.
VT_KERNEL(take_by_tables) {
  const View &x = c.view(0), &out = c.view(1);
  for_sizes(x.dtype, [&](auto t) {
    using S = typename decltype(t)::type;
    const View& fill = c.view(2 + x.ndim);
    take<S>(x, out, &c.views[2], *fill.as<S>());
  });
}

// The same, the fill value being a number.
VT_KERNEL(pad_constant) {
  const View &x = c.view(0), &out = c.view(1);
  char value[16] = {};
  if (!c.floats.empty()) cast_fn(Dtype::f64, x.dtype)(value, 0, reinterpret_cast<const char*>(&c.floats[0]), 0, 1);
  else cast_fn(Dtype::i64, x.dtype)(value, 0, reinterpret_cast<const char*>(&c.ints[0]), 0, 1);
  for_sizes(x.dtype, [&](auto t) {
    using S = typename decltype(t)::type;
    take<S>(x, out, &c.views[2], *reinterpret_cast<S*>(value));
  });
}

// g, out, three tables: out[table] += g within each plane.
template <class T> void add_planes(const Image& g, const Image& y, const int64_t* const* tables) {
  const CastFn in = cast_fn(g.dtype, dtype_of<T>), out = cast_fn(dtype_of<T>, y.dtype);
  const int64_t H = y.size[1], W = y.size[2], plane = y.size[0] * H * W, V = g.size[2], item = itemsize(y.dtype);
  const bool dense_plane = y.dtype == dtype_of<T> && y.step[2] == item && y.step[1] == W * item &&
                           (y.size[0] == 1 || y.step[0] == H * W * item);
  const std::vector<Stretch> parts = stretches(tables[2], V);
  parallel_for(g.n * g.c, grain_for(plane / 4 + g.size[0] * g.size[1] * (V / 4 + 10)), [&](int64_t b, int64_t e) {
    Scratch<T> space(dense_plane ? 0 : plane), line(V);
    for (int64_t k = b; k < e; ++k) {
      char* target = y.data + k / g.c * y.sn + k % g.c * y.sc;
      T* to = dense_plane ? reinterpret_cast<T*>(target) : space.get();
      std::fill(to, to + plane, T(0));
      for (int64_t d = 0; d < g.size[0]; ++d)
        for (int64_t h = 0; h < g.size[1]; ++h) {
          const char* from = g.data + k / g.c * g.sn + k % g.c * g.sc + d * g.step[0] + h * g.step[1];
          const T* row = line;
          if (g.dtype == dtype_of<T> && g.step[2] == int64_t(sizeof(T))) row = reinterpret_cast<const T*>(from);
          else in(reinterpret_cast<char*>(line.get()), sizeof(T), from, g.step[2], V);
          T* sums = to + (tables[0][d] * H + tables[1][h]) * W;
          for (const Stretch& p : parts) {
            if (p.step == 1) {
              T* s = sums + p.from;
              const T* r = row + p.at;
#pragma GCC ivdep
              for (int64_t i = 0; i < p.len; ++i) s[i] += r[i];
            } else
              for (int64_t i = 0; i < p.len; ++i) sums[p.from + i * p.step] += row[p.at + i];
          }
        }
      if (!dense_plane)
        for (int64_t r = 0; r < y.size[0] * H; ++r)
          out(target + r / H * y.step[0] + r % H * y.step[1], y.step[2], reinterpret_cast<const char*>(to + r * W), sizeof(T), W);
    }
  });
}

VT_KERNEL(add_by_tables) {
  const Image g(c.view(0), int(c.i(0))), y(c.view(1), int(c.i(0)));
  const int64_t* tables[3] = {c.view(2).as<int64_t>(), c.view(3).as<int64_t>(), c.view(4).as<int64_t>()};
  if (g.dtype == Dtype::f64) add_planes<double>(g, y, tables);
  else add_planes<float>(g, y, tables);
}

}}  // namespace vt
