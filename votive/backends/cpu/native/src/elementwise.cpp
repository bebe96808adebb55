// The tile engine: load and convert, compute on dense tiles in L1, convert and store.
#include "vt/elementwise.h"

#include <algorithm>
#include <unordered_map>

#include "vt/parallel.h"
#include "vt/scratch.h"

namespace vt {

static std::unordered_map<std::string, TileFn>& tiles_of(Dtype compute, int numbers) {
  static std::unordered_map<std::string, TileFn> tables[DTYPES][8];
  return tables[int(compute)][numbers];
}
void add_tile(const char* name, Dtype compute, TileFn fn, int numbers) { tiles_of(compute, numbers)[name] = fn; }
TileFn find_tile(const std::string& name, Dtype compute, int numbers) {
  auto& table = tiles_of(compute, numbers);
  auto it = table.find(name);
  return it == table.end() ? nullptr : it->second;
}

bool Program::is_spread(int r) const {
  bool spread = r == result;
  for (const Step& s : steps)
    for (int j = 0; j < s.arity - s.numbers; ++j) spread = spread || s.in[j] == r;
  return spread;
}

void Program::use_narrow(const std::string& name) {
  const Dtype half = out.dtype;
  if (steps.size() != 1 || compute != Dtype::f32 || (half != Dtype::bf16 && half != Dtype::f16)) return;
  Step& step = steps[0];
  for (int j = 0; j < step.arity - step.numbers; ++j) {
    const int k = step.in[j];
    if (is_number(k) || in[k].dtype != half || in[k].via != Dtype::none) return;
  }
  const TileFn fn = find_tile(name, half, step.numbers);
  if (fn == nullptr) return;
  narrow = true;
  compute = half;
  step.fn = fn;
  for (int k = 0; k < inputs; ++k)
    if (!in[k].scalar) in[k].cast = cast_fn(half, half);
  out.cast = cast_fn(half, half);
}

void Program::bind(const std::vector<int64_t>& full, const std::vector<int64_t>& out_strides,
                   const std::vector<std::vector<int64_t>>& in_strides) {
  numel = 1;
  for (int64_t s : full) numel *= s;
  if (numel == 0) return;
  // Dimensions from the innermost of the result outwards; size 1 does not matter.
  std::vector<int> order;
  for (int d = int(full.size()) - 1; d >= 0; --d)
    if (full[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return out_strides[a] < out_strides[b]; });
  ndim = 0;
  for (int d : order) {
    // Joins the previous dimension where every operand steps on evenly.
    if (ndim > 0) {
      const int p = ndim - 1;
      bool joins = out_strides[d] == out.strides[p] * shape[p];
      for (int k = 0; k < inputs && joins; ++k)
        joins = in[k].scalar || in_strides[k][d] == in[k].strides[p] * shape[p];
      if (joins) {
        shape[p] *= full[d];
        continue;
      }
    }
    shape[ndim] = full[d];
    out.strides[ndim] = out_strides[d];
    for (int k = 0; k < inputs; ++k) in[k].strides[ndim] = in[k].scalar ? 0 : in_strides[k][d];
    ++ndim;
  }
  if (ndim == 0) {
    ndim = 1;
    shape[0] = 1;
    out.strides[0] = itemsize(out.dtype);
    for (int k = 0; k < inputs; ++k) in[k].strides[0] = in[k].scalar ? 0 : itemsize(in[k].dtype);
  }
  // An input that is read across its memory wants square tiles.
  second = ndim > 1 ? 1 : -1;
  bool crosswise = false;
  for (int k = 0; k < inputs && !crosswise; ++k) {
    const int64_t item = itemsize(in[k].dtype);
    if (in[k].scalar || in[k].strides[0] == item || in[k].strides[0] == 0) continue;
    for (int d = 1; d < ndim; ++d)
      if (in[k].strides[d] == item && shape[d] >= 8) {
        second = d;
        crosswise = true;
        break;
      }
  }
  all_direct = out.dtype == compute && out.strides[0] == itemsize(compute);
  for (int k = 0; k < inputs; ++k)
    all_direct = all_direct && (in[k].scalar || (in[k].dtype == compute && in[k].via == Dtype::none &&
                                                 in[k].strides[0] == itemsize(compute)));
  const bool one_pass = all_direct && steps.size() == 1;
  bool has_scalars = false;
  for (int r = 0; r < registers; ++r) has_scalars = has_scalars || (is_number(r) && is_spread(r));
  const int64_t most = one_pass && !has_scalars ? 16384 : TILE;
  if (crosswise) {
    cols = std::min<int64_t>(shape[0], 32);
    rows = std::min<int64_t>(shape[second], TILE / cols);
  } else {
    cols = std::min(shape[0], most);
    rows = second < 0 || cols >= 128 ? 1 : std::min<int64_t>(shape[second], TILE / cols);
  }
  if (rows == 1) second = -1;
  tiles0 = (shape[0] + cols - 1) / cols;
  tiles1 = second < 0 ? 1 : (shape[second] + rows - 1) / rows;
  tiles = tiles0 * tiles1;
  for (int d = 1; d < ndim; ++d)
    if (d != second) tiles *= shape[d];
}

template <class T> static void fill(char* p, T v, int64_t n) {
  T* t = reinterpret_cast<T*>(p);
  for (int64_t i = 0; i < n; ++i) t[i] = v;
}

void Program::run(char* out_data, const char* const* in_data) const {
  if (numel == 0) return;
  auto body = [&](int64_t begin, int64_t end) { run_tiles(out_data, in_data, begin, end); };
  const int64_t per_tile = cols * rows * cost;
  if (tiles == 1 || numel * cost <= 32768) return body(0, tiles);
  parallel_for(tiles, grain_for(per_tile), body);
}

// One step on rows that every operand has dense: only addresses change from row to row.
void Program::run_rows(char* out_data, const char* const* in_data, const void* const* at, int64_t begin, int64_t end) const {
  const Step& step = steps[0];
  const int64_t item = itemsize(compute);
  int64_t t0 = begin % tiles0, rest = begin / tiles0, index[MAX_DIMS];
  char* dst = out_data;
  const char* row[MAX_INPUTS];
  for (int k = 0; k < inputs; ++k) row[k] = in_data[k];
  const auto move = [&](int d, int64_t by) {
    dst += by * out.strides[d];
    for (int k = 0; k < inputs; ++k) row[k] += by * in[k].strides[d];
  };
  for (int d = 1; d < ndim; ++d) {
    index[d] = rest % shape[d];
    rest /= shape[d];
    move(d, index[d]);
  }
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t c0 = t0 * cols;
    const void* args[8];
    for (int j = 0; j < step.arity; ++j) {
      const int k = step.in[j];
      args[j] = is_number(k) ? at[k] : row[k] + c0 * item;
    }
    step.fn(dst + c0 * item, args, std::min(cols, shape[0] - c0));
    if (++t0 < tiles0) continue;
    t0 = 0;
    for (int d = 1; d < ndim; ++d) {
      move(d, 1);
      if (++index[d] < shape[d]) break;
      move(d, -shape[d]);
      index[d] = 0;
    }
  }
}

