"""Elementwise operators on the tile engine; what it cannot do goes to the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec, broadcast_strides
from ....formula import Formula
from ..arrays import Ints
from ..reference import pointwise as reference
from .loader import codes, module
from .program import BOOL, FLOAT, INT, Linear, linearise
from .reduction import MAX, MIN, PROD, SUM, count, mask

# Small integers are computed in int32: a single step wraps when it is stored, as theirs would.
_COMPUTE = {
    dt.float32: dt.float32,
    dt.float64: dt.float64,
    dt.int64: dt.int64,
    dt.uint32: dt.int64,
    dt.int32: dt.int32,
    dt.int16: dt.int32,
    dt.int8: dt.int32,
    dt.uint8: dt.int32,
    dt.uint16: dt.int32,
    dt.bool_: dt.int32,
}
_EXACT = (dt.float32, dt.float64, dt.int64, dt.int32)


def _via(have: dt.dtype | None, compute: dt.dtype, via: dt.dtype | None) -> dt.dtype | None:
    """The type that an operand must be rounded to or wrapped by on its way into a register."""
    if via is not None or compute.is_floating_point:
        return via
    if have is None:
        return compute
    if have is compute or have is dt.bool_ or have.itemsize < compute.itemsize:
        return None
    return compute


def _whole(
    linear: Linear, code: int, steps: tuple[Any, ...], constants: tuple[Any, ...], result: int
) -> tuple[tuple[Any, ...], tuple[Any, ...], int]:
    """One compiled function in place of the steps where there is one."""
    inputs = linear.inputs
    if module.has_tile(linear.key(), code):
        return ((linear.key(), tuple(range(inputs))),), (), inputs
    taken = inputs + len(constants)
    if taken <= 8 and module.has_tile(linear.shape_key(), code):
        return ((linear.shape_key(), tuple(range(taken))),), constants, taken
    return steps, constants, result


def _program(
    formula: Formula, names: list[str], roles: list[Any], inputs: list[Spec | None], out: Spec
) -> tuple[dt.dtype, tuple[Any, ...], int] | None:
    """(compute type, what the engine needs of the formula, cost), or None when it lacks something.

    `out` says the shape of the formula's values, and the type that they have in the end.
    """
    kinds = {c for h, c, _ in roles if not (h is dt.bool_ and c is dt.bool_)} or {dt.bool_}
    if len(kinds) != 1 or len(names) > 12 or out.ndim > 16:
        return None
    (logical,) = kinds
    compute = _COMPUTE.get(logical)
    if compute is None or out.dtype not in codes:
        return None
    linear = linearise(formula.body, names)
    if linear is None:
        return None
    steps = linear.steps
    if logical not in _EXACT and len(steps) > 1:
        return None
    known = FLOAT if compute.is_floating_point else INT
    if logical is dt.bool_:
        known = BOOL
        steps = tuple(("logical_not" if n == "bitwise_not" else n, r) for n, r in steps)
    if any(n not in known for n, _ in steps):
        return None
    if not compute.is_floating_point and any(float(c) != int(c) for c in linear.constants if c == c):
        return None
    constants = linear.constants
    if not compute.is_floating_point:
        constants = tuple(int(c) for c in constants)
    result, cost = linear.result, linear.cost
    if len(steps) > 1:
        steps, constants, result = _whole(linear, codes[compute], steps, constants, result)
    if len(names) + len(constants) + len(steps) > 64:
        return None
    operands = []
    for spec, (have, c, via) in zip(inputs, roles, strict=True):
        if have is not None and have not in codes:
            return None
        through = _via(have, c, via)
        strides = None
        if spec is not None:
            strides = broadcast_strides(spec.shape, spec.byte_strides, out.shape)
        operands.append((None if have is None else codes[have], None if through is None else codes[through], strides))
    return compute, (codes[compute], steps, constants, tuple(operands), result), cost


def compile_native(formula: Formula, names: list[str], roles: list[Any], inputs: list[Spec | None], out: Spec) -> Any:
    """A bound formula, or None when the engine lacks something."""
    found = _program(formula, names, roles, inputs, out)
    return None if found is None else module.Elementwise(*found[1], out, found[2])


_REDUCTIONS = {"sum": SUM, "mean": SUM, "prod": PROD, "amax": MAX, "amin": MIN}


def compile_reduction(
    formula: Formula,
    names: list[str],
    roles: list[Any],
    inputs: list[Spec | None],
    values: Spec,
    op: str,
    dim: Ints,
    out: Spec,
) -> Any:
    """A formula and the reduction of its values, bound, or None when the engine lacks something."""
    kind = _REDUCTIONS[op]
    found = _program(formula, names, roles, inputs, values)
    if found is None or out.dtype not in codes:
        return None
    compute, program, cost = found
    totals = kind in (SUM, PROD)
    if totals and (compute is dt.int32 or out.dtype is dt.bool_):
        return None
    # Truth values are zeros and ones of any type. Others must be what they would be stored as, and
    # who asks for more digits in a sum gets them from the start.
    exact = values.dtype is compute or (values.dtype in dt.HALF and compute is dt.float32)
    if values.dtype is dt.bool_:
        exact = kind != PROD
    if not exact or (out.dtype is dt.float64 and compute is dt.float32):
        return None
    divisor = count(values.shape, dim) if op == "mean" else 1
    return module.MapReduce(*program, values.shape, mask(dim), kind, float(divisor), out, cost)


def compile_formula(
    formula: Formula,
    names: list[str],
    roles: list[Any],
    inputs: list[Spec | None],
    out: Spec,
    empty: Callable[[Spec], tuple[Any, Any]],
) -> tuple[Any, Any]:
    """See `backends.base.Backend.pointwise`."""
    bound = compile_native(formula, names, roles, inputs, out)
    if bound is None:
        return reference.compile_formula(formula, names, roles, inputs, out, empty)
    return bound, bound.into
