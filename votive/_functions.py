"""Public functions, written by `python -m votive.codegen` from the schemas in `ops/`: do not edit."""

# ruff: noqa
from __future__ import annotations

from typing import Any

from .dispatch import binary, call, call_inplace, call_out, unary
from .ops.registry import COMPOSITES, OPS
from .surface import composite_inplace, composite_out

_op_add = OPS["add"]
_fast_add = binary(_op_add)


def add(input, other, *, alpha=1, out=None) -> Any:
    if out is None and alpha == 1:
        return _fast_add(input, other)
    if out is None:
        return call(_op_add, (input, other, alpha))
    return call_out(_op_add, (input, other, alpha), out)


def add_(input, other, *, alpha=1) -> Any:
    return call_inplace(_op_add, (input, other, alpha))


_op_mul = OPS["mul"]
_fast_mul = binary(_op_mul)


def mul(input, other, *, out=None) -> Any:
    if out is None:
        return _fast_mul(input, other)
    return call_out(_op_mul, (input, other), out)


def mul_(input, other) -> Any:
    return call_inplace(_op_mul, (input, other))


_op_tanh = OPS["tanh"]
_fast_tanh = unary(_op_tanh)


def tanh(input, *, out=None) -> Any:
    if out is None:
        return _fast_tanh(input)
    return call_out(_op_tanh, (input,), out)


def tanh_(input) -> Any:
    return call_inplace(_op_tanh, (input,))


_op_copy = OPS["copy"]


def copy(input, src) -> Any:
    return call(_op_copy, (input, src))


_op_fill = OPS["fill"]


def fill(input, value) -> Any:
    return call(_op_fill, (input, value))


def fill_(input, value) -> Any:
    return call_inplace(_op_fill, (input, value))


_op_sum = OPS["sum"]


def sum(input, dim=None, keepdim=False, *, dtype=None, out=None) -> Any:
    if out is None:
        return call(_op_sum, (input, dim, keepdim, dtype))
    return call_out(_op_sum, (input, dim, keepdim, dtype), out)


_op_transpose = OPS["transpose"]


def transpose(input, dim0, dim1) -> Any:
    return call(_op_transpose, (input, dim0, dim1))


_op_unsqueeze = OPS["unsqueeze"]


def unsqueeze(input, dim) -> Any:
    return call(_op_unsqueeze, (input, dim))
