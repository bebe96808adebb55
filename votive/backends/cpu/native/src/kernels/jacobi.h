// Rotations of pairs (Jacobi) for many small matrices side by side, a lane each: what singular values and eigenvalues
// share.
#pragma once
#include <limits>

#include "linalg.h"

namespace vt::linalg {

constexpr int SWEEPS = 40;
constexpr int LANES = 8;
// All is computed in double, as NumPy does it. What is less than this beside the whole is rounded away in the result.
template <class T> constexpr double NEGLIGIBLE = sizeof(T) == 8 ? 2.3e-16 : 1e-12;

// Cosines and sines of rotations that clear `both`, given what stands for either side; 1 and 0 where nothing is to do.
// Gives whether any lane turns.
template <class T, int L>
bool rotation(const T* own, const T* other, const T* both, const T* limit, T* cosine, T* sine) {
  int any = 0;
#pragma GCC ivdep
  for (int l = 0; l < L; ++l) {
    const bool turn = std::abs(both[l]) > limit[l];
    const T zeta = (other[l] - own[l]) / (T(2) * (turn ? both[l] : T(1)));
    const T size = std::abs(zeta);
    const bool far = size > T(1048576);  // where squares could leave the range, and 1 does not count any more
    const T near = far ? T(1) : size;
    const T below = far ? T(2) * size : near + std::sqrt(T(1) + near * near);
    const T t = turn ? (zeta < T(0) ? T(-1) : T(1)) / below : T(0);
    const T c = T(1) / std::sqrt(T(1) + t * t);
    cosine[l] = c;
    sine[l] = c * t;
    any |= turn;
  }
  return any != 0;
}

// Two columns of `count` numbers each, `step` lanes apart, become c x - s y and s x + c y.
template <class T, int L>
void rotate(T* x, T* y, int64_t count, int64_t step, const T* cosine, const T* sine) {
  for (int64_t i = 0; i < count; ++i, x += step * L, y += step * L)
#pragma GCC ivdep
    for (int l = 0; l < L; ++l) {
      const T a = x[l], b = y[l];
      x[l] = cosine[l] * a - sine[l] * b;
      y[l] = sine[l] * a + cosine[l] * b;
    }
}

// The largest power of two up to each of the largest numbers; 1 where there is none to divide by.
template <class T> T power_of_two(T most) {
  if (!(most > T(0)) || !(most < std::numeric_limits<T>::infinity())) return T(1);
  return std::ldexp(T(1), std::ilogb(most));
}

}  // namespace vt::linalg
