// Elements by an index tensor along one dimension: gather, and scatter in all its forms.
//
// An index of shape I names, at each of its positions i, element index[i] along `dim` and i elsewhere.
#include <charconv>
#include <cmath>
#include <limits>

#include "indices.h"
#include "vt/cast.h"

namespace vt {

namespace {

const char* name_of(Dtype d) {
  static const char* names[] = {"bool",    "int8",     "int16",   "int32",   "int64",     "uint8",      "uint16", "uint32",
                                "uint64",  "float16",  "bfloat16", "float32", "float64", "complex64", "complex128"};
  return names[int(d)];
}

std::string text(double x) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), x).ptr;
  return std::string(buffer, end);
}

// The loops over an index: sizes, strides of the indexed tensor (0 along `dim`) and of the source.
struct Loops {
  Loops(const View& index, int dim, const View& x, const View* source) : step(x.strides[dim]) {
    for (int d = 0; d < index.ndim; ++d) {
      const int64_t n = index.shape[d], s = source ? source->strides[d] : 0;
      total *= n;
      if (n == 1) continue;
      const int64_t a = d == dim ? 0 : x.strides[d];
      CopyDim& o = loop[count > 0 ? count - 1 : 0];
      if (d != dim && count > 0 && along != count - 1 && o.d == n * a && o.s == n * s) {
        o = {o.n * n, a, s};
        continue;
      }
      if (d == dim) along = count;
      loop[count++] = {n, a, s};
    }
    if (count == 0) loop[count++] = {1, 0, 0};
  }
  CopyDim loop[COPY_DIMS];
  int count = 0;
  int along = -1;     // which loop runs along `dim`; -1 when its size is 1
  int64_t step;       // of the indexed tensor along `dim`
  int64_t total = 1;

  // Offsets at element i of the loops first..last-1.
  void locate(int64_t i, int first, int last, int64_t& a, int64_t& s, int64_t& at) const {
    int64_t size = 1;
    for (int k = count - 1; k >= last; --k) size *= loop[k].n;
    for (int k = last - 1; k >= first; --k) {
      const int64_t j = i % loop[k].n;
      i /= loop[k].n;
      a += j * loop[k].d;
      s += j * loop[k].s;
      at += j * size;
      size *= loop[k].n;
    }
  }
  int64_t size(int first, int last) const {
    int64_t n = 1;
    for (int k = first; k < last; ++k) n *= loop[k].n;
    return n;
  }

  // Offsets of one row of the innermost loop after the other: lines are often too short for a division each.
  struct Rows {
    Rows(const Loops& loops, int64_t row) : loops(loops), last(loops.count - 1) {
      for (int k = last - 1; k >= 0; --k) {
        index[k] = row % loops.loop[k].n;
        row /= loops.loop[k].n;
        a += index[k] * loops.loop[k].d;
        s += index[k] * loops.loop[k].s;
      }
    }
    // How many rows follow each other at one distance, this one included, and that distance on both sides.
    int64_t left() const { return last == 0 ? 1 : loops.loop[last - 1].n - index[last - 1]; }
    int64_t step_a() const { return last == 0 ? 0 : loops.loop[last - 1].d; }
    int64_t step_s() const { return last == 0 ? 0 : loops.loop[last - 1].s; }
    void next(int64_t n = 1) {  // at most as many as are left
      if (last == 0) return;
      a += n * step_a(), s += n * step_s();
      index[last - 1] += n;
      for (int k = last - 1; k >= 0 && index[k] == loops.loop[k].n; --k) {
        a -= loops.loop[k].n * loops.loop[k].d, s -= loops.loop[k].n * loops.loop[k].s;
        index[k] = 0;
        if (k == 0) return;
        a += loops.loop[k - 1].d, s += loops.loop[k - 1].s;
        ++index[k - 1];
      }
    }
    const Loops& loops;
    int last;
    int64_t index[COPY_DIMS], a = 0, s = 0;
  };
};

