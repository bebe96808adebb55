// The engine of reductions: orders the dimensions, cuts the work into pieces, joins their results.
#include "vt/reduce.h"

#include <algorithm>
#include <cmath>

#include "vt/parallel.h"
#include "vt/scratch.h"

namespace vt {

std::vector<ReduceDim> reduce_dims(const View& x, uint64_t mask, const View& out, const View& out1) {
  std::vector<ReduceDim> dims;
  dims.reserve(size_t(x.ndim));
  int64_t logical = 1;
  for (int d = x.ndim - 1; d >= 0; --d)
    if (mask >> d & 1) logical *= x.shape[d];
  const bool keep = out.ndim == x.ndim;
  int k = 0;
  for (int d = 0; d < x.ndim; ++d) {
    ReduceDim dim{};
    dim.n = x.shape[d];
    dim.in[0] = x.strides[d];
    dim.reduced = mask >> d & 1;
    if (dim.reduced) {
      if (dim.n > 0) logical /= dim.n;
      dim.logical = logical;
    } else {
      dim.out[0] = out.strides[keep ? d : k];
      if (out1) dim.out[1] = out1.strides[keep ? d : k];
      ++k;
    }
    dims.push_back(dim);
  }
  return dims;
}

ArraySource::ArraySource(const char* data, Dtype have, Dtype want)
    : data(data), have(have), want(want), cast(cast_fn(have, want)) {}

void ArraySource::arrange(const std::vector<ReduceDim>& dims, int second) {
  col = dims[0].in[0];
  row = second < 0 ? 0 : dims[second].in[0];
  dense = have == want && (col == itemsize(have) || dims[0].n == 1);
}

void ArraySource::load(char* memory, int64_t, const int64_t* at, Tile& t) const {
  const char* src = data + at[0];
  const int64_t item = itemsize(want);
  if (dense) {
    t.data = src;
    t.row = row / item;
    return;
  }
  cast_block(cast, itemsize(have), item, memory, t.cols * item, item, src, row, col, t.rows, t.cols);
  t.data = memory;
  t.row = t.cols;
}

FormulaSource::FormulaSource(const Program& p, const char* const* in) : p(p), in(in) {
  inputs = p.inputs;
  cost = p.cost;
}

void FormulaSource::arrange(const std::vector<ReduceDim>& dims, int second) {
  for (int k = 0; k < p.inputs; ++k) {
    col[k] = dims[0].in[k];
    row[k] = second < 0 ? 0 : dims[second].in[k];
  }
}

// A register for each input, constant and step, then room for inputs that are rounded on their way.
int64_t FormulaSource::memory(int64_t elements) const {
  return stride(elements) * p.registers + 8 * elements + 64;
}

template <class T> static void fill(char* to, T v, int64_t n) {
  T* t = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) t[i] = v;
}

void FormulaSource::begin(char* memory, int64_t elements) const {
  const int64_t item = itemsize(p.compute), step = stride(elements);
  for (int k = 0; k < p.inputs; ++k) {
    if (!p.in[k].scalar) continue;
    char* own = memory + k * step;
    if (p.in[k].via == Dtype::none) p.in[k].cast(own, item, in[k], 0, elements);
    else {
      alignas(16) char once[16];
      p.in[k].cast(once, 8, in[k], 0, 1);
      p.in[k].back(own, item, once, 0, elements);
    }
  }
  char* own = memory + p.inputs * step;
  for (double v : p.constants) {
    p.compute == Dtype::f32 ? fill(own, float(v), elements) : fill(own, v, elements);
    own += step;
  }
  for (int64_t v : p.int_constants) {
    p.compute == Dtype::i32 ? fill(own, int32_t(v), elements) : fill(own, v, elements);
    own += step;
  }
}

void FormulaSource::load(char* memory, int64_t elements, const int64_t* at, Tile& t) const {
  const int64_t item = itemsize(p.compute), step = stride(elements), n = t.rows * t.cols;
  const void* value[64];
  for (int r = 0; r < p.registers; ++r) value[r] = memory + r * step;
  for (int k = 0; k < p.inputs; ++k) {
    const Operand& o = p.in[k];
    if (o.scalar) continue;
    const char* src = in[k] + at[k];
    if (o.via == Dtype::none && o.dtype == p.compute && (col[k] == item || t.cols == 1) &&
        (t.rows == 1 || row[k] == t.cols * item)) {
      value[k] = src;
      continue;
    }
    char* own = memory + k * step;
    if (o.via == Dtype::none) {
      cast_block(o.cast, itemsize(o.dtype), item, own, t.cols * item, item, src, row[k], col[k], t.rows, t.cols);
    } else {
      char* narrow = memory + p.registers * step;
      const int64_t half = itemsize(o.via);
      cast_block(o.cast, itemsize(o.dtype), half, narrow, t.cols * half, half, src, row[k], col[k], t.rows, t.cols);
      o.back(own, item, narrow, half, n);
    }
  }
  for (const Step& s : p.steps) {
    const void* args[8];
    for (int j = 0; j < s.arity; ++j) args[j] = value[s.in[j]];
    s.fn(memory + s.out * step, args, n);
  }
  t.data = value[p.result];
  t.row = t.cols;
}

