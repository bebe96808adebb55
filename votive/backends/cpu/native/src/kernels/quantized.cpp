// Products with weights in blocks, rows of such tables, and blocks as numbers.
//
// Unless it is to be exact, a product rounds its input to 8 bits per 32 neighbours and multiplies codes: rows of the
// weight are unpacked once and meet all rows of the input. An exact one decodes some rows to floats and multiplies those.
#include "quantized.h"

#include <algorithm>
#include <cmath>

#include "indices.h"
#include "vt/cast.h"
#include "vt/gemm.h"

namespace vt {
namespace {
using namespace quantized;

constexpr int CHUNK = 256;  // codes at a time; rows end in chunks that are filled up with zeros
constexpr int64_t TILE = 1 << 18;  // floats that are decoded at a time

const uint8_t* row_of(const View& w, int64_t n) { return reinterpret_cast<const uint8_t*>(w.data) + n * w.strides[0]; }

// The rows of an input as 8-bit codes, with what belongs to each 32 of them.
struct Rounded {
  Rounded(const float* x, int64_t rows, int64_t width)
      : chunks((width + CHUNK - 1) / CHUNK),
        codes_(rows * chunks * CHUNK), scale_(rows * chunks * 16), sum_(rows * chunks * 16) {
    codes = codes_, scale = scale_, sum = sum_;
    parallel_for(rows * chunks, grain_for(CHUNK), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t r = i / chunks, at = (i % chunks) * CHUNK;
        round(x + r * width + at, std::min<int64_t>(CHUNK, width - at), codes + i * CHUNK, scale + i * 16, sum + i * 16);
      }
    });
  }

  // One chunk: codes, and for each 16 of them their scale and the sum of what they stand for.
  static void round(const float* x, int64_t n, int8_t* q, float* d, float* s) {
    for (int64_t g = 0; g < CHUNK / 32; ++g) {
      const int64_t begin = g * 32, have = std::clamp<int64_t>(n - begin, 0, 32);
      float v[32], most = 0, odd = 0;
      for (int l = 0; l < 32; ++l) v[l] = l < have ? x[begin + l] : 0;
      for (int l = 0; l < 32; ++l) {
        most = std::max(most, std::fabs(v[l]));
        odd += v[l] * 0;  // NaN where something is not finite
      }
      // So small that its inverse overflows: no product that is seen depends on it.
      const float inverse = most > 0x1p-120f ? 127 / most : 0;
      int total[2] = {0, 0};
      for (int l = 0; l < 32; ++l) {
        // Adding and subtracting 1.5 * 2^23 rounds to the nearest, ties to even.
        const float rounded = odd == 0 ? (v[l] * inverse + 12582912.0f) - 12582912.0f : 0;
        q[begin + l] = int8_t(int(rounded));
      }
      for (int l = 0; l < 32; ++l) total[l / 16] += q[begin + l];
      const float scale = odd == 0 ? (inverse == 0 ? 0 : most / 127) : std::nanf("");
      d[2 * g] = d[2 * g + 1] = scale;
      for (int k = 0; k < 2; ++k) s[2 * g + k] = scale * float(total[k]);
    }
  }

  int64_t chunks;
  int8_t* codes;
  float *scale, *sum;

 private:
  Scratch<int8_t> codes_;
  Scratch<float> scale_, sum_;
};

// A row of the weight, unpacked: codes, a scale for each 16 of them, and what is added for each 16.
struct Unpacked {
  explicit Unpacked(int64_t chunks) : codes_(chunks * CHUNK), a_(chunks * 16), b_(chunks * 16) {
    codes = codes_, a = a_, b = b_;
  }
  uint8_t* codes;
  float *a, *b;

 private:
  Scratch<uint8_t> codes_;
  Scratch<float> a_, b_;
};

