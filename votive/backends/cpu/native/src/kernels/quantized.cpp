// Weights in blocks of few bits: their numbers, rows of tables, and products that decode them on the way.
#include "quantized.h"

#include <algorithm>
#include <limits>

#include "indices.h"
#include "vt/cast.h"
#include "vt/gemm.h"
#include "vt/gemm_core.h"

namespace vt {
namespace {

using blocks::Format;
using blocks::Rounded;

// Up to so many rows products are direct: without tiles of integers, without numbers in tables that are multiplied in
// single precision where those of bfloat16 are faster, and with tiles.
constexpr int64_t FEW_ROWS = 32, TABLE_ROWS = 16, TILE_ROWS = 128;
constexpr int64_t GROUP = 16, CHUNK = 128;  // rows of the weight, and of the input, that meet at a time
constexpr int64_t PIECE = 1 << 16;  // decoded numbers that stay in the second cache

// Rows of blocks; copied where their bytes do not lie side by side.
struct Table {
  Table(const View& v, const Format& f)
      : dense(v, Dtype::u8, !(v.ndim == 2 && v.shape[1] > 0 && v.strides[1] == 1) && !v.contiguous()) {
    row_blocks = v.size(-1) / f.bytes;
    rows = v.size(-1) ? v.numel() / v.size(-1) : 0;
    const bool in_place = dense.data == v.data;
    step = in_place && v.ndim == 2 ? v.strides[0] : v.size(-1);
  }
  const uint8_t* row(int64_t r) const { return reinterpret_cast<const uint8_t*>(dense.data) + r * step; }
  struct Source : Scratch<char> {
    Source(const View& v, Dtype, bool copied) : Scratch<char>(copied ? v.numel() : 0), data(copied ? get() : v.data) {
      if (!copied) return;
      CopyDim dims[COPY_DIMS];
      int64_t step = 1;
      for (int d = v.ndim - 1; d >= 0; --d) {
        dims[d] = {v.shape[d], step, v.strides[d]};
        step *= v.shape[d];
      }
      copy_block(data, Dtype::u8, v.data, v.dtype, dims, v.ndim);
    }
    char* data;
  } dense;
  int64_t rows, row_blocks, step;
};

// n blocks to elements of a type.
void decode(const Format& f, const uint8_t* from, int64_t n, char* to, Dtype dtype) {
  if (dtype == Dtype::f32) return f.decode(from, n, reinterpret_cast<float*>(to));
  const int64_t most = std::max<int64_t>(1, 4096 / f.size), item = itemsize(dtype);
  const CastFn narrow = cast_fn(Dtype::f32, dtype);
  Scratch<float> wide(most * f.size);
  for (int64_t i = 0; i < n; i += most) {
    const int64_t count = std::min(most, n - i);
    f.decode(from + i * f.bytes, count, wide);
    narrow(to + i * f.size * item, item, reinterpret_cast<const char*>(wide.get()), 4, count * f.size);
  }
}

// Rows of a table, by numbers or all of them, to a dense result.
void decode_rows(const Format& f, const Table& w, const int64_t* which, int64_t count, const View& out) {
  const int64_t width = w.row_blocks * f.size, item = itemsize(out.dtype);
  const int64_t parts = std::max<int64_t>(1, width / PIECE);  // long rows are shared out too
  parallel_for(count * parts, grain_for(width / parts), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int64_t r = i / parts, part = i % parts;
      const int64_t first = w.row_blocks * part / parts, last = w.row_blocks * (part + 1) / parts;
      decode(f, w.row(which ? which[r] : r) + first * f.bytes, last - first,
             out.data + (r * width + first * f.size) * item, out.dtype);
    }
  });
}

// out, data; format
VT_KERNEL(block_decode) {
  const View& out = c.view(0);
  if (out.numel() == 0) return;
  const Format& f = blocks::format(c.i(0));
  const Table w(c.view(1), f);
  decode_rows(f, w, nullptr, w.rows, out);
}

// out, data, indices; format
VT_KERNEL(block_embedding) {
  const View &out = c.view(0), &data = c.view(1);
  const Format& f = blocks::format(c.i(0));
  Indices index(c.view(2));
  index.check<IndexError>("embedding", 0, data.shape[0]);
  if (out.numel() == 0) return;
  const Table w(data, f);
  decode_rows(f, w, index.data, index.n, out);
}

