"""Arguments as users pass them become what schemas name, or a TypeError says why not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.errors import foreign_array, received
from ..ops.registry import Op
from ..ops.schema import Arg
from .failure import called
from .state import state


def _wrong(op: str, a: Arg, wanted: str) -> TypeError:
    return TypeError(f"{called(op)}: argument {a.name!r} must be {wanted}.")


def _as_int(op: str, a: Arg, v: Any) -> int:
    if v.__class__ is int:
        return int(v)
    if isinstance(v, (bool, float, complex, str)) or v is None or foreign_array(v):
        raise _wrong(op, a, f"int, got {type(v).__name__}")
    try:
        return int(v.__index__())
    except AttributeError:
        raise _wrong(op, a, f"int, got {type(v).__name__}") from None


def _as_number(op: str, a: Arg, v: object) -> Any:
    if v.__class__ in (int, float, bool, complex):
        return v
    if isinstance(v, np.generic):
        return v.item()
    if isinstance(v, state.tensor):
        if v.ndim:
            raise _wrong(op, a, f"a number, got shape {v.shape}")
        return v.item()
    raise _wrong(op, a, f"a number, got {type(v).__name__}")


def _as_tensor(op: str, a: Arg, v: object) -> Any:
    if isinstance(v, state.tensor):
        return v
    if a.type == "Operand" and isinstance(v, (int, float, bool, complex, np.generic)):
        return v.item() if isinstance(v, np.generic) else v
    wanted = "a Tensor or a number" if a.type == "Operand" else "a Tensor"
    raise _wrong(op, a, f"{wanted}, got {received(v)}")


def _normal(op: str, a: Arg, v: Any) -> Any:
    if v is None:
        if a.optional:
            return None
        raise TypeError(f"{called(op)}: argument {a.name!r} must not be None.")
    if a.is_list:
        if a.type == "int" and isinstance(v, int) and not isinstance(v, bool):
            return (int(v),)
        if isinstance(v, (str, bytes)) or not hasattr(v, "__iter__"):
            if a.type in ("int", "float"):
                v = (v,)
            else:
                raise _wrong(op, a, f"a list, got {type(v).__name__}")
        if a.is_tensor and isinstance(v, state.tensor):
            raise _wrong(op, a, "a tuple of Tensors, got a Tensor")
        one = Arg(a.name, a.type, False, False, None, False)
        return tuple(_normal(op, one, x) for x in v)
    if a.is_tensor:
        return _as_tensor(op, a, v)
    if a.type == "int":
        return _as_int(op, a, v)
    if a.type in ("Scalar", "number"):
        return _as_number(op, a, v)
    if a.type == "float":
        return float(_as_number(op, a, v))
    if a.type == "bool":
        if isinstance(v, (bool, np.bool_)) or v in (0, 1):
            return bool(v)
        raise _wrong(op, a, f"bool, got {type(v).__name__}")
    if a.type == "str" and not isinstance(v, str):
        raise _wrong(op, a, f"str, got {type(v).__name__}")
    if a.type == "dtype":
        return as_dtype(op, v)
    return v


# As in torch, Python's own types name the widest of their kind, not the default type.
_PY_DTYPES: dict[Any, str] = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}


def as_dtype(op: str, v: Any) -> dt.dtype:
    """The dtype meant by an argument; Python's own types are accepted as in torch."""
    if isinstance(v, dt.dtype):
        return v
    if v in _PY_DTYPES:
        return dt.by_name(_PY_DTYPES[v])
    raise TypeError(f"{called(op)}: dtype must be a votive.dtype, got {v!r}.")


def normalise(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with the types that the schema names, or a TypeError."""
    return tuple(_normal(op.name, a, v) for a, v in zip(op.schema.args, args, strict=True))
