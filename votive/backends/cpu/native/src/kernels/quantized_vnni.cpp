// Products of blocks with rows of eight bits by instructions that multiply and add four bytes, where there are such.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "quantized.h"
#include "vt/dtype.h"

#if defined(__AVX512BW__)

#include <immintrin.h>

// All that follows is local to this file, so other files do not get code with these instructions.
#pragma GCC push_options
#pragma GCC target("avx512vnni")

#include "quantized_group_lanes.h"
#include "quantized_lanes.h"
#include "quantized_point_lanes.h"

namespace vt::blocks {
namespace {

constexpr int64_t AHEAD = 2048;  // bytes that are on their way from memory

// 256 elements of one row of blocks with R rows of x; of the last ones only those of `have` blocks count.
template <class F, int R>
VT_LANES void whole(Bytes w, const Rounded& x, int64_t row, int64_t i, __m512 (&sum)[R], __m512 (&less)[R],
                    int have = WHOLE / F::SIZE) {
  Codes<F> codes(w);
  int groups = 4;
  if (F::SIZE < WHOLE && have < WHOLE / F::SIZE) {
    const __mmask16 there = __mmask16((1 << (have * F::SIZE / F::SUB)) - 1);
    codes.a = _mm512_maskz_mov_ps(there, codes.a);
    codes.m = _mm512_maskz_mov_ps(there, codes.m);
    groups = (have * F::SIZE + 63) / 64;
  }
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  // The scale of each lane, which holds four elements.
  const __m512i first = _mm512_maskz_srli_epi32(0xffff, lane, F::SUB == 32 ? 3 : 2);
  __m512 scale[R];
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    const __m512 s = _mm512_maskz_loadu_ps(0xff, x.scales(row + r, i));
    if constexpr (F::SUB == 32) {
      scale[r] = s * codes.a;
      less[r] += codes.m * _mm512_maskz_loadu_ps(0xff, x.sums32(row + r, i));
    } else {
      scale[r] = _mm512_maskz_permutexvar_ps(0xffff, _mm512_maskz_srli_epi32(0xffff, lane, 1), s) * codes.a;
      less[r] += codes.m * _mm512_loadu_ps(x.sums16(row + r, i));
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    if (F::SIZE < WHOLE && j >= groups) break;
    const __m512i u = codes.get(j);
    const __m512i at = _mm512_add_epi32(first, _mm512_set1_epi32(j * 64 / F::SUB));
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const __m512i dots = _mm512_dpbusd_epi32(_mm512_setzero_si512(), u, bytes64(Bytes(x.codes(row + r, i)) + 64 * j));
      sum[r] += floats(dots) * _mm512_maskz_permutexvar_ps(0xffff, at, scale[r]);
    }
  }
}

template <class F, int R> void dots_of(Bytes w, int64_t blocks, int64_t room, const Rounded& x, int64_t row, float* y) {
  constexpr int EACH = WHOLE / F::SIZE;
  __m512 sum[R], less[R];
  for (int r = 0; r < R; ++r) sum[r] = less[r] = _mm512_setzero_ps();
  int64_t i = 0;
  for (; (i + 1) * EACH <= blocks; ++i, w += EACH * F::BYTES) {
    for (int line = 0; line < EACH * F::BYTES; line += 64) __builtin_prefetch(w + AHEAD + line);
    whole<F, R>(w, x, row, i, sum, less);
  }
  if constexpr (EACH > 1)
    if (i * EACH < blocks) {
      const int have = int(blocks - i * EACH);
      uint8_t rest[EACH * F::BYTES];
      if (i * EACH * F::BYTES + EACH * F::BYTES > room) {  // what follows is not ours
        std::memset(rest, 0, sizeof rest);
        std::memcpy(rest, w, size_t(have * F::BYTES));
        w = rest;
      }
      whole<F, R>(w, x, row, i, sum, less, have);
    }
  for (int r = 0; r < R; ++r) y[r] = _mm512_reduce_add_ps(sum[r] - less[r]);
}

template <class F>
void dots(Bytes w, int64_t blocks, int64_t room, const Rounded& x, int64_t row, int64_t count, float* y) {
  if (count == 4) return dots_of<F, 4>(w, blocks, room, x, row, y);
  for (; count >= 2; count -= 2, row += 2, y += 2) dots_of<F, 2>(w, blocks, room, x, row, y);
  if (count) dots_of<F, 1>(w, blocks, room, x, row, y);
}

template <class F> constexpr Dots integer_dots() {
  if constexpr (in_floats<F>)
    return nullptr;
  else
    return dots<F>;
}

}  // namespace

#pragma GCC pop_options

Dots vnni_dots(int64_t code) {
  static const bool there = __builtin_cpu_supports("avx512vnni");
#define VT_FORMAT(F) integer_dots<F>(),
  static constexpr Dots table[] = {VT_BLOCK_FORMATS(VT_FORMAT)};
#undef VT_FORMAT
  return there ? table[code] : nullptr;
}

}  // namespace vt::blocks

#else

namespace vt::blocks {

Dots vnni_dots(int64_t) { return nullptr; }

}  // namespace vt::blocks

#endif
