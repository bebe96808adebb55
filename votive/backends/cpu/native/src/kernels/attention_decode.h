// Attention of few queries to many keys: reading keys and values is all the work, so they are read
// once for all queries that share them, and long rows are split among threads.
#pragma once
#include "attention.h"

namespace vt {
namespace {

constexpr int64_t DECODE_KEYS = 64;  // of a block: converted keys stay in the first cache

constexpr int64_t padded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The sums of L vectors as one vector.
template <class T, int S> inline __attribute__((always_inline)) Vec<T> join(const Vec<T>* x) {
  constexpr int L = LANES<T>;
  if constexpr (S == L) return x[0];
  else {
    using Mask = typename Lanes<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>::type;
    constexpr auto seq = std::make_integer_sequence<int, L>{};
    const Mask low = low_mask<L, Mask>(S, seq), high = high_mask<L, Mask>(S, seq);
    Vec<T> y[L / S / 2 > 0 ? L / S / 2 : 1];
#pragma GCC unroll 16
    for (int i = 0; i < L / S / 2; ++i)
      y[i] = __builtin_shuffle(x[2 * i], x[2 * i + 1], low) + __builtin_shuffle(x[2 * i], x[2 * i + 1], high);
    return join<T, 2 * S>(y);
  }
}

// Dot products of a query with L keys; `cols` is a multiple of L.
template <class T> inline Vec<T> dots(const T* q, const T* k, int64_t row, int64_t cols) {
  constexpr int L = LANES<T>;
  using V = Vec<T>;
  using Loose = typename Lanes<T>::loose;
  V x[L];
#pragma GCC unroll 16
  for (int i = 0; i < L; ++i) x[i] = V{};
  int64_t d = 0;
  for (; d + 4 * L <= cols; d += 4 * L) {
    const V* at = reinterpret_cast<const V*>(q + d);
    const V a = at[0], b = at[1], c = at[2], e = at[3];
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) {
      const Loose* r = reinterpret_cast<const Loose*>(k + i * row + d);
      x[i] += a * r[0] + b * r[1] + c * r[2] + e * r[3];
    }
  }
  for (; d < cols; d += L) {
    const V a = *reinterpret_cast<const V*>(q + d);
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) x[i] += a * *reinterpret_cast<const Loose*>(k + i * row + d);
  }
  return join<T, 1>(x);
}

template <class T> T largest(Vec<T> v) {
  T top = v[0];
  for (int c = 1; c < LANES<T>; ++c) top = v[c] > top ? v[c] : top;
  return top;
}
template <class T> T total(Vec<T> v) {
  T sum = 0;
  for (int c = 0; c < LANES<T>; ++c) sum += v[c];
  return sum;
}

// Rows [from, from + n) padded with zeros to whole vectors, and to whole groups of rows by repeating.
template <class T>
Rows<T> padded_rows(const View& x, const rows::Format* format, int64_t b, int64_t h, int64_t from, int64_t n,
                    int64_t cols, bool groups, T* room) {
  const char* src = x.data + b * x.strides[0] + h * x.strides[1] + from * x.strides[2];
  constexpr int64_t S = sizeof(T);
  const int64_t have = x.shape[3], at = x.strides[2];
  if (format) {
    read_blocks<T>(*format, src, at, n, have / format->bytes * format->size, cols, room);
    if (groups) std::fill(room + n * cols, room + padded(n, LANES<T>) * cols, T(0));
    return {room, cols};
  }
  if (x.dtype == dtype_of<T> && have == cols && x.strides[3] == S && at % S == 0 && (!groups || n % LANES<T> == 0))
    return {reinterpret_cast<const T*>(src), at / S};
  const CastFn fn = cast_fn(x.dtype, dtype_of<T>);
  for (int64_t j = 0; j < n; ++j) {
    fn(bytes(room + j * cols), S, src + j * at, x.strides[3], have);
    for (int64_t d = have; d < cols; ++d) room[j * cols + d] = T(0);
  }
  if (groups) std::fill(room + n * cols, room + padded(n, LANES<T>) * cols, T(0));
  return {room, cols};
}

// What is known of the rows of one head after some of its keys: top[r], total[r] and sums[r][Dv padded].
template <class T> struct Part {
  T *top, *total, *sums;
};

