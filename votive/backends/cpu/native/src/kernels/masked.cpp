// Choosing by truth: how many, which, and where. Results' sizes depend on the data, so these work in
// two steps: `count_true` counts by blocks of rows, the rest starts each block where it belongs.
#include "indices.h"

namespace vt {

namespace {

constexpr int64_t CUT = 4096;

// A mask as rows along its last dimension; with `cut`, when all arrays are dense, as rows of CUT.
struct Mask {
  Mask(const View& v, bool cut) : view(v), cut(cut), total(v.numel()) {
    width = cut ? CUT : v.ndim ? v.shape[v.ndim - 1] : 1;
    step = v.ndim && !cut ? v.strides[v.ndim - 1] : 1;
    rows = width ? (total + width - 1) / width : 0;
  }
  int64_t width_of(int64_t r) const { return std::min(width, total - r * width); }
  char* row(int64_t r, const View& v) const {
    char* p = v.data;
    if (cut) return p + r * CUT * itemsize(v.dtype);
    for (int d = v.ndim - 2; d >= 0; --d) {
      p += r % v.shape[d] * v.strides[d];
      r /= v.shape[d];
    }
    return p;
  }
  int64_t step_of(const View& v) const { return cut || v.ndim == 0 ? itemsize(v.dtype) : v.strides[v.ndim - 1]; }
  View view;
  bool cut;
  int64_t total, width, step, rows;
};

int64_t count_bytes(const uint8_t* m, int64_t n) {
  int64_t total = 0;
  while (n > 0) {
    // Short runs keep the sums in bytes.
    const int64_t k = std::min<int64_t>(n, 4096);
    uint32_t sum = 0;
    for (int64_t i = 0; i < k; ++i) sum += m[i] != 0;
    total += sum;
    m += k;
    n -= k;
  }
  return total;
}

// Rows per block, as Python decided: the counts have one entry per block and one for the total.
int64_t rows_per_block(int64_t rows, int64_t blocks) { return (rows + blocks - 1) / blocks; }

// count_true(mask, counts, cut): the number of true values before each block, and of all
VT_KERNEL(count_true) {
  const Mask m(c.view(0), c.i(0) != 0);
  int64_t* counts = c.view(1).as<int64_t>();
  const int64_t blocks = c.view(1).shape[0] - 1, each = rows_per_block(m.rows, blocks);
  parallel_for(blocks, grain_for(each * m.width / 8), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      int64_t n = 0;
      for (int64_t r = k * each; r < std::min(m.rows, (k + 1) * each); ++r) {
        const char* p = m.row(r, m.view);
        const int64_t width = m.width_of(r);
        if (m.step == 1) n += count_bytes(reinterpret_cast<const uint8_t*>(p), width);
        else
          for (int64_t i = 0; i < width; ++i) n += p[i * m.step] != 0;
      }
      counts[k + 1] = n;
    }
  });
  counts[0] = 0;
  for (int64_t k = 1; k <= blocks; ++k) counts[k] += counts[k - 1];
}

// body(row, mask row, place): place counts the true values before the row; returns those in it.
template <class F> void by_rows(const Mask& m, const View& starts, F&& body) {
  const int64_t blocks = starts.shape[0] - 1, each = rows_per_block(m.rows, blocks);
  parallel_for(blocks, grain_for(each * m.width), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      int64_t place = starts.as<int64_t>()[k];
      const int64_t r1 = std::min(m.rows, (k + 1) * each);
      for (int64_t r = k * each; r < r1; ++r) place += body(r, m.row(r, m.view), place);
    }
  });
}

constexpr int64_t CHUNK = 512;

// The columns of true values, by chunks without branches: emit(columns, count, place)
template <class F> int64_t columns(const Mask& m, int64_t r, const char* p, int64_t place, F&& emit) {
  int32_t found[CHUNK + 1];
  const int64_t begin = place, width = m.width_of(r);
  for (int64_t i0 = 0; i0 < width; i0 += CHUNK) {
    const int64_t n = std::min(CHUNK, width - i0);
    int64_t count = 0;
    if (m.step == 1) {
      const uint8_t* q = reinterpret_cast<const uint8_t*>(p) + i0;
      for (int64_t i = 0; i < n; ++i) {
        found[count] = int32_t(i);
        count += q[i] != 0;
      }
    } else {
      for (int64_t i = 0; i < n; ++i) {
        found[count] = int32_t(i);
        count += p[(i0 + i) * m.step] != 0;
      }
    }
    if (count) emit(i0, found, count, place);
    place += count;
  }
  return place - begin;
}

// masked_select(out, x, mask, starts, cut)
VT_KERNEL(masked_select) {
  const View &out = c.view(0), &x = c.view(1);
  const Mask m(c.view(2), c.i(0) != 0);
  const int64_t step = m.step_of(x);
  for_sizes(x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    by_rows(m, c.view(3), [&](int64_t r, const char* p, int64_t place) {
      const char* row = m.row(r, x);
      return columns(m, r, p, place, [&](int64_t i0, const int32_t* found, int64_t count, int64_t to) {
        T* d = out.as<T>() + to;
        const char* s = row + i0 * step;
        if (step == int64_t(sizeof(T))) {
          const T* from = reinterpret_cast<const T*>(s);
#pragma GCC unroll 4
          for (int64_t i = 0; i < count; ++i) d[i] = from[found[i]];
        } else {
          for (int64_t i = 0; i < count; ++i) d[i] = *reinterpret_cast<const T*>(s + found[i] * step);
        }
      });
    });
  });
}

// nonzero(out, mask, starts, cut): out is (dimensions, found); vectors only are cut
VT_KERNEL(nonzero) {
  const View& out = c.view(0);
  const Mask m(c.view(1), c.i(0) != 0);
  const int ndim = m.view.ndim;
  const int64_t n = out.shape[1];
  int64_t* o = out.as<int64_t>();
  by_rows(m, c.view(2), [&](int64_t r, const char* p, int64_t place) {
    const int64_t found = columns(m, r, p, place, [&](int64_t i0, const int32_t* found, int64_t count, int64_t to) {
      int64_t* d = o + (ndim - 1) * n + to;
      const int64_t first = m.cut ? r * CUT + i0 : i0;
      for (int64_t i = 0; i < count; ++i) d[i] = first + found[i];
    });
    if (found)
      for (int d = ndim - 2; d >= 0; --d) {
        std::fill(o + d * n + place, o + d * n + place + found, r % m.view.shape[d]);
        r /= m.view.shape[d];
      }
    return found;
  });
}

// masked_scatter(out, mask, source, starts, cut): the source is dense
VT_KERNEL(masked_scatter) {
  const View& out = c.view(0);
  const Mask m(c.view(1), c.i(0) != 0);
  const int64_t step = m.step_of(out);
  for_sizes(out.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    const T* source = c.view(2).as<const T>();
    by_rows(m, c.view(3), [&](int64_t r, const char* p, int64_t place) {
      char* row = m.row(r, out);
      return columns(m, r, p, place, [&](int64_t i0, const int32_t* found, int64_t count, int64_t from) {
        const T* s = source + from;
        char* d = row + i0 * step;
        for (int64_t i = 0; i < count; ++i) *reinterpret_cast<T*>(d + found[i] * step) = s[i];
      });
    });
  });
}

}  // namespace

}  // namespace vt
