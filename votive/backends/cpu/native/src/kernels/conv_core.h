// What the convolution kernels share: vectors, the register-blocked product, work sharing, and copies
// of tensors with padding in place.
#pragma once
#include <algorithm>
#include <atomic>
#include <vector>

#include "vt/cast.h"
#include "vt/kernel.h"

namespace vt::conv {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64, MR = 8;
#elif defined(__AVX__)
constexpr int VECTOR_BYTES = 32, MR = 4;
#else
constexpr int VECTOR_BYTES = 16, MR = 4;
#endif
constexpr int NV = 3;  // vectors of a full sliver: MR x NV accumulators fill the registers

template <class T> constexpr int64_t LANES = VECTOR_BYTES / sizeof(T);
template <class T> struct VecOf {
  typedef T type __attribute__((vector_size(VECTOR_BYTES)));
  typedef T loose __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};
template <class T> using Vec = typename VecOf<T>::type;
template <class T> inline Vec<T> load(const T* p) { return *reinterpret_cast<const typename VecOf<T>::loose*>(p); }
template <class T> inline void store(T* p, Vec<T> v) { *reinterpret_cast<typename VecOf<T>::loose*>(p) = v; }

// C (M x N vectors) = or += A (M x K; element (m, k) at m * ar + k * ak) B (K rows of N vectors, bs apart).
template <class T, int M, int N> inline void micro(int64_t K, const T* a, int64_t ar, int64_t ak, const T* b,
                                                   int64_t bs, T* c, int64_t ldc, bool accumulate) {
  using V = Vec<T>;
  V acc[M][N];
#pragma GCC unroll 16
  for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) acc[m][n] = V{};
  for (int64_t k = 0; k < K; ++k) {
    V row[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) row[n] = load(b + n * LANES<T>);
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) {
      const T s = a[m * ar];
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) acc[m][n] += row[n] * s;
    }
    a += ak;
    b += bs;
  }
  if (accumulate) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m, c += ldc)
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) store(c + n * LANES<T>, load(c + n * LANES<T>) + acc[m][n]);
  } else {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m, c += ldc)
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) store(c + n * LANES<T>, acc[m][n]);
  }
}

template <class T, int N> void rows(int64_t M, int64_t K, const T* a, int64_t ar, int64_t ak, int64_t panel, const T* b,
                                    int64_t bs, T* c, int64_t ldc, bool accumulate) {
  int64_t m = 0;
  for (; m + MR <= M; m += MR) micro<T, MR, N>(K, a + m * panel, ar, ak, b, bs, c + m * ldc, ldc, accumulate);
  a += m * panel;
  if constexpr (MR > 4)
    if (M - m >= 4) {
      micro<T, 4, N>(K, a, ar, ak, b, bs, c + m * ldc, ldc, accumulate);
      m += 4, a += 4 * ar;
    }
  if (M - m >= 2) {
    micro<T, 2, N>(K, a, ar, ak, b, bs, c + m * ldc, ldc, accumulate);
    m += 2, a += 2 * ar;
  }
  if (M - m >= 1) micro<T, 1, N>(K, a, ar, ak, b, bs, c + m * ldc, ldc, accumulate);
}

// The same for any number of rows and up to NV vectors. Panels of MR rows begin `panel` * MR apart: ar
// for plain rows, K for rows that were packed in panels of MR (then ar = 1, ak = MR).
template <class T> void product(int64_t M, int64_t vectors, int64_t K, const T* a, int64_t ar, int64_t ak,
                                int64_t panel, const T* b, int64_t bs, T* c, int64_t ldc, bool accumulate) {
  if (vectors == 3) rows<T, 3>(M, K, a, ar, ak, panel, b, bs, c, ldc, accumulate);
  else if (vectors == 2) rows<T, 2>(M, K, a, ar, ak, panel, b, bs, c, ldc, accumulate);
  else rows<T, 1>(M, K, a, ar, ak, panel, b, bs, c, ldc, accumulate);
}