template <class F> void unpack(const uint8_t* p, int64_t blocks, int64_t chunks, const Unpacked& to) {
  constexpr int SUBS = F::size / F::sub, PER = F::sub / 16;
  for (int64_t i = 0; i < blocks; ++i, p += F::bytes) {
    float a[SUBS], m[SUBS];
    F::codes(p, to.codes + i * F::size);
    F::scales(p, a, m);
    float *ta = to.a + i * (F::size / 16), *tb = to.b + i * (F::size / 16);
    for (int s = 0; s < SUBS * PER; ++s) {
      ta[s] = a[s / PER];
      if constexpr (F::min) tb[s] = m[s / PER] - float(F::zero) * a[s / PER];
      else tb[s] = -float(F::zero) * a[s / PER];
    }
  }
  const int64_t end = blocks * F::size, whole = chunks * CHUNK;
  std::fill(to.codes + end, to.codes + whole, uint8_t(0));
  std::fill(to.a + end / 16, to.a + whole / 16, 0.0f);
  std::fill(to.b + end / 16, to.b + whole / 16, 0.0f);
}

// Sum over a row of a * d * (codes of w . codes of x) + b * sum.
float dot(const Unpacked& w, const int8_t* q, const float* d, const float* s, int64_t chunks) {
  float total[16] = {};
  for (int64_t c = 0; c < chunks; ++c) {
    for (int k = 0; k < 16; ++k) {
      const uint8_t* u = w.codes + c * CHUNK + k * 16;
      const int8_t* v = q + c * CHUNK + k * 16;
      int sum = 0;
      for (int l = 0; l < 16; ++l) sum += int(u[l]) * int(v[l]);
      total[k] += w.a[c * 16 + k] * d[c * 16 + k] * float(sum) + w.b[c * 16 + k] * s[c * 16 + k];
    }
  }
  float out = 0;
  for (float t : total) out += t;
  return out;
}

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#pragma GCC push_options
#pragma GCC target("avx512vnni")
// The same with VNNI: one instruction for four products of bytes, and 16 sums at a time.
template <int ROWS>
void dot_vnni(const Unpacked& w, const int8_t* q, const float* d, const float* s, int64_t chunks, float* out) {
  const int64_t codes = chunks * CHUNK, groups = chunks * 16;
  const __m512i first = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  __m512 total[ROWS];
  for (int r = 0; r < ROWS; ++r) total[r] = _mm512_setzero_ps();
  for (int64_t c = 0; c < chunks; ++c) {
    const __m512 a = _mm512_loadu_ps(w.a + c * 16), b = _mm512_loadu_ps(w.b + c * 16);
    __m512i u[4];
    for (int j = 0; j < 4; ++j) u[j] = _mm512_loadu_si512(w.codes + c * CHUNK + j * 64);
    for (int r = 0; r < ROWS; ++r) {
      const __m512 scale = _mm512_mul_ps(a, _mm512_loadu_ps(d + r * groups + c * 16));
      total[r] = _mm512_fmadd_ps(b, _mm512_loadu_ps(s + r * groups + c * 16), total[r]);
      for (int j = 0; j < 4; ++j) {
        const __m512i v = _mm512_loadu_si512(q + r * codes + c * CHUNK + j * 64);
        const __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), u[j], v);
        const __m512 here = _mm512_permutexvar_ps(_mm512_add_epi32(first, _mm512_set1_epi32(4 * j)), scale);
        total[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), here, total[r]);
      }
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    float lanes[16];
    _mm512_storeu_ps(lanes, total[r]);
    out[r] = 0;
    for (float lane : lanes) out[r] += lane;
  }
}

void dots_vnni(const Unpacked& w, const Rounded& x, int64_t rows, float* out) {
  const int64_t codes = x.chunks * CHUNK, groups = x.chunks * 16;
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4)
    dot_vnni<4>(w, x.codes + r * codes, x.scale + r * groups, x.sum + r * groups, x.chunks, out + r);
  for (; r < rows; ++r)
    dot_vnni<1>(w, x.codes + r * codes, x.scale + r * groups, x.sum + r * groups, x.chunks, out + r);
}
#pragma GCC pop_options

bool has_vnni() {
  static const bool has = __builtin_cpu_supports("avx512vnni");
  return has;
}
#else
bool has_vnni() { return false; }
void dots_vnni(const Unpacked&, const Rounded&, int64_t, float*) {}
#endif