bool all_finite(const float* x, int64_t n) {
  uint32_t most = 0;
  for (int64_t k = 0; k < n; ++k) most = std::max(most, std::bit_cast<uint32_t>(x[k]) & 0x7fffffffu);
  return most < 0x7f800000u;
}

// Products of 16 rows of the weight, for rows m to m + count of the input; y[r][k] is that of rows m + r and j + k.
struct Sums {
  const Format& f;
  const Table& w;
  const Rounded& x;
  blocks::Dots dots;
  blocks::Tile tile;  // where it has an `unfold`, it serves
  const bool* finite;
  const uint8_t* end;

  void operator()(int64_t j, int64_t n, int64_t m, int64_t count, float (*y)[GROUP]) const {
    if (tile.unfold) return blocks::tile_products(tile, w.row(j), w.step, n, w.row_blocks, x, m, count, y);
    for (int64_t r = 0; r < count; r += blocks::MOST_ROWS)  // these rows of x stay in the first cache
      for (int64_t k = 0; k < n; ++k) {
        const int64_t few = std::min<int64_t>(blocks::MOST_ROWS, count - r);
        float sums[blocks::MOST_ROWS];
        dots(w.row(j + k), w.row_blocks, end - w.row(j + k), x, m + r, few, sums);
        for (int64_t i = 0; i < few; ++i)
          y[r + i][k] = finite[m + r + i] ? sums[i] : std::numeric_limits<float>::quiet_NaN();
      }
  }
};

// The input is rounded once, where products are of integers, and the weight is read once for each CHUNK of its rows.
// Unless `exact`, an input that is not finite gives NaN whichever way the product is computed.
void direct(const Format& f, int64_t code, bool exact, const Table& w, const float* x, int64_t M, const View& bias,
            const View& out) {
  const int64_t N = w.rows, K = w.row_blocks * f.size;
  const blocks::Dots fast = f.dots ? blocks::vnni_dots(code) : blocks::float_dots(code);
  const Rounded rounded(x, M, K, f.dots != nullptr);
  Scratch<bool> finite(M);
  for (int64_t m = 0; m < M; ++m) finite[m] = exact || f.dots || all_finite(x + m * K, K);
  const Sums sums{f,
                  w,
                  rounded,
                  fast ? fast : f.dots,
                  M > blocks::MOST_ROWS ? blocks::vnni_tile(code) : blocks::Tile{},
                  finite,
                  w.row(N - 1) + w.row_blocks * f.bytes};
  const Dtype dtype = out.dtype;
  const int64_t item = itemsize(dtype);
  const CastFn narrow = cast_fn(Dtype::f32, dtype), widen = cast_fn(dtype, Dtype::f32);
  // Small tables are halved evenly, large ones cut into pieces that threads take as they can.
  const int64_t groups = (N + GROUP - 1) / GROUP, least = grain_for(GROUP * M * K / 8);
  const int64_t even = (groups + num_threads() - 1) / num_threads(), grain = groups < 8 * least ? even : least;
  parallel_for(groups, groups <= least ? groups : grain, [&](int64_t b, int64_t e) {
    float y[CHUNK][GROUP], extra[GROUP];
    for (int64_t j = b * GROUP; j < std::min(N, e * GROUP); j += GROUP) {
      const int64_t n = std::min(GROUP, N - j);
      if (bias) widen(reinterpret_cast<char*>(extra), 4, bias.data + j * bias.strides[0], bias.strides[0], n);
      for (int64_t m = 0; m < M; m += CHUNK) {
        const int64_t count = std::min(CHUNK, M - m);
        sums(j, n, m, count, y);
        for (int64_t r = 0; r < count; ++r) {
          if (bias)
            for (int64_t k = 0; k < n; ++k) y[r][k] += extra[k];
          narrow(out.data + ((m + r) * N + j) * item, item, reinterpret_cast<const char*>(y[r]), 4, n);
        }
      }
    }
  });
}