// gather(out, x, index, dim): out is dense
VT_KERNEL(gather) {
  const View &out = c.view(0), &x = c.view(1);
  const int dim = int(c.i(0));
  Indices index(c.view(2));
  if (index.n == 0) return;
  const Loops loops(c.view(2), dim, x, nullptr);
  const CopyDim inner = loops.loop[loops.count - 1];
  for_sizes(x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    T* o = out.as<T>();
    const int64_t step = loops.step, d = inner.d;
    parallel_for(index.n, grain_for(2), [&](int64_t b, int64_t e) {
      int64_t row = b / inner.n;
      Loops::Rows rows(loops, row);
      for (int64_t i = b; i < e;) {
        const int64_t stop = std::min(e, i + 4096);
        // Looked at once more while they are in cache.
        index.check_part<std::runtime_error>(i, stop, "gather", dim, x.shape[dim]);
        while (i < stop) {
          const int64_t begin = row * inner.n, end = std::min(stop, begin + inner.n);
          if (inner.n < 8 && i == begin && end == begin + inner.n) {  // many short ones
            const int64_t n = std::min(rows.left(), (stop - i) / inner.n), m = inner.n, next = rows.step_a();
            const char* from = x.data + rows.a;
            for (int64_t r = 0; r < n; ++r, from += next, i += m)
              for (int64_t j = 0; j < m; ++j) o[i + j] = *reinterpret_cast<const T*>(from + j * d + index.data[i + j] * step);
            row += n, rows.next(n);
            continue;
          }
          const char* from = x.data + rows.a - begin * d;
          if (d == 0 && step == int64_t(sizeof(T))) {
            const T* row_of = reinterpret_cast<const T*>(from);
#pragma GCC unroll 8
            for (; i < end; ++i) o[i] = row_of[index.data[i]];
          } else {
#pragma GCC unroll 8
            for (; i < end; ++i) o[i] = *reinterpret_cast<const T*>(from + i * d + index.data[i] * step);
          }
          if (i == begin + inner.n) ++row, rows.next();
        }
      }
    });
  });
}

// --- writing -------------------------------------------------------------------------------------

struct Put {
  template <class T> static T of(T, T s) { return s; }
};
struct Sum {
  template <class T> static T of(T d, T s) {
    if constexpr (std::is_same_v<T, bool>) return d | s;
    else if constexpr (std::is_integral_v<T>) return T(uint64_t(d) + uint64_t(s));
    else return d + s;
  }
};
struct Product {
  template <class T> static T of(T d, T s) {
    if constexpr (std::is_same_v<T, bool>) return d & s;
    else if constexpr (std::is_integral_v<T>) return T(uint64_t(d) * uint64_t(s));
    else return d * s;
  }
};
struct Largest {
  // Chosen without a branch, NaN apart: which one is larger cannot be foreseen.
  template <class T> static T of(T d, T s) {
    const T larger = s > d ? s : d;
    return s != s ? s : larger;
  }
};
struct Smallest {
  template <class T> static T of(T d, T s) {
    const T smaller = s < d ? s : d;
    return s != s ? s : smaller;
  }
};

