// Slices and elements by index: reading, overwriting, adding.
//
// The indexed dimensions make one list of places (byte offsets). Around it lie the dimensions in front,
// `lead`, and those behind, `trail`: an operation moves L x N rows of trail elements.
#pragma once
#include "indices.h"
#include "vt/cast.h"

namespace vt::indexed {

// Place p is at byte `pos[p] * step`.
struct Places {
  const int64_t* pos;
  int64_t step, n;
  int64_t operator[](int64_t p) const { return pos[p] * step; }
};

// Dimensions of `v` from b to e, outermost first; .d holds the byte strides of `v`, .s is for others.
struct Dims {
  CopyDim dim[COPY_DIMS];
  int count = 0;
  int64_t n = 1;

  void add(int64_t size, int64_t d, int64_t s) {
    n *= size;
    if (size == 1) return;
    if (count > 0) {
      CopyDim& o = dim[count - 1];
      if (o.d == size * d && o.s == size * s) {
        o = {o.n * size, d, s};
        return;
      }
    }
    dim[count++] = {size, d, s};
  }
  // Offsets of element i.
  void locate(int64_t i, int64_t& d, int64_t& s) const {
    for (int k = count - 1; k >= 0; --k) {
      const int64_t j = i % dim[k].n;
      i /= dim[k].n;
      d += j * dim[k].d;
      s += j * dim[k].s;
    }
  }