void dots(const Unpacked& w, const Rounded& x, int64_t rows, float* out) {
  if (has_vnni()) return dots_vnni(w, x, rows, out);
  const int64_t codes = x.chunks * CHUNK, groups = x.chunks * 16;
  for (int64_t r = 0; r < rows; ++r)
    out[r] = dot(w, x.codes + r * codes, x.scale + r * groups, x.sum + r * groups, x.chunks);
}

// Columns [n0, n1) of a result with as many rows as `from` has: from[r][n] or, transposed, from[n][r], plus a bias.
void finish(const View& out, int64_t rows, int64_t n0, int64_t n1, const float* from, int64_t row, int64_t col,
            const float* bias) {
  const int64_t N = out.size(-1);
  const CastFn narrow = cast_fn(Dtype::f32, out.dtype);
  const int64_t item = itemsize(out.dtype);
  Scratch<float> line(n1 - n0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t n = n0; n < n1; ++n) line[n - n0] = from[r * row + (n - n0) * col] + (bias ? bias[n] : 0);
    narrow(out.data + (r * N + n0) * item, item, reinterpret_cast<const char*>(line.get()), 4, n1 - n0);
  }
}

template <class F>
void rounded_product(const View& w, const float* x, int64_t rows, int64_t width, const float* bias, const View& out) {
  const int64_t N = w.shape[0], blocks = width / F::size;
  const Rounded input(x, rows, width);
  constexpr int64_t SOME = 16;  // results that are written together
  const int64_t pieces = (N + SOME - 1) / SOME;
  parallel_for(pieces, grain_for(SOME * width * (rows + 1) / 16), [&](int64_t b, int64_t e) {
    const Unpacked row(input.chunks);
    Scratch<float> made(SOME * rows);
    for (int64_t p = b; p < e; ++p) {
      const int64_t n0 = p * SOME, n1 = std::min(N, n0 + SOME);
      for (int64_t n = n0; n < n1; ++n) {
        unpack<F>(row_of(w, n), blocks, input.chunks, row);
        dots(row, input, rows, made + (n - n0) * rows);
      }
      finish(out, rows, n0, n1, made, 1, rows, bias);
    }
  });
}

template <class F>
void exact_product(const View& w, const float* x, int64_t rows, int64_t width, const float* bias, const View& out) {
  const int64_t N = w.shape[0], blocks = width / F::size;
  const int64_t some = std::clamp<int64_t>(TILE / std::max<int64_t>(width, 1), 1, std::max<int64_t>(1, (N + 1) / 2));
  const int64_t pieces = (N + some - 1) / some;
  parallel_for(pieces, 1, [&](int64_t b, int64_t e) {
    Scratch<float> tile(some * width), made(some * rows);
    for (int64_t p = b; p < e; ++p) {
      const int64_t n0 = p * some, n1 = std::min(N, n0 + some);
      for (int64_t n = n0; n < n1; ++n) decode<F>(row_of(w, n), blocks, tile + (n - n0) * width);
      gemm(rows, n1 - n0, width, {x, width, 1}, {tile.get(), 1, width}, {made.get(), n1 - n0, 1});
      finish(out, rows, n0, n1, made, n1 - n0, 1, bias);
    }
  });
}

// input, blocks, bias or None, out; format, exact
VT_KERNEL(block_linear) {
  const View &x = c.view(0), &w = c.view(1), &out = c.view(3);
  const int64_t width = x.size(-1), rows = width ? x.numel() / width : out.numel() / std::max<int64_t>(1, w.shape[0]);
  if (out.numel() == 0) return;
  const Dense dense(x, Dtype::f32, false);
  const bool biased = bool(c.view(2));
  int64_t one = 1, step = 4;
  View empty;
  empty.ndim = 1, empty.shape = &one, empty.strides = &step, empty.dtype = Dtype::f32, empty.data = dense.data;
  const Dense bias(biased ? c.view(2) : empty, Dtype::f32, false);
  const float* plus = biased ? reinterpret_cast<const float*>(bias.data) : nullptr;
  const float* from = reinterpret_cast<const float*>(dense.data);
  for_format(c.i(0), [&](auto f) {
    using F = decltype(f);
    if (c.i(1)) exact_product<F>(w, from, rows, width, plus, out);
    else rounded_product<F>(w, from, rows, width, plus, out);
  });
}

