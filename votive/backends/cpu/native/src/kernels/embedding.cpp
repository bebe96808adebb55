// Gradients of tables, and bags of rows.
#include "indices.h"
#include "vt/cast.h"

namespace vt {

namespace {

// Positions of an index in groups: those of row r are order[first[r]] .. order[first[r + 1] - 1], in
// the order in which they came.
struct Groups {
  Groups(const Indices& index, int64_t rows) : first_(rows + 2), order_(index.n + 1) {
    first = first_;
    order = order_;
    std::fill(first, first + rows + 2, 0);
    for (int64_t i = 0; i < index.n; ++i) ++first[index[i] + 2];
    for (int64_t r = 2; r <= rows + 1; ++r) first[r] += first[r - 1];
    for (int64_t i = 0; i < index.n; ++i) order[first[index[i] + 1]++] = int32_t(i);
  }
  Scratch<int64_t> first_;
  Scratch<int32_t> order_;
  int64_t* first;
  int32_t* order;
};

// embedding_backward(out, grad, indices, padding, by_frequency): out is dense
VT_KERNEL(embedding_backward) {
  const View &out = c.view(0), &g = c.view(1);
  const int64_t rows = out.shape[0], width = out.shape[1], padding = c.i(0);
  const bool by_frequency = c.i(1) != 0;
  Indices index(c.view(2));
  if (index.n == 0) return zero_bytes(out.data, rows * width * itemsize(out.dtype));
  index.check<IndexError>("embedding", 0, rows);
  const Dense grad(g, g.dtype, false);
  const Groups groups(index, rows);
  for_floats("embedding_backward", out.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    using C = compute_t<T>;
    const T* from = reinterpret_cast<const T*>(grad.data);
    T* to = out.as<T>();
    const CastFn widen = cast_fn(dtype_of<T>, dtype_of<C>), narrow = cast_fn(dtype_of<C>, dtype_of<T>);
    parallel_for(rows, std::max<int64_t>(1, 65536 / (width + 1)), [&](int64_t b, int64_t e) {
      Scratch<C> total(width), part(is_narrow<T> ? width : 1);
      for (int64_t r = b; r < e; ++r) {
        T* d = to + r * width;
        const int64_t k0 = groups.first[r], k1 = groups.first[r + 1];
        if (k0 == k1 || r == padding) {
          // Untouched rows lie side by side: one call for all of them.
          int64_t stop = r + 1;
          while (stop < e && groups.first[stop] == groups.first[stop + 1] && stop != padding) ++stop;
          std::memset(d, 0, size_t((stop - r) * width) * sizeof(T));
          r = stop - 1;
          continue;
        }
        const T* s = from + groups.order[k0] * width;
        if (k1 - k0 == 1) {
          std::memcpy(d, s, size_t(width) * sizeof(T));
          continue;
        }
        C* sum = is_narrow<T> ? total.get() : reinterpret_cast<C*>(d);
        if constexpr (is_narrow<T>) {
          widen(reinterpret_cast<char*>(sum), sizeof(C), reinterpret_cast<const char*>(s), sizeof(T), width);
        } else {
          std::memcpy(d, s, size_t(width) * sizeof(T));
        }
        for (int64_t k = k0 + 1; k < k1; ++k) {
          const T* s = from + groups.order[k] * width;
          const C* v;
          if constexpr (is_narrow<T>) {
            widen(reinterpret_cast<char*>(part.get()), sizeof(C), reinterpret_cast<const char*>(s), sizeof(T), width);
            v = part;
          } else {
            v = s;
          }
#pragma GCC ivdep
          for (int64_t j = 0; j < width; ++j) sum[j] += v[j];
        }
        if (by_frequency) {
          const C count = C(k1 - k0);
          for (int64_t j = 0; j < width; ++j) sum[j] /= count;
        }
        if constexpr (is_narrow<T>)
          narrow(reinterpret_cast<char*>(d), sizeof(T), reinterpret_cast<const char*>(sum), sizeof(C), width);
      }
    });
  });
}

}  // namespace

}  // namespace vt
