"""Elementwise operators on NumPy: a formula becomes a Python function over arrays.

Half types are widened to float32 first and rounded once at the end, whatever the formula's length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from ....core.dtype import dtype
from ....core.layout import Spec
from ....core.storage import SMALL
from ....formula import Formula, to_numpy
from ...common.integers import word64
from ...common.primitives import FUNCTIONS, UFUNCS
from ..arrays import Array
from ..quiet import QUIET, quiet_reset, quiet_set


def number_caster(compute: dtype) -> Callable[[Any], Any]:
    """How a Python number enters a computation in `compute`, wrapping integers as C does."""
    kind = compute.np.type
    if compute.np.kind in "iu":
        return lambda v: np.array(word64(int(v)), np.uint64).astype(compute.np)[()]
    if compute.np.kind == "f":
        return lambda v: kind(v.real if isinstance(v, complex) else v)
    return kind


def _through(via: dtype, compute: dtype) -> Callable[[Any], Any]:
    return lambda v: np.asarray(v).astype(via.np).astype(compute.np)


def direct_ufunc(formula: Formula, names: list[str]) -> Any:
    """The ufunc that is the whole formula, if there is one."""
    body = formula.body
    if body.op in UFUNCS and [a.value for a in body.args if a.op == "var"] == names:
        return UFUNCS[body.op] if len(body.args) == len(names) else None
    return None


def function_of(formula: Formula, names: list[str]) -> Callable[..., Any]:
    """The formula as a Python function of arrays."""
    source = to_numpy(formula.body, "_formula", names)
    scope = dict(FUNCTIONS)
    exec(compile(source, f"<formula {formula.name}>", "exec"), scope)
    return scope["_formula"]


def compile_formula(
    formula: Formula,
    names: list[str],
    roles: list[tuple[dtype | None, dtype, dtype | None]],
    inputs: list[Spec | None],
    out: Spec,
    empty: Callable[[Spec], tuple[Any, Any]],
) -> tuple[Callable[..., tuple[Any, Any]], Callable[[Any, Any], None]]:
    """Two functions: `compute(*values) -> (storage, data)` and `into(values, out data)`.

    `roles` gives for each input its dtype (None for a number), the type to compute in, and a type
    to round it to first (or None).
    """
    casts: list[tuple[int, Callable[[Any], Any]]] = []
    for i, (have, compute, via) in enumerate(roles):
        if via is not None:
            casts.append((i, _through(via, compute)))
        elif have is None:
            casts.append((i, number_caster(compute)))
        elif have is not compute:
            casts.append((i, methodcaller("astype", compute.np)))
    ufunc = direct_ufunc(formula, names)
    # The ufunc may write straight into the result when its own type is what is stored.
    if ufunc is not None and _result_type(ufunc, roles) != out.dtype.np:
        ufunc = None
    fn = None if ufunc is not None else function_of(formula, names)
    if ufunc is not None:
        # NumPy's ufuncs take a Python number in the type of the arrays, which is what we want.
        inexact = {i for i, (have, c, via) in enumerate(roles) if have is None and via is None and c.np.kind in "fc"}
        casts = [c for c in casts if c[0] not in inexact]

    def into(values: Sequence[Any], out: Array) -> None:
        token = quiet_set(QUIET)
        try:
            if casts:
                values = changed = list(values)
                for i, cast in casts:
                    changed[i] = cast(changed[i])
            if fn is None:
                ufunc(*values, out=out)
            else:
                np.copyto(out, fn(*values), casting="unsafe")
        finally:
            quiet_reset(token)

    if ufunc is None or casts:

        def general(*values: Any) -> tuple[Any, Any]:
            storage, data = empty(out)
            into(values, data)
            return storage, data

        return general, into

    # A ufunc allocates faster than we can ask for an array, where its layout is sure to be ours.
    alike = out.ndim > 0 and all(s is None or s.layout is out.layout for s in inputs)
    if out.nbytes < SMALL and out.layout.contiguous and alike:
        return _small(ufunc), into

    def direct(*values: Any) -> tuple[Any, Any]:
        storage, data = empty(out)
        token = quiet_set(QUIET)
        try:
            ufunc(*values, out=data)
        finally:
            quiet_reset(token)
        return storage, data

    return direct, into


def _small(ufunc: np.ufunc) -> Callable[..., tuple[Any, Any]]:
    """The shortest way to a small result; its storage is made when somebody asks for it."""
    enter, leave, quiet = quiet_set, quiet_reset, QUIET

    def one(x: Array) -> tuple[Any, Any]:
        token = enter(quiet)
        try:
            data = ufunc(x)
        finally:
            leave(token)
        return None, data

    def two(x: Array, y: Array) -> tuple[Any, Any]:
        token = enter(quiet)
        try:
            data = ufunc(x, y)
        finally:
            leave(token)
        return None, data

    return one if ufunc.nin == 1 else two


def _result_type(ufunc: np.ufunc, roles: list[tuple[dtype | None, dtype, dtype | None]]) -> Any:
    if len({compute for _, compute, _ in roles}) != 1:
        return None
    token = quiet_set(QUIET)
    try:
        return ufunc(*(np.ones((), compute.np) for _, compute, _ in roles)).dtype
    except TypeError:
        return None
    finally:
        quiet_reset(token)
