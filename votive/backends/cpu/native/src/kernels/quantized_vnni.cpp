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

template <class F> void unfold(Bytes w, uint8_t* codes, float* scale, float* least) {
  const Codes<F> part(w);
  for (int j = 0; j < 4; ++j) _mm512_storeu_si512(codes + 64 * j, part.get(j));
  _mm512_storeu_ps(scale, part.a);
  _mm512_storeu_ps(least, part.m);
}

template <class F> constexpr Tile tile() {
  if constexpr (in_floats<F>)
    return {};
  else
    return {unfold<F>, F::SIZE, F::BYTES, F::SUB};
}

// 16 x 16 words of four bytes, rows `step` bytes apart, become columns.
void transpose(const uint8_t* from, int64_t step, uint8_t* to) {
  __m512i v[16], u[16];
  for (int i = 0; i < 16; ++i) v[i] = bytes64(from + i * step);
  for (int i = 0; i < 16; i += 2) {
    u[i] = _mm512_maskz_unpacklo_epi32(0xffff, v[i], v[i + 1]);
    u[i + 1] = _mm512_maskz_unpackhi_epi32(0xffff, v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int h = 0; h < 2; ++h) {
      v[i + 2 * h] = _mm512_maskz_unpacklo_epi64(0xff, u[i + h], u[i + 2 + h]);
      v[i + 2 * h + 1] = _mm512_maskz_unpackhi_epi64(0xff, u[i + h], u[i + 2 + h]);
    }
  // v[4 i + c] holds, in each quarter q, column 4 q + c of rows 4 i to 4 i + 3.
  for (int c = 0; c < 4; ++c) {
    const __m512i a = _mm512_maskz_shuffle_i32x4(0xffff, v[c], v[4 + c], 0x44);
    const __m512i b = _mm512_maskz_shuffle_i32x4(0xffff, v[c], v[4 + c], 0xee);
    const __m512i d = _mm512_maskz_shuffle_i32x4(0xffff, v[8 + c], v[12 + c], 0x44);
    const __m512i e = _mm512_maskz_shuffle_i32x4(0xffff, v[8 + c], v[12 + c], 0xee);
    _mm512_storeu_si512(to + 64 * c, _mm512_maskz_shuffle_i32x4(0xffff, a, d, 0x88));
    _mm512_storeu_si512(to + 64 * (4 + c), _mm512_maskz_shuffle_i32x4(0xffff, a, d, 0xdd));
    _mm512_storeu_si512(to + 64 * (8 + c), _mm512_maskz_shuffle_i32x4(0xffff, b, e, 0x88));
    _mm512_storeu_si512(to + 64 * (12 + c), _mm512_maskz_shuffle_i32x4(0xffff, b, e, 0xdd));
  }
}

// Codes, scales and minima of 256 elements of 16 rows; neighbours are the same places of all rows.
struct Unfolded {
  alignas(64) uint8_t codes[64][64];
  alignas(64) float scale[16][16], least[16][16];
};

template <int SUB, int R>
void add_products(const Unfolded& w, const Rounded& x, int64_t row, int64_t i, float (*y)[16]) {  // y: of row `row`
  __m512 sum[R];
  const int8_t* codes[R];
  for (int r = 0; r < R; ++r) {
    sum[r] = _mm512_loadu_ps(y[r]);
    codes[r] = x.codes(row + r, i);
  }
  for (int s = 0; s < WHOLE / SUB; ++s) {
    __m512i dots[R];
    for (int r = 0; r < R; ++r) dots[r] = _mm512_setzero_si512();
#pragma GCC unroll 8
    for (int t = s * SUB / 4; t < (s + 1) * SUB / 4; ++t) {
      const __m512i u = _mm512_load_si512(w.codes[t]);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        dots[r] = _mm512_dpbusd_epi32(dots[r], u, _mm512_set1_epi32(word_at<int32_t>(Bytes(codes[r]) + 4 * t)));
    }
    const __m512 a = _mm512_load_ps(w.scale[s]), m = _mm512_load_ps(w.least[s]);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const float by = x.scales(row + r, i)[s * SUB / 32];
      const float less = SUB == 32 ? x.sums32(row + r, i)[s] : x.sums16(row + r, i)[s];
      sum[r] += floats(dots[r]) * (a * by) - m * less;
    }
  }
  for (int r = 0; r < R; ++r) _mm512_storeu_ps(y[r], sum[r]);
}

template <int SUB>
void add_products(const Unfolded& w, const Rounded& x, int64_t row, int64_t rows, int64_t i, float (*y)[16]) {
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) add_products<SUB, 8>(w, x, row + r, i, y + r);
  for (; r + 4 <= rows; r += 4) add_products<SUB, 4>(w, x, row + r, i, y + r);
  for (; r < rows; ++r) add_products<SUB, 1>(w, x, row + r, i, y + r);
}

void products_of_16(const Tile& tile, Bytes w, int64_t step, int64_t count, int64_t blocks, const Rounded& x,
                    int64_t row, int64_t rows, float (*y)[16]) {
  const int64_t each = WHOLE / tile.size, bytes = each * tile.bytes;
  alignas(64) uint8_t codes[16][WHOLE], rest[16 * 36 + 64];
  alignas(64) float scale[16][16], least[16][16];
  Unfolded turned;
  for (int64_t r = 0; r < rows; ++r) std::fill(y[r], y[r] + 16, 0.0f);
  for (int64_t i = 0; i < x.wholes; ++i) {
    const int64_t have = std::min(each, blocks - i * each);
    for (int64_t k = 0; k < 16; ++k) {
      Bytes at = w + std::min(k, count - 1) * step + i * bytes;
      for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + bytes + line);
      if (have < each) {  // elements that are not there meet zeros
        std::memset(rest, 0, sizeof rest);
        std::memcpy(rest, at, size_t(have * tile.bytes));
        at = rest;
      }
      tile.unfold(at, codes[k], scale[k], least[k]);
    }
    for (int j = 0; j < 4; ++j) transpose(codes[0] + 64 * j, WHOLE, turned.codes[16 * j]);
    transpose(Bytes(scale[0]), 64, reinterpret_cast<uint8_t*>(turned.scale[0]));
    transpose(Bytes(least[0]), 64, reinterpret_cast<uint8_t*>(turned.least[0]));
    if (tile.sub == 32)
      add_products<32>(turned, x, row, rows, i, y);
    else
      add_products<16>(turned, x, row, rows, i, y);
  }
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

Tile vnni_tile(int64_t code) {
  static const bool there = __builtin_cpu_supports("avx512vnni");
#define VT_FORMAT(F) tile<F>(),
  static constexpr Tile table[] = {VT_BLOCK_FORMATS(VT_FORMAT)};
#undef VT_FORMAT
  return there ? table[code] : Tile{};
}

void tile_products(const Tile& tile, const uint8_t* w, int64_t step, int64_t count, int64_t blocks, const Rounded& x,
                   int64_t row, int64_t rows, float (*y)[16]) {
  products_of_16(tile, w, step, count, blocks, x, row, rows, y);
}

}  // namespace vt::blocks

#else

namespace vt::blocks {

Dots vnni_dots(int64_t) { return nullptr; }
Tile vnni_tile(int64_t) { return {}; }
void tile_products(const Tile&, const uint8_t*, int64_t, int64_t, int64_t, const Rounded&, int64_t, int64_t,
                   float (*)[16]) {}

}  // namespace vt::blocks

#endif