// to[c * to_row + r] = from[r * from_row + c], eight by eight where that is floats.
template <class T> void transpose(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t cols) {
  const int64_t whole = sizeof(T) == 4 ? rows / 8 * 8 : 0;
  if constexpr (sizeof(T) == 4) {
    typedef float V8 __attribute__((vector_size(32)));
    typedef float L8 __attribute__((vector_size(32), aligned(4), may_alias));
    typedef int32_t I8 __attribute__((vector_size(32)));
    const I8 low = {0, 8, 1, 9, 4, 12, 5, 13}, high = {2, 10, 3, 11, 6, 14, 7, 15};
    const I8 even = {0, 1, 8, 9, 4, 5, 12, 13}, odd = {2, 3, 10, 11, 6, 7, 14, 15};
    const I8 front = {0, 1, 2, 3, 8, 9, 10, 11}, back = {4, 5, 6, 7, 12, 13, 14, 15};
    for (int64_t r = 0; r < whole; r += 8) {
      int64_t c = 0;
      for (; c + 8 <= cols; c += 8) {
        V8 a[8], b[8];
        for (int m = 0; m < 8; ++m) a[m] = *reinterpret_cast<const L8*>(from + (r + m) * from_row + c);
        for (int m = 0; m < 4; ++m) {
          b[2 * m] = __builtin_shuffle(a[2 * m], a[2 * m + 1], low);
          b[2 * m + 1] = __builtin_shuffle(a[2 * m], a[2 * m + 1], high);
        }
        for (int h = 0; h < 8; h += 4) {
          a[h + 0] = __builtin_shuffle(b[h], b[h + 2], even), a[h + 1] = __builtin_shuffle(b[h], b[h + 2], odd);
          a[h + 2] = __builtin_shuffle(b[h + 1], b[h + 3], even), a[h + 3] = __builtin_shuffle(b[h + 1], b[h + 3], odd);
        }
        for (int m = 0; m < 4; ++m) {
          *reinterpret_cast<L8*>(to + (c + m) * to_row + r) = __builtin_shuffle(a[m], a[m + 4], front);
          *reinterpret_cast<L8*>(to + (c + m + 4) * to_row + r) = __builtin_shuffle(a[m], a[m + 4], back);
        }
      }
      for (; c < cols; ++c)
        for (int m = 0; m < 8; ++m) to[c * to_row + r + m] = from[(r + m) * from_row + c];
    }
  }
  for (int64_t r = whole; r < rows; ++r)
    for (int64_t c = 0; c < cols; ++c) to[c * to_row + r] = from[r * from_row + c];
}

// out[j] = in[2 j]. Nothing behind the last element taken is read.
template <class T> void every_second(T* out, const T* in, int64_t n) {
  constexpr int64_t L = LANES<T>;
  using I = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  if (n < L) {
    for (int64_t j = 0; j < n; ++j) out[j] = in[2 * j];
    return;
  }
  Vec<I> even, end;
  for (int i = 0; i < int(L); ++i) {
    even[i] = I(2 * i);
    end[i] = I(2 * i < L ? 2 * i : 2 * i + 1);  // the second vector begins one element earlier
  }
  int64_t j = 0;
  for (; j + L < n; j += L) store(out + j, __builtin_shuffle(load(in + 2 * j), load(in + 2 * j + L), even));
  j = n - L;
  store(out + j, __builtin_shuffle(load(in + 2 * j), load(in + 2 * j + L - 1), end));
}

// f(item) for every item, taken one by one by all threads.
template <class F> void share(int64_t items, F&& f) {
  const int64_t threads = std::min<int64_t>(num_threads(), items);
  if (threads <= 1) {
    for (int64_t i = 0; i < items; ++i) f(i);
    return;
  }
  std::atomic<int64_t> next{0};
  parallel_for(threads, 1, [&](int64_t, int64_t) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < items;) f(i);
  });
}

