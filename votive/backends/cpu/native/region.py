"""Regions of elementwise calls as loops that a C++ compiler makes while the program runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ....core import dtype as dt
from ....formula.expr import Expr
from ....formula.printers import C_INFIX
from ...common.slot import Slot
from . import jit
from .program import _COST, FLOAT, _plain
from .rows import Out, native

_TILE = 512
_LOGIC = {"logical_and": "&&", "logical_or": "||", "logical_xor": "!="}
_TRIGONOMETRIC = ("sin", "cos", "tan")
_TYPES = {dt.float32: "float", dt.float64: "double", dt.bfloat16: "vt::bf16", dt.float16: "vt::f16", dt.bool_: "bool"}
_PRELUDE = """#include <cstring>
#include "vt/halves.h"
#include "vt/primitives.h"

namespace {

constexpr int64_t TILE = 512;

// n elements of a line as computed with, at `to`.
template <class T, class S> void gather(T* to, const char* from, int64_t stride, int64_t n) {
  if constexpr (std::is_same_v<S, vt::bf16> || std::is_same_v<S, vt::f16>) {
    if (stride == 2 && std::is_same_v<T, float>) {
      constexpr int W = vt::WIDTH<float>;
      const S* p = reinterpret_cast<const S*>(from);
      int64_t i = 0;
      for (; i + W <= n; i += W) vt::store<float>(reinterpret_cast<float*>(to) + i, vt::load_half<S>(p + i));
      for (; i < n; ++i) to[i] = T(vt::to_float(p[i]));
      return;
    }
    for (int64_t i = 0; i < n; ++i) to[i] = T(vt::to_float(*reinterpret_cast<const S*>(from + i * stride)));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = T(*reinterpret_cast<const S*>(from + i * stride));
  }
}

template <class S, class T> S narrowed(T v) {
  if constexpr (std::is_same_v<S, vt::bf16>) return vt::to_bf16(float(v));
  else if constexpr (std::is_same_v<S, vt::f16>) return vt::to_f16(float(v));
  else return S(v);
}

template <class T, class S> void scatter(char* to, int64_t stride, const T* from, int64_t n) {
  if constexpr (std::is_same_v<S, vt::bf16> || std::is_same_v<S, vt::f16>) {
    if (stride == 2 && std::is_same_v<T, float>) {
      constexpr int W = vt::WIDTH<float>;
      S* p = reinterpret_cast<S*>(to);
      int64_t i = 0;
      for (; i + W <= n; i += W) vt::store_half<S>(p + i, vt::load<float>(reinterpret_cast<const float*>(from) + i));
      for (; i < n; ++i) p[i] = narrowed<S>(from[i]);
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) *reinterpret_cast<S*>(to + i * stride) = narrowed<S>(from[i]);
}

}  // namespace
"""


def _order(bodies: Iterable[Expr]) -> list[Expr]:
    """Every expression of several formulas, arguments first, each once."""
    seen: set[int] = set()
    found: list[Expr] = []
    stack = [(b, False) for b in bodies]
    while stack:
        e, ready = stack.pop()
        e = _plain(e)
        if e.id in seen:
            continue
        if ready:
            seen.add(e.id)
            found.append(e)
        else:
            stack.append((e, True))
            stack.extend((a, False) for a in e.args)
    return found


def _number(v: Any) -> str:
    if isinstance(v, bool):
        return "true" if v else "false"
    if math.isnan(v):
        return "std::numeric_limits<T>::quiet_NaN()"
    if math.isinf(v):
        return ("-" if v < 0 else "") + "std::numeric_limits<T>::infinity()"
    return f"T({v!r})"


def _statements(bodies: tuple[Expr, ...], operands: dict[str, str], near: bool) -> tuple[list[str], list[str], bool]:
    """C++ of formulas: one statement per expression, the name of each result, whether angles were assumed small."""
    names: dict[int, str] = {}
    kinds: dict[int, bool] = {}  # whether it is a truth value
    lines: list[str] = []
    angles = False

    def number(e: Expr) -> str:
        e = _plain(e)
        return f"T({names[e.id]})" if kinds[e.id] else names[e.id]

    def truth(e: Expr) -> str:
        e = _plain(e)
        return names[e.id] if kinds[e.id] else f"({names[e.id]} != T(0))"

    for e in _order(bodies):
        kinds[e.id] = False
        if e.op == "var":
            names[e.id] = operands[e.value]
            continue
        if e.op == "const":
            names[e.id] = _number(e.value)
            kinds[e.id] = isinstance(e.value, bool)
            continue
        if e.op == "where":
            both = all(kinds[_plain(a).id] for a in e.args[1:])
            kinds[e.id] = both
            a, b = (truth(x) if both else number(x) for x in e.args[1:])
            text = f"({truth(e.args[0])} ? {a} : {b})"
        elif e.op == "neg":
            text = f"(-{number(e.args[0])})"
        elif e.op == "logical_not":
            text, kinds[e.id] = f"(!{truth(e.args[0])})", True
        elif e.op in _LOGIC:
            text, kinds[e.id] = f"({truth(e.args[0])} {_LOGIC[e.op]} {truth(e.args[1])})", True
        elif e.op in C_INFIX:
            text = f"({number(e.args[0])} {C_INFIX[e.op]} {number(e.args[1])})"
            kinds[e.id] = e.is_bool
        else:
            args = ", ".join(number(a) for a in e.args)
            name = e.op
            if near and name in _TRIGONOMETRIC:
                angles = True
                lines.append(f"far |= vt::abs({args}) <= vt::TRIG_LIMIT<T> ? 0 : 1;")
                name += "_near"
            text = f"vt::{name}({args})"
            kinds[e.id] = e.is_bool
        names[e.id] = f"t{len(names)}"
        lines.append(f"const {'bool' if kinds[e.id] else 'T'} {names[e.id]} = {text};")
    return lines, [number(b) for b in bodies], angles


def _known(region: Any) -> bool:
    """Whether every primitive and every type is there."""
    if any(have not in _TYPES for have, _, _ in region.roles) or any(o.dtype not in _TYPES for o in region.outs):
        return False
    if len(region.roles) + len(region.outs) > 60 or any(o.ndim > 30 for o in region.outs):
        return False
    if any(o.shape != region.outs[0].shape or o.strides != region.outs[0].strides for o in region.outs):
        return False
    return _known_ops(region.bodies)


def _known_ops(bodies: Iterable[Expr]) -> bool:
    return all(
        e.op in FLOAT or e.op == "var" or (e.op == "const" and not isinstance(e.value, complex)) for e in _order(bodies)
    )


def text_of(region: Any) -> tuple[str, str] | None:
    """(name, definition) of the C function for a region's lines; None when something is missing."""
    if not _known(region):
        return None
    compute = _TYPES[region.roles[0][1]] if region.roles else "float"
    outs, ins = len(region.outs), len(region.roles)
    near, results, angles = _statements(region.bodies, {p: f"x{i}" for i, p in enumerate(region.params)}, True)
    far, exact, _ = _statements(region.bodies, {p: f"x{i}" for i, p in enumerate(region.params)}, False)
    # As wide as what is computed with, or the loop does not become vector code.
    flag = "int64_t" if compute == "double" else "int32_t"
    lines = [f"  using T = {compute};", f"  using Flag = {flag};"]
    for k in range(outs + ins):
        lines.append(f"  alignas(64) T buffer{k}[TILE];")
    for i in range(ins):  # what is the same for the whole line is spread once
        s = _TYPES[region.roles[i][0]]
        lines.append(
            f"  if (strides[{outs + i}] == 0) gather<T, {s}>(buffer{outs + i}, at[{outs + i}], 0, n < TILE ? n : TILE);"
        )
    lines.append("  for (int64_t begin = 0; begin < n; begin += TILE) {")
    lines.append("    const int64_t m = n - begin < TILE ? n - begin : TILE;")
    for i in range(ins):
        k, s = outs + i, _TYPES[region.roles[i][0]]
        direct = (
            f"strides[{k}] == sizeof(T) ? reinterpret_cast<const T*>(at[{k}]) + begin : buffer{k}"
            if s == compute
            else f"buffer{k}"
        )
        condition = f"strides[{k}] != 0" + (f" && strides[{k}] != sizeof(T)" if s == compute else "")
        lines.append(
            f"    if ({condition}) gather<T, {s}>(buffer{k}, at[{k}] + begin * strides[{k}], strides[{k}], m);"
        )
        lines.append(f"    const T* __restrict a{i} = {direct};")
    for k in range(outs):
        s = _TYPES[region.outs[k].dtype]
        direct = (
            f"strides[{k}] == sizeof(T) ? reinterpret_cast<T*>(at[{k}]) + begin : buffer{k}"
            if s == compute
            else f"buffer{k}"
        )
        lines.append(f"    T* __restrict o{k} = {direct};")
    read = [f"const T x{i} = a{i}[i];" for i in range(ins)]
    if angles:
        lines.append("    Flag far = 0;")
    lines += _loop(read, near, results)
    if angles:
        lines += ["    if (far) {", *_loop(read, far, exact, plain=True), "    }"]
    for k in range(outs):
        s = _TYPES[region.outs[k].dtype]
        condition = f"if (strides[{k}] != sizeof(T)) " if s == compute else ""
        lines.append(f"    {condition}scatter<T, {s}>(at[{k}] + begin * strides[{k}], strides[{k}], buffer{k}, m);")
    lines.append("  }")
    body = "\n".join(lines)
    import hashlib

    name = "region_" + hashlib.sha256(body.encode()).hexdigest()[:20]
    head = f"// {', '.join(region.covers)}\n" if region.covers else ""
    return name, f'{head}extern "C" void {name}(char* const* at, const int64_t* strides, int64_t n) {{\n{body}\n}}\n'


def _loop(read: list[str], statements: list[str], results: list[str], plain: bool = False) -> list[str]:
    lines = [] if plain else ["#pragma GCC ivdep"]
    lines.append("    for (int64_t i = 0; i < m; ++i) {")
    lines += [f"      {s}" for s in (*read, *statements)]
    lines += [f"      o{k}[i] = {r};" for k, r in enumerate(results)]
    return [*lines, "    }"]


@native("_region", "region", optional=True)
def region(inputs: Slot, region: Any) -> Any:
    found = text_of(region)
    if found is None:
        return None
    address = jit.functions(dict([found]), _PRELUDE).get(found[0])
    if address is None:
        return None
    cost = sum(_COST.get(e.op, 1) for e in _order(region.bodies))
    return *map(Out, range(len(region.outs))), inputs, address, max(1, cost)
