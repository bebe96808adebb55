"""What a plan depends on: the key that arguments are known by, and which of them a plan runs on."""

from __future__ import annotations

import sys
from typing import Any

from ..backends.cpu.native.loader import module as native
from ..ops.operator import Form, Op
from ..ops.schema import REQUIRED, Arg


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


def key_expressions(args: tuple[Arg, ...], names: list[str]) -> tuple[str, str, str]:
    """(the key when static arguments are at their defaults, the test of that, the key otherwise) as Python text;
    the default of the i-th argument is called `d<i>`.

    Runtime parts come first, then position, type and value of each static argument that is not its default.
    One part alone is the key itself. src/python/execute.cpp makes the same keys.
    """
    parts = [_PARTS[letter(a)].format(n) for a, n in zip(args, names, strict=True) if a.is_runtime]
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
    op.key = eval(f"lambda a: {plain} if {test} else {full}" if test else f"lambda a: {plain}", scope)
    op.values = eval(f"lambda a: ({values})", scope)
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