inline int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Floor division and its rest.
inline int64_t down(int64_t a, int64_t b) { return a >= 0 ? a / b : -up(-a, b); }
inline int64_t rest(int64_t a, int64_t b) { return a - down(a, b) * b; }

// (N, C, up to three sizes) with missing sizes as 1; strides in bytes.
struct Image {
  char* data;
  Dtype dtype;
  int64_t n, c, size[3];
  int64_t sn, sc, step[3];

  explicit Image(const View& v) : Image(v, v.ndim - 2) {}
  // A batch or channels that are not there count as 1.
  Image(const View& v, int spatial) : data(v.data), dtype(v.dtype), n(1), c(1), sn(0), sc(0) {
    const int lead = v.ndim - spatial;
    if (lead > 0) c = v.shape[lead - 1], sc = v.strides[lead - 1];
    if (lead > 1) n = v.shape[0], sn = v.strides[0];
    for (int d = 0; d < 3; ++d) {
      const int k = d - (3 - spatial);
      size[d] = k < 0 ? 1 : v.shape[lead + k];
      step[d] = k < 0 ? 0 : v.strides[lead + k];
    }
  }
};

// How a kernel slides: stride, padding, dilation.
struct Geometry {
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};

  // From ints of a call: stride, padding, dilation of `spatial` dimensions each.
  Geometry(const Call& c, int first, int spatial, const int64_t* sizes) {
    for (int k = 0; k < spatial; ++k) {
      const int d = 3 - spatial + k;
      kernel[d] = sizes[k];
      stride[d] = c.i(first + k);
      padding[d] = c.i(first + spatial + k);
      dilation[d] = c.i(first + 2 * spatial + k);
    }
  }
};

// A subset of the outputs, every ostep-th from `first`, and where each tap of it reads: the source of
// place q is at q * step + offset in every dimension.
struct Phase {
  int64_t places[3], first[3];
  std::vector<int64_t> taps;     // positions within the kernel
  std::vector<int64_t> offsets;  // three per tap

  int64_t count() const { return places[0] * places[1] * places[2]; }
};

struct Sweep {
  int64_t step[3], ostep[3], low[3], span[3];  // sources from low to low + span are read
  std::vector<Phase> phases;

  void close() {
    for (int d = 0; d < 3; ++d) {
      int64_t lo = INT64_MAX, hi = INT64_MIN;
      for (const Phase& p : phases)
        for (size_t t = 0; t < p.taps.size(); ++t) {
          lo = std::min(lo, p.offsets[3 * t + d]);
          hi = std::max(hi, p.offsets[3 * t + d] + (p.places[d] - 1) * step[d] + 1);
        }
      low[d] = lo == INT64_MAX ? 0 : lo;
      span[d] = lo == INT64_MAX ? 1 : hi - lo;
    }
  }
};

inline Sweep forward_sweep(const Geometry& g, const int64_t* places) {
  Sweep s;
  Phase p;
  for (int d = 0; d < 3; ++d) {
    s.step[d] = places[d] == 1 ? 1 : g.stride[d];  // a single place takes no step
    s.ostep[d] = 1, p.places[d] = places[d], p.first[d] = 0;
  }
  int64_t at = 0;
  for (int64_t i = 0; i < g.kernel[0]; ++i)
    for (int64_t j = 0; j < g.kernel[1]; ++j)
      for (int64_t k = 0; k < g.kernel[2]; ++k) {
        p.taps.push_back(at++);
        p.offsets.insert(p.offsets.end(), {i * g.dilation[0] - g.padding[0], j * g.dilation[1] - g.padding[1],
                                           k * g.dilation[2] - g.padding[2]});
      }
  s.phases.push_back(std::move(p));
  s.close();
  return s;
}

inline int64_t phases_of(const Geometry& g, const int64_t* size) {
  int64_t n = 1;
  for (int d = 0; d < 3; ++d) n *= std::min(g.stride[d], size[d]);
  return n;
}

