"""Reductions of formulas over dimensions: sums, products, tests, norms. One generated kernel shape:
a tile of results by terms, walked along the terms; few results are split and joined in a second
launch.
"""

from __future__ import annotations

import math
from typing import Any

from ....core import dtype as dt
from ....core.layout import Layout, Spec, broadcast_strides
from ....formula import Formula, const, to_triton, var
from ....formula.expr import Expr, apply
from ...common.slot import Slot
from ..programs.pointwise import _TL, _load, can, jit, number_of
from ..programs.program import TYPE, Program
from ..programs.walk import Text, Walk
from ..runtime.views import View, empty

# kind: (neutral element, how two are joined)
_KINDS = {
    "sum": ("0", "a + b"),
    "prod": ("1", "a * b"),
    "max": ("LOWEST", "m.{k}_maximum(a, b)"),
    "min": ("HIGHEST", "m.{k}_minimum(a, b)"),
    "any": ("0", "m.{k}_maximum(a, b)"),
    "all": ("1", "m.{k}_minimum(a, b)"),
}
_LIMITS = {
    "fp32": ("float('-inf')", "float('inf')"),
    "fp64": ("float('-inf')", "float('inf')"),
    "i64": (str(-(2**63)), str(2**63 - 1)),
    "i32": (str(-(2**31)), str(2**31 - 1)),
}


