// What kernels that read and write by index share: index tensors as dense int64, checked.
#pragma once
#include <algorithm>
#include <string>

#include "vt/copy.h"
#include "vt/kernel.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace vt {

// An index tensor in row-major order. Copied when it is not so, or when `written` may overlap it.
class Indices {
 public:
  Indices(const View& v, const View* written = nullptr) : Indices(v, needs_copy(v, written)) {}
  const int64_t* data;
  int64_t n;

  int64_t operator[](int64_t i) const { return data[i]; }

  // Throws E when one lies outside of low..size-1; says whether any is negative.
  template <class E> bool check(const char* op, int64_t dim, int64_t size, int64_t low = 0) const {
    if (low == 0) {
      const uint64_t far = farthest();
      if (n == 0 || far < uint64_t(size)) return false;
    }
    const auto [least, most] = extremes();
    if (n && (least < low || most >= size)) {
      const int64_t bad = least < low ? least : most;
      throw E(std::string(op) + ": index " + std::to_string(bad) + " is out of bounds for dimension " +
              std::to_string(dim) + " with size " + std::to_string(size) + ".");
    }
    return n && least < 0;
  }

  // The same for positions b..e only, from 0 on; what is wrong is said of the whole.
  template <class E> void check_part(int64_t b, int64_t e, const char* op, int64_t dim, int64_t size) const {
    uint64_t most = 0;  // negative numbers are large ones
    for (int64_t i = b; i < e; ++i) most = std::max(most, uint64_t(data[i]));
    if (e > b && most >= uint64_t(size)) check<E>(op, dim, size);
  }

  // The largest, where negative numbers count as very large.
  uint64_t farthest() const {
    constexpr int64_t PIECE = 1 << 16;
    const int64_t pieces = (n + PIECE - 1) / PIECE;
    Scratch<uint64_t> found(pieces + 1);
    uint64_t* at = found;
    parallel_for(pieces, 1, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        uint64_t most = 0;
        for (int64_t i = p * PIECE; i < std::min(n, (p + 1) * PIECE); ++i) most = std::max(most, uint64_t(data[i]));
        at[p] = most;
      }
    });
    uint64_t most = 0;
    for (int64_t p = 0; p < pieces; ++p) most = std::max(most, at[p]);
    return most;
  }

  std::pair<int64_t, int64_t> extremes() const {
    constexpr int64_t PIECE = 1 << 16;
    const int64_t pieces = (n + PIECE - 1) / PIECE;
    Scratch<int64_t> found(2 * pieces + 2);
    int64_t* at = found;
    parallel_for(pieces, 1, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) {
        int64_t least = INT64_MAX, most = INT64_MIN;
        for (int64_t i = p * PIECE; i < std::min(n, (p + 1) * PIECE); ++i) {
          least = std::min(least, data[i]);
          most = std::max(most, data[i]);
        }
        at[2 * p] = least;
        at[2 * p + 1] = most;
      }
    });
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t p = 0; p < pieces; ++p) {
      least = std::min(least, at[2 * p]);
      most = std::max(most, at[2 * p + 1]);
    }
    return {least, most};
  }

 private:
  static bool needs_copy(const View& v, const View* written) {
    return v.dtype != Dtype::i64 || !v.contiguous() || (written != nullptr && may_overlap(v, *written));
  }
  Indices(const View& v, bool copied) : own(copied ? v.numel() : 0) {
    n = v.numel();
    data = copied ? own.get() : v.as<const int64_t>();
    if (copied) copy_rows(own, v);
  }
  static void copy_rows(int64_t* to, const View& v) {
    CopyDim dims[COPY_DIMS];
    int64_t step = 8;
    for (int d = v.ndim - 1; d >= 0; --d) {
      dims[d] = {v.shape[d], step, v.strides[d]};
      step *= v.shape[d];
    }
    copy_block(reinterpret_cast<char*>(to), Dtype::i64, v.data, v.dtype, dims, v.ndim);
  }
  Scratch<int64_t> own;
};