// Outputs of the transpose by their residue modulo the stride: each residue sees some of the taps, and
// sees them as a convolution of stride 1.
inline Sweep transposed_sweep(const Geometry& g, const int64_t* size) {
  Sweep s;
  for (int d = 0; d < 3; ++d) s.step[d] = 1, s.ostep[d] = g.stride[d];
  for (int64_t a = 0; a < std::min(g.stride[0], size[0]); ++a)
    for (int64_t b = 0; b < std::min(g.stride[1], size[1]); ++b)
      for (int64_t c = 0; c < std::min(g.stride[2], size[2]); ++c) {
        Phase p;
        const int64_t first[3] = {a, b, c};
        for (int d = 0; d < 3; ++d) p.first[d] = first[d], p.places[d] = up(size[d] - first[d], g.stride[d]);
        int64_t at = 0;
        for (int64_t i = 0; i < g.kernel[0]; ++i)
          for (int64_t j = 0; j < g.kernel[1]; ++j)
            for (int64_t k = 0; k < g.kernel[2]; ++k, ++at) {
              const int64_t tap[3] = {i, j, k};
              int64_t off[3];
              bool hit = true;
              for (int d = 0; d < 3; ++d) {
                const int64_t v = first[d] + g.padding[d] - tap[d] * g.dilation[d];
                hit = hit && rest(v, g.stride[d]) == 0;
                off[d] = down(v, g.stride[d]);
              }
              if (!hit) continue;
              p.taps.push_back(at);
              p.offsets.insert(p.offsets.end(), off, off + 3);
            }
        s.phases.push_back(std::move(p));
      }
  s.close();
  return s;
}

// Whether some tap of a sweep reads beyond x, in the padding.
inline bool reaches_out(const Sweep& s, const Image& x) {
  for (int d = 0; d < 3; ++d)
    if (s.low[d] < 0 || s.low[d] + s.span[d] > x.size[d]) return true;
  return false;
}

// Whether a padded copy would be out of proportion to what is read and written: strides, paddings and
// dilations far larger than the tensors.
inline bool oversized(const Sweep& s, const Image& x, const Image& y) {
  constexpr double SMALL = 1 << 18;
  double copy = double(x.c), given = double(x.c), made = double(y.c);
  for (int d = 0; d < 3; ++d)
    copy *= double(d == 2 ? up(s.span[d], s.step[d]) * s.step[d] : s.span[d]), given *= double(x.size[d]),
        made *= double(y.size[d]);
  return copy > SMALL + 8 * (given + made);
}

// Places o of a row whose source o * stride + offset lies in 0..size-1.
struct Inside {
  int64_t first, last;
  Inside(int64_t places, int64_t stride, int64_t offset, int64_t size) {
    first = std::clamp<int64_t>(offset >= 0 ? 0 : up(-offset, stride), 0, places);
    last = std::clamp<int64_t>(offset >= size ? 0 : up(size - offset, stride), first, places);
  }
};

template <class T> bool has_nan(const T* x, int64_t n) {
  int64_t i = 0;
  auto odd = Vec<T>{} != Vec<T>{};
  for (; i + LANES<T> <= n; i += LANES<T>) odd |= load(x + i) != load(x + i);
  bool found = false;
  for (int j = 0; j < int(LANES<T>); ++j) found = found || odd[j] != 0;
  for (; i < n; ++i) found = found || x[i] != x[i];
  return found;
}

template <class T> bool all_finite(const T* x, int64_t n) {
  int64_t i = 0;
  Vec<T> none = {};  // x - x of every element: 0, or NaN
  for (; i + LANES<T> <= n; i += LANES<T>) none += load(x + i) - load(x + i);
  T each[LANES<T>], last = 0;
  store(each, none);
  for (; i < n; ++i) last += x[i] - x[i];
  return last == 0 && !has_nan(each, LANES<T>);
}

