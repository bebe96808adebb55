// Singular values of small matrices: columns are rotated until all are orthogonal (Hestenes, "Inversion of matrices by
// biorthogonalization and related results", 1958).
#include "jacobi.h"

namespace vt {
namespace {
using namespace linalg;

// Columns of a (n of them, `rows` numbers each, one column after the other) are made orthogonal; v collects the
// rotations, if it is there. Gives whether that came to an end.
template <class T, int L> bool orthogonal(T* a, T* v, int64_t rows, int64_t n, T negligible) {
  const T tolerance = negligible * std::sqrt(T(std::max<int64_t>(rows, 4)));
  const T least = std::numeric_limits<T>::min() * 4;
  alignas(64) T own[L], other[L], both[L], limit[L], c[L], s[L];
  for (int sweep = 0; sweep < SWEEPS; ++sweep) {
    bool going = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        T *x = a + p * rows * L, *y = a + q * rows * L;
        for (int l = 0; l < L; ++l) own[l] = other[l] = both[l] = T(0);
        for (int64_t i = 0; i < rows; ++i)
#pragma GCC ivdep
          for (int l = 0; l < L; ++l) {
            const T f = x[i * L + l], g = y[i * L + l];
            own[l] += f * f;
            other[l] += g * g;
            both[l] += f * g;
          }
        for (int l = 0; l < L; ++l) limit[l] = std::max(tolerance * std::sqrt(own[l]) * std::sqrt(other[l]), least);
        if (!rotation<T, L>(own, other, both, limit, c, s)) continue;
        going = true;
        rotate<T, L>(x, y, rows, 1, c, s);
        if (v) rotate<T, L>(v + p * n * L, v + q * n * L, n, 1, c, s);
      }
    if (!going) return true;
  }
  return false;
}

// Columns of u (n of `rows`, one after the other) get length 1; those of no length become orthogonal to the others.
template <class T> void completed(T* u, const T* size, int64_t rows, int64_t n, T least) {
  bool missing = false;
  for (int64_t k = 0; k < n; ++k) {
    const bool there = size[k] > least;
    missing |= !there;
    for (int64_t i = 0; i < rows; ++i) u[k * rows + i] = there ? u[k * rows + i] / size[k] : T(0);
  }
  if (!missing) return;
  for (int64_t k = 0; k < n; ++k) {
    if (size[k] > least) continue;
    int64_t first = 0;
    T fewest = std::numeric_limits<T>::infinity();
    for (int64_t i = 0; i < rows; ++i) {  // the unit vector that the columns describe least
      T seen = 0;
      for (int64_t j = 0; j < n; ++j) seen += u[j * rows + i] * u[j * rows + i];
      if (seen < fewest) fewest = seen, first = i;
    }
    T* to = u + k * rows;
    to[first] = T(1);
    for (int again = 0; again < 2; ++again)
      for (int64_t j = 0; j < n; ++j) {
        if (j == k) continue;
        const T along = dot(u + j * rows, to, rows);
        for (int64_t i = 0; i < rows; ++i) to[i] -= along * u[j * rows + i];
      }
    const T length = std::sqrt(dot(to, to, rows));
    for (int64_t i = 0; i < rows; ++i) to[i] /= length;
  }
}

template <class T, int L>
void group(const View& a, const View& u, const View& s, const View& vh, const View& info, int64_t begin, int64_t end) {
  const int lead = a.ndim - 2;
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n), rows = std::max(m, n);
  const bool vectors = u.ndim == a.ndim, turned = m < n;
  const Matrices from(a, lead), to_s(s, lead, 1);
  const int64_t row = a.strides[a.ndim - 2], col = a.strides[a.ndim - 1];
  using W = double;
  Scratch<W> work(rows * k * L), v(vectors ? k * k * L : 1), one(rows * k), sizes(k);
  Scratch<int64_t> order(k);
  W scale[L], most[L];
  bool finite[L];
  std::fill(work.get(), work + rows * k * L, W(0));
  for (int64_t b = begin; b < end; ++b) {
    const int l = int(b - begin);
    const char* p = from.at(b, a.shape);
    most[l] = 0;
    finite[l] = true;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const W value = *reinterpret_cast<const T*>(p + i * row + j * col);
        finite[l] &= value - value == W(0);
        most[l] = std::max(most[l], std::abs(value));
        work[(turned ? i * rows + j : j * rows + i) * L + l] = value;
      }
    scale[l] = power_of_two(most[l]);
    for (int64_t i = 0; i < rows * k; ++i) work[i * L + l] = finite[l] ? work[i * L + l] / scale[l] : W(0);
  }
  if (vectors) {
    std::fill(v.get(), v + k * k * L, W(0));
    for (int64_t i = 0; i < k; ++i) std::fill(v + (i * k + i) * L, v + (i * k + i + 1) * L, W(1));
  }
  const bool done = orthogonal<W, L>(work, vectors ? v.get() : nullptr, rows, k, NEGLIGIBLE<T>);
  for (int64_t b = begin; b < end; ++b) {
    const int l = int(b - begin);
    if (!finite[l] || !done) *info.as<char>() = 1;
    for (int64_t j = 0; j < k; ++j) {
      W sum = 0;
      for (int64_t i = 0; i < rows; ++i) {
        const W x = work[(j * rows + i) * L + l];
        one[j * rows + i] = x;
        sum += x * x;
      }
      sizes[j] = std::sqrt(sum);
      order[j] = j;
    }
    std::stable_sort(order.get(), order + k, [&](int64_t x, int64_t y) { return sizes[x] > sizes[y]; });
    char* p = to_s.at(b, a.shape);
    for (int64_t j = 0; j < k; ++j)
      *reinterpret_cast<T*>(p + j * s.strides[s.ndim - 1]) = T(sizes[order[j]] * scale[l]);
    if (!vectors) continue;
    completed<W>(one, sizes, rows, k, NEGLIGIBLE<T> * NEGLIGIBLE<T>);
    const Matrices to_u(u, lead), to_v(vh, lead);
    char *pu = to_u.at(b, a.shape), *pv = to_v.at(b, a.shape);
    const int64_t u_row = u.strides[u.ndim - 2], u_col = u.strides[u.ndim - 1];
    const int64_t v_row = vh.strides[vh.ndim - 2], v_col = vh.strides[vh.ndim - 1];
    for (int64_t j = 0; j < k; ++j) {
      const int64_t at = order[j];
      for (int64_t i = 0; i < rows; ++i)
        *reinterpret_cast<T*>(turned ? pv + j * v_row + i * v_col : pu + i * u_row + j * u_col) =
            T(one[at * rows + i]);
      for (int64_t i = 0; i < k; ++i)
        *reinterpret_cast<T*>(turned ? pu + i * u_row + j * u_col : pv + j * v_row + i * v_col) =
            T(v[(at * k + i) * L + l]);
    }
  }
}

// a; U and V^H (empty if they are not asked for) around the values, and 1 if there is a matrix that has none
VT_KERNEL(svd) {
  const View &a = c.view(0), &u = c.view(1), &s = c.view(2), &vh = c.view(3), &info = c.view(4);
  int64_t batch = 1;
  for (int d = 0; d < a.ndim - 2; ++d) batch *= a.shape[d];
  const int64_t k = std::min(a.size(-2), a.size(-1)), rows = std::max(a.size(-2), a.size(-1));
  for_real("svd", a.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    constexpr int L = LANES;
    if (batch < 4) {
      for (int64_t b = 0; b < batch; ++b) group<T, 1>(a, u, s, vh, info, b, b + 1);
      return;
    }
    parallel_for((batch + L - 1) / L, grain_for(k * k * rows * 40), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) group<T, L>(a, u, s, vh, info, g * L, std::min(batch, (g + 1) * L));
    });
  });
}

}  // namespace
}  // namespace vt
