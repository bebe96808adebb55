// Winograd's F(2x2, 3x3) and, for the weight's gradient, F(3x3, 2x2), which has the same input transform.
#include "convolution_winograd.h"

#include "convolution_padded.h"

namespace vt::conv {
namespace {

constexpr int64_t L = LANES<float>;
constexpr int64_t CHUNK = 1 << 20;  // floats of padded images at a time
// The 16 parts are read and written side by side: whole pages apart they would share one set of the cache.
constexpr int64_t APART = 5 * L;
using V = Vec<float>;

// Tiles of 2 x 2 outputs, counted over images, rows and columns, and the padded copy they read: rows are
// split into even and odd elements, so that neighbouring tiles read contiguously.
struct Tiles {
  Sweep sweep;
  int64_t high, wide;
  explicit Tiles(const int64_t* size, int64_t pad_h, int64_t pad_w) : high(up(size[1], 2)), wide(up(size[2], 2)) {
    const int64_t low[3] = {0, -pad_h, -pad_w}, span[3] = {1, 2 * high + 2, 2 * wide + 2}, step[3] = {1, 1, 2};
    std::copy(low, low + 3, sweep.low), std::copy(span, span + 3, sweep.span), std::copy(step, step + 3, sweep.step);
  }
  int64_t per_image() const { return high * wide; }
  Padded padded(int64_t channels) const {
    Padded p(sweep, channels);
    for (auto& u : p.used) std::fill(u.begin(), u.end(), char(1));
    return p;
  }
};

// Neighbouring tiles of one row.
struct Stretch {
  int64_t at, len, image, row, column;
};
std::vector<Stretch> stretches(const Tiles& t, int64_t first, int64_t last) {
  std::vector<Stretch> out;
  for (int64_t k = first; k < last;) {
    const int64_t column = k % t.wide, row = k / t.wide % t.high, len = std::min(t.wide - column, last - k);
    out.push_back({k - first, len, k / t.per_image(), row, column});
    k += len;
  }
  return out;
}

// V[16][channels][width]: B^T d B of every tile. `gap` floats lie between the 16 parts, `width` between channels.
void transform_input(float* to, int64_t gap, int64_t width, const float* x, const Padded& p, int64_t c0, int64_t c1,
                     const std::vector<Stretch>& runs) {
  for (int64_t c = c0; c < c1; ++c, to += width)
    for (const Stretch& s : runs) {
      const float* from = x + s.image * p.image + c * p.channel + 2 * s.row * p.line + s.column;
      for (int64_t i = 0; i < s.len; i += L) {
        V a[4][4];
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r) {
          const float* e = from + r * p.line + i;
          const V d0 = load(e), d2 = load(e + 1), d1 = load(e + p.part), d3 = load(e + p.part + 1);
          a[r][0] = d0 - d2, a[r][1] = d1 + d2, a[r][2] = d2 - d1, a[r][3] = d1 - d3;
        }
        float* at = to + s.at + i;
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          store(at + (0 + j) * gap, a[0][j] - a[2][j]);
          store(at + (4 + j) * gap, a[1][j] + a[2][j]);
          store(at + (8 + j) * gap, a[2][j] - a[1][j]);
          store(at + (12 + j) * gap, a[1][j] - a[3][j]);
        }
      }
    }
}