void StoreValue::operator()(void* a, int64_t n, char* const* out, const int64_t* stride) const {
  if (acc == Dtype::f64) {
    double* v = static_cast<double*>(a);
    if (divisor != 1)
      for (int64_t i = 0; i < n; ++i) v[i] /= divisor;
    if (power == 0.5)
      for (int64_t i = 0; i < n; ++i) v[i] = std::sqrt(v[i]);
    else if (power != 1)
      for (int64_t i = 0; i < n; ++i) v[i] = std::pow(v[i], power);
  }
  cast(out[0], stride[0], static_cast<const char*>(a), itemsize(acc), n);
}

namespace {

// A run of dimensions as one index, decoded by division.
struct Counter {
  std::vector<int> dims;
  int64_t n = 1;
  void add(const std::vector<ReduceDim>& all, int d) {
    dims.push_back(d);
    n *= all[d].n;
  }
  template <class F> void at(const std::vector<ReduceDim>& all, int64_t index, F&& f) const {
    for (int d : dims) {
      const int64_t i = index % all[d].n;
      index /= all[d].n;
      if (i != 0) f(all[d], i);
    }
  }
};

// Innermost in memory first; neighbours of one kind that step on evenly become one dimension. In which order elements
// are reduced matters only where places are looked at.
std::vector<ReduceDim> ordered(std::vector<ReduceDim> dims, int inputs, bool indexed) {
  std::erase_if(dims, [](const ReduceDim& d) { return d.n == 1; });
  auto span = [&](const ReduceDim& d) {
    int64_t s = 0;
    for (int k = 0; k < inputs; ++k) s += d.in[k];
    return s;
  };
  std::reverse(dims.begin(), dims.end());
  // Few and mostly in order: by insertion.
  for (size_t i = 1; i < dims.size(); ++i)
    for (size_t j = i; j > 0 && span(dims[j]) < span(dims[j - 1]); --j) std::swap(dims[j], dims[j - 1]);
  std::vector<ReduceDim> out;
  out.reserve(dims.size() + 2);
  for (const ReduceDim& d : dims) {
    if (!out.empty()) {
      ReduceDim& p = out.back();
      bool joins = p.reduced == d.reduced;
      for (int k = 0; k < inputs && joins; ++k) joins = d.in[k] == p.in[k] * p.n;
      if (joins) joins = d.reduced ? !indexed || d.logical == p.logical * p.n
                                   : d.out[0] == p.out[0] * p.n && d.out[1] == p.out[1] * p.n;
      if (joins) {
        p.n *= d.n;
        continue;
      }
    }
    out.push_back(d);
  }
  return out;
}

}  // namespace

namespace {

// Where rows or blocks are so small that vectors would be empty, a long kept dimension is put first: its results are
// made side by side, from elements that are gathered. Gives whether it was.
bool side_by_side(std::vector<ReduceDim>& dims) {
  int longest = -1, reduced = -1;
  for (int d = 1; d < int(dims.size()); ++d) {
    if (!dims[d].reduced && (longest < 0 || dims[d].n > dims[longest].n)) longest = d;
    if (dims[d].reduced && reduced < 0) reduced = d;
  }
  if (longest < 0 || dims[longest].n < 32) return false;
  const int64_t n = dims[0].n;
  const bool short_rows = dims[0].reduced && n < 8;
  const bool small_blocks = !dims[0].reduced && n < 16 && reduced == 1 && n * dims[1].n < 256 && longest > 1;
  if (!short_rows && !small_blocks) return false;
  std::rotate(dims.begin(), dims.begin() + longest, dims.begin() + longest + 1);
  return true;
}

}  // namespace