  // Offsets of one element after the other, without a division each.
  struct Walk {
    Walk(const Dims& dims, int64_t i) : dims(dims) {
      for (int k = dims.count - 1; k >= 0; --k) {
        index[k] = i % dims.dim[k].n;
        i /= dims.dim[k].n;
        d += index[k] * dims.dim[k].d;
        s += index[k] * dims.dim[k].s;
      }
    }
    void next() {
      if (dims.count == 0) return;
      const CopyDim& l = dims.dim[dims.count - 1];
      d += l.d, s += l.s;
      if (++index[dims.count - 1] == l.n) carry();
    }
    void carry() {
      for (int k = dims.count - 1; k >= 0; --k) {
        const CopyDim& l = dims.dim[k];
        d -= l.n * l.d, s -= l.n * l.s;
        index[k] = 0;
        if (k == 0) return;
        d += dims.dim[k - 1].d, s += dims.dim[k - 1].s;
        if (++index[k - 1] < dims.dim[k - 1].n) return;
      }
    }
    const Dims& dims;
    int64_t index[COPY_DIMS], d = 0, s = 0;
  };
};

// --- reading ------------------------------------------------------------------------------------

// A few bytes, by two moves that may overlap: a call would take longer.
inline void copy_few(char* d, const char* s, int64_t bytes) {
  const auto ends = [&](auto word) {
    using W = decltype(word);
    W first, last;
    std::memcpy(&first, s, sizeof(W));
    std::memcpy(&last, s + bytes - sizeof(W), sizeof(W));
    std::memcpy(d, &first, sizeof(W));
    std::memcpy(d + bytes - sizeof(W), &last, sizeof(W));
  };
  if (bytes >= 16) ends(Bytes16{});
  else if (bytes >= 8) ends(uint64_t{});
  else if (bytes >= 4) ends(uint32_t{});
  else if (bytes >= 2) ends(uint16_t{});
  else *d = *s;
}

// Single elements: out, dense, = lead x places of x.
template <class T> void read_elements(char* out, const char* x, const Dims& lead, const Places& at) {
  const int64_t* pos = at.pos;
  const int64_t step = at.step;
  parallel_for(lead.n * at.n, grain_for(2), [&](int64_t b, int64_t e) {
    int64_t l = b / at.n;
    Dims::Walk walk(lead, l);
    for (int64_t t = b; t < e; ++l, walk.next()) {
      const int64_t begin = l * at.n, p = t - begin, end = std::min(e - begin, at.n);
      const char* base = x + walk.d;
      T* o = reinterpret_cast<T*>(out) + begin;
      t = begin + end;
      if (end - p < 8) {
        for (int64_t i = p; i < end; ++i) o[i] = *reinterpret_cast<const T*>(base + pos[i] * step);
      } else if (step == int64_t(sizeof(T))) {
        const T* s = reinterpret_cast<const T*>(base);
#pragma GCC unroll 8
        for (int64_t i = p; i < end; ++i) o[i] = s[pos[i]];
      } else {
#pragma GCC unroll 8
        for (int64_t i = p; i < end; ++i) o[i] = *reinterpret_cast<const T*>(base + pos[i] * step);
      }
    }
  });
}

// out, dense, = lead x places x trail of x; .d of the dimensions are x's strides, .s the result's.
inline void read_rows(char* out, const char* x, Dtype dtype, const Dims& lead, const Places& at, const Dims& trail) {
  const int64_t item = itemsize(dtype), bytes = trail.n * item;
  if (bytes == 0) return;
  if (trail.n == 1)
    return for_sizes(dtype, [&](auto t) { read_elements<typename decltype(t)::type>(out, x, lead, at); });
  const bool dense = trail.count == 0 || (trail.count == 1 && trail.dim[0].d == item);
  parallel_for(lead.n * at.n, grain_for(dense ? bytes / 4 + 2 : trail.n), [&](int64_t b, int64_t e) {
    int64_t l = b / at.n;
    Dims::Walk walk(lead, l);
    for (int64_t t = b; t < e; ++l, walk.next()) {
      const int64_t stop = std::min(e, (l + 1) * at.n);
      const char* base = x + walk.d;
      int64_t p = t - l * at.n;
      const int64_t end = stop - l * at.n;
      char* d = out + t * bytes;
      if (dense && bytes <= 32) {
        for (; p < end; ++p, d += bytes) copy_few(d, base + at[p], bytes);
      } else if (dense) {
        for (; p < end; ++p, d += bytes) {
          if (p + 4 < end) {
            const char* next = base + at[p + 4];
            for (int64_t line = 0; line < std::min<int64_t>(bytes, 512); line += 64) __builtin_prefetch(next + line);
          }
          std::memcpy(d, base + at[p], size_t(bytes));
        }
      } else {
        CopyDim dims[COPY_DIMS];
        for (int k = 0; k < trail.count; ++k) dims[k] = {trail.dim[k].n, trail.dim[k].s, trail.dim[k].d};
        for (; p < end; ++p, d += bytes) copy_block(d, dtype, base + at[p], dtype, dims, trail.count);
      }
      t = stop;
    }
  });
}

// --- writing ------------------------------------------------------------------------------------

struct Assign {
  template <class T> static void one(T& d, T s) { d = s; }
};
struct Add {
  template <class T> static void one(T& d, T s) {
    if constexpr (std::is_same_v<T, bool>) d = d | s;
    else if constexpr (std::is_integral_v<T>) d = T(std::make_unsigned_t<T>(d) + std::make_unsigned_t<T>(s));
    else d += s;
  }
};

template <class Op, class T> void write_row(char* d, const char* s, const Dims& trail) {
  if (trail.count == 0) return Op::template one<T>(*reinterpret_cast<T*>(d), *reinterpret_cast<const T*>(s));
  const CopyDim& in = trail.dim[trail.count - 1];
  auto line = [&](char* d, const char* s) {
    T* dt = reinterpret_cast<T*>(d);
    const T* st = reinterpret_cast<const T*>(s);
    if (in.d == int64_t(sizeof(T)) && in.s == int64_t(sizeof(T))) {
      if constexpr (std::is_same_v<Op, Assign>) std::memcpy(d, s, size_t(in.n) * sizeof(T));
      else {
#pragma GCC ivdep
        for (int64_t i = 0; i < in.n; ++i) Op::template one<T>(dt[i], st[i]);
      }
    } else if (in.d == int64_t(sizeof(T)) && in.s == 0) {
      const T v = *st;
#pragma GCC ivdep
      for (int64_t i = 0; i < in.n; ++i) Op::template one<T>(dt[i], v);
    } else {
      for (int64_t i = 0; i < in.n; ++i)
        Op::template one<T>(*reinterpret_cast<T*>(d + i * in.d), *reinterpret_cast<const T*>(s + i * in.s));
    }
  };
  if (trail.count == 1) return line(d, s);
  for (int64_t i = 0; i < trail.n / in.n; ++i) {
    int64_t to = 0, from = 0, rest = i;
    for (int k = trail.count - 2; k >= 0; --k) {
      const int64_t j = rest % trail.dim[k].n;
      rest /= trail.dim[k].n;
      to += j * trail.dim[k].d;
      from += j * trail.dim[k].s;
    }
    line(d + to, s + from);
  }
}

// Row (l, p) of `values`, p steps of `v_step` bytes, into place p. Of rows for one place the last one
// stays, or they add up in their order: a place belongs to one thread.
template <class Op, class T>
void write_rows(char* out, const char* values, int64_t v_step, const Dims& lead, const Places& at, const Dims& trail) {
  if (trail.n == 0 || lead.n == 0 || at.n == 0) return;
  auto row = [&](int64_t l, auto&& each) {
    int64_t to = 0, from = 0;
    lead.locate(l, to, from);
    each(out + to, values + from);
  };
  const int threads = num_threads();
  if (lead.n >= 4 * threads || threads == 1 || lead.n * at.n * trail.n < 16384) {
    parallel_for(lead.n, grain_for(at.n * (trail.n + 2)), [&](int64_t b, int64_t e) {
      Dims::Walk walk(lead, b);
      for (int64_t l = b; l < e; ++l, walk.next()) {
        char* d = out + walk.d;
        const char* s = values + walk.s;
        if (trail.n == 1)
          for (int64_t p = 0; p < at.n; ++p)
            Op::template one<T>(*reinterpret_cast<T*>(d + at[p]), *reinterpret_cast<const T*>(s + p * v_step));
        else
          for (int64_t p = 0; p < at.n; ++p) write_row<Op, T>(d + at[p], s + p * v_step, trail);
      }
    });
    return;
  }
  int64_t most = 0;
  for (int64_t p = 0; p < at.n; ++p) most = std::max(most, at.pos[p]);
  const int64_t share = most / threads + 1;
  parallel_for(threads, 1, [&](int64_t b, int64_t e) {
    const int64_t low = b * share, high = e * share;
    constexpr int64_t CHUNK = 1024;
    int32_t mine[CHUNK + 16];
    for (int64_t l = 0; l < lead.n; ++l)
      row(l, [&](char* d, const char* s) {
        for (int64_t p0 = 0; p0 < at.n; p0 += CHUNK) {
          const int64_t n = std::min(CHUNK, at.n - p0);
          const int64_t count = within(at.pos + p0, n, low, high, mine);
          if (trail.n == 1)
            for (int64_t i = 0; i < count; ++i) {
              const int64_t p = p0 + mine[i];
              Op::template one<T>(*reinterpret_cast<T*>(d + at[p]), *reinterpret_cast<const T*>(s + p * v_step));
            }
          else
            for (int64_t i = 0; i < count; ++i) {
              const int64_t p = p0 + mine[i];
              write_row<Op, T>(d + at[p], s + p * v_step, trail);
            }
        }
      });
  });
}

inline void assign_rows(Dtype dtype, char* out, const char* values, int64_t v_step, const Dims& lead, const Places& at,
                 const Dims& trail) {
  for_sizes(dtype, [&](auto t) {
    write_rows<Assign, typename decltype(t)::type>(out, values, v_step, lead, at, trail);
  });
}

}  // namespace vt::indexed
