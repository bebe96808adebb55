// Products of bfloat16 by instructions that multiply and add pairs along k, where the processor has them.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "vt/gemm_core.h"

#if defined(__AVX512F__)

#include <immintrin.h>

// All that follows is local to this file, so other files do not get code with these instructions.
#pragma GCC push_options
#pragma GCC target("avx512bf16")

#include "vt/gemm_micro.h"

namespace vt {

namespace {

struct Pairs {
  using Unit = uint32_t;
  using Acc = float;
  using AccVector = Lanes<float>::type;
  using UnitVector = Lanes<uint32_t>::type;
  static constexpr int depth = 2;
  static inline __attribute__((always_inline)) void step(AccVector& acc, Unit a, const UnitVector& b) {
    acc = AccVector(_mm512_dpbf16_ps(__m512(acc), __m512bh(_mm512_set1_epi32(int(a))), __m512bh(b)));
  }
};

// Two rows of elements to one of pairs; N is their number where the loop is to be unrolled, else 0.
template <int N> void interleave(uint32_t* d, const char* low, const char* high, int64_t s_item, int64_t n) {
  if (N) n = N, s_item = 2;
  for (int64_t i = 0; i < n; ++i)
    d[i] = uint32_t(read<uint16_t>(low + s_item * i)) | uint32_t(read<uint16_t>(high + s_item * i)) << 16;
}

void pack_pairs(char* to, int64_t width, const char* src, int64_t s_item, int64_t s_k, int64_t items, int64_t k) {
  uint32_t* dst = reinterpret_cast<uint32_t*>(to);
  const int64_t pairs = k / 2;
  if (s_k == 2) pack_units<uint32_t>(to, width, src, s_item, 4, items, pairs);
  else {
    auto fn = interleave<0>;
    if (s_item == 2 && items == TILE_ROWS) fn = interleave<TILE_ROWS>;
    if (s_item == 2 && items == 32) fn = interleave<32>;
    for (int64_t p = 0; p < pairs; ++p) {
      fn(dst + p * width, src + 2 * p * s_k, src + (2 * p + 1) * s_k, s_item, items);
      if (items < width) std::fill(dst + p * width + items, dst + (p + 1) * width, 0u);
    }
  }
  if (k % 2) {
    uint32_t* d = dst + pairs * width;
    for (int64_t i = 0; i < items; ++i) d[i] = read<uint16_t>(src + i * s_item + (k - 1) * s_k);
    std::fill(d + items, d + width, 0u);
  }
}

const Engine& engine() {
  static const Engine e = make_engine<Pairs>();
  return e;
}

}  // namespace

#pragma GCC pop_options

bool product_pairs(int64_t M, int64_t N, int64_t K, Place A, Place B, const Result& C) {
  static const bool there = __builtin_cpu_supports("avx512bf16");
  if (!there) return false;
  const CastFn copy = cast_fn(Dtype::bf16, Dtype::bf16);
  const Factor a{A.data, A.row, A.col, 2, pack_pairs, copy, true};
  const Factor b{B.data, B.col, B.row, 2, pack_pairs, copy, true};
  multiply(engine(), M, N, K, a, b, C);
  return true;
}

}  // namespace vt

#else

namespace vt {

bool product_pairs(int64_t, int64_t, int64_t, Place, Place, const Result&) { return false; }

}  // namespace vt

#endif