// U[16][panel][k][MR]: G g G^T for panels of MR rows. Several k are laid out before they are used: vectors
// read just after their elements were written would wait. `all` rows lie between two k when `rotated`.
void transform_weight(float* to, int64_t part, const float* w, int64_t M, int64_t all, int64_t K, bool rotated) {
  constexpr int64_t STEP = 16;
  const int64_t panels = up(M, MR), sm = rotated ? 9 : 9 * K, steps = up(K, STEP);
  parallel_for(panels * steps, grain_for(STEP * MR * 16), [&](int64_t b, int64_t e) {
    alignas(64) float g[STEP * 9 * MR] = {}, h[4][3][MR];
    for (int64_t u = b; u < e; ++u) {
      const int64_t q = u / steps, k0 = u % steps * STEP, k1 = std::min(K, k0 + STEP),
                    n = std::min<int64_t>(MR, M - q * MR);
      if (n < MR) {
        for (int64_t k = k0; k < k1; ++k)
          for (int64_t m = 0; m < n; ++m)
            for (int64_t t = 0; t < 9; ++t)
              g[((k - k0) * 9 + t) * MR + m] =
                  w[rotated ? (k * all + q * MR + m) * 9 + t : ((q * MR + m) * K + k) * 9 + t];
      } else if (rotated)
        for (int64_t k = k0; k < k1; ++k)
          transpose<float>(g + (k - k0) * 9 * MR, MR, w + (k * all + q * MR) * 9, sm, MR, 9);
      else transpose<float>(g, MR, w + q * MR * sm + k0 * 9, sm, MR, (k1 - k0) * 9);
      for (int64_t k = k0; k < k1; ++k) {
        const float* f = g + (k - k0) * 9 * MR;
        const int64_t first = rotated ? 8 : 0, by = rotated ? -MR : MR;  // taps from the last to the first
        f += first * MR;
        for (int c = 0; c < 3; ++c)
          for (int m = 0; m < MR; ++m) {
            const float top = f[c * by + m], mid = f[(3 + c) * by + m], low = f[(6 + c) * by + m];
            const float sum = (top + low) * 0.5f, half = mid * 0.5f;
            h[0][c][m] = top, h[1][c][m] = sum + half, h[2][c][m] = sum - half, h[3][c][m] = low;
          }
        float* at = to + (q * K + k) * MR;
        for (int r = 0; r < 4; ++r)
          for (int m = 0; m < MR; ++m) {
            const float sum = (h[r][0][m] + h[r][2][m]) * 0.5f, half = h[r][1][m] * 0.5f;
            at[(4 * r + 0) * part + m] = h[r][0][m];
            at[(4 * r + 1) * part + m] = sum + half;
            at[(4 * r + 2) * part + m] = sum - half;
            at[(4 * r + 3) * part + m] = h[r][2][m];
          }
      }
    }
  });
}

// Pairs (a0, b0, a1, b1, ...) of two vectors.
inline void interleave(float* to, V a, V b) {
  typedef int32_t Mask __attribute__((vector_size(VECTOR_BYTES)));
  Mask low, high;
#pragma GCC unroll 16
  for (int i = 0; i < int(L); ++i) {
    low[i] = i / 2 + (i % 2) * int(L);
    high[i] = i / 2 + int(L) / 2 + (i % 2) * int(L);
  }
  store(to, __builtin_shuffle(a, b, low));
  store(to + L, __builtin_shuffle(a, b, high));
}

// A^T m A for one channel, written where its tiles lie; whether all results are finite.
bool write_tiles(const Image& y, int64_t first, int64_t channel, const float* m, int64_t gap, int64_t width,
                 const std::vector<Stretch>& runs, float bias, CastFn cast, float* lines) {
  V odd = {};  // x - x of every result: 0, or NaN
  for (int64_t i = 0; i < width; i += L) {
    V s[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const float* at = m + j * gap + i;
      const V m0 = load(at), m1 = load(at + 4 * gap), m2 = load(at + 8 * gap), m3 = load(at + 12 * gap);
      s[0][j] = m0 + m1 + m2, s[1][j] = m1 - m2 - m3;
    }
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
      const V left = s[r][0] + s[r][1] + s[r][2] + bias, right = s[r][1] - s[r][2] - s[r][3] + bias;
      odd += (left - left) + (right - right);
      interleave(lines + r * 2 * width + 2 * i, left, right);
    }
  }
  for (const Stretch& s : runs)
    for (int64_t r = 0; r < 2; ++r) {
      const int64_t h = 2 * s.row + r;
      if (h >= y.size[1]) continue;
      cast(y.data + (first + s.image) * y.sn + channel * y.sc + h * y.step[1] + 2 * s.column * y.step[2], y.step[2],
           reinterpret_cast<const char*>(lines + r * 2 * width + 2 * s.at), sizeof(float),
           std::min(2 * s.len, y.size[2] - 2 * s.column));
    }
  float each[L];
  store(each, odd);
  return !has_nan(each, L);
}