void reduce(std::vector<ReduceDim> given, Source& source, const Reducer& reducer, const Store& store,
            char* const* out) {
  int64_t outputs = 1, inside = 1;
  for (const ReduceDim& d : given) (d.reduced ? inside : outputs) *= d.n;
  if (outputs == 0) return;
  const int inputs = source.inputs;
  // Nothing to reduce: every result is that of no elements.
  if (inside == 0) std::erase_if(given, [](const ReduceDim& d) { return d.reduced; });
  std::vector<ReduceDim> dims = ordered(std::move(given), inputs, reducer.indexed);
  // Some reduced dimension there always is.
  if (std::none_of(dims.begin(), dims.end(), [](const ReduceDim& d) { return d.reduced; })) {
    ReduceDim one{};
    one.n = 1;
    one.reduced = true;
    if (dims.empty()) {
      for (int k = 0; k < inputs; ++k) one.in[k] = itemsize(reducer.compute);
      dims.push_back(one);
    } else dims.insert(dims.begin() + 1, one);
  }
  const bool gathered = side_by_side(dims);
  const bool inner = dims[0].reduced;
  const int64_t SMALL = 256;  // columns of a tile that is made for columns
  const int64_t LONG = 4096;  // a row that is a task of its own
  // The dimension along which a tile has rows.
  int second = -1;
  if (!inner) {
    for (int d = int(dims.size()) - 1; d > 0; --d)
      if (dims[d].reduced) second = d;
  } else if (dims.size() > 1 && dims[0].n <= LONG) second = 1;
  // Few columns that follow each other in memory from row to row: several rows make one.
  int64_t folded = 1, rest_rows = 0;
  if (!inner && !gathered && !reducer.indexed && dims[0].n < 32 && dims[second].n >= 64) {
    bool follows = true;
    for (int k = 0; k < inputs && follows; ++k) follows = dims[second].in[k] == dims[0].in[k] * dims[0].n;
    if (follows) {
      // Not so many that hardly a row is left.
      folded = std::min(COLUMNS / dims[0].n, dims[second].n / 16);
      rest_rows = dims[second].n % folded;
      for (int k = 0; k < inputs; ++k) dims[second].in[k] *= folded;
      dims[second].n /= folded;
    }
  }
  source.arrange(dims, second);
  const ReduceDim& first = dims[0];
  const bool direct = source.direct();
  const int64_t TILE_MOST = 2048;

  // What a tile is: cols x rows.
  int64_t cols, rows = 1;
  if (inner) {
    const int64_t most = direct ? 32768 : TILE_MOST;
    cols = std::min(first.n, most);
    if (second >= 0) rows = std::min(dims[second].n, std::max<int64_t>(1, most / cols));
  } else {
    cols = std::min<int64_t>(first.n * folded, direct || folded > 1 ? COLUMNS : SMALL);
    rows = std::min<int64_t>(dims[second].n, direct ? ROWS : std::max<int64_t>(1, TILE_MOST / cols));
  }
  const bool strip_second = inner && second >= 0 && !dims[second].reduced;  // rows are results
  const bool split_second = second >= 0 && !strip_second;                   // rows are reduced
  const int64_t row_count = second < 0 ? 1 : dims[second].n;
  const int64_t row_strips = (row_count + rows - 1) / rows;
  const int64_t col_strips = inner ? (first.n + cols - 1) / cols : folded > 1 ? 1 : (first.n + cols - 1) / cols;

  Counter kept, reduced;
  for (int d = 1; d < int(dims.size()); ++d)
    if (d != second) (dims[d].reduced ? reduced : kept).add(dims, d);
  // Results are made strip by strip; each strip needs `units` tiles.
  const int64_t strips = kept.n * (strip_second ? row_strips : 1) * (inner ? 1 : col_strips);
  const int64_t extra = rest_rows > 0 ? 1 : 0;
  const int64_t tiles_per = (inner ? col_strips : 1) * (split_second ? row_strips : 1);
  const int64_t units = inside == 0 ? 0 : reduced.n * (tiles_per + extra);
  const int64_t width = strip_second ? rows : inner ? 1 : cols;  // accumulators of a strip
  const int64_t total = outputs * std::max<int64_t>(inside, 1);
  // Strips that are too few for the threads are cut, the same way for any number of threads.
  int64_t cuts = 1;
  if (strips < 32 && total * source.cost > 65536)
    cuts = std::max<int64_t>(1, std::min({units, (32 + strips - 1) / strips, total * source.cost / 16384}));
  const int64_t elements = cols * rows;
  const int64_t memory_bytes = (source.memory(elements) + 63) & ~int64_t(63);
  const int64_t acc_bytes = (width * reducer.bytes + 63) & ~int64_t(63);

  auto strip_place = [&](int64_t strip, int64_t* at, int64_t* where, int64_t& r0, int64_t& n_rows,
                         int64_t& c0, int64_t& n_cols) {
    r0 = 0, n_rows = rows, c0 = 0, n_cols = cols;
    for (int k = 0; k < inputs; ++k) at[k] = 0;
    where[0] = where[1] = 0;
    auto shift = [&](const ReduceDim& d, int64_t i) {
      for (int k = 0; k < inputs; ++k) at[k] += i * d.in[k];
      where[0] += i * d.out[0];
      where[1] += i * d.out[1];
    };
    if (strip_second) {
      r0 = strip % row_strips * rows;
      strip /= row_strips;
      n_rows = std::min(rows, row_count - r0);
      shift(dims[second], r0);
    }
    if (!inner && folded == 1) {
      // What is gathered from the same lines of memory follows each other.
      c0 = (gathered ? strip / kept.n : strip % col_strips) * cols;
      strip = gathered ? strip % kept.n : strip / col_strips;
      n_cols = std::min(cols, first.n - c0);
      shift(first, c0);
    }
    kept.at(dims, strip, shift);
  };

  auto run = [&](int64_t strip, int64_t u0, int64_t u1, char* acc, char* memory) {
    int64_t start[MAX_INPUTS], at[MAX_INPUTS], where[2], r0, n_rows, c0, n_cols;
    strip_place(strip, start, where, r0, n_rows, c0, n_cols);
    for (int64_t u = u0; u < u1; ++u) {
      int64_t index = u;
      Tile t{nullptr, 0, n_rows, n_cols, 0, 0, 0};
      for (int k = 0; k < inputs; ++k) at[k] = start[k];
      auto shift = [&](const ReduceDim& d, int64_t i) {
        for (int k = 0; k < inputs; ++k) at[k] += i * d.in[k];
        t.base += i * d.logical;
      };
      int64_t piece = index % (tiles_per + extra);
      index /= tiles_per + extra;
      if (piece == tiles_per) {  // the rows left over from folding
        shift(dims[second], dims[second].n);
        t.rows = 1;
        t.cols = rest_rows * first.n;
      } else {
        if (inner) {
          const int64_t c = piece % col_strips * cols;
          piece /= col_strips;
          t.cols = std::min(cols, first.n - c);
          if (c != 0) shift(first, c);
        }
        if (split_second) {
          t.rows = std::min(rows, row_count - piece * rows);
          if (piece != 0) shift(dims[second], piece * rows);
        }
      }
      reduced.at(dims, index, shift);
      if (inner) t.base_col = first.logical;
      if (split_second) t.base_row = dims[second].logical;
      source.load(memory, elements, at, t);
      if (inner) reducer.rows(acc, strip_second ? 1 : 0, t);
      else reducer.cols(acc, t);
    }
  };

  auto deliver = [&](int64_t strip, char* acc) {
    int64_t at[MAX_INPUTS], where[2], r0, n_rows, c0, n_cols;
    strip_place(strip, at, where, r0, n_rows, c0, n_cols);
    int64_t n = strip_second ? n_rows : inner ? 1 : n_cols;
    const ReduceDim* along = strip_second ? &dims[second] : inner ? nullptr : &first;
    if (folded > 1) {
      n = first.n;
      for (int64_t i = 1; i < folded; ++i) reducer.merge(acc, acc + i * n * reducer.bytes, n);
    }
    char* to[2] = {out[0] + where[0], out[1] == nullptr ? nullptr : out[1] + where[1]};
    const int64_t item = 8;
    const int64_t steps[2] = {along ? along->out[0] : item, along ? along->out[1] : item};
    store(acc, n, to, steps);
  };

  const int64_t work = std::max<int64_t>(1, total * source.cost / (strips * cuts));
  const bool serial = total * source.cost <= 65536;
  if (cuts == 1) {
    auto body = [&](int64_t begin, int64_t end) {
      Scratch<char> memory(memory_bytes + acc_bytes);
      char* acc = memory + memory_bytes;
      source.begin(memory, elements);
      for (int64_t strip = begin; strip < end; ++strip) {
        reducer.init(acc, width);
        run(strip, 0, units, acc, memory);
        deliver(strip, acc);
      }
    };
    if (serial) body(0, strips);
    else parallel_for(strips, grain_for(work), body);
    return;
  }
  Scratch<char> parts(strips * cuts * acc_bytes);
  char* parts_data = parts;
  auto body = [&](int64_t begin, int64_t end) {
    Scratch<char> memory(memory_bytes + 64);
    source.begin(memory, elements);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t strip = task / cuts, cut = task % cuts;
      char* acc = parts_data + task * acc_bytes;
      reducer.init(acc, width);
      run(strip, units * cut / cuts, units * (cut + 1) / cuts, acc, memory);
    }
  };
  parallel_for(strips * cuts, grain_for(work), body);
  for (int64_t strip = 0; strip < strips; ++strip) {
    char* acc = parts_data + strip * cuts * acc_bytes;
    for (int64_t cut = 1; cut < cuts; ++cut) reducer.merge(acc, acc + cut * acc_bytes, width);
    deliver(strip, acc);
  }
}

}  // namespace vt
