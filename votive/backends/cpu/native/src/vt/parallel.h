// One persistent pool of threads for all kernels.
#pragma once
#include <cstdint>
#include <type_traits>

namespace vt {

// A reference to a callable: no allocation, valid while the callable lives.
class Body {
 public:
  template <class F> Body(F& f) : object(&f), call([](void* o, int64_t b, int64_t e) { (*static_cast<F*>(o))(b, e); }) {}
  void operator()(int64_t begin, int64_t end) const { call(object, begin, end); }

 private:
  void* object;
  void (*call)(void*, int64_t, int64_t);
};

int num_threads();
void set_num_threads(int n);

// Runs body(begin, end) over [0, n) in pieces of at least `grain` (the last may be smaller).
// Stays on the caller's thread when n <= grain, inside another parallel region, or when another
// thread is using the pool. The first exception thrown by a piece is rethrown here.
void parallel_pieces(int64_t n, int64_t grain, Body body);

template <class F> void parallel_for(int64_t n, int64_t grain, F&& f) {
  if (n <= 0) return;
  if (n <= grain) return f(int64_t(0), n);
  parallel_pieces(n, grain, Body(f));
}

// How many items of `cost` elementary steps each make a piece worth handing to a thread.
inline int64_t grain_for(int64_t cost) {
  constexpr int64_t WORTH = 32768;
  return cost >= WORTH ? 1 : WORTH / (cost < 1 ? 1 : cost);
}

}  // namespace vt