bool three_by_three(const Geometry& g, const Image& x, const Image& y, int64_t groups) {
  return groups == 1 && g.kernel[0] == 1 && g.kernel[1] == 3 && g.kernel[2] == 3 && x.size[0] == 1 && y.size[0] == 1 &&
         g.stride[1] == 1 && g.stride[2] == 1 && g.dilation[1] == 1 && g.dilation[2] == 1 && g.padding[0] == 0;
}

}  // namespace

bool winograd_pays(const Geometry& g, const Image& x, const Image& y, int64_t groups, bool) {
  if (!three_by_three(g, x, y, groups) || x.c < 16 || y.c < 16 || x.dtype == Dtype::f64) return false;
  // Cycles per pair of channels, the transforms of weights and tiles included.
  const double vectors = double(up(x.n * up(y.size[1], 2) * up(y.size[2], 2), L));
  const double places = double(up(x.n * y.size[1] * y.size[2], L));
  const double fast = vectors * 16 * 1.1 + 24 + vectors * (80.0 / double(y.c) + 80.0 / double(x.c));
  return fast < places * 9;
}

bool winograd(const Geometry& g, const Image& x, const Image& y, const float* w, bool rotated, const float* bias) {
  const int64_t K = x.c, threads = num_threads();
  const Tiles tiles(y.size, rotated ? 2 - g.padding[1] : g.padding[1], rotated ? 2 - g.padding[2] : g.padding[2]);
  const Padded p = tiles.padded(K);
  const int64_t chunk = std::clamp<int64_t>(CHUNK / p.image, 1, x.n);
  const CastFn cast = cast_fn(Dtype::f32, y.dtype);
  // Few channels of the result at a time: transformed weights are larger than the weights.
  constexpr int64_t MOST = 256;
  const int64_t part = up(std::min(MOST, y.c), MR) * MR * K + APART;
  Scratch<float> u(16 * part), copy(chunk * p.image + 4 * L);
  std::fill(copy + chunk * p.image, copy + chunk * p.image + 4 * L, 0.0f);  // vectors that stand out read it
  std::atomic<bool> finite{true};
  for (int64_t base = 0; base < y.c; base += MOST) {
    const int64_t M = std::min(MOST, y.c - base), panels = up(M, MR);
    transform_weight(u, part, w + base * 9 * (rotated ? 1 : K), M, y.c, K, rotated);
    for (int64_t first = 0; first < x.n; first += chunk) {
      const int64_t images = std::min(chunk, x.n - first), count = images * tiles.per_image(), vectors = up(count, L);
      p.fill(copy.get(), tiles.sweep, x, first, images);
      const int64_t blocks = std::min(vectors, threads * up(vectors, threads * NV));
      const int64_t parts = blocks >= threads ? 1 : std::min(threads, panels);
      const int64_t rows = up(up(panels, parts), 1) * MR;
      share(blocks * parts, [&](int64_t k) {
        const int64_t b = k / parts, m0 = k % parts * rows, m1 = std::min(M, m0 + rows);
        if (m0 >= m1) return;
        const int64_t t0 = vectors * b / blocks * L, t1 = std::min(count, vectors * (b + 1) / blocks * L);
        const int64_t nv = up(t1 - t0, L), width = nv * L, gap = K * width + APART;
        const std::vector<Stretch> runs = stretches(tiles, t0, t1);
        constexpr int64_t BLOCK = 64;  // rows whose products wait in the cache for their transform
        const int64_t m_gap = BLOCK * width + APART;
        Scratch<float> v(16 * gap + L), m(16 * m_gap), lines(4 * width);
        transform_input(v, gap, width, copy, p, 0, K, runs);
        for (int64_t r = m0; r < m1; r += BLOCK) {
          const int64_t n = std::min(BLOCK, m1 - r);
          for (int64_t q = 0; q < 16; ++q)
            product<float>(n, nv, K, u + q * part + r * K, 1, MR, K, v + q * gap, width, m + q * m_gap, width, false);
          for (int64_t i = 0; i < n; ++i)
            if (!write_tiles(y, first, base + r + i, m + i * width, m_gap, width, runs,
                             bias == nullptr ? 0.0f : bias[base + r + i], cast, lines))
              finite = false;
        }
      });
      if (!finite) return false;
    }
  }
  return true;
}

