// Attention backward: weights of a block of keys are rebuilt from the log-sum-exp of each query.
//
// Dao et al. 2022, "FlashAttention", appendix B.2, with the derivative of the log-sum-exp, which is
// the weights themselves.
#include "attention.h"
#include "attention_dropout.h"

namespace vt {
namespace {

constexpr int64_t KEYS = 128;  // of a block

struct Given {
  const View &grad, &grad_lse, &out, &lse;
};

struct Wanted {
  const View &q, &k, &v;
};

constexpr int64_t padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// A panel's queries and incoming gradients, as rows and as columns.
template <class T> struct Side {
  T *queries, *query_rows, *grads, *grad_rows;
  alignas(64) T level[WIDTH<T>], mean[WIDTH<T>];
};

template <class T> T read_one(const char* at, Dtype d) {
  T x;
  cast_fn(d, dtype_of<T>)(bytes(&x), 0, at, 0, 1);
  return x;
}

// Rows of a panel, padded with zeros to whole vectors, and the same turned into columns.
template <class T>
void both_ways(const Problem& p, const View& x, int64_t b, int64_t h, int64_t r0, int64_t count, T factor, T* rows,
               T* columns) {
  constexpr int64_t W = WIDTH<T>;
  const int64_t cols = x.shape[3], width = padded(cols, LANES<T>);
  const CastFn fn = cast_fn(x.dtype, dtype_of<T>);
  std::fill(rows, rows + W * width, T(0));
  for (int64_t r = 0; r < count; ++r) {
    T* to = rows + r * width;
    fn(bytes(to), sizeof(T), p.row(x, b, h, r0 + r), x.strides[3], cols);
    if (factor != T(1))
      for (int64_t d = 0; d < cols; ++d) to[d] *= factor;
  }
  turn<T>(columns, W, rows, width, W, cols);
}

// sums[j, :] += weights[j, :] @ rows, for n keys and the `count` queries of a panel.
template <class T>
void gather(int64_t n, int64_t count, const T* weights, const T* rows, int64_t width, T* sums) {
  constexpr int64_t W = WIDTH<T>;
  for (int64_t d = 0; d < width; d += W)
    product<T>(n, count, weights, W, 1, rows + d, width, sums + d, width, true, d + W <= width ? 2 : 1);
}

// The keys in blocks first, first + step, ... of one key head; by_query grows by what they add.
template <class T>
void descend(const Problem& p, const Dropout& drop, const Given& given, const Wanted& wanted, int64_t b, int64_t h,
             int64_t first, int64_t step, T* by_query) {
  constexpr int64_t W = WIDTH<T>, L = LANES<T>;
  using V = Vec<T>;
  const int64_t D = p.D, Dv = p.Dv, Dp = padded(D, L), Dvp = padded(Dv, L);
  const int64_t rows = p.rows(), panels = (rows + W - 1) / W, size = W * (2 * Dp + 2 * Dvp);
  Scratch<T> room(panels * size + 1);
  Scratch<Side<T>> sides(panels);
  Scratch<Limits<T>> limits(panels);
  Scratch<T> line(std::max<int64_t>(Dv, 1));
  const CastFn get_out = cast_fn(given.out.dtype, dtype_of<T>);
  for (int64_t a = 0; a < panels; ++a) {
    const int64_t r0 = a * W, count = std::min<int64_t>(W, rows - r0);
    Side<T>& s = sides[a];
    s.queries = room + a * size;
    s.query_rows = s.queries + W * Dp;
    s.grads = s.query_rows + W * Dp;
    s.grad_rows = s.grads + W * Dvp;
    both_ways<T>(p, p.q, b, h, r0, count, T(p.scale), s.query_rows, s.queries);
    both_ways<T>(p, given.grad, b, h, r0, count, T(1), s.grad_rows, s.grads);
    for (int64_t c = 0; c < W; ++c) {
      // Columns without a query, and queries that see nothing, get no weights.
      s.level[c] = INF<T>;
      s.mean[c] = T(0);
      if (c >= count) continue;
      const T level = read_one<T>(p.row(given.lse, b, h, r0 + c), given.lse.dtype);
      if (level != -INF<T>) s.level[c] = level;
      get_out(bytes(line.get()), sizeof(T), p.row(given.out, b, h, r0 + c), given.out.strides[3], Dv);
      const T* g = s.grad_rows + c * Dvp;
      T sums[8] = {};
      int64_t d = 0;
      for (; d + 8 <= Dv; d += 8)
        for (int i = 0; i < 8; ++i) sums[i] += g[d + i] * line[d + i];
      for (; d < Dv; ++d) sums[0] += g[d] * line[d];
      const T dot = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
      s.mean[c] = dot - read_one<T>(p.row(given.grad_lse, b, h, r0 + c), given.grad_lse.dtype);
    }
    limits[a] = Limits<T>(p, r0, count);
  }
  std::fill(by_query, by_query + panels * D * W, T(0));
  Scratch<T> weights(KEYS * W), slopes(KEYS * W), m_room(mask_room<T>(p, KEYS)),
      noise(noise_room<T>(drop, KEYS));
  Scratch<T> k_room(KEYS * D + 1), v_room(KEYS * Dv + 1), by_key(KEYS * Dp + 1), by_value(KEYS * Dvp + 1);
  const CastFn put_k = cast_fn(dtype_of<T>, wanted.k.dtype), put_v = cast_fn(dtype_of<T>, wanted.v.dtype);
  for (int64_t from = first * KEYS; from < p.Tk; from += step * KEYS) {
    const int64_t block = std::min(KEYS, p.Tk - from);
    const Rows<T> k = read_rows<T>(p.k, b, h, from, block, k_room), v = read_rows<T>(p.v, b, h, from, block, v_room);
    std::fill(by_key.get(), by_key.get() + block * Dp, T(0));
    std::fill(by_value.get(), by_value.get() + block * Dvp, T(0));
    for (int64_t a = 0; a < panels; ++a) {
      const Side<T>& s = sides[a];
      const int64_t n = std::min(block, limits[a].most - from), count = std::min<int64_t>(W, rows - a * W);
      if (n <= 0) continue;
      const int vectors = count > L ? 2 : 1;
      product<T>(n, D, k.data, k.row, 1, s.queries, W, weights, W, false, vectors);
      if (p.mask && !apply_mask<T>(p, b, h, a * W, count, from, n, weights, m_room)) continue;
      if (limits[a].least < from + n) apply_limits<T>(limits[a], from, n, weights);
      product<T>(n, Dv, v.data, v.row, 1, s.grads, W, slopes, W, false, vectors);
      V* w = reinterpret_cast<V*>(weights.get());
      V* t = reinterpret_cast<V*>(slopes.get());
      const V* level = reinterpret_cast<const V*>(s.level);
      const V* mean = reinterpret_cast<const V*>(s.mean);
      const V* kept = reinterpret_cast<const V*>(noise.get());
      if (drop.on) {
        draw_noise<T>(p, drop, b, h, a * W, count, from, n, noise);
        for (int64_t j = 0; j < 2 * n; ++j) t[j] *= kept[j];
      }
      for (int u = 0; u < vectors; ++u) {
        const V lse = level[u], shift = mean[u];
        for (int64_t j = 0; j < n; ++j) {
          const V x = exp_down(w[2 * j + u] - lse);
          w[2 * j + u] = x;
          t[2 * j + u] = x * (t[2 * j + u] - shift);
        }
      }
      if (drop.on)
        for (int64_t j = 0; j < 2 * n; ++j) w[j] *= kept[j];
      gather<T>(n, count, weights, s.grad_rows, Dvp, by_value);
      gather<T>(n, count, slopes, s.query_rows, Dp, by_key);
      product<T>(D, n, k.data, 1, k.row, slopes, W, by_query + a * D * W, W, true, vectors);
    }
    for (int64_t j = 0; j < block; ++j) {
      const auto at = [&](const View& x) { return x.data + b * x.strides[0] + h * x.strides[1] + (from + j) * x.strides[2]; };
      put_k(at(wanted.k), wanted.k.strides[3], bytes(by_key + j * Dp), sizeof(T), D);
      put_v(at(wanted.v), wanted.v.strides[3], bytes(by_value + j * Dvp), sizeof(T), Dv);
    }
  }
}

template <class T> void put_queries(const Problem& p, const View& to, int64_t b, int64_t h, int64_t a, const T* panel) {
  constexpr int64_t W = WIDTH<T>;
  alignas(64) T factor[W];
  std::fill(factor, factor + W, T(p.scale));
  Scratch<T> line(W * std::max<int64_t>(p.D, 1));
  unpack_panel<T>(p, to, b, h, a * W, std::min<int64_t>(W, p.rows() - a * W), panel, factor, line);
}

// (grad, grad_lse, q, k, v, mask, out, lse, by q, by k, by v, causal, offset, scale), and for dropout as forward
VT_KERNEL(attention_backward) {
  const Problem p(c.view(2), c.view(3), c.view(4), c.view(5), c.i(0), c.i(1), c.f(0));
  const Dropout drop = c.ints.size() > 2 ? Dropout(c, 2, c.f(1)) : Dropout();
  const Given given{c.view(0), c.view(1), c.view(6), c.view(7)};
  const Wanted wanted{c.view(8), c.view(9), c.view(10)};
  for_compute("attention_backward", p.q.dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    constexpr int64_t W = WIDTH<T>;
    const int64_t heads = p.B * p.KH, threads = num_threads(), blocks = (p.Tk + KEYS - 1) / KEYS;
    const int64_t panels = (p.rows() + W - 1) / W, size = panels * p.D * W;
    if (heads == 0) return;
    // Where there are few heads their keys are split, and each part has gradients of queries of its own.
    int64_t splits = 1;
    if (heads % threads != 0 && heads < 4 * threads)
      splits = std::clamp<int64_t>((2 * threads + heads - 1) / heads, 1, std::max<int64_t>(blocks, 1));
    Scratch<T> apart(splits > 1 ? heads * splits * size + 1 : 1);
    const int64_t work = std::max<int64_t>(p.rows() * p.Tk / splits * (p.D + p.Dv) / 4, 1);
    parallel_for(heads * splits, grain_for(work), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t head = n / splits, b = head / p.KH, h = head % p.KH;
        if (splits > 1) {
          descend<T>(p, drop, given, wanted, b, h, n % splits, splits, apart + n * size);
          continue;
        }
        Scratch<T> by_query(size + 1);
        descend<T>(p, drop, given, wanted, b, h, 0, 1, by_query.get());
        for (int64_t a = 0; a < panels; ++a) put_queries<T>(p, wanted.q, b, h, a, by_query + a * p.D * W);
      }
    });
    if (splits == 1) return;
    parallel_for(heads * panels, grain_for(splits * p.D * W), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        const int64_t head = n / panels, a = n % panels;
        T* sum = apart + head * splits * size + a * p.D * W;
        for (int64_t s = 1; s < splits; ++s)
          for (int64_t i = 0; i < p.D * W; ++i) sum[i] += sum[s * size + i];
        put_queries<T>(p, wanted.q, head / p.KH, head % p.KH, a, sum);
      }
    });
  });
}

}  // namespace
}  // namespace vt
