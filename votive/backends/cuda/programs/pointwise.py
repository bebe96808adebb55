"""Elementwise operators on the GPU: a formula becomes the source of a Triton kernel. Three shapes
of kernel serve all layouts; what Triton lacks (rare functions) falls back to the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec, broadcast_strides
from ....formula import Formula, to_triton
from ....formula.expr import Expr, walk
from ...common.integers import word64
from ..device import math as device_math
from ..device.source import function
from ..runtime import fast_path
from ..runtime.views import CudaStorage, View
from .copy import copy_view
from .program import TYPE, Program
from .tiles import BLOCK, FEW, Shape, merged

_TL = {
    "fp64": "tl.float64",
    "fp32": "tl.float32",
    "fp16": "tl.float16",
    "bf16": "tl.bfloat16",
    "i64": "tl.int64",
    "i32": "tl.int32",
    "i16": "tl.int16",
    "i8": "tl.int8",
    "u8": "tl.uint8",
    "u16": "tl.uint16",
    "u32": "tl.uint32",
    "u64": "tl.uint64",
    "fp8e4nv": "tl.float8e4nv",
    "fp8e5": "tl.float8e5",
}
_PLAIN = frozenset(
    [
        "const",
        "var",
        "annotated",
        "where",
        "add",
        "sub",
        "mul",
        "lt",
        "le",
        "gt",
        "ge",
        "eq",
        "ne",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_not",
    ]
)
_SAME = frozenset(
    ["floor", "ceil", "trunc", "round", "sgn", "isnan", "isinf", "isposinf", "isneginf", "isfinite", "fmax", "fmin"]
)


def can(formula: Formula, kind: str) -> bool:
    """Whether every primitive of the formula has a device function."""
    return all(
        e.op in _PLAIN or (kind == "i" and e.op in _SAME) or hasattr(device_math, f"{kind}_{e.op}")
        for e in walk(formula.body)
    )


def jit(source: str, name: str, **known: Any) -> Any:
    """A Triton function from text that calls scalar functions as `m.f_exp`, and the `known`."""
    return function(source, name, m=device_math, **known)


def _name(formula: Formula) -> str:
    name = "".join(ch if ch.isalnum() else "_" for ch in formula.name)
    return name if name.isidentifier() else f"k_{name}"


def _load(k: int, role: Any, offset: str, T: str, mask: str = "inside") -> list[str]:
    """Lines that bring operand k into the compute type."""
    return [_read(k, role, offset, mask), *_converted(k, role, T)]


def _read(k: int, role: Any, offset: str, mask: str = "inside") -> str:
    """The line that takes operand k as it is."""
    if role[0] is None:
        return f"v{k} = a{k}"
    # A plain name for an address that is the same in the whole block keeps the load a scalar one.
    if not offset:
        return f"v{k} = tl.load(a{k})"
    return f"v{k} = tl.load(a{k} + {offset}, mask={mask})" if mask else f"v{k} = tl.load(a{k} + {offset})"


def _converted(k: int, role: Any, T: str) -> list[str]:
    """Lines that bring what was read into the compute type."""
    have, compute, via = role
    lines: list[str] = []
    if have is None:
        if via is not None:
            lines.append(f"v{k} = v{k}.to({_TL[TYPE[via]]})")
        return [*lines, f"v{k} = v{k}.to({T})"]
    if have is dt.bool_:
        lines.append(f"v{k} = v{k} != 0")
        if compute is dt.bool_ and T != "tl.int32":
            return lines
        return [*lines, f"v{k} = m.as_number(v{k}, {T})"] if compute is not None else lines
    if via is not None and via is not have:
        lines.append(f"v{k} = v{k}.to({_TL[TYPE[via]]})")
    if have.is_floating_point and not compute.is_floating_point and compute is not dt.int64:
        lines.append(f"v{k} = v{k}.to(tl.int64)")
    if TYPE[have] != T:
        lines.append(f"v{k} = v{k}.to({T})")
    return lines


def build(
    formula: Formula, names: list[str], roles: list[Any], inputs: list[Spec | None], out: Spec
) -> tuple[Program, list[int], tuple[int, ...]] | None:
    """(program, the numbers it is given after its operands, grid) for given layouts."""
    values = {c for _, c, _ in roles if c is not None and c is not dt.bool_} or {dt.bool_}
    if len(values) != 1:
        return None
    (compute,) = values
    if compute.is_complex or out.dtype.is_complex:
        from . import complex_pointwise

        return complex_pointwise.build(formula, names, roles, inputs, out)
    if out.dtype not in TYPE or compute not in TYPE:
        return None
    if any(have is not None and have not in TYPE for have, _, _ in roles):
        return None
    kind = "f" if compute.is_floating_point else "i"
    if not can(formula, kind):
        return None
    T = _TL["i32" if compute is dt.bool_ else TYPE[compute]]
    strides = [out.strides]
    for s in inputs:
        strides.append((0,) * out.ndim if s is None else broadcast_strides(s.shape, s.strides, out.shape))
    heavy = any(device_math.is_special(e.op) for e in walk(formula.body))
    size = max(out.dtype.itemsize, *(s.dtype.itemsize for s in inputs if s is not None), 1)
    shape = Shape(*merged(out.shape, strides), out.numel, FEW if heavy else BLOCK, size)
    body = formula.body
    fast = out.dtype in dt.HALF
    if compute is dt.bool_:
        body = _complemented(body)
    text = to_triton(body, "formula", names, kind, fast)
    lines = list(shape.lines)
    reads = list(enumerate(roles))
    lines += shape.guarded(lambda mask: [_read(k, role, shape.offsets[k + 1], mask) for k, role in reads])
    for k, role in reads:
        lines += _converted(k, role, T)
    lines.append(f"y = formula({', '.join(f'v{k}' for k in range(len(roles)))}, {T})")
    stored = _TL[TYPE[out.dtype]]
    if out.dtype is dt.bool_:
        lines.append("y = tl.where(y, 1, 0)" if body.is_bool else "y = tl.where(y != 0, 1, 0)")
    elif body.is_bool:
        lines.append(f"y = m.as_number(y, {stored})")
    elif kind == "f" and not out.dtype.is_floating_point and out.dtype is not dt.int64:
        lines.append("y = y.to(tl.int64)")
    elif out.dtype in dt.FLOAT8 or (out.dtype in dt.HALF and compute is dt.float64):
        # To eight bits there is no other way; to sixteen, the CPU rounds doubles twice too.
        lines.append("y = y.to(tl.float32)")
    lines.append(f"y = y.to({stored})")
    to = f"o + {shape.offsets[0]}"
    lines += shape.guarded(lambda mask: [f"tl.store({to}, y, mask={mask})" if mask else f"tl.store({to}, y)"])
    name = _name(formula)
    args = ["o", *(f"a{k}" for k in range(len(roles))), *shape.params]
    args += [f"{c}: tl.constexpr" for c in shape.constants]
    source = text + f"\n\n@triton.jit\ndef {name}({', '.join(args)}):\n"
    source += "".join(f"    {line}\n" for line in lines)
    types = ["*" + TYPE[out.dtype]]
    types += [number_of(compute) if have is None else "*" + TYPE[have] for have, _, _ in roles]
    types += ["i64" if shape.wide else "i32"] * len(shape.params)
    program = Program(jit(source, name), types, shape.constants)
    first = 1 + len(roles)
    program.divisible = tuple(first + i for i, v in enumerate(shape.values) if v % 16 == 0)
    return program, shape.values, shape.grid


def number_of(compute: dt.dtype) -> str:
    """The type in which a number enters a kernel that computes in `compute`."""
    if not compute.is_floating_point:
        return "i64"
    return "fp64" if compute is dt.float64 else "fp32"


def _complemented(body: Expr) -> Any:
    """The formula on truth values, where the complement is the negation."""
    if not body.args:
        return body
    args = tuple(_complemented(a) for a in body.args)
    op = "logical_not" if body.op == "bitwise_not" else body.op
    return Expr(op, args, body.value)


def _value(have: dt.dtype | None, compute: dt.dtype) -> Callable[[Any], Any] | None:
    """How an argument becomes what the program takes; None: it is a view with an address."""
    if have is None:
        if compute.is_complex:
            return complex
        if compute.is_floating_point:
            return lambda v: float(v.real if isinstance(v, complex) else v)
        return lambda v: _signed(word64(int(v)))
    return None


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def compile_formula(
    formula: Formula, names: list[str], roles: list[Any], inputs: list[Spec | None], out: Spec, empty: Any
) -> tuple[Any, Any]:
    """See `backends.base.Backend.pointwise`."""
    # A 0-d tensor of the CPU joins as a number.
    loose = [i for i, s in enumerate(inputs) if s is not None and s.device.type == "cpu"]
    if loose:
        return _with_loose(formula, names, roles, inputs, out, empty, loose)
    casts = [(i, f) for i, (h, c, _) in enumerate(roles) if (f := _value(h, c)) is not None]
    device = out.device.index or 0
    nbytes = out.nbytes
    bound = build(formula, names, roles, inputs, out) if out.numel else ()
    if bound is None:
        from ..cpu_fallback import pointwise

        return pointwise(formula, names, roles, inputs, out)
    programs: dict[Spec, Any] = {out: bound}

    def run(values: Any, to: int, how: Any) -> None:
        program, numbers, grid = how
        if casts:
            values = list(values)
            for i, f in casts:
                values[i] = f(values[i])
        program(grid, to, *[v.ptr if v.__class__ is View else v for v in values], *numbers)

    def compute(*values: Any) -> tuple[Any, Any]:
        storage = CudaStorage(nbytes, device)
        if bound:
            run(values, storage.ptr, bound)
        return storage, View(storage.ptr, out, storage)

    def into(values: Any, target: View) -> None:
        how = programs.get(target.spec)
        if how is None:
            how = build(formula, names, roles, inputs, target.spec) if target.spec.numel else ()
            programs[target.spec] = how
        if how:
            run(values, target.ptr, how)

    def over(values: Any, target: View) -> None:
        copy_view(target, compute(*values)[1])

    if not bound:
        return compute, into
    program, numbers, grid = bound
    return fast_path.formula(program, grid, numbers, out, device, compute, into, over)


def _with_loose(
    formula: Formula,
    names: list[str],
    roles: list[Any],
    inputs: list[Spec | None],
    out: Spec,
    empty: Any,
    loose: list[int],
) -> tuple[Any, Any]:
    """The same with 0-d CPU tensors, whose values are read when the kernel is launched."""
    roles, inputs = list(roles), list(inputs)
    for i in loose:
        have, c, via = roles[i]
        if have is dt.bool_ and c is dt.bool_:
            inputs[i] = inputs[i].like(device=out.device)  # type: ignore[union-attr]
            continue
        inputs[i] = None
        roles[i] = (None, c, via if via is not None else (have if have in dt.HALF else None))
    compute, into = compile_formula(formula, names, roles, inputs, out, empty)
    from ..cpu_fallback import uploaded

    def read(values: Any) -> list[Any]:
        values = list(values)
        for i in loose:
            values[i] = values[i].item() if (spec := inputs[i]) is None else uploaded(values[i], spec)
        return values

    return lambda *values: compute(*read(values)), lambda values, to: into(read(values), to)
