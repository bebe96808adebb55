"""Elementwise operators: a formula becomes a WGSL kernel for any strides and dtypes. What WGSL has no functions for
(rare special functions, doubles, complex numbers) is computed by way of the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec
from ....formula import Formula
from ....formula.expr import Expr, walk
from ....formula.wgsl import primitives, to_wgsl
from ..runtime.views import View, WebGpuStorage
from . import types
from .layouts import Walk, strides_as
from .program import GROUP, LIBRARY, Program, groups_for

_programs: dict[tuple[Any, ...], Program] = {}
Role = tuple[Any, Any, Any]


def compute_of(roles: list[Role]) -> dt.dtype | None:
    """The type a formula computes in; None where kernels have none for it."""
    found = {c for _, c, _ in roles if c is not None and c is not dt.bool_} or {dt.bool_}
    if len(found) != 1:
        return None
    (compute,) = found
    return compute if compute in types.NUMBERS else None


def complemented(body: Expr) -> Expr:
    """The formula on truth values, where the complement is the negation."""
    if not body.args:
        return body
    op = "logical_not" if body.op == "bitwise_not" else body.op
    return Expr(op, tuple(complemented(a) for a in body.args), body.value)


def shifted(text: str, compute: dt.dtype) -> str:
    """Shifts of words know how many bits there are."""
    if kind_of(compute) == "l":
        return text
    for side in ("left", "right"):
        text = text.replace(f"_bitwise_{side}_shift(", f"_bitwise_{side}_shift{8 * compute.itemsize}(")
    return text


def kind_of(compute: dt.dtype) -> str:
    """The kind of numbers a formula is printed for."""
    return "i" if compute is dt.bool_ else types.KIND[compute]


def can(body: Expr, compute: dt.dtype) -> bool:
    """Whether every primitive of a formula has a function in WGSL."""
    if any(e.op == "const" and isinstance(e.value, complex) for e in walk(body)):
        return False
    kind = kind_of(compute)
    bits = 8 * compute.itemsize
    return all(
        name in LIBRARY or (kind in "iu" and f"{name}{bits}" in LIBRARY and "_shift" in name)
        for name in primitives(body, kind)
    )


def wrapping(compute: dt.dtype) -> str:
    """The function that brings results back into a narrow type."""
    if compute in (dt.int8, dt.int16, dt.uint8, dt.uint16):
        return f"{types.KIND[compute]}_wrap{8 * compute.itemsize}"
    return ""


def converted(k: int, role: Role, compute: dt.dtype) -> str:
    """The expression that brings operand k, read as `r{k}`, into the compute type."""
    have, to, via = role
    text = f"r{k}"
    if have is None:
        return text
    if via is not None and via is not have:
        text = types.cast(text, have, via)
        if via in dt.HALF:
            text = f"h_widened(h_narrowed({text}))" if via is dt.float16 else f"bitcast<f32>(b_narrowed({text}) << 16u)"
        have = via
    if have is dt.bool_:
        text = f"select(0u, 1u, {text} != 0u)"
    if to is dt.bool_ and compute is dt.bool_:
        return types.cast(text, have, dt.int32)
    if to is dt.bool_:  # a condition beside numbers
        to = compute
    if have is to:
        return text
    return types.cast(text, have, to)


def stored(text: str, is_bool: bool, compute: dt.dtype, out: dt.dtype) -> str:
    """The expression of a result as its memory holds it."""
    if is_bool:
        return types.cast(f"select(0u, 1u, {text})", dt.bool_, out)
    have = dt.int32 if compute is dt.bool_ else compute
    have = dt.float32 if compute in dt.HALF else have
    if have.is_floating_point and out.is_floating_point:
        return text
    return types.cast(text, have, out)


def numbers_for(k: int, compute: dt.dtype) -> list[tuple[str, str]]:
    """The parameters that hold a number which is passed at each call."""
    kind = kind_of(compute)
    if kind == "l":
        return [(f"v{k}x", "I"), (f"v{k}y", "I")]
    return [(f"v{k}", {"f": "f", "i": "i", "u": "I"}[kind])]


def number_text(k: int, compute: dt.dtype) -> str:
    """How a kernel reads such a number."""
    return f"vec2<u32>(P.v{k}x, P.v{k}y)" if kind_of(compute) == "l" else f"P.v{k}"


def packing(compute: dt.dtype, via: dt.dtype | None) -> Callable[[Any], tuple[Any, ...]]:
    """How a Python number becomes parameters."""
    kind = kind_of(compute)
    if kind == "f":

        def as_float(v: Any) -> tuple[Any, ...]:
            value = float(v.real if isinstance(v, complex) else v)
            if via in dt.HALF:
                value = float(via.np.type(value))
            if abs(value) > 3.4028235677973366e38:
                value = float("inf") if value > 0 else float("-inf")
            return (value,)

        return as_float
    if kind == "l":

        def as_long(v: Any) -> tuple[Any, ...]:
            word = int(v) & 0xFFFFFFFFFFFFFFFF
            return word & 0xFFFFFFFF, word >> 32

        return as_long
    bits = 8 * compute.itemsize if compute is not dt.bool_ else 32

    def as_word(v: Any) -> tuple[Any, ...]:
        word = int(v) & ((1 << bits) - 1)
        return (word - (1 << bits) if kind == "i" and word >> (bits - 1) else word,)

    return as_word


class Made:
    """A formula on given layouts: a kernel, its numbers, and how many workgroups."""

    __slots__ = ("groups", "program", "values")

    def __init__(self, program: Program, values: list[int], groups: int) -> None:
        self.program, self.values, self.groups = program, values, groups


def build(formula: Formula, names: list[str], roles: list[Role], inputs: list[Spec | None], out: Spec) -> Made | None:
    """The kernel of a formula, or None where WGSL has no functions for it."""
    compute = compute_of(roles)
    if compute is None or out.dtype not in types.NUMBERS:
        return None
    if any(have is not None and have not in types.NUMBERS for have, _, _ in roles):
        return None
    if any(via is not None and via not in types.NUMBERS for _, _, via in roles):
        return None
    body = complemented(formula.body) if compute is dt.bool_ else formula.body
    if not can(body, compute):
        return None
    strides = [out.strides, *[strides_as(s, out.shape) for s in inputs if s is not None]]
    walk_ = Walk("k", out.shape, strides)
    packed = _one_run(walk_, out)
    key = (body.id, tuple(names), tuple(roles), out.dtype, walk_.key(), packed)
    program = _programs.get(key)
    if program is None:
        if len(_programs) > 4096:
            _programs.clear()
        program = _programs[key] = _program(formula.name, body, names, roles, compute, out.dtype, walk_, packed)
    each = 4 // out.dtype.itemsize if packed else 1
    return Made(program, [out.numel, *walk_.values], groups_for(-(-out.numel // each) + (each > 1)))


def _one_run(walk_: Walk, out: Spec) -> bool:
    """Whether results of narrow types lie in one run, so that a thread can write whole words."""
    return out.dtype.itemsize < 4 and out.numel > 1 and walk_.strides[0] == (1,)


def _program(
    name: str,
    body: Expr,
    names: list[str],
    roles: list[Role],
    compute: dt.dtype,
    out: dt.dtype,
    walk_: Walk,
    packed: bool,
) -> Program:
    kind = kind_of(compute)
    text = shifted(to_wgsl(body, "formula", names, kind, wrapping(compute)), compute)
    operands = [("y", out, "w")]
    numbers: list[tuple[str, str]] = [("n", "I"), *walk_.numbers]
    reads, at = [], 1
    for k, role in enumerate(roles):
        if role[0] is None:
            numbers += numbers_for(k, compute)
            reads.append(number_text(k, compute))
        else:
            operands.append((f"a{k}", role[0], "r"))
            value = converted(k, role, compute).replace(f"r{k}", f"a{k}_at(k{at})")
            reads.append(value)
            at += 1
    head = text + f"fn element(i: u32) -> {types.WGSL[types.KIND[out]]} {{\n{walk_.lines('i')}"
    head += f"  let y = formula({', '.join(reads)});\n  return {stored('y', body.is_bool, compute, out)};\n}}\n"
    if packed:
        per, bits = 4 // out.itemsize, 8 * out.itemsize
        # A thread writes one word; at the ends of the run, only the elements that belong to it.
        main = f"""  let first = i32(index * {per}u) - i32(P.o_y % {per}u);
  if (first >= i32(P.n)) {{ return; }}
  var word = 0u;
  var mask = 0u;
  for (var k = 0; k < {per}; k++) {{
    let i = first + k;
    if (i >= 0 && i < i32(P.n)) {{
      let v = element(u32(i));
      word = word | ({types.bits_of(out, "v")} << (u32(k) * {bits}u));
      mask = mask | ({(1 << bits) - 1}u << (u32(k) * {bits}u));
    }}
  }}
  let at = P.o_y / {per}u + index;
  if (mask == 0xffffffffu) {{ atomicStore(&y_word[at], word); }}
  else {{ atomicAnd(&y_word[at], ~mask); atomicOr(&y_word[at], word); }}"""
    else:
        main = f"  if (index < P.n) {{\n{walk_.lines('index')}    y_set(k0, element(index));\n  }}"
    return Program(name, operands, numbers, main, head=head, group=GROUP)


def compile_formula(
    formula: Formula, names: list[str], roles: list[Role], inputs: list[Spec | None], out: Spec, empty: Any
) -> tuple[Any, Any]:
    """See `backends.base.Backend.pointwise`."""
    from .. import cpu_fallback
    from .copy import copy_view

    loose = [i for i, s in enumerate(inputs) if s is not None and s.device.type == "cpu"]
    if loose:
        return _with_loose(formula, names, roles, inputs, out, empty, loose)
    made = build(formula, names, roles, inputs, out) if out.numel else None
    if made is None and out.numel:
        return cpu_fallback.pointwise(formula, names, roles, inputs, out)
    compute_type = compute_of(roles) or dt.float32
    given = [(i, packing(compute_type, via)) for i, (have, _, via) in enumerate(roles) if have is None]
    tensors = [i for i, (have, _, _) in enumerate(roles) if have is not None]
    programs: dict[Spec, Any] = {out: made}
    nbytes = out.nbytes

    def run(values: Any, to: View, how: Made) -> None:
        numbers: list[Any] = [*how.values]
        for i, pack in given:
            numbers += pack(values[i])
        how.program(how.groups, [to, *[values[i] for i in tensors]], *numbers)

    def compute(*values: Any) -> tuple[Any, Any]:
        storage = WebGpuStorage(nbytes)
        view = View(storage, 0, out)
        if made is not None:
            run(values, view, made)
        return storage, view

    def into(values: Any, target: View) -> None:
        spec = target.spec
        if not spec.numel:
            return
        how = programs.get(spec)
        if how is None:
            how = programs[spec] = build(formula, names, roles, inputs, spec)
        if how is None or any(overlapping(values[i], target) for i in tensors):
            copy_view(target, compute(*values)[1])
        else:
            run(values, target, how)

    return compute, into


def overlapping(v: View, target: View) -> bool:
    """Whether writing one view element by element may change what is still to be read of another."""
    if v.storage is not target.storage:
        return False
    return v.offset != target.offset or v.spec.layout is not target.spec.layout or v.spec.dtype is not target.spec.dtype


def _with_loose(
    formula: Formula,
    names: list[str],
    roles: list[Role],
    inputs: list[Spec | None],
    out: Spec,
    empty: Any,
    loose: list[int],
) -> tuple[Any, Any]:
    """The same with 0-d CPU tensors, whose values are read when the kernel is recorded."""
    from ..cpu_fallback import uploaded

    roles, inputs = list(roles), list(inputs)
    for i in loose:
        have, c, via = roles[i]
        spec = inputs[i]
        assert spec is not None
        if have is dt.bool_ or not c or c.is_complex or c not in types.NUMBERS:
            inputs[i] = spec.like(device=out.device)
            continue
        inputs[i] = None
        roles[i] = (None, c, via if via is not None else (have if have in dt.HALF else None))
    compute, into = compile_formula(formula, names, roles, inputs, out, empty)

    def read(values: Any) -> list[Any]:
        values = list(values)
        for i in loose:
            spec = inputs[i]
            values[i] = values[i].item() if spec is None else uploaded(values[i], spec)
        return values

    return lambda *values: compute(*read(values)), lambda values, to: into(read(values), to)
