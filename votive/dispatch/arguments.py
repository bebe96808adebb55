"""Arguments: as users pass them they become what schemas name, or a TypeError says why not; and the key that a plan for
them is known by.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..backends.cpu.native.loader import module as native
from ..core import dtype as dt
from ..core.errors import foreign_array, received
from ..ops.operator import Form, Op
from ..ops.schema import REQUIRED, Arg
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
        return v.__index__()  # which may be more than an int, see compiler/symbols.py
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
    if isinstance(v, (int, float)):
        return v
    raise _wrong(op, a, f"a number, got {type(v).__name__}")


def _as_tensor(op: str, a: Arg, v: object) -> Any:
    if isinstance(v, state.tensor):
        return v
    if a.type == "Operand" and isinstance(v, (int, float, bool, complex, np.generic)):
        return v.item() if isinstance(v, np.generic) else v
    wanted = "a Tensor or a number" if a.type == "Operand" else "a Tensor"
    raise _wrong(op, a, f"{wanted}, got {received(v)}")


def _normal(op: str, a: Arg, v: object) -> Any:
    if v is None:
        if a.optional:
            return None
        raise TypeError(f"{called(op)}: argument {a.name!r} must not be None.")
    if a.is_list:
        if a.type == "int" and isinstance(v, int) and not isinstance(v, bool):
            return (v.__index__(),)
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
        n = _as_number(op, a, v)
        return n if isinstance(n, float) else float(n)
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


def as_dtype(op: str, v: object) -> dt.dtype:
    """The dtype meant by an argument; Python's own types are accepted as in torch."""
    if isinstance(v, dt.dtype):
        return v
    if v in _PY_DTYPES:
        return dt.by_name(_PY_DTYPES[v])
    raise TypeError(f"{called(op)}: dtype must be a votive.dtype, got {v!r}.")


def normalise(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with the types that the schema names, or a TypeError."""
    return tuple(_normal(op.name, a, v) for a, v in zip(op.schema.args, args, strict=True))


# --- keys: what a plan depends on -----------------------------------------------------------------


def letter(a: Arg) -> str:
    """What the native class of operators must know of an argument, see src/python/operator.h."""
    if a.is_list and a.is_tensor:
        return "l"
    if a.type == "Operand":
        return "o"
    if a.is_tensor:
        return "T" if a.optional else "t"
    return "n" if a.type == "Scalar" else "s"


_PARTS = {
    # Only lists: a tensor iterates over its rows, whose specs may be those of another call.
    "l": "({0}.__class__ in (tuple, list) and tuple([t._spec for t in {0}]))",
    "o": "({0}._spec if hasattr({0}, '_spec') else {0}.__class__)",
    "T": "(None if {0} is None else {0}._spec)",
    "t": "{0}._spec",
    "n": "{0}.__class__",
}


def key_expressions(args: tuple[Arg, ...], names: list[str], any_operand: bool = False) -> tuple[str, str, str]:
    """(the key when static arguments are at their defaults, the test of that, the key otherwise) as Python text;
    the default of the i-th argument is called `d<i>`.

    Runtime parts come first, then position, type and value of each static argument that is not its default.
    One part alone is the key itself. src/python/execute.cpp makes the same keys. `any_operand`: an argument that must
    be a tensor is looked at like one that may be a number.
    """
    letters = [letter(a) for a in args]
    if any_operand:
        letters = ["o" if k == "t" else k for k in letters]
    parts = [_PARTS[k].format(n) for k, n in zip(letters, names, strict=True) if k != "s"]
    static = [(i, n) for i, (a, n) in enumerate(zip(args, names, strict=True)) if not a.is_runtime]
    plain = parts[0] if len(parts) == 1 else f"({''.join(p + ', ' for p in parts)})"
    others = " ".join(f"+ (() if {n} is d{i} else ({i}, {n}.__class__, {n}))" for i, n in static)
    full = f"({''.join(p + ', ' for p in parts)}) {others}"
    return plain, " and ".join(f"{n} is d{i}" for i, n in static), full


def defaults_by_name(op: Op) -> dict[str, Any]:
    """The names that key expressions use."""
    return {f"d{i}": a.default for i, a in enumerate(op.schema.args)}


def configure(op: Op) -> None:
    """Give an operator two functions of its argument tuple, the plan key and the runtime values, and let the native
    class know its arguments.
    """
    args = op.schema.args
    plain, test, full = key_expressions(args, [f"a[{i}]" for i in range(len(args))])
    values = "".join(f"a[{i}], " for i, a in enumerate(args) if a.is_runtime)
    scope = defaults_by_name(op)
    # Another thread takes an operator that has a key for one that has all.
    op.values = eval(f"lambda a: ({values})", scope)
    op.key = eval(f"lambda a: {plain} if {test} else {full}" if test else f"lambda a: {plain}", scope)
    if not op.mutates:  # kernels that write into arguments are always watched
        _tell_native(op, op, writes=False, reflected=False)


def configure_form(form: Form) -> None:
    """The same for an operator's other forms, which share its plans."""
    of = form.of
    if isinstance(of, Op) and not of.mutates and of.kind != "view":
        _tell_native(form, of, writes="in place" in form.kind, reflected=form.kind == "reflected")


def _tell_native(form: Op | Form, op: Op, *, writes: bool, reflected: bool) -> None:
    if native is None:
        return
    args = op.schema.args
    letters = "".join(letter(a) for a in args)
    assert all((k != "s") == a.is_runtime for k, a in zip(letters, args, strict=True)), op.name
    defaults = tuple(... if a.default is REQUIRED else a.default for a in args)
    names = tuple(sys.intern(a.name) for a in args)  # the native class compares addresses
    form._configure(
        letters, names, defaults, op.positional, op.plans, op.kind, op.n_out, op.differentiable, writes, reflected
    )
