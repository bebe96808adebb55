"""What calls of creating and copying functions with plain arguments come down to.

Each function here gets the arguments of the public function of the same name and gives the operator
and its arguments, or None when the long way must be taken. None for an operator means: the tensor
itself. Calls are known by the spec of a tensor, so no answer may depend on its values.
Knows how arguments are read, not how anything runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import dtype as dt
from ..core.layout import contiguous_strides
from ..core.memory_format import preserve_format
from .copy import format_strides
from .options import fitting, options
from .ranges import range_length
from .registry import OPS
from .sizes import new_shape

Shortcut = tuple[Any, tuple[Any, ...]] | None


def _full(op: str, value: Any) -> Callable[..., Shortcut]:
    def made(*size: Any, dtype: Any = None) -> Shortcut:
        if hasattr(size[0], "_spec"):
            return None
        shape = new_shape(op, size)
        wanted = options(op, dtype, None, None, False)
        return OPS["_full"], (shape, contiguous_strides(shape), value, *wanted)

    return made


def _like(op: str, value: Any) -> Callable[..., Shortcut]:
    def made(input: Any, dtype: Any = None) -> Shortcut:
        spec = input._spec
        kind, place = options(op, dtype, None, None, False, default=spec.dtype, place=spec.device)
        strides = format_strides(op, spec, preserve_format)
        if value is None:
            return OPS["_empty"], (spec.shape, strides, kind, place)
        return OPS["_full"], (spec.shape, strides, fitting(op, value, kind), kind, place)

    return made


def _empty(*size: Any, dtype: Any = None) -> Shortcut:
    if hasattr(size[0], "_spec"):
        return None
    shape = new_shape("empty", size)
    wanted = options("empty", dtype, None, None, False)
    return OPS["_empty"], (shape, contiguous_strides(shape), *wanted)


def _arange(*given: Any, dtype: Any = None) -> Shortcut:
    wanted, place = options("arange", dtype or dt.int64, None, None, False)
    if any(v.__class__ is not int for v in given) or wanted.category not in (dt.INT, dt.FLOAT):
        return None
    first, last, by = (0, *given, 1) if len(given) == 1 else (*given, 1)[:3]
    size = range_length(first, last, by, wanted)
    return OPS["_arange"], (first, by, size, wanted, place)


def _clone(input: Any) -> Shortcut:
    strides = format_strides("clone", input._spec, preserve_format)
    return OPS["_copy_as"], (input, input._spec.dtype, strides)


def _to(input: Any, dtype: Any = None) -> Shortcut:
    if not isinstance(dtype, dt.dtype):
        return None
    if input._spec.dtype is dtype:
        return None, (input,)
    strides = format_strides("to", input._spec, preserve_format)
    return OPS["_copy_as"], (input, dtype, strides)


def _caster(dtype: dt.dtype) -> Callable[[Any], Shortcut]:
    return lambda input: _to(input, dtype)


FUNCTIONS: dict[str, Callable[..., Shortcut]] = {
    "zeros": _full("zeros", 0),
    "ones": _full("ones", 1),
    "empty": _empty,
    "arange": _arange,
    "zeros_like": _like("zeros_like", 0),
    "ones_like": _like("ones_like", 1),
    "empty_like": _like("empty_like", None),
    "clone": _clone,
}
METHODS: dict[str, Callable[..., Shortcut]] = {
    "clone": _clone,
    "to": _to,
    "double": _caster(dt.float64),
    "float": _caster(dt.float32),
    "half": _caster(dt.float16),
    "bfloat16": _caster(dt.bfloat16),
    "long": _caster(dt.int64),
    "int": _caster(dt.int32),
    "short": _caster(dt.int16),
    "bool": _caster(dt.bool_),
    "byte": _caster(dt.uint8),
}