// Many rows: some rows of the weight at a time become numbers of type `as`, which the usual product takes.
void many(const Format& f, const Table& w, const char* x, Dtype as, int64_t M, const View& bias, const View& out) {
  const int64_t N = w.rows, K = w.row_blocks * f.size, size = itemsize(as), item = itemsize(out.dtype);
  const int64_t most = std::clamp<int64_t>((512 << 10) / (K * size) / 32 * 32, 32, 192);
  const int64_t even = (N + num_threads() - 1) / num_threads();
  const int64_t tile = std::min(most, (even + 31) / 32 * 32);
  parallel_for((N + tile - 1) / tile, 1, [&](int64_t b, int64_t e) {
    Scratch<char> wide(tile * K * size);
    for (int64_t t = b; t < e; ++t) {
      const int64_t j = t * tile, n = std::min(tile, N - j);
      for (int64_t k = 0; k < n; ++k) decode(f, w.row(j + k), w.row_blocks, wide + k * K * size, as);
      Result C{};
      C.data = out.data + j * item;
      C.row = N * item;
      C.col = item;
      if (bias) {
        C.x = bias.data + j * bias.strides[0];
        C.x_col = bias.strides[0];
        C.beta = 1;
      }
      product(as, out.dtype, M, n, K, {x, K * size, size}, {wide, size, K * size}, C);
    }
  });
}

// Whether products of bfloat16 take half the time of others here.
bool multiplies_bf16() {
#if defined(__AVX512BW__)
  static const bool there = __builtin_cpu_supports("avx512bf16");
  return there;
#else
  return false;
#endif
}

int64_t most_rows(const Format& f, int64_t code, bool exact) {
  if (!f.dots) return !exact && multiplies_bf16() ? TABLE_ROWS : FEW_ROWS;
  return blocks::vnni_tile(code).unfold ? TILE_ROWS : FEW_ROWS;
}

// x, data, bias or None, out; format, exact
VT_KERNEL(block_linear) {
  const View &x = c.view(0), &bias = c.view(2), &out = c.view(3);
  if (out.numel() == 0) return;
  const Format& f = blocks::format(c.i(0));
  const bool exact = c.i(1) != 0;
  const Table w(c.view(1), f);
  const int64_t N = out.size(-1), M = out.numel() / N;
  if (x.numel() == 0) {  // sums of nothing
    const int64_t item = itemsize(out.dtype);
    for (int64_t i = 0; i < M * N; ++i)
      if (bias) std::memcpy(out.data + i * item, bias.data + i % N * bias.strides[0], size_t(item));
      else std::memset(out.data + i * item, 0, size_t(item));
    return;
  }
  // Products of single precision are exact.
  if (M <= most_rows(f, c.i(0), exact) && (!exact || !f.dots)) {
    const Dense rows(x, Dtype::f32, false);
    return direct(f, c.i(0), exact, w, reinterpret_cast<const float*>(rows.data), M, bias, out);
  }
  const Dtype as = !exact && (x.dtype == Dtype::bf16 || multiplies_bf16()) ? Dtype::bf16 : Dtype::f32;
  const Dense rows(x, as, false);
  many(f, w, rows.data, as, M, bias, out);
}

// x, data, out; format: x @ weight
VT_KERNEL(block_matmul) {
  const View &x = c.view(0), &out = c.view(2);
  if (out.numel() == 0) return;
  const Format& f = blocks::format(c.i(0));
  const Table w(c.view(1), f);
  const int64_t K = out.size(-1), M = out.numel() / K, N = w.rows, item = itemsize(out.dtype);
  const Dense dense(x, Dtype::f32, false);
  const float* rows = reinterpret_cast<const float*>(dense.data);
  constexpr int64_t WIDE = 256, HIGH = 256;  // columns of the result, and rows of the weight, at a time
  const CastFn narrow = cast_fn(Dtype::f32, out.dtype);
  parallel_for((K + WIDE - 1) / WIDE, 1, [&](int64_t b, int64_t e) {
    Scratch<float> wide(HIGH * WIDE), sums(M * WIDE);
    for (int64_t t = b; t < e; ++t) {
      const int64_t k = t * WIDE, n = std::min(WIDE, K - k);
      if (N == 0) std::fill(sums.get(), sums + M * WIDE, 0.0f);
      for (int64_t i = 0; i < N; i += HIGH) {
        const int64_t h = std::min(HIGH, N - i);
        for (int64_t r = 0; r < h; ++r) f.decode(w.row(i + r) + k / f.size * f.bytes, n / f.size, wide + r * WIDE);
        gemm(M, n, h, Matrix<const float>{rows + i, N, 1}, Matrix<const float>{wide, WIDE, 1},
             Matrix<float>{sums, WIDE, 1}, i > 0);
      }
      for (int64_t m = 0; m < M; ++m)
        narrow(out.data + (m * K + k) * item, item, reinterpret_cast<const char*>(sums + m * WIDE), 4, n);
    }
  });
}

}  // namespace
}  // namespace vt
