// The largest values of boxes that differ in size.
#include "pixels.h"
#include "pooling.h"

namespace vt { namespace {
using namespace conv;

// Channels last: every pixel of a box meets a vector of channels.
template <class T>
void boxes_of_pixels(const Image& x, const Image& y, const Image& index, const Numbers* start, const Numbers* end) {
  using I = std::conditional_t<std::is_same_v<T, float>, int32_t, int64_t>;
  const int64_t C = x.c, H = x.size[1], W = x.size[2], places = y.size[0] * y.size[1] * y.size[2];
  parallel_for(x.n * places, grain_for(x.size[0] * H * W / places * (C / 4 + 4)), [&](int64_t b, int64_t e) {
    Scratch<T> most(C);
    Scratch<I> where(C);
    for (int64_t u = b; u < e; ++u) {
      const int64_t n = u / places, ow = u % y.size[2], oh = u / y.size[2] % y.size[1], od = u % places / y.size[2] / y.size[1];
      T* best = most;
      I* at = where;
      std::fill(best, best + C, LOWEST<T>);
      std::fill(at, at + C, I((start[0][od] * H + start[1][oh]) * W + start[2][ow]));
      for (int64_t d = start[0][od]; d < end[0][od]; ++d)
        for (int64_t h = start[1][oh]; h < end[1][oh]; ++h)
          for (int64_t w = start[2][ow]; w < end[2][ow]; ++w) {
            const T* p = reinterpret_cast<const T*>(x.data + n * x.sn + d * x.step[0] + h * x.step[1] + w * x.step[2]);
            const I here = I((d * H + h) * W + w);
#pragma GCC ivdep
            for (int64_t c = 0; c < C; ++c) {
              const bool better = (p[c] > best[c]) | (p[c] != p[c]);
              best[c] = better ? p[c] : best[c];
              at[c] = better ? here : at[c];
            }
          }
      char* to = y.data + n * y.sn + od * y.step[0] + oh * y.step[1] + ow * y.step[2];
      char* place = index.data + n * index.sn + od * index.step[0] + oh * index.step[1] + ow * index.step[2];
      std::memcpy(to, best, size_t(C) * sizeof(T));
      for (int64_t c = 0; c < C; ++c) *reinterpret_cast<int64_t*>(place + c * index.sc) = at[c];
    }
  });
}

// The largest of columns w0..w1-1 of rows h0..h1-1 of planes d0..d1-1, and its place. Among equal values the first counts,
// among NaN the last; wide boxes are searched in vectors.
template <class T> T largest(const T* x, const int64_t (&size)[3], const int64_t (&from)[3], const int64_t (&to)[3], int64_t& where) {
  using I = std::conditional_t<std::is_same_v<T, float>, int32_t, int64_t>;
  constexpr int64_t L = LANES<T>;
  const int64_t H = size[1], W = size[2];
  T best = LOWEST<T>;
  where = (from[0] * H + from[1]) * W + from[2];
  // Whole rows, and whole planes, are one longer row.
  int64_t planes = to[0] - from[0], rows = to[1] - from[1], width = to[2] - from[2];
  if (width == W) {
    const bool whole = rows == H;
    width *= rows, rows = 1;
    if (whole) width *= planes, planes = 1;
  }
  const int64_t first = where;
  const bool vectors = width >= L && size[0] * H * W < int64_t(1) << 31;
  Vec<T> most = LOWEST<T> + Vec<T>{};
  Vec<I> at = I(where) + Vec<I>{}, lanes;
  for (int64_t j = 0; j < L; ++j) lanes[j] = I(j);
  for (int64_t d = 0; d < planes; ++d)
    for (int64_t h = 0; h < rows; ++h) {
      const int64_t row = first + (d * H + h) * W;
      int64_t w = 0;
      if (vectors) {
        for (; w + L <= width; w += L) {
          const Vec<T> v = load(x + row + w);
          const auto better = (v > most) | (v != v);
          most = better ? v : most;
          at = better ? lanes + I(row + w) : at;
        }
      }
      for (; w < width; ++w) {
        const T v = x[row + w];
        if (v > best || v != v) best = v, where = row + w;
      }
    }
  if (!vectors) return best;
  for (int64_t j = 0; j < L; ++j) {
    const T v = most[j];
    const bool nan = v != v, later = int64_t(at[j]) > where;
    if (nan ? best == best || later : v > best || (v == best && !later)) best = v, where = at[j];
  }
  return best;
}

// x, values, indices, then start and end of each of three dimensions.
VT_KERNEL(max_of_boxes) {
  const int n = int(c.i(0));
  const Image x(c.view(0), n), y(c.view(1), n), index(c.view(2), n);
  const Numbers start[3] = {Numbers(c.view(3)), Numbers(c.view(5)), Numbers(c.view(7))};
  const Numbers end[3] = {Numbers(c.view(4)), Numbers(c.view(6)), Numbers(c.view(8))};
  for_pooled(x.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    if constexpr (std::is_floating_point_v<T>) if (x.size[0] * x.size[1] * x.size[2] < int64_t(1) << 31) {
      const bool there = x.dtype == dtype_of<T> && channels_last(x, y);
      if (there) return boxes_of_pixels<T>(x, y, index, start, end);
      if (copied_as_pixels(x, y))
        return with_pixels<T>(x, y, [&](const Image& from, const Image& to) {
          boxes_of_pixels<T>(from, to, index, start, end);
        });
    }
    const CastFn in = cast_fn(x.dtype, dtype_of<T>), out = cast_fn(dtype_of<T>, y.dtype);
    const int64_t H = x.size[1], W = x.size[2], plane = x.size[0] * H * W, item = itemsize(x.dtype);
    const bool dense = x.step[2] == item && x.step[1] == W * item && (x.size[0] == 1 || x.step[0] == H * W * item);
    const bool direct = dense && x.dtype == dtype_of<T>;
    parallel_for(x.n * x.c, grain_for(plane * 4), [&](int64_t b, int64_t e) {
      Scratch<T> space(direct ? 0 : plane), values(y.size[2]);
      for (int64_t k = b; k < e; ++k) {
        const char* from = x.data + k / x.c * x.sn + k % x.c * x.sc;
        const T* copy = direct ? reinterpret_cast<const T*>(from) : space.get();
        if (dense && !direct) in(reinterpret_cast<char*>(space.get()), sizeof(T), from, item, plane);
        for (int64_t r = 0; !dense && r < x.size[0] * H; ++r)
          in(reinterpret_cast<char*>(space + r * W), sizeof(T), from + r / H * x.step[0] + r % H * x.step[1], x.step[2],
             W);
        for (int64_t od = 0; od < y.size[0]; ++od)
          for (int64_t oh = 0; oh < y.size[1]; ++oh) {
            char* place =
                index.data + k / x.c * index.sn + k % x.c * index.sc + od * index.step[0] + oh * index.step[1];
            for (int64_t ow = 0; ow < y.size[2]; ++ow) {
              const int64_t first[3] = {start[0][od], start[1][oh], start[2][ow]};
              const int64_t last[3] = {end[0][od], end[1][oh], end[2][ow]};
              int64_t where;
              values[ow] = largest<T>(copy, x.size, first, last, where);
              *reinterpret_cast<int64_t*>(place + ow * index.step[2]) = where;
            }
            out(y.data + k / x.c * y.sn + k % x.c * y.sc + od * y.step[0] + oh * y.step[1], y.step[2],
                reinterpret_cast<const char*>(values.get()), sizeof(T), y.size[2]);
          }
      }
    });
  });
}

}}  // namespace vt