bool winograd_weight_pays(const Geometry& g, const Image& x, const Image& grad, int64_t groups) {
  return three_by_three(g, x, grad, groups) && x.c >= 16 && grad.c >= 16 && x.dtype != Dtype::f64 &&
         x.n * grad.size[1] * grad.size[2] >= 128 && grad.size[1] > 3 && grad.size[2] > 3;
}

// Every tile gives A^T [(G g G^T) * (B^T d B)] A with G (4 x 2) and A^T (3 x 4): the sum over tiles is a
// product of matrices for each of the 16 parts, transformed at the end.
bool winograd_weight(const Geometry& g, const Image& x, const Image& grad, float* out) {
  const int64_t C = x.c, O = grad.c;
  const Tiles tiles(grad.size, g.padding[1], g.padding[2]);
  const Padded p = tiles.padded(C);
  const int64_t chunk = std::clamp<int64_t>(CHUNK / p.image, 1, x.n);
  constexpr int64_t DEPTH = 128;  // tiles of a step
  // Blocks of 64 rows and six vectors of columns, or a little less, so that all threads have as many.
  const int64_t aside = up(up(O, L), 2 * NV), across = up(up(O, L), aside) * L;
  int64_t down = up(C, 64);
  while (down * aside % num_threads() != 0 && down * MR < C) ++down;
  const int64_t high = up(up(C, down), MR) * MR;
  const CastFn cast = cast_fn(grad.dtype, Dtype::f32);
  const int64_t wide = up(O, L) * L, part = C * wide + APART;
  Scratch<float> copy(chunk * p.image + 4 * L), sums(16 * part);
  std::fill(sums.get(), sums + 16 * part, 0.0f);
  // The gradient with channels last, and a row and column of zeros where tiles stand out.
  const int64_t gh = 2 * tiles.high, gw = 2 * tiles.wide;
  Scratch<float> by_place(chunk * gh * gw * wide);
  for (int64_t first = 0; first < x.n; first += chunk) {
    const int64_t images = std::min(chunk, x.n - first), count = images * tiles.per_image();
    p.fill(copy.get(), tiles.sweep, x, first, images);
    parallel_for(images * gh, grain_for(gw * wide * 2), [&](int64_t b, int64_t e) {
      Scratch<float> block(L * gw);
      for (int64_t k = b; k < e; ++k) {
        const int64_t i = k / gh, h = k % gh;
        float* to = by_place + k * gw * wide;
        if (h >= grad.size[1]) {
          std::fill(to, to + gw * wide, 0.0f);
          continue;
        }
        for (int64_t o = 0; o < wide; o += L) {
          for (int64_t j = 0; j < L; ++j) {
            float* row = block + j * gw;
            if (o + j < O)
              cast(reinterpret_cast<char*>(row), sizeof(float),
                   grad.data + (first + i) * grad.sn + (o + j) * grad.sc + h * grad.step[1], grad.step[2],
                   grad.size[2]);
            std::fill(row + (o + j < O ? grad.size[2] : 0), row + gw, 0.0f);
          }
          transpose<float>(to + o, wide, block, gw, L, gw);
        }
      }
    });
    share(down * aside, [&](int64_t k) {
      const int64_t c0 = k / aside * high, c1 = std::min(C, c0 + high), o0 = k % aside * across,
                    o1 = std::min(wide, o0 + across);
      if (c0 >= c1 || o0 >= o1) return;
      const int64_t width = DEPTH, gap = (c1 - c0) * width + APART, n_o = o1 - o0, g_gap = DEPTH * n_o + APART;
      Scratch<float> v(16 * gap + L), u(16 * g_gap);
      const int64_t vectors = n_o / L, slivers = up(vectors, NV);
      for (int64_t t0 = 0; t0 < count; t0 += DEPTH) {
        const int64_t t1 = std::min(count, t0 + DEPTH), depth = t1 - t0;
        const std::vector<Stretch> runs = stretches(tiles, t0, t1);
        transform_input(v, gap, width, copy, p, c0, c1, runs);
        // G g G^T of every tile, for slivers of channels.
        for (const Stretch& s : runs)
          for (int64_t q = 0; q < s.len; ++q) {
            const float* from = by_place + ((s.image * gh + 2 * s.row) * gw + 2 * (s.column + q)) * wide + o0;
            for (int64_t j = 0, at = 0; j < slivers; ++j) {
              const int64_t nv = vectors * (j + 1) / slivers - vectors * j / slivers;
              for (int64_t i = 0; i < nv; ++i) {
                const float* f = from + at + i * L;
                const V g00 = load(f), g01 = load(f + wide), g10 = load(f + gw * wide),
                        g11 = load(f + gw * wide + wide);
                V a[4][2];
                a[0][0] = g00, a[0][1] = g01;
                a[1][0] = (g00 + g10) * 0.5f, a[1][1] = (g01 + g11) * 0.5f;
                a[2][0] = (g00 - g10) * 0.5f, a[2][1] = (g01 - g11) * 0.5f;
                a[3][0] = -g10, a[3][1] = -g11;
                float* to = u + at * DEPTH + (s.at + q) * nv * L + i * L;
#pragma GCC unroll 4
                for (int r = 0; r < 4; ++r) {
                  store(to + (4 * r + 0) * g_gap, a[r][0]);
                  store(to + (4 * r + 1) * g_gap, (a[r][0] + a[r][1]) * 0.5f);
                  store(to + (4 * r + 2) * g_gap, (a[r][0] - a[r][1]) * 0.5f);
                  store(to + (4 * r + 3) * g_gap, -a[r][1]);
                }
              }
              at += nv * L;
            }
          }
        for (int64_t q = 0; q < 16; ++q)
          for (int64_t j = 0, at = 0; j < slivers; ++j) {
            const int64_t nv = vectors * (j + 1) / slivers - vectors * j / slivers;
            product<float>(c1 - c0, nv, depth, v + q * gap, width, 1, width, u + q * g_gap + at * DEPTH, nv * L,
                           sums + q * part + c0 * wide + o0 + at, wide, true);
            at += nv * L;
          }
      }
    });
  }
  std::atomic<bool> finite{true};
  parallel_for(C * (wide / L), grain_for(L * 40), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      const int64_t c = k / (wide / L), o = k % (wide / L) * L;
      const float* m = sums + c * wide + o;
      V s[3][4];
      for (int j = 0; j < 4; ++j) {
        const V m0 = load(m + j * part), m1 = load(m + (4 + j) * part), m2 = load(m + (8 + j) * part),
                m3 = load(m + (12 + j) * part);
        s[0][j] = m0 + m1 + m2, s[1][j] = m1 - m2, s[2][j] = m1 + m2 + m3;
      }
      float done[9][L];
      for (int r = 0; r < 3; ++r) {
        store(done[3 * r + 0], s[r][0] + s[r][1] + s[r][2]);
        store(done[3 * r + 1], s[r][1] - s[r][2]);
        store(done[3 * r + 2], s[r][1] + s[r][2] + s[r][3]);
      }
      for (int64_t j = 0; j < std::min(L, O - o); ++j)
        for (int t = 0; t < 9; ++t) out[((o + j) * C + c) * 9 + t] = done[t][j];
      if (!all_finite(&done[0][0], 9 * L)) finite = false;
    }
  });
  return finite;
}

}  // namespace vt::conv
