// What optimizer steps share: one parallel pass over the elements of lists of tensors.
//
// The arithmetic keeps the order of the reference's formulas. Half types are computed in float and
// rounded once.
#pragma once
#include <algorithm>
#include <cmath>

#include "vt/cast.h"
#include "vt/kernel.h"
#include "vt/primitives.h"

namespace vt::steps {

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

inline bool dense(const View& v) {
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
inline bool flat(const Lists& a, int64_t i) {
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
inline void transfer(const View& v, int64_t begin, int64_t n, char* buffer, Dtype kind, bool store) {
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
inline bool repeated(const Lists& a) {
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

inline double read(const View& v) {
  double x;
  cast_fn(v.dtype, Dtype::f64)(reinterpret_cast<char*>(&x), 0, v.data, 0, 1);
  return x;
}

// Stores a number in a tensor's own type and gives back what was kept of it.
inline double write(const View& v, double x) {
  cast_fn(Dtype::f64, v.dtype)(v.data, 0, reinterpret_cast<const char*>(&x), 0, 1);
  return read(v);
}

inline double advance(const View& step) { return write(step, read(step) + 1); }

inline Lists lists(const Call& c, std::initializer_list<int> which, unsigned written) {
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
inline constexpr auto nothing = [](int64_t) {};

}  // namespace vt::steps