def reducer(
    name: str,
    kind: str,
    compute: dt.dtype,
    formula: Formula,
    names: list[str],
    roles: list[Any],
    inputs: list[Spec],
    shape: tuple[int, ...],
    dims: tuple[int, ...],
    out: dt.dtype,
    finish: Formula | None = None,
    out_strides: tuple[int, ...] | None = None,
) -> Any:
    """`run(out address, addresses of the inputs)` or None when the formula has no device text.

    `compute` is the type of the sum; `finish` a formula of one variable over the result; `out_strides` say where
    results go, one for each dimension of `shape`: in row-major order where there are none.
    """
    made = {c for _, c, _ in roles if c is not dt.bool_} or {dt.bool_}
    if len(made) != 1 or not can(formula, "f" if next(iter(made)).is_floating_point else "i"):
        return None
    strides = [broadcast_strides(s.shape, s.strides, shape) for s in inputs]
    walk = Walk(shape, dims, strides, inputs[0].dtype.itemsize, out_strides)
    parts = walk.split()
    wide = walk.far
    first = _program(name, kind, compute, formula, names, roles, walk, wide, parts, None if parts > 1 else out, finish)
    grid = (-(-walk.rows // walk.bm), parts)
    if parts == 1:
        program, numbers = first

        def once(to: int, *given: Any) -> None:
            program(grid, to, *given, *numbers)

        return once
    same = Formula("part", ("x",), var("x"))
    part = Spec(Layout((parts, *walk.kept)), compute, inputs[0].device)
    again = Walk(part.shape, (0,), [part.strides], compute.itemsize, (0, *walk.out_strides))
    second = _program(name, kind, compute, same, ["x"], [(compute, compute, None)], again, False, 1, out, finish)
    last = (-(-walk.rows // again.bm), 1)

    def twice(to: int, *given: Any) -> None:
        middle = empty(part)
        first[0](grid, middle.ptr, *given, *first[1])
        second[0](last, to, middle.ptr, *second[1])

    return twice


def _program(
    name: str,
    kind: str,
    compute: dt.dtype,
    formula: Formula,
    names: list[str],
    roles: list[Any],
    walk: Walk,
    wide: bool,
    parts: int,
    out: dt.dtype | None,
    finish: Formula | None,
) -> tuple[Program, list[int]]:
    k = "f" if compute.is_floating_point else "i"
    A = "i32" if compute is dt.bool_ else TYPE[compute]
    low, high = _LIMITS[A]
    neutral, join = _KINDS[kind]
    neutral = neutral.replace("LOWEST", low).replace("HIGHEST", high)
    value = next(iter({c for _, c, _ in roles if c is not dt.bool_} or {dt.bool_}))
    V = _TL["i32" if value is dt.bool_ else TYPE[value]]
    vk = "f" if value.is_floating_point else "i"
    text = Text()
    ints = ".to(tl.int64)" if wide else ""
    rows = text.arg("ROWS", walk.rows)
    lines = [
        f"row = tl.program_id(0){ints} * BM + tl.arange(0, BM)[:, None]",
        *text.places("k", walk.kept, "row"),
        f"total = tl.full((BM, BN), {neutral}, {_TL[A]})",
    ]

    def step(mask: str) -> list[str]:
        loop = [f"i = (start + lane){ints}", *text.places("g", walk.gone, "i")]
        loop += [f"inside = {mask}"] if mask else []
        for n, role in enumerate(roles):
            place = text.offset(n, "k", walk.kept_strides[n]), text.offset(n, "g", walk.gone_strides[n])
            offset = " + ".join(p for p in place if p) or "row * 0 + i * 0"
            loop += _load(n, role, offset, V, "inside" if mask else "")
        loop.append(f"b = formula({', '.join(f'v{n}' for n in range(len(roles)))}, {V})")
        if formula.body.is_bool:
            loop.append(f"b = m.as_number(b, {_TL[A]})")
        b = f"b.to({_TL[A]})"
        return [*loop, f"b = tl.where(inside, {b}, {neutral})" if mask else f"b = {b}", "total = join(total, b)"]

    lines += text.steps(walk, parts, ints, step)
    lines.append("y = tl.reduce(total, 1, join)")
    stored = A if out is None else TYPE[out]
    source = to_triton(formula.body, "formula", names, vk) + "\n\n"
    source += f"@triton.jit\ndef join(a, b):\n    return {join.format(k=k)}\n\n\n"
    if out is not None and finish is not None:
        source += to_triton(finish.body, "finish", ["x"], k) + "\n\n"
        lines.append(f"y = finish(y, {_TL[A]})")
    if out is dt.bool_:
        lines.append("y = tl.where(y != 0, 1, 0)")
    lines += text.target(walk, ints, parts)
    lines.append(f"tl.store(o + to, y.to({_TL[stored]}), mask=at < {rows})")
    args = ["o", *(f"a{n}" for n in range(len(roles))), *text.params]
    source += f"@triton.jit\ndef {name}({', '.join(args)}, BM: tl.constexpr, BN: tl.constexpr):\n"
    source += "".join(f"    {line}\n" for line in lines)
    types = ["*" + stored]
    types += [number_of(value) if have is None else "*" + TYPE[have] for have, _, _ in roles]
    types += ["i64" if wide else "i32"] * len(text.params)
    program = Program(jit(source, name), types, {"BM": walk.bm, "BN": walk.bn}, warps=walk.warps)
    text.promise(program, 1 + len(roles))
    return program, text.values


_X = var("x")


def wide_type(dtype: dt.dtype) -> dt.dtype:
    """The type in which elements are added up."""
    if dtype.is_floating_point:
        return dt.float64 if dtype is dt.float64 else dt.float32
    return dt.int64


def row_reducer(
    x: Slot,
    dims: tuple[int, ...],
    out: dt.dtype,
    kind: str,
    body: Expr = _X,
    finish: Any = None,
    compute: dt.dtype | None = None,
) -> Any:
    """The run of a reduction of one tensor."""
    if x.dtype not in TYPE or out not in TYPE:
        return None
    value = dt.bool_ if x.dtype is dt.bool_ else wide_type(x.dtype)
    total = compute or (wide_type(out) if out is not dt.bool_ else dt.int64)
    run = reducer(
        f"{kind}_rows",
        kind,
        total,
        Formula("term", ("x",), body),
        ["x"],
        [(x.dtype, value, None)],
        [x.spec],
        x.shape,
        dims,
        out,
        None if finish is None else Formula("finish", ("x",), finish),
    )
    if run is None:
        return None

    def launch(outs: list[View], x: View) -> None:
        if outs[0].spec.numel:
            run(outs[0].ptr, x.ptr)

    return launch


_FUSED = {"sum": "sum", "mean": "sum", "prod": "prod", "amax": "max", "amin": "min"}


def compile_reduction(
    formula: Formula,
    names: list[str],
    roles: list[Any],
    inputs: list[Any],
    values: Spec,
    op: str,
    dim: tuple[int, ...],
    out: Spec,
) -> Any:
    """See `CudaBackend.map_reduce`: compute(*values) -> (storage, data)."""
    types = {values.dtype, out.dtype, *(h for h, _, _ in roles if h is not None)}
    if any(h is None for h, _, _ in roles) or any(t not in TYPE for t in types):
        return None
    value = next(iter({c for _, c, _ in roles if c is not dt.bool_} or {dt.bool_}))
    exact = values.dtype is value or (values.dtype in dt.HALF and value is dt.float32)
    if not (exact or values.dtype is dt.bool_) or out.dtype is dt.bool_:
        return None
    compute = wide_type(out.dtype)
    finish = None
    if op == "mean":
        n = math.prod(values.shape[d] for d in dim)
        finish = Formula("finish", ("x",), apply("div", _X, const(float(n))))
    run = reducer(
        f"{op}_fused", _FUSED[op], compute, formula, names, roles, inputs, values.shape, dim, out.dtype, finish
    )
    if run is None:
        return None

    def launch(*given: Any) -> tuple[Any, Any]:
        made = empty(out)
        run(made.ptr, *[v.ptr for v in given])
        return made.storage, made

    return launch
