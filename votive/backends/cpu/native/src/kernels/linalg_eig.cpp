// Eigenvalues of small symmetric matrices: rows and columns are rotated until the diagonal alone is left.
#include "jacobi.h"

namespace vt {
namespace {
using namespace linalg;

// Gives whether that came to an end. Columns of v, one after the other, collect the rotations, if it is there.
template <class T, int L> bool diagonal(T* a, T* v, int64_t n, T eps) {
  alignas(64) T limit[L], c[L], s[L];
  for (int sweep = 0; sweep < SWEEPS; ++sweep) {
    bool going = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const T *own = a + (p * n + p) * L, *other = a + (q * n + q) * L;
        T *both = a + (p * n + q) * L, *mirrored = a + (q * n + p) * L;
        // Sizes are about 1: what is smaller than rounding of the largest does not count.
        for (int l = 0; l < L; ++l) limit[l] = eps * std::max(std::sqrt(std::abs(own[l] * other[l])), T(0.0625));
        if (!rotation<T, L>(own, other, both, limit, c, s)) continue;
        going = true;
        for (int l = 0; l < L; ++l) limit[l] = std::abs(both[l]) > limit[l] ? T(0) : T(1);
        rotate<T, L>(a + p * L, a + q * L, n, n, c, s);
        rotate<T, L>(a + p * n * L, a + q * n * L, n, 1, c, s);
        for (int l = 0; l < L; ++l) {
          both[l] *= limit[l];
          mirrored[l] = both[l];
        }
        if (v) rotate<T, L>(v + p * n * L, v + q * n * L, n, 1, c, s);
      }
    if (!going) return true;
  }
  return false;
}

template <class T, int L>
void group(const View& a, const View& values, const View& found, const View& info, bool upper, int64_t begin,
           int64_t end) {
  const int lead = a.ndim - 2;
  const int64_t n = a.size(-1);
  const bool vectors = found.ndim == a.ndim;
  const Matrices from(a, lead), to(values, lead, 1);
  const int64_t row = a.strides[a.ndim - 2], col = a.strides[a.ndim - 1];
  using W = double;
  Scratch<W> work(n * n * L), v(vectors ? n * n * L : 1);
  Scratch<int64_t> order(n);
  W scale[L];
  bool finite[L];
  std::fill(work.get(), work + n * n * L, W(0));
  for (int64_t b = begin; b < end; ++b) {
    const int l = int(b - begin);
    const char* p = from.at(b, a.shape);
    W most = 0;
    finite[l] = true;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        const W value = *reinterpret_cast<const T*>(upper ? p + j * row + i * col : p + i * row + j * col);
        finite[l] &= value - value == W(0);
        most = std::max(most, std::abs(value));
        work[(i * n + j) * L + l] = work[(j * n + i) * L + l] = value;
      }
    scale[l] = power_of_two(most);
    for (int64_t i = 0; i < n * n; ++i) work[i * L + l] = finite[l] ? work[i * L + l] / scale[l] : W(0);
  }
  if (vectors) {
    std::fill(v.get(), v + n * n * L, W(0));
    for (int64_t i = 0; i < n; ++i) std::fill(v + (i * n + i) * L, v + (i * n + i + 1) * L, W(1));
  }
  const bool done = diagonal<W, L>(work, vectors ? v.get() : nullptr, n, NEGLIGIBLE<T>);
  for (int64_t b = begin; b < end; ++b) {
    const int l = int(b - begin);
    if (!finite[l] || !done) *info.as<char>() = 1;
    const auto value = [&](int64_t j) { return work[(j * n + j) * L + l]; };
    for (int64_t j = 0; j < n; ++j) order[j] = j;
    std::stable_sort(order.get(), order + n, [&](int64_t x, int64_t y) { return value(x) < value(y); });
    char* p = to.at(b, a.shape);
    for (int64_t j = 0; j < n; ++j)
      *reinterpret_cast<T*>(p + j * values.strides[values.ndim - 1]) = T(value(order[j]) * scale[l]);
    if (!vectors) continue;
    char* pv = Matrices(found, lead).at(b, a.shape);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        *reinterpret_cast<T*>(pv + i * found.strides[found.ndim - 2] + j * found.strides[found.ndim - 1]) =
            T(v[(order[j] * n + i) * L + l]);
  }
}

// a; values, vectors (empty if they are not asked for), and 1 if there is a matrix that has none; 1 to read above the
// diagonal
VT_KERNEL(eigh) {
  const View &a = c.view(0), &values = c.view(1), &found = c.view(2), &info = c.view(3);
  const bool upper = c.i(0) != 0;
  const int64_t n = a.size(-1);
  int64_t batch = 1;
  for (int d = 0; d < a.ndim - 2; ++d) batch *= a.shape[d];
  for_real("eigh", a.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    constexpr int L = LANES;
    if (batch < 4) {
      for (int64_t b = 0; b < batch; ++b) group<T, 1>(a, values, found, info, upper, b, b + 1);
      return;
    }
    parallel_for((batch + L - 1) / L, grain_for(n * n * n * 60), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g)
        group<T, L>(a, values, found, info, upper, g * L, std::min(batch, (g + 1) * L));
    });
  });
}

}  // namespace
}  // namespace vt