// A dense copy of some images with zeros around, its rows split by the step: what a tap reads for
// neighbouring places is contiguous. Element (c, d, h, w) of image i is at
// i * image + c * channel + d * plane + h * line + (w % step) * part + w / step, counted from `low`.
struct Padded {
  int64_t image, channel, plane, line, part;
  std::vector<char> used[3];  // which coordinates some tap reads; along w: which residues

  Padded(const Sweep& s, int64_t channels) {
    part = up(s.span[2], s.step[2]);
    line = part * s.step[2];
    plane = line * s.span[1];
    channel = plane * s.span[0];
    image = channel * channels;
    for (int d = 0; d < 3; ++d) {
      used[d].assign(d == 2 ? s.step[2] : s.span[d], 0);
      for (const Phase& p : s.phases)
        for (size_t t = 0; t < p.taps.size(); ++t) {
          const int64_t at = p.offsets[3 * t + d] - s.low[d];
          if (d == 2) used[d][at % s.step[2]] = 1;
          else
            for (int64_t q = 0; q < p.places[d]; ++q) used[d][at + q * s.step[d]] = 1;
        }
    }
  }

  int64_t at(const Sweep& s, const int64_t* coordinate) const {
    const int64_t w = coordinate[2] - s.low[2];
    return (coordinate[0] - s.low[0]) * plane + (coordinate[1] - s.low[1]) * line + w % s.step[2] * part +
           w / s.step[2];
  }

  // What every row of a source has in common: for each residue the elements that exist.
  struct Row {
    int64_t to, first, last, from;  // elements first..last of the part at `to` come from `from` (bytes) on
  };
  template <class T> struct Filling {
    const Padded& p;
    const Sweep& s;
    const Image& x;
    T blank;
    CastFn cast;
    bool same;
    std::vector<Row> rows;

    Filling(const Padded& p_, const Sweep& s_, const Image& x_, T blank_)
        : p(p_), s(s_), x(x_), blank(blank_), cast(cast_fn(x_.dtype, dtype_of<T>)), same(x_.dtype == dtype_of<T>) {
      for (int64_t r = 0; r < s.step[2]; ++r) {
        if (!p.used[2][r]) continue;
        const int64_t base = s.low[2] + r, size = x.size[2];
        const int64_t j0 = std::clamp<int64_t>(base >= 0 ? 0 : up(-base, s.step[2]), 0, p.part);
        const int64_t j1 = std::clamp<int64_t>(base >= size ? 0 : up(size - base, s.step[2]), j0, p.part);
        rows.push_back({r * p.part, j0, j1, (base + j0 * s.step[2]) * x.step[2]});
      }
    }

    void line(T* to, const char* from) const {
      for (const Row& r : rows) {
        T* at = to + r.to;
        for (int64_t j = 0; j < r.first; ++j) at[j] = blank;
        const int64_t n = r.last - r.first;
        T* out = at + r.first;
        if (same && x.step[2] == int64_t(sizeof(T)) && s.step[2] <= 2) {
          const T* in = reinterpret_cast<const T*>(from + r.from);
          if (s.step[2] == 1) std::memcpy(out, in, size_t(n) * sizeof(T));
          else every_second(out, in, n);
        } else if (n > 0) cast(reinterpret_cast<char*>(out), sizeof(T), from + r.from, s.step[2] * x.step[2], n);
        for (int64_t j = r.last; j < p.part; ++j) at[j] = blank;
      }
    }

    // The same line of all channels, whose elements lie side by side.
    void pixels(T* to, const char* from, int64_t d, int64_t h) const {
      to += d * p.plane + h * p.line;
      const int64_t sd = d + s.low[0], sh = h + s.low[1];
      if (sd < 0 || sd >= x.size[0] || sh < 0 || sh >= x.size[1]) {
        for (int64_t c = 0; c < x.c; ++c) std::fill(to + c * p.channel, to + c * p.channel + p.line, blank);
        return;
      }
      from += sd * x.step[0] + sh * x.step[1];
      for (const Row& r : rows) {
        for (int64_t c = 0; c < x.c; ++c) {
          T* at = to + c * p.channel + r.to;
          for (int64_t j = 0; j < r.first; ++j) at[j] = blank;
          for (int64_t j = r.last; j < p.part; ++j) at[j] = blank;
        }
        transpose<T>(to + r.to + r.first, p.channel, reinterpret_cast<const T*>(from + r.from),
                     s.step[2] * x.step[2] / int64_t(sizeof(T)), r.last - r.first, x.c);
      }
    }

    void one(T* to, const char* from, int64_t d, int64_t h) const {
      T* at = to + d * p.plane + h * p.line;
      const int64_t sd = d + s.low[0], sh = h + s.low[1];
      if (sd < 0 || sd >= x.size[0] || sh < 0 || sh >= x.size[1]) std::fill(at, at + p.line, blank);
      else line(at, from + sd * x.step[0] + sh * x.step[1]);
    }

    // One channel, from its first element.
    void channel(T* to, const char* from) const {
      for (int64_t d = 0; d < s.span[0]; ++d)
        for (int64_t h = 0; h < s.span[1]; ++h)
          if (p.used[0][d] && p.used[1][h]) one(to, from, d, h);
    }
  };

