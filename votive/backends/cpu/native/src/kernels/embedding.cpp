// Rows of tables, their gradients, and bags of rows.
#include "index_rows.h"

namespace vt {

namespace {
using namespace indexed;

// embedding(out, weight, indices)
VT_KERNEL(embedding) {
  const View &out = c.view(0), &w = c.view(1);
  Indices index(c.view(2));
  index.check<IndexError>("embedding", 0, w.shape[0]);
  Dims lead, trail;
  trail.add(w.shape[1], w.strides[1], itemsize(w.dtype));
  read_rows(out.data, w.data, w.dtype, lead, {index.data, w.strides[0], index.n}, trail);
}

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

// bag(out, weight, indices, offsets, factors or None, mean, padding): bag b holds the indices from
// offsets[b] up to the next offset, or to the end
VT_KERNEL(bag) {
  const View &out = c.view(0), &w = c.view(1);
  const bool mean = c.i(0) != 0;
  const int64_t padding = c.i(1), count = out.shape[0], width = out.shape[1], rows = w.shape[0];
  Indices index(c.view(2)), offsets(c.view(3));
  const std::string op = "embedding_bag: ";
  if (index.n && index.farthest() >= uint64_t(rows)) {
    const auto [least, most] = index.extremes();
    throw std::runtime_error(op + "index " + std::to_string(least < 0 ? least : most) + " is out of range for " +
                             std::to_string(rows) + " rows.");
  }
  if (offsets.n && offsets[0] != 0)
    throw std::runtime_error(op + "the first bag must begin at 0, offsets begin with " + std::to_string(offsets[0]) + ".");
  if (offsets.n && offsets[offsets.n - 1] > index.n)
    throw std::runtime_error(op + "offset " + std::to_string(offsets[offsets.n - 1]) + " lies behind all " +
                             std::to_string(index.n) + " indices.");
  for (int64_t k = 1; k < offsets.n; ++k)
    if (offsets[k] < offsets[k - 1])
      throw std::runtime_error(op + "offsets must not fall, but " + std::to_string(offsets[k]) + " follows " +
                               std::to_string(offsets[k - 1]) + ".");
  for_floats("embedding_bag", w.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    using C = compute_t<T>;
    const bool weighted = bool(c.view(4));
    const Dense factors(weighted ? c.view(4) : c.view(3), weighted ? dtype_of<C> : Dtype::i64, false);
    const CastFn widen = cast_fn(dtype_of<T>, dtype_of<C>), narrow = cast_fn(dtype_of<C>, dtype_of<T>);
    const bool direct = !is_narrow<T> && w.strides[1] == int64_t(sizeof(T));
    parallel_for(count, grain_for((index.n / count + 1) * width), [&](int64_t b, int64_t e) {
      Scratch<C> total(width), part(width);
      C* sum = total;
      for (int64_t k = b; k < e; ++k) {
        const int64_t i0 = offsets[k], i1 = k + 1 < offsets.n ? offsets[k + 1] : index.n;
        std::fill(sum, sum + width, C(0));
        int64_t used = 0;
        for (int64_t i = i0; i < i1; ++i) {
          if (index[i] == padding) continue;
          ++used;
          const char* row = w.data + index[i] * w.strides[0];
          const C* v = part;
          if (direct) v = reinterpret_cast<const C*>(row);
          else widen(reinterpret_cast<char*>(part.get()), sizeof(C), row, w.strides[1], width);
          if (weighted) {
            const C f = reinterpret_cast<const C*>(factors.data)[i];
#pragma GCC ivdep
            for (int64_t j = 0; j < width; ++j) sum[j] += f * v[j];
          } else {
#pragma GCC ivdep
            for (int64_t j = 0; j < width; ++j) sum[j] += v[j];
          }
        }
        if (mean && used > 1)
          for (int64_t j = 0; j < width; ++j) sum[j] /= C(used);
        narrow(out.data + k * width * int64_t(sizeof(T)), sizeof(T), reinterpret_cast<const char*>(sum), sizeof(C), width);
      }
    });
  });
}

// bag_argmax(out, weight, indices, bags): for sorted bags, the row with the largest value; -1 in empty ones
VT_KERNEL(bag_argmax) {
  const View &out = c.view(0), &w = c.view(1);
  const int64_t count = out.shape[0], width = out.shape[1];
  Indices index(c.view(2)), bags(c.view(3));
  int64_t* o = out.as<int64_t>();
  for_floats("embedding_bag", w.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    using C = compute_t<T>;
    const CastFn widen = cast_fn(dtype_of<T>, dtype_of<C>);
    parallel_for(count, grain_for((index.n / (count + 1) + 1) * width), [&](int64_t b, int64_t e) {
      Scratch<C> best(width), part(width);
      int64_t i = std::lower_bound(bags.data, bags.data + bags.n, b) - bags.data;
      for (int64_t k = b; k < e; ++k) {
        int64_t* at = o + k * width;
        std::fill(at, at + width, int64_t(-1));
        for (bool first = true; i < bags.n && bags[i] == k; ++i, first = false) {
          widen(reinterpret_cast<char*>(part.get()), sizeof(C), w.data + index[i] * w.strides[0], w.strides[1], width);
          const int64_t row = index[i];
          for (int64_t j = 0; j < width; ++j) {
            // Of equal values the first counts; nothing is larger than a NaN that comes first.
            const bool take = first || part[j] > best[j];
            best[j] = take ? part[j] : best[j];
            at[j] = take ? row : at[j];
          }
        }
      }
    });
  });
}

}  // namespace

}  // namespace vt