template <class T>
void decode_part(const Problem& p, int64_t b, int64_t h, int64_t begin, int64_t end, const T* queries, Part<T> out) {
  constexpr int64_t L = LANES<T>, W = WIDTH<T>;
  using V = Vec<T>;
  const int64_t rows = p.rows(), D = padded(p.D, L), Dv = padded(p.Dv, L), N = DECODE_KEYS;
  Scratch<T> scores(rows * N), k_room(N * D + 1), v_room(N * Dv + 1), m_room(N);
  const CastFn fn = p.mask ? cast_fn(p.mask.dtype, dtype_of<T>) : nullptr;
  std::fill(out.top, out.top + rows, -INF<T>);
  std::fill(out.total, out.total + rows, T(0));
  std::fill(out.sums, out.sums + rows * Dv, T(0));
  for (int64_t from = begin; from < end; from += N) {
    const int64_t n = std::min(N, end - from), whole = padded(n, L);
    const Rows<T> k = padded_rows<T>(p.k, p.k_format, b, h, from, n, D, true, k_room);
    for (int64_t j = 0; j < n; j += L)
      for (int64_t r = 0; r < rows; ++r)
        *reinterpret_cast<V*>(scores + r * N + j) = dots<T>(queries + r * D, k.data + j * k.row, k.row, D);
    for (int64_t r = 0; r < rows; ++r) {
      T* s = scores + r * N;
      if (p.mask) {
        fn(bytes(m_room.get()), sizeof(T), p.mask_row(b, h, r) + from * p.sm.s[3], p.sm.s[3], n);
        if (p.mask.dtype == Dtype::b1)
          for (int64_t j = 0; j < n; ++j) s[j] = m_room[j] != T(0) ? s[j] : -INF<T>;
        else
          for (int64_t j = 0; j < n; ++j) s[j] += m_room[j];
      }
      const int64_t seen = std::clamp<int64_t>(p.limit(r % p.Tq) - from, 0, n);
      std::fill(s + seen, s + whole, -INF<T>);
      const V* v = reinterpret_cast<const V*>(s);
      V best = v[0];
      for (int64_t j = 1; j < whole / L; ++j) best = best > v[j] ? best : v[j];
      const T before = out.top[r], now = std::max(before, largest<T>(best));
      const T use = now == -INF<T> ? T(0) : now;
      V sum{};
      for (int64_t j = 0; j < whole / L; ++j) {
        const V e = exp_down(v[j] - use);
        reinterpret_cast<V*>(s)[j] = e;
        sum += e;
      }
      out.top[r] = now;
      const T scale = before == now ? T(1) : T(std::exp(before - use));
      out.total[r] = out.total[r] * scale + total<T>(sum);
      if (scale != T(1))
        for (int64_t d = 0; d < Dv; ++d) out.sums[r * Dv + d] *= scale;
    }
    const Rows<T> v = padded_rows<T>(p.v, p.v_format, b, h, from, n, Dv, false, v_room);
    for (int64_t d = 0; d < Dv; d += W)
      product<T>(rows, n, scores, N, 1, v.data + d, v.row, out.sums + d, Dv, true, d + W <= Dv ? 2 : 1);
  }
}

template <class T> void decode(const Problem& p, const View& out, const View& lse) {
  constexpr int64_t L = LANES<T>;
  const int64_t rows = p.rows(), heads = p.B * p.KH, D = padded(p.D, L), Dv = padded(p.Dv, L);
  const int64_t worth = 4 * DECODE_KEYS;
  int64_t most = 0;
  for (int64_t i = 0; i < p.Tq; ++i) most = std::max(most, p.limit(i));
  int64_t splits = std::clamp<int64_t>((2 * num_threads() + heads - 1) / heads, 1, std::max<int64_t>(1, most / worth));
  if (heads >= num_threads()) splits = heads % num_threads() == 0 ? 1 : splits;
  const int64_t each = padded((most + splits - 1) / splits, DECODE_KEYS), size = rows * (Dv + 2);
  Scratch<T> parts(heads * splits * size + 1);
  const auto part = [&](int64_t n) {
    T* at = parts + n * size;
    return Part<T>{at, at + rows, at + 2 * rows};
  };
  const int64_t work = std::max<int64_t>(each * (p.D + p.Dv) * std::max<int64_t>(rows, 4) / 16, 1);
  parallel_for(heads * splits, grain_for(work), [&](int64_t begin, int64_t end) {
    Scratch<T> queries(rows * D + 1);
    const CastFn fn = cast_fn(p.q.dtype, dtype_of<T>);
    for (int64_t n = begin; n < end; ++n) {
      const int64_t head = n / splits, b = head / p.KH, h = head % p.KH, from = n % splits * each;
      std::fill(queries.get(), queries.get() + rows * D, T(0));
      for (int64_t r = 0; r < rows; ++r) {
        T* q = queries + r * D;
        fn(bytes(q), sizeof(T), p.row(p.q, b, h, r), p.q.strides[3], p.D);
        for (int64_t d = 0; d < p.D; ++d) q[d] *= T(p.scale);
      }
      decode_part<T>(p, b, h, from, std::min(from + each, most), queries, part(n));
    }
  });
  const CastFn put = cast_fn(dtype_of<T>, out.dtype), put_lse = cast_fn(dtype_of<T>, lse.dtype);
  Scratch<T> line(Dv + 1);
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t r = 0; r < rows; ++r) {
      T top = -INF<T>, sum = 0;
      for (int64_t s = 0; s < splits; ++s) top = std::max(top, part(head * splits + s).top[r]);
      const T use = top == -INF<T> ? T(0) : top;
      std::fill(line.get(), line.get() + Dv, T(0));
      for (int64_t s = 0; s < splits; ++s) {
        const Part<T> x = part(head * splits + s);
        const T scale = x.top[r] == top ? T(1) : T(std::exp(x.top[r] - use));
        sum += x.total[r] * scale;
        for (int64_t d = 0; d < p.Dv; ++d) line[d] += x.sums[r * Dv + d] * scale;
      }
      const T factor = T(1) / (sum == T(0) ? T(1) : sum), level = std::log(sum) + use;
      for (int64_t d = 0; d < p.Dv; ++d) line[d] *= factor;
      const int64_t b = head / p.KH, h = head % p.KH;
      put(const_cast<char*>(p.row(out, b, h, r)), out.strides[3], bytes(line.get()), sizeof(T), p.Dv);
      put_lse(const_cast<char*>(p.row(lse, b, h, r)), 0, bytes(&level), 0, 1);
    }
}

}  // namespace
}  // namespace vt