// A tensor's elements in row-major order, of type `as`: its own memory where that is so already.
class Dense {
 public:
  Dense(const View& v, Dtype as, bool copied)
      : own((copied = copied || v.dtype != as || !v.contiguous()) ? v.numel() * itemsize(as) : 0) {
    data = copied ? own.get() : v.data;
    if (!copied) return;
    CopyDim dims[COPY_DIMS];
    int64_t step = itemsize(as);
    for (int d = v.ndim - 1; d >= 0; --d) {
      dims[d] = {v.shape[d], step, v.strides[d]};
      step *= v.shape[d];
    }
    copy_block(own, as, v.data, v.dtype, dims, v.ndim);
  }
  char* data;

 private:
  Scratch<char> own;
};

// A number among the arguments, the integer at `at` or else the first float, as an element of type
// `to`; refused when it does not fit. `v` has room for 16 bytes.
void number_as(const Call& c, const char* op, size_t at, Dtype to, char* v);

// Half types are combined in float and rounded once: `body(out)` runs on a dense float copy then.
template <class F> void in_float(const View& out, F&& body) {
  if (out.dtype != Dtype::f16 && out.dtype != Dtype::bf16) return body(out);
  Scratch<float> wide(out.numel());
  int64_t strides[COPY_DIMS], step = 4;
  for (int d = out.ndim - 1; d >= 0; --d) {
    strides[d] = step;
    step *= out.shape[d];
  }
  View w = out;
  w.data = reinterpret_cast<char*>(wide.get());
  w.strides = strides;
  w.dtype = Dtype::f32;
  copy(w, out);
  body(w);
  copy(out, w);
}

// The type in which values of `d` are combined.
inline Dtype combined(Dtype d) { return d == Dtype::f16 || d == Dtype::bf16 ? Dtype::f32 : d; }

// Types that can be combined.
template <class F> void for_combined(const char* what, Dtype d, F&& f) {
  switch (d) {
    case Dtype::f32: return f(Type<float>{});
    case Dtype::f64: return f(Type<double>{});
    case Dtype::b1: return f(Type<bool>{});
    default: return for_ints(what, d, f);
  }
}

// body(source) with a view of type `as` that shares no memory with `out`.
template <class F> void with_source(const View& source, const View& out, Dtype as, F&& body, bool copied = false) {
  if (!copied && source.dtype == as && !may_overlap(source, out)) return body(source);
  Dense dense(source, as, true);
  View view = source;
  int64_t strides[COPY_DIMS], step = itemsize(as);
  for (int d = source.ndim - 1; d >= 0; --d) {
    strides[d] = step;
    step *= source.shape[d];
  }
  view.data = dense.data;
  view.strides = strides;
  view.dtype = as;
  body(view);
}

// Which of pos[0..n) lie in low..high-1: their numbers into `found`, which has room for n + 16.
inline int64_t within(const int64_t* pos, int64_t n, int64_t low, int64_t high, int32_t* found) {
  int64_t count = 0, i = 0;
#if defined(__AVX512F__)
  const __m512i from = _mm512_set1_epi64(low), width = _mm512_set1_epi64(high - low);
  __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (; i + 16 <= n; i += 16) {
    const __m512i a = _mm512_sub_epi64(_mm512_loadu_si512(pos + i), from);
    const __m512i b = _mm512_sub_epi64(_mm512_loadu_si512(pos + i + 8), from);
    const unsigned mask = _mm512_cmplt_epu64_mask(a, width) | unsigned(_mm512_cmplt_epu64_mask(b, width)) << 8;
    _mm512_storeu_si512(found + count, _mm512_maskz_compress_epi32(__mmask16(mask), numbers));
    count += __builtin_popcount(mask);
    numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16));
  }
#endif
  for (; i < n; ++i) {
    found[count] = int32_t(i);
    count += uint64_t(pos[i] - low) < uint64_t(high - low);
  }
  return count;
}

// The result begins with the input's values; in place they are there already.
inline void start(const View& out, const View& x) { copy(out, x); }

}  // namespace vt
