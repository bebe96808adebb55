// The columns of a convolution as a matrix product: which element of the padded copy stands where.
#pragma once
#include "convolution_padded.h"

namespace vt::conv {

constexpr int64_t CHUNK_BYTES = 4 << 20;  // images are copied with their padding about so much at a time

// Neighbouring columns whose sources are contiguous: `len` of them from `at` in their sliver.
struct Run {
  int32_t sliver, at, len;
  int64_t source;  // in the padded copy, without channel and tap
};

// Columns that lie side by side in the output: `len` of them from `at` in their block.
struct Place {
  int64_t at, len, target;
};

// Columns first..first+count of a phase over several images, cut into slivers of at most NV vectors.
struct Columns {
  std::vector<Run> runs;
  std::vector<Place> places;
  std::vector<int64_t> begin;    // of each sliver's runs
  std::vector<int64_t> vectors;  // of each sliver
  int64_t width = 0;             // of all slivers

  template <class T> void make(const Sweep& s, const Padded& p, const Phase& phase, const Image& y, int64_t first,
                               int64_t count, int64_t widest) {
    const int64_t L = LANES<T>, total = up(count, L), slivers = up(total, widest);
    runs.clear(), places.clear(), begin.assign(1, 0), vectors.clear();
    width = total * L;
    int64_t c = first, column = 0;
    const int64_t apart = s.ostep[2] * y.step[2];
    const int64_t last = first + count;
    for (int64_t k = 0; k < slivers; ++k) {
      const int64_t v = (total * (k + 1)) / slivers - (total * k) / slivers;
      const int64_t end = std::min(last, c + v * L);
      const int64_t start = c;
      while (c < end) {
        const int64_t w = c % phase.places[2], row = c / phase.places[2];
        const int64_t h = row % phase.places[1], d = row / phase.places[1] % phase.places[0];
        const int64_t i = row / phase.places[1] / phase.places[0];
        const int64_t len = std::min(phase.places[2] - w, end - c);
        Run r;
        r.sliver = int32_t(k), r.at = int32_t(c - start), r.len = int32_t(len);
        r.source = i * p.image + d * s.step[0] * p.plane + h * s.step[1] * p.line + w;
        const int64_t target = i * y.sn + (phase.first[0] + d * s.ostep[0]) * y.step[0] +
                               (phase.first[1] + h * s.ostep[1]) * y.step[1] +
                               (phase.first[2] + w * s.ostep[2]) * y.step[2];
        runs.push_back(r);
        const int64_t at = column + r.at;
        if (!places.empty() && places.back().at + places.back().len == at &&
            places.back().target + places.back().len * apart == target)
          places.back().len += len;
        else places.push_back({at, len, target});
        c += len;
      }
      begin.push_back(int64_t(runs.size()));
      vectors.push_back(v);
      column += v * L;
    }
  }
};

// Rows k0..k1 (channel, tap) of runs, each row `stride` after the one before. Whole vectors are copied:
// what is too much is overwritten by what follows, and the space must have a vector to spare.
template <class T> void lay_out(T* to, int64_t stride, const T* x, const Padded& p, const int64_t* taps, int64_t n_taps,
                                int64_t k0, int64_t k1, const Run* runs, int64_t n_runs) {
  int64_t c = k0 / n_taps, t = k0 % n_taps;
  for (int64_t k = k0; k < k1; ++k, to += stride) {
    const T* from = x + c * p.channel + taps[t];
    for (int64_t r = 0; r < n_runs; ++r) {
      const T* src = from + runs[r].source;
      T* dst = to + runs[r].at;
      for (int64_t i = 0; i < runs[r].len; i += LANES<T>) store(dst + i, load(src + i));
    }
    if (++t == n_taps) t = 0, ++c;
  }
}

template <class F> void computed(Dtype d, F&& f) {
  if (d == Dtype::f64) f(Type<double>{});
  else f(Type<float>{});
}

}  // namespace vt::conv