// input, blocks, out; format: input @ weight
VT_KERNEL(block_matmul) {
  const View &x = c.view(0), &w = c.view(1), &out = c.view(2);
  const int64_t N = w.shape[0], width = out.size(-1);
  if (out.numel() == 0) return;
  const int64_t rows = out.numel() / width, item = itemsize(out.dtype);
  if (N == 0) {
    zero_bytes(out.data, out.numel() * item);
    return;
  }
  const Dense dense(x, Dtype::f32, false);
  const float* from = reinterpret_cast<const float*>(dense.data);
  const CastFn narrow = cast_fn(Dtype::f32, out.dtype);
  for_format(c.i(0), [&](auto f) {
    using F = decltype(f);
    // Columns that are computed together: whole blocks.
    constexpr int64_t SOME = F::size * (512 / F::size);
    const int64_t pieces = (width + SOME - 1) / SOME, deep = TILE / SOME;
    parallel_for(pieces, 1, [&](int64_t b, int64_t e) {
      Scratch<float> tile(deep * SOME), made(rows * SOME);
      for (int64_t p = b; p < e; ++p) {
        const int64_t k0 = p * SOME, columns = std::min(width - k0, SOME);
        for (int64_t n0 = 0; n0 < N; n0 += deep) {
          const int64_t n1 = std::min(N, n0 + deep);
          for (int64_t n = n0; n < n1; ++n)
            decode<F>(row_of(w, n) + k0 / F::size * F::bytes, columns / F::size, tile + (n - n0) * columns);
          gemm(rows, columns, n1 - n0, {from + n0, N, 1}, {tile.get(), columns, 1}, {made.get(), columns, 1}, n0 > 0);
        }
        for (int64_t r = 0; r < rows; ++r)
          narrow(out.data + (r * width + k0) * item, item, reinterpret_cast<const char*>(made + r * columns), 4,
                 columns);
      }
    });
  });
}

// Rows `at(i)` of blocks as numbers, one after the other.
template <class At> void decode_rows(const View& w, int64_t count, int64_t width, char* to, Dtype dtype, int64_t code, At at) {
  const CastFn narrow = cast_fn(Dtype::f32, dtype);
  const int64_t item = itemsize(dtype);
  for_format(code, [&](auto f) {
    using F = decltype(f);
    parallel_for(count, grain_for(width), [&](int64_t b, int64_t e) {
      Scratch<float> line(dtype == Dtype::f32 ? 1 : width);
      for (int64_t i = b; i < e; ++i) {
        char* d = to + i * width * item;
        if (dtype == Dtype::f32) {
          decode<F>(at(i), width / F::size, reinterpret_cast<float*>(d));
        } else {
          decode<F>(at(i), width / F::size, line);
          narrow(d, item, reinterpret_cast<const char*>(line.get()), 4, width);
        }
      }
    });
  });
}

// blocks, out; format: rows lie anywhere
VT_KERNEL(block_decode) {
  const View &w = c.view(0), &out = c.view(1);
  if (out.numel() == 0) return;
  const int64_t width = out.size(-1);
  const Dense dense(w, Dtype::u8, false);
  const uint8_t* data = reinterpret_cast<const uint8_t*>(dense.data);
  const int64_t bytes = w.size(-1);
  decode_rows(w, out.numel() / width, width, out.data, out.dtype, c.i(0), [&](int64_t i) { return data + i * bytes; });
}

// indices, blocks, out; format
VT_KERNEL(block_embedding) {
  const View &w = c.view(1), &out = c.view(2);
  Indices index(c.view(0));
  index.check<IndexError>("embedding", 0, w.shape[0]);
  if (out.numel() == 0) return;
  decode_rows(w, index.n, out.size(-1), out.data, out.dtype, c.i(0), [&](int64_t i) { return row_of(w, index[i]); });
}

}  // namespace
}  // namespace vt
