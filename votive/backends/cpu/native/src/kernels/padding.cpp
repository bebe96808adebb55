// Elements taken by tables of positions, one table per dimension: padding and nearest neighbours; and
// the way back, which adds them up.
#include "convolution_padded.h"

namespace vt { namespace {
using namespace conv;

// Stretches of a table whose entries go up or down by a constant; entries of -1 name the fill value.
struct Stretch {
  int64_t at, len, from, step;
};
std::vector<Stretch> stretches(const int64_t* table, int64_t n) {
  std::vector<Stretch> out;
  for (int64_t i = 0; i < n;) {
    int64_t j = i + 1;
    const int64_t step = j < n && table[i] >= 0 && table[j] >= 0 ? table[j] - table[i] : 0;
    if (table[i] < 0)
      while (j < n && table[j] < 0) ++j;
    else
      while (j < n && table[j] >= 0 && table[j] - table[j - 1] == step) ++j;
    out.push_back({i, j - i, table[i], step});
    i = j;
  }
  return out;
}

// A dimension of the outer loops: where each of its indices lies, in bytes; a source of -1 is blank.
struct Loop {
  std::vector<int64_t> from, to;
};

// Outer dimensions, joined where neither has a table and both arrays step evenly from one to the next.
std::vector<Loop> loops(const View& x, const View& out, const View* tables, int inner) {
  std::vector<Loop> all;
  bool plain = false;
  for (int d = 0; d < x.ndim; ++d) {
    if (d == inner || out.shape[d] == 1) {
      if (d != inner && tables[d]) {
        const int64_t i = tables[d].as<int64_t>()[0];
        all.push_back({{i < 0 ? -1 : i * x.strides[d]}, {0}});
        plain = false;
      }
      continue;
    }
    Loop l;
    for (int64_t i = 0; i < out.shape[d]; ++i) {
      const int64_t k = tables[d] ? tables[d].as<int64_t>()[i] : i;
      l.from.push_back(k < 0 ? -1 : k * x.strides[d]);
      l.to.push_back(i * out.strides[d]);
    }
    if (plain && !tables[d] && l.to.size() * all.back().to.size() < 65536) {
      Loop joined;
      for (size_t i = 0; i < all.back().to.size(); ++i)
        for (size_t j = 0; j < l.to.size(); ++j) {
          joined.from.push_back(all.back().from[i] + l.from[j]);
          joined.to.push_back(all.back().to[i] + l.to[j]);
        }
      all.back() = std::move(joined);
    } else all.push_back(std::move(l));
    plain = !tables[d];
  }
  if (all.empty()) all.push_back({{0}, {0}});
  return all;
}

template <class S> void take(const View& x, const View& out, const View* tables, S fill) {
  const int n = x.ndim;
  const int64_t item = sizeof(S);
  // The innermost loop runs along the output's memory.
  int inner = n - 1;
  for (int d = n - 1; d >= 0; --d)
    if (out.shape[d] > 1 && (out.shape[inner] == 1 || out.strides[d] < out.strides[inner])) inner = d;
  const std::vector<Loop> outer = loops(x, out, tables, inner);
  const int depth = int(outer.size());
  const int64_t len = out.shape[inner], os = out.strides[inner], xs = x.strides[inner];
  const int64_t* table = tables[inner] ? tables[inner].as<int64_t>() : nullptr;
  std::vector<Stretch> parts;
  if (table == nullptr) parts.push_back({0, len, 0, 1});
  else parts = stretches(table, len);
  const bool one_by_one = table != nullptr && int64_t(parts.size()) * 4 > len && os == item && xs == item;
  const Loop& last = outer.back();
  const int64_t rows = int64_t(last.to.size());

  const auto line = [&](char* to, const char* from) {
    S* dst = reinterpret_cast<S*>(to);
    if (one_by_one) {
      const S* src = reinterpret_cast<const S*>(from);
      for (int64_t i = 0; i < len; ++i) dst[i] = table[i] < 0 ? fill : src[table[i]];
      return;
    }
    for (const Stretch& p : parts) {
      const char* src = from + p.from * xs;
      char* target = to + p.at * os;
      const int64_t step = p.step * xs;
      if (p.from < 0)
        for (int64_t i = 0; i < p.len; ++i) *reinterpret_cast<S*>(target + i * os) = fill;
      else if (step == item && os == item && p.len > 8) std::memcpy(target, src, size_t(p.len * item));
      else
        for (int64_t i = 0; i < p.len; ++i)
          *reinterpret_cast<S*>(target + i * os) = *reinterpret_cast<const S*>(src + i * step);
    }
  };
  parallel_for(out.numel() / len, grain_for(len / 2 + 8), [&](int64_t b, int64_t e) {
    for (int64_t u = b; u < e;) {
      // All rows of the last outer dimension from here on.
      int64_t r = u / rows, from = 0, to = 0;
      bool blank = false;
      for (int k = depth - 2; k >= 0; --k) {
        const int64_t size = int64_t(outer[k].to.size()), i = r % size;
        r /= size;
        blank = blank || outer[k].from[i] < 0;
        from += outer[k].from[i], to += outer[k].to[i];
      }
      const int64_t i0 = u % rows, i1 = std::min(rows, i0 + e - u);
      u += i1 - i0;
      for (int64_t i = i0; i < i1; ++i) {
        char* at = out.data + to + last.to[i];
        if (blank || last.from[i] < 0) {
          S* dst = reinterpret_cast<S*>(at);
          if (os == item) std::fill(dst, dst + len, fill);
          else
            for (int64_t k = 0; k < len; ++k) *reinterpret_cast<S*>(at + k * os) = fill;
        } else if (i > i0 && os == item && last.from[i] == last.from[i - 1])  // the same line again
          std::memcpy(at, out.data + to + last.to[i - 1], size_t(len * item));
        else line(at, x.data + from + last.from[i]);
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
          out(target + r / H * y.step[0] + r % H * y.step[1], y.step[2], reinterpret_cast<const char*>(to + r * W),
              sizeof(T), W);
    }
  });
}

// Channels last: whole pixels are added, and threads take channels of images.
template <class T> void add_pixels(const Image& g, const Image& y, const int64_t* const* tables) {
  const int64_t part = std::max<int64_t>(16, up(y.c, up(2 * num_threads(), y.n))), parts = up(y.c, part);
  const int64_t plane = y.size[0] * y.size[1] * y.size[2];
  parallel_for(y.n * parts, grain_for(plane * part), [&](int64_t b, int64_t e) {
    for (int64_t u = b; u < e; ++u) {
      const int64_t i = u / parts, c0 = u % parts * part, n = std::min(y.c, c0 + part) - c0;
      char* base = y.data + i * y.sn + c0 * y.sc;
      for (int64_t d = 0; d < y.size[0]; ++d)
        for (int64_t h = 0; h < y.size[1]; ++h)
          for (int64_t w = 0; w < y.size[2]; ++w) {
            T* to = reinterpret_cast<T*>(base + d * y.step[0] + h * y.step[1] + w * y.step[2]);
            std::fill(to, to + n, T(0));
          }
      for (int64_t d = 0; d < g.size[0]; ++d)
        for (int64_t h = 0; h < g.size[1]; ++h) {
          const char* from = g.data + i * g.sn + c0 * g.sc + d * g.step[0] + h * g.step[1];
          char* sums = base + tables[0][d] * y.step[0] + tables[1][h] * y.step[1];
          for (int64_t w = 0; w < g.size[2]; ++w) {
            T* to = reinterpret_cast<T*>(sums + tables[2][w] * y.step[2]);
            const T* row = reinterpret_cast<const T*>(from + w * g.step[2]);
#pragma GCC ivdep
            for (int64_t k = 0; k < n; ++k) to[k] += row[k];
          }
        }
    }
  });
}

template <class T> void add_up(const Image& g, const Image& y, const int64_t* const* tables) {
  if (g.dtype == dtype_of<T> && y.dtype == g.dtype && y.c > 1 && g.sc == int64_t(sizeof(T)) && y.sc == g.sc &&
      y.step[2] != y.sc)
    add_pixels<T>(g, y, tables);
  else add_planes<T>(g, y, tables);
}

VT_KERNEL(add_by_tables) {
  const Image g(c.view(0), int(c.i(0))), y(c.view(1), int(c.i(0)));
  const int64_t* tables[3] = {c.view(2).as<int64_t>(), c.view(3).as<int64_t>(), c.view(4).as<int64_t>()};
  if (g.dtype == Dtype::f64) add_up<double>(g, y, tables);
  else add_up<float>(g, y, tables);
}

}}  // namespace vt