  // Images first..first+count of x, all channels.
  template <class T> void fill(T* to, const Sweep& s, const Image& x, int64_t first, int64_t count) const {
    const Filling<T> filling(*this, s, x, T(0));
    if (x.sc < x.step[2]) {  // channels last: all channels of a line while it is in the cache
      parallel_for(count * s.span[0] * s.span[1], grain_for(x.c * line), [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k) {
          const int64_t h = k % s.span[1], d = k / s.span[1] % s.span[0], i = k / s.span[1] / s.span[0];
          if (!used[0][d] || !used[1][h]) continue;
          if (filling.same && x.sc == int64_t(sizeof(T)))
            filling.pixels(to + i * image, x.data + (first + i) * x.sn, d, h);
          else
            for (int64_t c = 0; c < x.c; ++c)
              filling.one(to + i * image + c * channel, x.data + (first + i) * x.sn + c * x.sc, d, h);
        }
      });
      return;
    }
    parallel_for(count * x.c, grain_for(channel), [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k)
        filling.channel(to + k * channel, x.data + (first + k / x.c) * x.sn + k % x.c * x.sc);
    });
  }
};

// A tensor as a dense row-major array of T: itself when it is one, else a copy in `space`.
template <class T> const T* dense(const View& v, T* space) {
  const CastFn cast = cast_fn(v.dtype, dtype_of<T>);
  if (v.contiguous()) {
    if (v.dtype == dtype_of<T>) return v.as<T>();
    parallel_for(v.numel(), grain_for(1), [&](int64_t b, int64_t e) {
      const int64_t item = itemsize(v.dtype);
      cast(reinterpret_cast<char*>(space + b), sizeof(T), v.data + b * item, item, e - b);
    });
    return space;
  }
  // Lines along the longest dimension, whichever it is.
  int along = 0;
  for (int d = 1; d < v.ndim; ++d)
    if (v.shape[d] >= v.shape[along]) along = d;
  int64_t steps[8], step = 1;
  for (int d = v.ndim - 1; d >= 0; --d) steps[d] = step, step *= v.shape[d];
  const int64_t inner = v.shape[along];
  parallel_for(v.numel() / inner, grain_for(inner), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      const char* from = v.data;
      T* to = space;
      int64_t r = k;
      for (int d = v.ndim - 1; d >= 0; --d)
        if (d != along) {
          from += r % v.shape[d] * v.strides[d], to += r % v.shape[d] * steps[d];
          r /= v.shape[d];
        }
      cast(reinterpret_cast<char*>(to), steps[along] * int64_t(sizeof(T)), from, v.strides[along], inner);
    }
  });
  return space;
}
template <class T> int64_t dense_space(const View& v) {
  return v.dtype == dtype_of<T> && v.contiguous() ? 0 : v.numel();
}

}  // namespace vt::conv
