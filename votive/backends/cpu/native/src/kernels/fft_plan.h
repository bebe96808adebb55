// What a length is made of: the passes of transforms side by side, what they cost, and plans that are kept.
#pragma once
#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "fft_passes.h"

namespace vt::fft {

// Plans by length, the tables of all together within a bound; those used longest ago go first.
template <class P> std::shared_ptr<const P> kept(int64_t n) {
  struct Entry {
    std::shared_ptr<const P> plan;
    uint64_t used;
  };
  constexpr size_t BOUND = size_t(64) << 20;
  static std::mutex guard;
  static std::unordered_map<int64_t, Entry> known;
  static uint64_t clock = 0;
  static size_t bytes = 0;
  {
    const std::lock_guard<std::mutex> lock(guard);
    const auto found = known.find(n);
    if (found != known.end()) {
      found->second.used = ++clock;
      return found->second.plan;
    }
  }
  // Made without the lock: a plan may need others of its kind.
  auto made = std::make_shared<const P>(n);
  const std::lock_guard<std::mutex> lock(guard);
  const auto [at, fresh] = known.emplace(n, Entry{made, ++clock});
  if (!fresh) return at->second.plan;
  bytes += made->bytes();
  while (bytes > BOUND && known.size() > 1) {
    auto oldest = known.begin();
    for (auto it = known.begin(); it != known.end(); ++it)
      if (it->second.used < oldest->second.used) oldest = it;
    bytes -= oldest->second.plan->bytes();
    known.erase(oldest);
  }
  return made;
}

// exp(-2 pi i k / n) for the first quarter of k.
template <class C> struct Circle {
  std::vector<Turn<C>> w;
  explicit Circle(int64_t n) {
    for (int64_t k = 0; k <= n / 4; ++k) w.push_back(turned<C>(k, n));
  }
  size_t bytes() const { return w.size() * sizeof(Turn<C>); }
};

// The radices of n in the order of the passes; odd primes without code of their own come first.
inline std::vector<int64_t> radices(int64_t n) {
  std::vector<int64_t> list;
  int64_t rest = n;
  int twos = 0;
  for (; rest % 2 == 0 && rest > 1; rest /= 2) ++twos;
  for (const int64_t p : {13, 11, 7, 5, 3})
    for (; rest % p == 0; rest /= p) list.push_back(p);
  for (int64_t p = 17; rest > 1; p += 2) {
    if (p * p > rest) p = rest;
    for (; rest % p == 0; rest /= p) list.insert(list.begin(), p);
  }
  if (twos % 3 == 1 && twos >= 4) list.push_back(16), twos -= 4;
  for (; twos >= 3; twos -= 3) list.push_back(8);
  if (twos > 0) list.push_back(int64_t(1) << twos);
  return list;
}

// About how many cycles a vector of numbers takes in a pass of a radix.
inline double cycles_of(int64_t radix) {
  switch (radix) {
    case 2: return 4;
    case 3: return 5;
    case 4: return 5;
    case 5: return 7;
    case 7: return 9;
    case 8: return 6.5;
    case 11: return 13;
    case 13: return 15;
    case 16: return 8;
    default: return 10 + 1.1 * double(radix);
  }
}

// Two buffers of n vectors of numbers in the first cache, the second, or beyond it.
template <class C> double distance(int64_t n) {
  const double bytes = double(n) * 4 * VECTOR_BYTES;
  // Numbers a power of two apart share few places of the first cache.
  const double crowd = n % 512 == 0 ? 1.6 : n % 256 == 0 ? 1.2 : 1.0;
  return bytes <= 28e3 ? 1.0 : bytes <= 600e3 ? 1.25 * crowd : 2.0 * crowd;
}

template <class C> double cost_of_passes(int64_t n) {
  double total = 0;
  for (const int64_t r : radices(n)) {
    if (r > ODD) return 1e30;
    total += cycles_of(r);
  }
  return total * double(n) * distance<C>(n);
}

// A length without large factors that leaves room for a convolution of n by n, by the least f(length).
template <class F> int64_t roomy(int64_t n, F&& f) {
  int64_t best = 0;
  double least = 0;
  for (const int64_t odd : {1, 3, 5, 7, 9, 15, 21, 25, 27, 35, 45}) {
    int64_t size = odd;
    while (size < 2 * n - 1) size *= 2;
    const double cost = f(size);
    if (best == 0 || cost < least) best = size, least = cost;
  }
  return best;
}
template <class C> double cost_of_chirp(int64_t n) {
  const int64_t room = roomy(n, cost_of_passes<C>);
  return 2 * cost_of_passes<C>(room) + 6.0 * double(room + n);
}
template <class C> double cost_of_lanes(int64_t n) { return std::min(cost_of_passes<C>(n), cost_of_chirp<C>(n)); }

// Bluestein's turns exp(-pi i j^2 / n).
template <class C> std::vector<Turn<C>> chirp_of(int64_t n) {
  std::vector<Turn<C>> w(n);
  for (int64_t j = 0; j < n; ++j) w[j] = turned<C>(int64_t((unsigned __int128)(j)*j % (2 * n)), 2 * n);
  return w;
}

// Transforms of one length, as many as a vector has lanes at a time.
//
// A length with large prime factors is a convolution with a chirp (Bluestein 1970), by transforms of a longer one.
template <class C> class Passes {
 public:
  int64_t size, room;  // numbers of a transform, and of each buffer that it needs

  explicit Passes(int64_t n) : size(n), room(n) {
    if (cost_of_passes<C>(n) <= cost_of_chirp<C>(n)) split();
    else convolve();
  }

  // Transforms x, with y to work in; gives the one that holds the result.
  Complex<C>* run(Complex<C>* x, Complex<C>* y) const {
    if (inner) return run_chirp(x, y);
    for (const Pass& p : list) {
      const Turn<C>* w = turns.data() + p.turns;
      switch (p.radix) {
        case 2: pass<C, 2>(y, x, p.m, p.s, w); break;
        case 3: pass<C, 3>(y, x, p.m, p.s, w); break;
        case 4: pass<C, 4>(y, x, p.m, p.s, w); break;
        case 5: pass<C, 5>(y, x, p.m, p.s, w); break;
        case 7: pass<C, 7>(y, x, p.m, p.s, w); break;
        case 8: pass<C, 8>(y, x, p.m, p.s, w); break;
        case 11: pass<C, 11>(y, x, p.m, p.s, w); break;
        case 13: pass<C, 13>(y, x, p.m, p.s, w); break;
        case 16: pass<C, 16>(y, x, p.m, p.s, w); break;
        default: odd_pass<C>(y, x, p.radix, p.m, p.s, w, turns.data() + p.roots);
      }
      std::swap(x, y);
    }
    return x;
  }
  size_t bytes() const { return sizeof(*this) + (turns.size() + chirp.size() + filter.size()) * sizeof(Turn<C>); }

 private:
  struct Pass {
    int64_t radix, m, s;
    size_t turns, roots;
  };
  std::vector<Pass> list;
  std::vector<Turn<C>> turns;
  std::shared_ptr<const Passes> inner;
  std::vector<Turn<C>> chirp, filter;

  void split() {
    int64_t left = size, s = 1;
    for (const int64_t r : radices(size)) {
      const int64_t m = left / r;
      list.push_back({r, m, s, turns.size(), 0});
      for (int64_t p = 1; p < m; ++p)
        for (int64_t j = 1; j < r; ++j) turns.push_back(turned<C>(p * j, left));
      if (cycles_of(r) > 15) {
        list.back().roots = turns.size();
        for (int64_t block = 1; block <= r / 2; block += PAIRS)
          for (int64_t j = 1; j <= r / 2; ++j)
            for (int64_t k = block; k < block + PAIRS; ++k) {
              const Turn<C> w = turned<C>(k * j, r);
              turns.push_back({w.re, -w.im});
            }
      }
      left = m, s *= r;
    }
  }

  void convolve() {
    room = roomy(size, cost_of_passes<C>);
    inner = kept<Passes>(room);
    chirp = chirp_of<C>(size);
    // The filter's transform in double, in the first lane.
    const auto exact = kept<Passes<double>>(room);
    std::vector<Complex<double>> x(room, Complex<double>{}), y(room);
    const auto w = chirp_of<double>(size);
    for (int64_t j = 0; j < size; ++j) {
      x[j].re[0] = w[j].re, x[j].im[0] = -w[j].im;
      if (j > 0) x[room - j] = x[j];
    }
    const Complex<double>* f = exact->run(x.data(), y.data());
    filter.resize(room);
    for (int64_t k = 0; k < room; ++k) filter[k] = {C(f[k].re[0] / double(room)), C(f[k].im[0] / double(room))};
  }

  Complex<C>* run_chirp(Complex<C>* x, Complex<C>* y) const {
    for (int64_t j = 0; j < size; ++j) x[j] = x[j].by(chirp[j]);
    for (int64_t j = size; j < room; ++j) x[j] = Complex<C>{};
    Complex<C>* z = inner->run(x, y);
    for (int64_t k = 0; k < room; ++k) z[k] = z[k].by(filter[k]).swapped();
    z = inner->run(z, z == x ? y : x);
    for (int64_t k = 0; k < size; ++k) z[k] = z[k].swapped().by(chirp[k]);
    return z;
  }
};

}  // namespace vt::fft
