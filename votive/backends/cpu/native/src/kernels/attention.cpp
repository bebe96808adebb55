// Attention forward: blocks of keys pass by a block of queries, softmax is kept up to date.
#include "attention.h"

#include "attention_decode.h"
#include "attention_dropout.h"

namespace vt {
namespace {

constexpr int64_t KEYS = 128;   // of a block
constexpr int64_t PANELS = 4;   // of queries that share a block of keys

template <class T> struct Running {
  Vec<T> top[2], total[2];
};

// Turns scores into weights exp(score - top) after moving `top` up to what is seen now; sums stay in
// step. Gives whether the accumulated output must be multiplied by `scale`. A panel may have one vector only.
template <class T> bool soften(T* scores, int64_t n, int vectors, Running<T>& run, Vec<T> (&scale)[2]) {
  constexpr int W = WIDTH<T>, L = LANES<T>;
  using V = Vec<T>;
  V* s = reinterpret_cast<V*>(scores);
  bool moved = false;
  for (int v = 0; v < vectors; ++v) {
    V a = run.top[v], b = a;
    int64_t j = 0;
    for (; j + 2 <= n; j += 2) {
      const V x = s[2 * j + v], y = s[2 * j + 2 + v];
      a = a > x ? a : x;
      b = b > y ? b : y;
    }
    if (j < n) a = a > s[2 * j + v] ? a : s[2 * j + v];
    V top = a > b ? a : b;
    // A NaN in the way leaves any value here; the sum becomes NaN by itself.
    const V use = top == fill<T>(-INF<T>) ? V{} : top;
    scale[v] = exp_down(run.top[v] - use);
    for (int c = 0; c < L; ++c) moved = moved || top[c] != run.top[v][c];
    run.top[v] = top;
    V sum0{}, sum1{};
    for (j = 0; j + 2 <= n; j += 2) {
      const V x = exp_down(s[2 * j + v] - use), y = exp_down(s[2 * j + 2 + v] - use);
      s[2 * j + v] = x;
      s[2 * j + 2 + v] = y;
      sum0 += x;
      sum1 += y;
    }
    if (j < n) sum0 += s[2 * j + v] = exp_down(s[2 * j + v] - use);
    run.total[v] = run.total[v] * scale[v] + (sum0 + sum1);
  }
  static_assert(W == 2 * L);
  return moved;
}

// Rows [r0, r1) of the queries of one key head.
template <class T>
void attend(const Problem& p, const Dropout& drop, const View& out, const View& lse, int64_t b, int64_t h, int64_t r0,
            int64_t r1) {
  constexpr int W = WIDTH<T>, L = LANES<T>;
  using V = Vec<T>;
  const int64_t D = p.D, Dv = p.Dv, panels = (r1 - r0 + W - 1) / W;
  Scratch<T> line(W * std::max<int64_t>(std::max(D, Dv), 1));
  Scratch<T> queries(panels * D * W + 1), sums(panels * Dv * W + 1);
  Scratch<T> scores(KEYS * W), k_room(KEYS * D + 1), v_room(KEYS * Dv + 1), m_room(mask_room<T>(p, KEYS));
  Scratch<T> noise(noise_room<T>(drop, KEYS));
  Scratch<Running<T>> runs(panels);
  Scratch<Limits<T>> limits(panels);
  int64_t most = 0;
  for (int64_t a = 0; a < panels; ++a) {
    const int64_t from = r0 + a * W, count = std::min<int64_t>(W, r1 - from);
    pack_panel<T>(p, p.q, b, h, from, count, T(p.scale), line, queries + a * D * W);
    for (int v = 0; v < 2; ++v) runs[a].top[v] = fill<T>(-INF<T>), runs[a].total[v] = V{};
    limits[a] = Limits<T>(p, from, count);
    most = std::max(most, limits[a].most);
  }
  std::fill(sums.get(), sums.get() + panels * Dv * W, T(0));
  for (int64_t from = 0; from < most; from += KEYS) {
    const int64_t block = std::min(KEYS, most - from);
    const Rows<T> k = read_rows<T>(p.k, b, h, from, block, k_room, p.k_format);
    const Rows<T> v = read_rows<T>(p.v, b, h, from, block, v_room, p.v_format);
    for (int64_t a = 0; a < panels; ++a) {
      const int64_t n = std::min(block, limits[a].most - from);
      if (n <= 0) continue;
      const int64_t first = r0 + a * W, count = std::min<int64_t>(W, r1 - first);
      const int vectors = count > L ? 2 : 1;
      product<T>(n, D, k.data, k.row, 1, queries + a * D * W, W, scores, W, false, vectors);
      if (p.mask && !apply_mask<T>(p, b, h, first, count, from, n, scores, m_room)) continue;
      if (limits[a].least < from + n) apply_limits<T>(limits[a], from, n, scores);
      V scale[2];
      T* sum = sums + a * Dv * W;
      if (soften<T>(scores, n, vectors, runs[a], scale) && from > 0)
        for (int64_t d = 0; d < Dv; ++d)
          for (int u = 0; u < vectors; ++u) reinterpret_cast<V*>(sum + d * W)[u] *= scale[u];
      if (drop.on) {
        draw_noise<T>(p, drop, b, h, first, count, from, n, noise);
        for (int64_t e = 0; e < n * W; ++e) scores[e] *= noise[e];
      }
      product<T>(Dv, n, v.data, 1, v.row, scores, W, sum, W, from > 0, vectors);
    }
  }
  for (int64_t a = 0; a < panels; ++a) {
    const int64_t first = r0 + a * W, count = std::min<int64_t>(W, r1 - first);
    alignas(64) T factor[W], level[W];
    for (int c = 0; c < W; ++c) {
      const T total = runs[a].total[c / L][c % L], top = runs[a].top[c / L][c % L];
      factor[c] = T(1) / (total == T(0) ? T(1) : total);
      level[c] = std::log(total) + (top == -INF<T> ? T(0) : top);
    }
    unpack_panel<T>(p, out, b, h, first, count, sums + a * Dv * W, factor, line);
    const CastFn fn = cast_fn(dtype_of<T>, lse.dtype);
    for (int64_t c = 0; c < count; ++c) fn(const_cast<char*>(p.row(lse, b, h, first + c)), 0, bytes(level + c), 0, 1);
  }
}

void run(const Problem& p, const Dropout& drop, const View& out, const View& lse) {
  if (p.B * p.H * p.Tq == 0) return;
  for_compute("attention", p.q.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    constexpr int64_t W = WIDTH<T>;
    const int64_t rows = p.rows(), heads = p.B * p.KH;
    const bool idle = heads * ((rows + W - 1) / W) < num_threads() && p.Tk >= 4 * DECODE_KEYS;
    if (!drop.on && (rows <= 8 || (idle && rows <= 2 * W))) return decode<T>(p, out, lse);
    // Long blocks of queries read keys less often; there must be a few for each thread.
    int64_t panels = PANELS;
    const int64_t all = (rows + W - 1) / W;
    while (panels > 1 && heads * ((all + panels - 1) / panels) < 4 * num_threads()) panels /= 2;
    const int64_t blocks = (all + panels - 1) / panels;
    parallel_for(heads * blocks, grain_for(panels * W * p.Tk * (p.D + p.Dv) / 8), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t head = n / blocks, r0 = n % blocks * panels * W;
        attend<T>(p, drop, out, lse, head / p.KH, head % p.KH, r0, std::min(r0 + panels * W, rows));
      }
    });
  });
}

// (q, k, v, mask, out, lse, causal, offset, scale), and for dropout (words of key and counter, p)
VT_KERNEL(attention) {
  const Problem p(c.view(0), c.view(1), c.view(2), c.view(3), c.i(0), c.i(1), c.f(0));
  run(p, c.ints.size() > 2 ? Dropout(c, 2, c.f(1)) : Dropout(), c.view(4), c.view(5));
}

const rows::Format* format_of(const View& x, int64_t code) {
  if (code < 0) return nullptr;
  if (x.numel() > 0 && x.shape[3] > 1 && x.strides[3] != 1)
    throw ValueError("attention: the bytes of blocks must lie side by side.");
  return &rows::format(code);
}

// (q, k, v, mask, out, lse, causal, offset, scale, formats of k and v): a format is -1 where they are numbers
VT_KERNEL(block_attention) {
  Problem p(c.view(0), c.view(1), c.view(2), c.view(3), c.i(0), c.i(1), c.f(0));
  p.k_format = format_of(p.k, c.i(2));
  p.v_format = format_of(p.v, c.i(3));
  p.Dv = c.view(4).shape[3];
  run(p, Dropout(), c.view(4), c.view(5));
}

}  // namespace
}  // namespace vt
