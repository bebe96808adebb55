// Rotary position embedding: pairs of features turned by an angle per position.
#include <algorithm>

#include "vt/lanes.h"
#include "vt/rows.h"

namespace vt {
namespace {

template <class C> void turn_halves(C* y, const C* x, const C* cos, const C* sin, int64_t n) {
  sweep<C>(n, [&](int64_t j, auto m) {
    const Lanes<C> a = load_some<C>(x + j, m), b = load_some<C>(x + n + j, m);
    const Lanes<C> c = load_some<C>(cos + j, m), s = load_some<C>(sin + j, m);
    store_some<C>(y + j, a * c - b * s, m);
    store_some<C>(y + n + j, b * c + a * s, m);
  });
}

template <class C> void turn_neighbours(C* __restrict y, const C* __restrict x, const C* cos, const C* sin, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    const C a = x[2 * j], b = x[2 * j + 1];
    y[2 * j] = a * cos[j] - b * sin[j];
    y[2 * j + 1] = b * cos[j] + a * sin[j];
  }
}

// The rows of a table, one for each row of x: leading dimensions broadcast, positions start at `offset`.
template <class C> Rows<C> table(View t, const View& x, int64_t offset) {
  Walk outer, inner;
  const int missing = x.ndim - t.ndim;
  for (int d = 0; d < x.ndim - 2; ++d) {
    const int k = d - missing;
    outer.add(x.shape[d], k >= 0 && t.shape[k] != 1 ? t.strides[k] : 0);
  }
  outer.add(x.shape[x.ndim - 2], t.strides[t.ndim - 2]);
  inner.add(t.shape[t.ndim - 1], t.strides[t.ndim - 1]);
  t.data += offset * t.strides[t.ndim - 2];
  return Rows<C>(t, outer, inner);
}

template <class C> void rope(const View& x, const View& cos, const View& sin, const View& y, int64_t offset, bool interleaved) {
  const Rows<C> from(x, x.ndim - 1, x.ndim), to(y, x.ndim - 1, x.ndim);
  const Rows<C> cosines = table<C>(cos, x, offset), sines = table<C>(sin, x, offset);
  const int64_t n = x.shape[x.ndim - 1], angles = cos.shape[cos.ndim - 1];
  const int64_t positions = x.shape[x.ndim - 2], step_c = cos.strides[cos.ndim - 2], step_s = sin.strides[sin.ndim - 2];
  parallel_for(from.rows(), grain_for(n * 2), [&](int64_t begin, int64_t end) {
    Scratch<C> in(from.direct ? 0 : n), out(to.direct ? 0 : n), c(cosines.direct ? 0 : angles), s(sines.direct ? 0 : angles);
    for (int64_t start = begin; start < end;) {
      const int64_t stop = std::min(end, (start / positions + 1) * positions);
      const char *first_c = cosines.at(start), *first_s = sines.at(start);
      for (int64_t r = start; r < stop; ++r) {
        const C* p = from.load(r, in);
        const C* cp = cosines.direct ? reinterpret_cast<const C*>(first_c + (r - start) * step_c) : cosines.load(r, c);
        const C* sp = sines.direct ? reinterpret_cast<const C*>(first_s + (r - start) * step_s) : sines.load(r, s);
        C* q = to.place(r, out);
        if (interleaved) turn_neighbours<C>(q, p, cp, sp, angles);
        else turn_halves<C>(q, p, cp, sp, angles);
        if (2 * angles < n) std::copy(p + 2 * angles, p + n, q + 2 * angles);
        to.store(r, out);
      }
      start = stop;
    }
  });
}

VT_KERNEL(rope) {  // x, cos, sin, y; offset, interleaved
  const View& x = c.view(0);
  if (x.numel() == 0) return;
  for_compute(x.dtype, [&](auto t) {
    rope<typename decltype(t)::type>(x, c.view(1), c.view(2), c.view(3), c.i(0), c.i(1) != 0);
  });
}

}  // namespace
}  // namespace vt
