// Convolution of small planes with many channels: for each result the pixels under the kernel are gathered as one row, and
// a product does the rest. Along rows of a few results, vectors of neighbouring places would be mostly empty.
#pragma once
#include "convolution_geometry.h"
#include "pixels.h"
#include "vt/gemm_core.h"

namespace vt::conv {

inline bool gathered_pays(const Sweep& s, const Image& x, const Image& y, int64_t groups) {
  const int64_t taps = int64_t(s.phases[0].taps.size());
  // Weights are laid out anew, which a few places do not pay for.
  const bool some = x.n * s.phases[0].count() >= 48 || y.c * x.c * taps <= 1 << 17;
  return some && groups == 1 && taps > 1 && taps * x.c >= 64 && x.c >= 16 && y.size[2] <= 8;
}

// s: a forward sweep; w: (results, channels, taps), dense.
template <class T> void gathered(const Sweep& s, const Image& x, const Image& y, const T* w, const T* bias) {
  const Phase& phase = s.phases[0];
  const int64_t C = x.c, O = y.c, taps = int64_t(phase.taps.size()), K = taps * C, item = sizeof(T);
  const int64_t places = phase.count(), all = y.n * places;
  Scratch<T> pixels(elements(x)), results(elements(y)), weights(O * K);
  into_pixels<T>(x, pixels.get());
  parallel_for(O, grain_for(K), [&](int64_t b, int64_t e) {
    for (int64_t o = b; o < e; ++o) transpose<T>(weights + o * K, C, w + o * K, taps, C, taps);
  });
  const int64_t some = std::clamp<int64_t>((int64_t(1) << 19) / (K * item), 16, 512);
  parallel_for(up(all, some), grain_for(some * K * (O + 4) / 8), [&](int64_t begin, int64_t end) {
    Scratch<T> rows(some * K);
    for (int64_t u = begin; u < end; ++u) {
      const int64_t first = u * some, count = std::min(some, all - first);
      for (int64_t r = 0; r < count; ++r) {
        const int64_t place = (first + r) % places, image = (first + r) / places;
        const int64_t at[3] = {place / phase.places[2] / phase.places[1], place / phase.places[2] % phase.places[1],
                               place % phase.places[2]};
        const T* from = pixels + image * x.size[0] * x.size[1] * x.size[2] * C;
        T* to = rows + r * K;
        for (int64_t t = 0; t < taps; ++t, to += C) {
          int64_t q[3];
          bool within = true;
          for (int d = 0; d < 3; ++d) {
            q[d] = at[d] * s.step[d] + phase.offsets[3 * t + d];
            within = within && q[d] >= 0 && q[d] < x.size[d];
          }
          if (within) std::memcpy(to, from + ((q[0] * x.size[1] + q[1]) * x.size[2] + q[2]) * C, size_t(C * item));
          else std::fill(to, to + C, T(0));
        }
      }
      Result c{};
      c.data = reinterpret_cast<char*>(results + first * O);
      c.row = O * item, c.col = item;
      if (bias != nullptr) {
        c.x = reinterpret_cast<const char*>(bias);
        c.x_col = item;
        c.beta = 1;
      }
      vt::product(dtype_of<T>, dtype_of<T>, count, O, K, {reinterpret_cast<const char*>(rows.get()), K * item, item},
                  {reinterpret_cast<const char*>(weights.get()), item, K * item}, c);
    }
  });
  from_pixels<T>(y, static_cast<const T*>(results.get()));
}

}  // namespace vt::conv
