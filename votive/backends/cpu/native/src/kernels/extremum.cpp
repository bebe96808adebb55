// Where the largest or smallest element is: the first of equals, NaN before every number.
#include "vt/kernel.h"
#include "vt/vec64.h"
#include "vt/reduce.h"

namespace vt {
namespace {

using namespace v64;

template <class C> struct Found {
  C value;
  int64_t place;  // -1: nothing yet
};

template <class C, bool MAX> struct Pick {
  using Acc = Found<C>;
  template <class V> static auto beats(V a, V b) {
    if constexpr (MAX) return a > b;
    else return a < b;
  }
  static bool wins(const Acc& a, const Acc& b) {
    if (b.place < 0) return a.place >= 0;
    if (a.place < 0) return false;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan || b_nan) return a_nan && (!b_nan || a.place < b.place);
    return beats(a.value, b.value) || (a.value == b.value && a.place < b.place);
  }
  static void init(void* acc, int64_t n) {
    Acc* a = static_cast<Acc*>(acc);
    for (int64_t i = 0; i < n; ++i) a[i] = Acc{C(0), -1};
  }
  static Acc row(const C* p, int64_t n) {
    constexpr int64_t BLOCK = 2048;
    C best = C(0);
    int64_t from = -1;
    for (int64_t i = 0; i < n; i += BLOCK) {
      const C e = extreme<C, MAX>(p + i, n - i < BLOCK ? n - i : BLOCK);
      if (from < 0 || beats(e, best) || e != e) best = e, from = i;
      if (e != e) break;
    }
    // The first of a block of equals is found among vectors, then among their lanes.
    using V = Vec<C>;
    constexpr int64_t L = Lanes<C>::n;
    int64_t i = from;
    if (best != best) {
      while (p[i] == p[i]) ++i;
    } else {
      const V wanted = splat(best);
      for (; i + L <= n; i += L) {
        const auto hit = load(p + i) == wanted;
        int64_t any = 0;
        for (int64_t k = 0; k < L; ++k) any |= hit[k];
        if (any) break;
      }
      while (p[i] != best) ++i;
    }
    return Acc{best, i};
  }
  // Too short for vectors: one by one without branches, and the processor works on several rows at a time.
  static Acc short_row(const C* p, int64_t n) {
    Acc best{p[0], 0};
    for (int64_t i = 1; i < n; ++i) {
      const C v = p[i], w = best.value;
      const bool take = (beats(v, w) | (v != v)) & (w == w);
      best.value = take ? v : w;
      best.place = take ? i : best.place;
    }
    return best;
  }
  static void rows(void* acc, int64_t step, const Tile& t) {
    const C* p = static_cast<const C*>(t.data);
    Acc* a = static_cast<Acc*>(acc);
    constexpr int64_t SHORT = 24;
    for (int64_t r = 0; r < t.rows; ++r, p += t.row) {
      Acc found = t.cols <= SHORT ? short_row(p, t.cols) : row(p, t.cols);
      found.place = t.base + r * t.base_row + found.place * t.base_col;
      if (wins(found, a[r * step])) a[r * step] = found;
    }
  }
  static void cols(void* acc, const Tile& t) {
    using I = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;
    alignas(64) C value[COLUMNS];
    alignas(64) I place[COLUMNS];
    const C* p = static_cast<const C*>(t.data);
    const int64_t n = t.cols;
    for (int64_t i = 0; i < n; ++i) value[i] = p[i], place[i] = 0;
    for (int64_t r = 1; r < t.rows; ++r) {
      p += t.row;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) {
        const C v = p[i], w = value[i];
        // The first NaN stays.
        const bool take = (beats(v, w) | (v != v)) & (w == w);
        value[i] = take ? v : w;
        place[i] = take ? I(r) : place[i];
      }
    }
    Acc* a = static_cast<Acc*>(acc);
    for (int64_t i = 0; i < n; ++i) {
      const Acc found{value[i], t.base + i * t.base_col + int64_t(place[i]) * t.base_row};
      if (wins(found, a[i])) a[i] = found;
    }
  }
  static void merge(void* acc, const void* other, int64_t n) {
    Acc* a = static_cast<Acc*>(acc);
    const Acc* b = static_cast<const Acc*>(other);
    for (int64_t i = 0; i < n; ++i)
      if (wins(b[i], a[i])) a[i] = b[i];
  }
};

// The place into the first result; with two results the value into the first, the place into the other.
template <class C> struct StorePick : Store {
  explicit StorePick(const View& values) : cast(values ? cast_fn(dtype_of<C>, values.dtype) : nullptr) {}
  void operator()(void* acc, int64_t n, char* const* out, const int64_t* stride) const override {
    const auto* a = static_cast<const Found<C>*>(acc);
    const int at = cast == nullptr ? 0 : 1;
    for (int64_t i = 0; i < n; ++i) *reinterpret_cast<int64_t*>(out[at] + i * stride[at]) = a[i].place;
    if (cast != nullptr) cast(out[0], stride[0], reinterpret_cast<const char*>(&a->value), sizeof(Found<C>), n);
  }
  CastFn cast;
};

// A choice among one: the place is 0, the value a copy.
bool only_one(const View& x, const View& values, const View& places, uint64_t dims) {
  for (int d = 0; d < x.ndim; ++d)
    if ((dims >> d & 1) != 0 && x.shape[d] != 1) return false;
  if (!places.contiguous() || (values && !(values.contiguous() && x.contiguous()))) return false;
  const int64_t n = x.numel();
  std::memset(places.data, 0, size_t(n) * sizeof(int64_t));
  if (values) std::memcpy(values.data, x.data, size_t(n) * size_t(itemsize(x.dtype)));
  return true;
}

template <class C, bool MAX> void pick(Call& c) {
  static constexpr Reducer reducer = {dtype_of<C>, sizeof(Found<C>), Pick<C, MAX>::init, Pick<C, MAX>::rows,
                                      Pick<C, MAX>::cols, Pick<C, MAX>::merge, true};
  const View &x = c.view(0), &values = c.view(1), &places = c.view(2);
  const View& first = values ? values : places;
  ArraySource source(x.data, x.dtype, dtype_of<C>);
  char* outs[2] = {first.data, values ? places.data : nullptr};
  reduce(reduce_dims(x, uint64_t(c.i(0)), first, values ? places : View()), source, reducer,
         StorePick<C>(values), outs);
}

template <class C> void pick_either(Call& c) { c.i(2) ? pick<C, true>(c) : pick<C, false>(c); }

}  // namespace

// x, values or None, places, dimensions as a bit mask, compute type, largest
VT_KERNEL(reduce_pick) {
  if (only_one(c.view(0), c.view(1), c.view(2), uint64_t(c.i(0)))) return;
  switch (Dtype(c.i(1))) {
    case Dtype::f32: return pick_either<float>(c);
    case Dtype::f64: return pick_either<double>(c);
    case Dtype::i32: return pick_either<int32_t>(c);
    case Dtype::i64: return pick_either<int64_t>(c);
    default: no_dtype("argmax");
  }
}

}  // namespace vt