// Positions that share all coordinates but the one along `dim` may meet in one place; they are handled
// in their order by one thread.
template <class Op, class T> void scatter_into(char* out, const char* source, const Indices& index, const Loops& loops) {
  const CopyDim inner = loops.loop[loops.count - 1];
  const int64_t step = loops.step;
  // One row of the innermost loop from j0 to j1; `to`, `from` and `at` are where it begins.
  auto line = [&](char* to, const char* from, const int64_t* at, int64_t j0, int64_t j1) {
    if (j1 - j0 < 8) {
      for (int64_t j = j0; j < j1; ++j) {
        T& d = *reinterpret_cast<T*>(to + j * inner.d + at[j] * step);
        d = Op::of(d, *reinterpret_cast<const T*>(from + j * inner.s));
      }
      return;
    }
    if (step == int64_t(sizeof(T)) && inner.d == 0 && inner.s == int64_t(sizeof(T))) {
      T* d = reinterpret_cast<T*>(to);
      const T* s = reinterpret_cast<const T*>(from);
#pragma GCC unroll 4
      for (int64_t j = j0; j < j1; ++j) d[at[j]] = Op::of(d[at[j]], s[j]);
      return;
    }
#pragma GCC unroll 4
    for (int64_t j = j0; j < j1; ++j) {
      T& d = *reinterpret_cast<T*>(to + j * inner.d + at[j] * step);
      d = Op::of(d, *reinterpret_cast<const T*>(from + j * inner.s));
    }
  };
  const int threads = num_threads();
  // Loops in front of `dim` are independent of each other; without `dim` all are.
  const int free = loops.along < 0 ? loops.count - 1 : std::min(loops.along, loops.count - 1);
  const bool last = loops.along == loops.count - 1;
  const int64_t fronts = loops.size(0, free), rows = loops.size(free, loops.count - 1);
  if (last && fronts < 2 * threads && threads > 1 && loops.total >= 32768) {
    // Long lists into few lines: each thread owns a range of the places.
    int64_t most = 0;
    for (int64_t i = 0; i < index.n; ++i) most = std::max(most, index[i]);
    const int64_t share = most / threads + 1;
    parallel_for(threads, 1, [&](int64_t b, int64_t e) {
      const int64_t low = b * share, high = e * share;
      constexpr int64_t CHUNK = 1024;
      int32_t mine[CHUNK + 16];
      for (int64_t f = 0; f < fronts; ++f) {
        int64_t a = 0, s = 0, at = 0;
        loops.locate(f, 0, free, a, s, at);
        char* to = out + a;
        for (int64_t j0 = 0; j0 < inner.n; j0 += CHUNK) {
          const int64_t n = std::min(CHUNK, inner.n - j0);
          const int64_t* pos = index.data + at + j0;
          const int64_t count = within(pos, n, low, high, mine);
          const char* from = source + s + j0 * inner.s;
#pragma GCC unroll 4
          for (int64_t i = 0; i < count; ++i) {
            T& d = *reinterpret_cast<T*>(to + pos[mine[i]] * step);
            d = Op::of(d, *reinterpret_cast<const T*>(from + mine[i] * inner.s));
          }
        }
      }
    });
    return;
  }
  // Columns can be shared out when the innermost loop is not the one along `dim`.
  int64_t width = inner.n;
  if (!last && fronts < 4 * threads) width = std::max<int64_t>(64, (inner.n + 4 * threads - 1) / (4 * threads));
  const int64_t strips = (inner.n + width - 1) / width;
  parallel_for(fronts * strips, grain_for(2 * rows * width), [&](int64_t b, int64_t e) {
    if (strips == 1) {
      Loops::Rows at(loops, b * rows);
      for (int64_t r = b * rows; r < e * rows;) {
        const int64_t n = std::min(at.left(), e * rows - r), to_next = at.step_a(), from_next = at.step_s();
        char* to = out + at.a;
        const char* from = source + at.s;
        const int64_t* pos = index.data + r * inner.n;
        for (int64_t k = 0; k < n; ++k, to += to_next, from += from_next, pos += inner.n) line(to, from, pos, 0, inner.n);
        r += n, at.next(n);
      }
      return;
    }
    for (int64_t t = b; t < e; ++t) {
      const int64_t f = t / strips, j0 = t % strips * width, j1 = std::min(inner.n, j0 + width);
      for (int64_t r = 0; r < rows; ++r) {
        int64_t a = 0, s = 0, at = 0;
        loops.locate(f, 0, free, a, s, at);
        loops.locate(r, free, loops.count - 1, a, s, at);
        line(out + a, source + s, index.data + at, j0, j1);
      }
    }
  });
}

// What loses against every other value.
template <class T> T neutral(bool largest) {
  using L = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) return !largest;
  else if constexpr (std::is_integral_v<T>) return largest ? L::min() : L::max();
  else return largest ? -L::infinity() : L::infinity();
}