void Program::run_tiles(char* out_data, const char* const* in_data, int64_t begin, int64_t end) const {
  const int64_t item = itemsize(compute);
  const int64_t tile_bytes = (std::min(TILE, cols * rows) * item + 127) & ~int64_t(63);
  // Registers that need memory of their own.
  Scratch<char> memory(tile_bytes * registers);
  const void* at[64];
  char* own[64];
  for (int r = 0; r < registers; ++r) own[r] = memory + r * tile_bytes;
  const int64_t most = std::min(TILE, cols * rows);
  for (int k = 0; k < inputs; ++k) {
    if (!in[k].scalar) continue;
    // A number arrives as one value of the operand's type; a single one may be wider than a tile's elements.
    const int64_t times = is_spread(k) ? most : 1;
    if (in[k].via == Dtype::none) in[k].cast(own[k], item, in_data[k], 0, times);
    else {
      alignas(16) char once[16];
      in[k].cast(once, 8, in_data[k], 0, 1);
      in[k].back(own[k], item, once, 0, times);
    }
    at[k] = own[k];
  }
  int r = inputs;
  for (double v : constants) {
    const int64_t times = is_spread(r) ? most : 1;
    if (compute == Dtype::f32 || narrow) fill(own[r], float(v), times);
    else fill(own[r], v, times);
    at[r] = own[r];
    ++r;
  }
  for (int64_t v : int_constants) {
    const int64_t times = is_spread(r) ? most : 1;
    if (compute == Dtype::i32) fill(own[r], int32_t(v), times);
    else fill(own[r], v, times);
    at[r] = own[r];
    ++r;
  }
  for (; r < registers; ++r) at[r] = own[r];

  if (all_direct && ndim == 1 && steps.size() == 1) {  // plain loops over dense memory
    const Step& step = steps[0];
    for (int64_t from = begin * cols; from < std::min(end * cols, shape[0]); from += cols) {
      const void* args[8];
      for (int j = 0; j < step.arity; ++j) {
        const int k = step.in[j];
        args[j] = is_number(k) ? at[k] : in_data[k] + from * item;
      }
      step.fn(out_data + from * item, args, std::min(cols, shape[0] - from));
    }
    return;
  }
  if (all_direct && second < 0 && steps.size() == 1) return run_rows(out_data, in_data, at, begin, end);
  // What the last tile left in the memory of a register: the same source is not copied again.
  const char* held[MAX_INPUTS] = {};
  int64_t held_cols[MAX_INPUTS], held_rows[MAX_INPUTS];
  for (int64_t tile = begin; tile < end; ++tile) {
    int64_t rest = tile;
    const int64_t t0 = rest % tiles0;
    rest /= tiles0;
    const int64_t t1 = second < 0 ? 0 : rest % tiles1;
    if (second >= 0) rest /= tiles1;
    const int64_t c0 = t0 * cols, n_cols = std::min(cols, shape[0] - c0);
    const int64_t r0 = t1 * rows, n_rows = second < 0 ? 1 : std::min(rows, shape[second] - r0);
    int64_t index[MAX_DIMS];
    for (int d = 1; d < ndim; ++d) {
      if (d == second) {
        index[d] = r0;
        continue;
      }
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    auto offset = [&](const Operand& o) {
      int64_t at = c0 * o.strides[0];
      for (int d = 1; d < ndim; ++d) at += index[d] * o.strides[d];
      return at;
    };
    const int64_t n = n_cols * n_rows;
    auto dense = [&](const Operand& o) {
      return o.dtype == compute && o.strides[0] == item &&
             (n_rows == 1 || o.strides[second] == n_cols * item);
    };
    // One step whose rows lie dense: row by row, rather than by copies of what is not read across its memory.
    const bool by_rows = steps.size() == 1 && n_rows > 1 && n_cols >= 16 && out.dtype == compute && out.strides[0] == item &&
                         out.strides[second] != n_cols * item;
    int64_t step_on[MAX_INPUTS];
    for (int k = 0; k < inputs; ++k) {
      const Operand& o = in[k];
      if (o.scalar) continue;
      const char* src = in_data[k] + offset(o);
      if (o.via == Dtype::none && (by_rows ? o.dtype == compute && o.strides[0] == item : dense(o))) {
        at[k] = src;
        step_on[k] = n_rows == 1 ? 0 : o.strides[second];
        continue;
      }
      step_on[k] = n_cols * item;
      at[k] = own[k];
      if (held[k] == src && held_cols[k] == n_cols && held_rows[k] >= n_rows) continue;
      held[k] = src, held_cols[k] = n_cols, held_rows[k] = n_rows;
      const int64_t s_row = second < 0 ? 0 : o.strides[second];
      if (o.via == Dtype::none) {
        cast_block(o.cast, itemsize(o.dtype), item, own[k], n_cols * item, item, src, s_row, o.strides[0], n_rows, n_cols);
      } else {
        const int64_t half = itemsize(o.via);
        alignas(64) char narrow[TILE * 8];
        cast_block(o.cast, itemsize(o.dtype), half, narrow, n_cols * half, half, src, s_row, o.strides[0], n_rows, n_cols);
        o.back(own[k], item, narrow, half, n);
      }
    }
    char* dst = out_data + offset(out);
    if (by_rows) {
      const Step& step = steps[0];
      for (int64_t row = 0; row < n_rows; ++row) {
        const void* args[8];
        for (int j = 0; j < step.arity; ++j) {
          const int k = step.in[j];
          args[j] = static_cast<const char*>(at[k]) + (is_number(k) ? 0 : row * step_on[k]);
        }
        step.fn(dst + row * out.strides[second], args, n_cols);
      }
      continue;
    }
    const bool direct = dense(out);
    for (size_t s = 0; s < steps.size(); ++s) {
      const Step& step = steps[s];
      const void* args[8];
      for (int j = 0; j < step.arity; ++j) args[j] = at[step.in[j]];
      const bool last = s + 1 == steps.size();
      void* to = last && direct ? dst : own[step.out];
      step.fn(to, args, n);
      at[step.out] = to;
    }
    if (steps.empty() || !direct) {
      const int64_t d_row = second < 0 ? 0 : out.strides[second];
      const char* value = static_cast<const char*>(at[result]);
      // Along the result's memory: its rows are the inner dimension by construction.
      for (int64_t row = 0; row < n_rows; ++row)
        out.cast(dst + row * d_row, out.strides[0], value + row * n_cols * item, item, n_cols);
    }
  }
}

}  // namespace vt
