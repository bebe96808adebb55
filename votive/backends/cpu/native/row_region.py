"""Regions with reductions of rows as loops that a C++ compiler makes while the program runs.

A row is gone through once for all reductions that need nothing but operands, once more for those that need these, and
so on, and a last time for results. Numbers that cost much are kept from one time to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ....formula.expr import Expr, substitute, var, variables
from ...base import Bound, Request, add_row
from . import jit, region
from .loader import module
from .program import _COST, _plain
from .region import _TYPES, _known_ops, _loop, _order, _statements
from .rows import NativeRow, Out, _entry

_DEAR = 8  # of the costs of primitives: worth a place in memory
_KEPT = 4  # arrays of a row's length
_LONGEST = 8192
_PRELUDE = (
    region._PRELUDE
    + """
namespace {

// Sixteen sums side by side, then wide: the error does not grow with the row.
template <class T> double sum_of(const T* v, int64_t n) {
  T part[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int l = 0; l < 16; ++l) part[l] += v[i + l];
  double total = 0;
  for (; i < n; ++i) total += double(v[i]);
  for (int l = 0; l < 16; ++l) total += double(part[l]);
  return total;
}

// NaN is larger and smaller than anything.
template <class T, bool LARGEST> T extreme_of(const T* v, int64_t n, T best) {
  typedef T V __attribute__((vector_size(64)));
  constexpr int W = 64 / sizeof(T);
  V part = best - V{};
  auto odd = part != part;
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    V x;
    std::memcpy(&x, v + i, sizeof x);
    odd |= x != x;
    part = (LARGEST ? x > part : x < part) ? x : part;
  }
  for (int l = 0; l < W; ++l) {
    if (odd[l]) return std::numeric_limits<T>::quiet_NaN();
    best = (LARGEST ? part[l] > best : part[l] < best) ? part[l] : best;
  }
  for (; i < n; ++i) best = (LARGEST ? v[i] > best : v[i] < best) || v[i] != v[i] ? v[i] : best;
  return best;
}

}  // namespace
"""
)


def _levels(region: Any) -> list[list[tuple[str, str, Expr]]]:
    """Reductions by how many others they wait for."""
    level: dict[str, int] = {}
    found: list[list[tuple[str, str, Expr]]] = []
    for r in region.reductions:
        at = 1 + max([level[v] for v in variables(r[2]) if v in level], default=-1)
        level[r[0]] = at
        while len(found) <= at:
            found.append([])
        found[at].append(r)
    return found


def _kept(bodies: list[list[Expr]]) -> list[Expr]:
    """What several times through a row need and cost much."""
    seen: dict[int, int] = {}
    found: dict[int, Expr] = {}
    for some in bodies:
        for e in _order(some):
            seen[e.id] = seen.get(e.id, 0) + 1
            if seen[e.id] > 1 and _COST.get(e.op, 1) >= _DEAR:
                found[e.id] = e
    return list(found.values())[:_KEPT]


def _hidden(region: Any) -> bool:
    """Whether a result is added that has one element for each row: without any, the kernel would join rows."""
    return not any(region.rows)


class _Text:
    """Writes the function of one region."""

    def __init__(self, region: Any) -> None:
        self.region = region
        self.T = _TYPES[region.compute]
        self.lines: list[str] = [
            f"  using T = {self.T};",
            f"  using Flag = {'int64_t' if self.T == 'double' else 'int32_t'};",
        ]
        self.at = len(region.outs) + _hidden(region)  # `like` comes first, then results: operands begin behind them
        levels = _levels(region)
        full = [b for b, row in zip(region.bodies, region.rows, strict=True) if not row]
        self.times = [[r[2] for r in level] for level in levels] + ([full] if full else [])
        self.kept = _kept(self.times) if region.shape[-1] <= _LONGEST else []
        self.stored: set[int] = set()
        self._buffers()
        for p, level in enumerate(levels):
            self._reduce(p, level)
        if full:
            self._write([k for k, row in enumerate(region.rows) if not row], full)
        self._row_results()

    def _operand(self, i: int) -> int:
        return 1 + self.at + i

    def _buffers(self) -> None:
        region = self.region
        for i, role in enumerate(region.roles):
            k = self._operand(i)
            self.lines.append(f"  alignas(64) T buffer{k}[TILE];")
            self.lines.append(
                f"  if (strides[{k}] == 0) gather<T, {_TYPES[role[0]]}>(buffer{k}, at[{k}], 0, n < TILE ? n : TILE);"
            )
        for j in range(len(self.kept)):
            self.lines.append(f"  alignas(64) T kept{j}[{region.shape[-1]}];")
        widest = max([len(t) for t in self.times], default=1)
        for k in range(max(widest, len(region.outs))):
            self.lines.append(f"  alignas(64) T work{k}[TILE];")

    def _time(self, bodies: list[Expr], results: list[int] | None = None) -> list[str]:
        """Go through the row once, up to the end of the loop over tiles. Bodies are computed to results of the region
        with these numbers, or to arrays whose names are given back.
        """
        lines = self.lines
        known = {e: var(f"kept{j}") for j, e in enumerate(self.kept) if j in self.stored}
        bodies = [substitute(b, known) for b in bodies]
        within = {e.id for e in _order(bodies)}
        new = [j for j, e in enumerate(self.kept) if j not in self.stored and e.id in within]
        lines.append("  for (int64_t begin = 0; begin < n; begin += TILE) {")
        lines.append("    const int64_t m = n - begin < TILE ? n - begin : TILE;")
        read = self._reads(set().union(*map(variables, bodies)))
        computed: list[Expr] = []
        found: list[str] = []
        for w, body in enumerate(bodies):
            there = self._there(body, new) if results is None else ""
            found.append(there or f"work{w}")
            if not there:
                to = f"work{w}" if results is None else self._result(w, results[w])
                lines.append(f"    T* __restrict o{len(computed)} = {to};")
                computed.append(body)
        for j in new:
            lines.append(f"    T* __restrict o{len(computed)} = kept{j} + begin;")
            computed.append(self.kept[j])
        if computed:
            self._compute(read, tuple(computed))
        self.stored.update(new)
        return found

    def _there(self, body: Expr, new: list[int]) -> str:
        """The array that holds a body without computing, or that it is computed to in any case."""
        body = _plain(body)
        params, kept = self.region.params, [f"kept{j}" for j in range(len(self.kept))]
        if body.op == "var" and body.value in params:
            return f"a{params.index(body.value)}"
        if body.op == "var" and body.value in kept:
            return f"c{kept.index(body.value)}"
        return next((f"kept{j} + begin" for j in new if self.kept[j] is body), "")

    def _reads(self, used: set[str]) -> list[str]:
        """Statements that read the elements of a tile."""
        region, read = self.region, []
        for i, (param, role) in enumerate(zip(region.params, region.roles, strict=True)):
            if param not in used:
                continue
            k, s = self._operand(i), _TYPES[role[0]]
            direct, condition = f"buffer{k}", f"strides[{k}] != 0"
            if s == self.T:
                direct = f"strides[{k}] == sizeof(T) ? reinterpret_cast<const T*>(at[{k}]) + begin : buffer{k}"
                condition += f" && strides[{k}] != sizeof(T)"
            gather = f"gather<T, {s}>(buffer{k}, at[{k}] + begin * strides[{k}], strides[{k}], m);"
            self.lines += [f"    if ({condition}) {gather}", f"    const T* __restrict a{i} = {direct};"]
            read.append(f"const T x{i} = a{i}[i];")
        for j in range(len(self.kept)):
            if f"kept{j}" in used:
                self.lines.append(f"    const T* __restrict c{j} = kept{j} + begin;")
                read.append(f"const T k{j} = c{j}[i];")
        return read

    def _result(self, w: int, k: int) -> str:
        if _TYPES[self.region.outs[k].dtype] != self.T:
            return f"work{w}"
        return f"strides[{1 + k}] == sizeof(T) ? reinterpret_cast<T*>(at[{1 + k}]) + begin : work{w}"

    def _compute(self, read: list[str], bodies: tuple[Expr, ...]) -> None:
        operands = {param: f"x{i}" for i, param in enumerate(self.region.params)}
        operands |= {name: name for name, _, _ in self.region.reductions}
        operands |= {f"kept{j}": f"k{j}" for j in range(len(self.kept))}
        near, results, angles = _statements(bodies, operands, True)
        far, exact, _ = _statements(bodies, operands, False)
        if angles:
            self.lines.append("    Flag far = 0;")
        self.lines += _loop(read, near, results)
        if angles:
            self.lines += ["    if (far) {", *_loop(read, far, exact, plain=True), "    }"]

    def _write(self, results: list[int], bodies: list[Expr]) -> None:
        """The last time through a row."""
        self._time(bodies, results)
        for w, k in enumerate(results):
            s = _TYPES[self.region.outs[k].dtype]
            condition = f"if (strides[{1 + k}] != sizeof(T)) " if s == self.T else ""
            to = f"at[{1 + k}] + begin * strides[{1 + k}], strides[{1 + k}]"
            self.lines.append(f"    {condition}scatter<T, {s}>({to}, work{w}, m);")
        self.lines.append("  }")

    def _reduce(self, p: int, level: list[tuple[str, str, Expr]]) -> None:
        limit = "std::numeric_limits<T>::infinity()"
        for w, (_, kind, _) in enumerate(level):
            start = {"amax": f"T all{p}_{w} = -{limit};", "amin": f"T all{p}_{w} = {limit};"}
            self.lines.append("  " + start.get(kind, f"double all{p}_{w} = 0;"))
        found = self._time([r[2] for r in level])
        for w, (_, kind, _) in enumerate(level):
            name = f"all{p}_{w}"
            extreme = f"{name} = extreme_of<T, {'true' if kind == 'amax' else 'false'}>({found[w]}, m, {name});"
            self.lines.append(
                f"    {name} += sum_of<T>({found[w]}, m);" if kind in ("sum", "mean") else f"    {extreme}"
            )
        self.lines.append("  }")
        for w, (name, kind, _) in enumerate(level):
            self.lines.append(f"  const T {name} = T(all{p}_{w}{' / double(n)' if kind == 'mean' else ''});")

    def _row_results(self) -> None:
        region = self.region
        rows = [k for k, row in enumerate(region.rows) if row]
        if not rows:
            return
        operands = {p: f"buffer{self._operand(i)}[0]" for i, p in enumerate(region.params)}
        operands |= {name: name for name, _, _ in region.reductions}
        lines, results, _ = _statements(tuple([region.bodies[k] for k in rows]), operands, False)
        self.lines += [f"  {line}" for line in lines]
        for k, r in zip(rows, results, strict=True):
            self.lines.append(f"  const T row{k} = {r};")
            self.lines.append(f"  scatter<T, {_TYPES[region.outs[k].dtype]}>(at[{1 + k}], 0, &row{k}, 1);")


def text_of(rows: Any) -> tuple[str, str] | None:
    """(name, definition) of the C function for the rows of a region; None when something is missing."""
    bodies = (*rows.bodies, *(r[2] for r in rows.reductions))
    if any(have not in _TYPES for have, _, _ in rows.roles) or any(o.dtype not in _TYPES for o in rows.outs):
        return None
    if len(rows.roles) + len(rows.outs) > 60 or len(rows.shape) > 30 or not _known_ops(bodies):
        return None
    import hashlib

    body = "\n".join(_Text(rows).lines)
    name = "rows_" + hashlib.sha256(body.encode()).hexdigest()[:20]
    head = f"// {', '.join(rows.covers)}\n" if rows.covers else ""
    return name, f'{head}extern "C" void {name}(char* const* at, const int64_t* strides, int64_t n) {{\n{body}\n}}\n'


def _any_text(made: Any) -> tuple[str, str] | None:
    return text_of(made) if hasattr(made, "reductions") else region.text_of(made)


def prepare(regions: list[Any]) -> None:
    """Compile the loops of several regions at once, of those with reductions and those without."""
    found = [t for t in map(_any_text, regions) if t is not None]
    reduces = any(hasattr(r, "reductions") for r in regions)
    jit.functions(dict(found), _PRELUDE if reduces else region._PRELUDE)


def source(made: Any) -> str | None:
    """The C++ text of a region, for readers."""
    found = _any_text(made)
    return None if found is None or jit.compiler() is None else found[1]


@dataclass(frozen=True, kw_only=True)
class RowsRow(NativeRow):
    """Rows by a function of their own. The kernel sees results with a last dimension of one, whatever becomes of it."""

    def bind(self, request: Request) -> Bound | None:
        rows, (like, *_) = request.args[2], request.specs
        found = text_of(rows) if like.contiguous else None
        address = jit.functions(dict([found]), _PRELUDE).get(found[0]) if found is not None else None
        if address is None:
            return None
        bodies = (*rows.bodies, *(r[2] for r in rows.reductions))
        cost = max(1, sum(_COST.get(e.op, 1) for e in _order(bodies)))
        kept = (*rows.shape[:-1], 1)
        outs = [o.like(kept) if row else o for o, row in zip(rows.outs, rows.rows, strict=True)]
        outs += [like.like(kept)] * _hidden(rows)
        args = [*map(Out, range(len(outs))), address, cost]
        entries = [("slot", 0), *map(_entry, args[:-2]), ("slot", 1), *map(_entry, args[-2:])]
        launch = module.Launch(self.kernel, tuple(entries), tuple(outs))

        def run(*values: Any) -> tuple[Any, ...]:
            made = launch(*values)
            pairs = zip(made, rows.outs, strict=False)  # a result for the kernel alone comes last
            return tuple([(st, x if s is o else x.reshape(o.shape), o) for (st, x, s), o in pairs])

        return Bound(run)


if module is not None and module.has_kernel("region"):
    add_row(RowsRow(op="_row_region", device="cpu", fn=text_of, priority=10, kernel="region"))