// scatter(out, x, index, source, dim): the source is a tensor or a number
VT_KERNEL(scatter) {
  const View &out = c.view(0), &x = c.view(1);
  const int dim = int(c.i(0));
  Indices index(c.view(2), &out);
  if (index.n == 0) return start(out, x);
  index.check<std::runtime_error>("scatter", dim, out.shape[dim]);
  auto run = [&](const char* values, const View* source) {
    start(out, x);
    const Loops loops(c.view(2), dim, out, source);
    for_sizes(out.dtype, [&](auto t) {
      scatter_into<Put, typename decltype(t)::type>(out.data, values, index, loops);
    });
  };
  if (c.views.size() > 3) return with_source(c.view(3), out, out.dtype, [&](const View& s) { run(s.data, &s); });
  alignas(16) char v[16];
  number_as(c, "scatter", 1, out.dtype, v);
  run(v, nullptr);
}

// scatter_reduce(out, x, index, source, dim, how, own): how is 0 sum, 1 product, 2 largest, 3 smallest
VT_KERNEL(scatter_reduce) {
  const View &out = c.view(0), &x = c.view(1);
  const int dim = int(c.i(0)), how = int(c.i(1));
  const bool own = c.i(2) != 0;
  Indices index(c.view(2), &out);
  if (index.n == 0) return start(out, x);
  index.check<std::runtime_error>(how == 0 ? "scatter_add" : "scatter_reduce", dim, out.shape[dim]);
  with_source(c.view(3), out, combined(out.dtype), [&](const View& source) {
    start(out, x);
    in_float(out, [&](const View& out) {
      const Loops loops(c.view(2), dim, out, &source);
      for_combined("scatter_reduce", out.dtype, [&](auto t) {
        using T = typename decltype(t)::type;
        if (!own) {
          const T v = how == 1 ? T(1) : neutral<T>(how == 2);
          const Loops still(c.view(2), dim, out, nullptr);
          scatter_into<Put, T>(out.data, reinterpret_cast<const char*>(&v), index, still);
        }
        if (how == 0) scatter_into<Sum, T>(out.data, source.data, index, loops);
        else if (how == 1) scatter_into<Product, T>(out.data, source.data, index, loops);
        else if (how == 2) scatter_into<Largest, T>(out.data, source.data, index, loops);
        else scatter_into<Smallest, T>(out.data, source.data, index, loops);
      });
    });
  });
}

}  // namespace

void number_as(const Call& c, const char* op, size_t at, Dtype to, char* v) {
  auto refuse = [&](const std::string& shown) {
    throw std::runtime_error(std::string(op) + ": value " + shown + " does not fit into " + name_of(to) + ".");
  };
  if (c.ints.size() > at) {
    const int64_t x = c.ints[at];
    cast_fn(Dtype::i64, to)(v, 0, reinterpret_cast<const char*>(&x), 0, 1);
    const int64_t bits = itemsize(to) * 8;
    const bool is_signed = to == Dtype::i8 || to == Dtype::i16 || to == Dtype::i32;
    const bool is_unsigned = to == Dtype::u8 || to == Dtype::u16 || to == Dtype::u32;
    if (is_signed && (x < -(int64_t(1) << (bits - 1)) || x >= int64_t(1) << (bits - 1))) refuse(std::to_string(x));
    if (is_unsigned && (x <= -(int64_t(1) << bits) || x >= int64_t(1) << bits)) refuse(std::to_string(x));
    if (to == Dtype::f16) {
      float f;
      cast_fn(to, Dtype::f32)(reinterpret_cast<char*>(&f), 0, v, 0, 1);
      if (std::isinf(f)) refuse(std::to_string(x));
    }
    return;
  }
  const double x = c.floats[0];
  cast_fn(Dtype::f64, to)(v, 0, reinterpret_cast<const char*>(&x), 0, 1);
  double back;
  cast_fn(to, Dtype::f64)(reinterpret_cast<char*>(&back), 0, v, 0, 1);
  if (std::isinf(back) && !std::isinf(x)) refuse(text(x));
}

}  // namespace vt
