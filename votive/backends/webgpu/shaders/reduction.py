"""Reductions of any dimensions and layouts: a state per thread, joined over the threads of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ....core import dtype as dt
from ....core.layout import Spec
from ..runtime.views import View
from . import types
from .program import GROUP, Program, groups_for
from .rows import Target, lines_of, width


@dataclass(frozen=True)
class Rule:
    """A reduction: the members of its state with their beginnings, WGSL that takes `v` at place `j` into the state `s`,
    that joins states `s` and `o`, and the results as expressions of `s` and `n`, how many there were.
    """

    members: tuple[tuple[str, str, str], ...]  # name, type, value at the beginning
    step: str
    join: str
    results: tuple[str, ...]


def compile_reduction(
    name: str, x: Spec, dims: Sequence[int], value: str, rule: Rule, outs: Sequence[dt.dtype], extra: str = ""
) -> Callable[[Sequence[View], View], None]:
    """A kernel that reduces dimensions. `value` is an expression of `r`, the element as it is read."""
    lines = lines_of([x], dims)
    members = ", ".join(f"{m}: {t}" for m, t, _ in rule.members)
    begin = ", ".join(b for _, _, b in rule.members)
    operands = [(f"y{k}", d, "w") for k, d in enumerate(outs)] + [("x", x.dtype, "r")]
    head = f"{extra}\nstruct S {{ {members} }}\n{lines.head('x')}"
    stores = "".join(f"    y{k}_set(row_, {text});\n" for k, text in enumerate(rule.results))
    take = f"let r = x_at(at + x_col(j)); let v = {value}; {rule.step}"
    alone = lines.n <= 32 or (lines.rows >= 2048 and lines.n <= 1024)
    if alone:
        threads = GROUP
        body = f"""  if (index < P.rows) {{
    let row_ = index;
    let at = x_row(row_);
    let n = P.n;
    var s = S({begin});
    for (var j = 0u; j < n; j++) {{ {take} }}
{stores}  }}"""
    else:
        threads = width(lines.n)
        head += f"var<workgroup> states: array<S, {threads}>;\n"
        body = f"""  if (row >= P.rows) {{ return; }}
  let row_ = row;
  let at = x_row(row_);
  let n = P.n;
  var s = S({begin});
  for (var j = lane; j < n; j += {threads}u) {{ {take} }}
  states[lane] = s;
  workgroupBarrier();
  for (var w = {threads // 2}u; w > 0u; w = w >> 1u) {{
    if (lane < w) {{ var s = states[lane]; let o = states[lane + w]; {rule.join} states[lane] = s; }}
    workgroupBarrier();
  }}
  if (lane == 0u) {{
    s = states[0];
{stores}  }}"""
    program = Program(name, operands, lines.numbers, body, group=threads, head=head)
    groups = groups_for(lines.rows) if alone else lines.rows

    def run(outs: Sequence[View], x: View) -> None:
        targets = [Target(o) for o in outs]
        program(groups, [*[t.view for t in targets], x], *lines.values)
        for t in targets:
            t.done()

    return run


def added(kind: str) -> Rule:
    """A sum; floats carry what rounding loses (Kahan)."""
    if kind == "f":
        return Rule(
            (("a", "f32", "0.0"), ("c", "f32", "0.0")),
            "let y = v - s.c; let t = s.a + y; s.c = select((t - s.a) - y, 0.0, !f_isfinite(t)); s.a = t;",
            "s.a = s.a + (o.a - o.c - s.c); s.c = 0.0;",
            ("s.a",),
        )
    T = types.WGSL[kind]
    plus = "s.a = l_add(s.a, {});" if kind == "l" else "s.a = s.a + {};"
    return Rule((("a", T, types.ZERO[kind]),), plus.format("v"), plus.format("o.a"), ("s.a",))
