"""Binding of structured kernels on the CPU: static arguments in place, results made ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core.layout import Spec
from ..base import Row
from .quiet import QUIET, quiet_reset, quiet_set

_NARROW = {d.np for d in (*dt.HALF, *dt.FLOAT8)}


def widen(v: Any) -> Any:
    """Half types as float32: arithmetic on them is done there."""
    if isinstance(v, list):
        return [widen(x) for x in v]
    if isinstance(v, np.ndarray) and v.dtype in _NARROW:
        return v.astype(np.float32)
    return v


def is_narrow(specs: list[Spec]) -> bool:
    return any(s.dtype.np in _NARROW for s in specs)


def caller(row: Row, template: list[Any], slots: list[int], narrow: bool) -> Callable[..., Any]:
    """A function of the runtime values that calls the kernel quietly."""
    fn = row.fn
    widening = row.widen and narrow

    if slots == [0] and not widening:
        rest = tuple(template[1:])

        def run_one(values: Any, **out: Any) -> Any:
            token = quiet_set(QUIET)
            try:
                return fn(values[0], *rest, **out)
            finally:
                quiet_reset(token)

        return run_one

    def run(values: Any, **out: Any) -> Any:
        args = template.copy()
        for i, v in zip(slots, values, strict=True):
            args[i] = widen(v) if widening else v
        token = quiet_set(QUIET)
        try:
            return fn(*args, **out)
        finally:
            quiet_reset(token)

    return run


def bind(
    backend: Any,
    row: Row,
    template: list[Any],
    slots: list[int],
    values: tuple[Any, ...],
    specs: list[Spec],
    outs: tuple[Spec, ...] | None,
    single: bool,
) -> tuple[Callable[..., Any], Callable[[Any, Any], None] | None] | None:
    """`compute(*values) -> ((storage, data, spec), ...)`, and `into(values, out)` if the kernel
    can.
    """
    if row.kernel:
        from .native.rows import launch

        bound = None if outs is None else launch(row, template, slots, values, outs)
        return None if bound is None else (bound, bound.into)
    run = caller(row, template, slots, is_narrow(specs))
    if row.into:
        assert outs is not None

        def fill(*values: Any) -> tuple[Any, ...]:
            made = [backend.empty(s) for s in outs]
            arrays = [data for _, data in made]
            run(values, out=arrays[0] if single else arrays)
            return tuple([(st, data, s) for (st, data), s in zip(made, outs, strict=True)])

        def into(values: Any, out: Any) -> None:
            run(values, out=out)

        return fill, into

    def compute(*values: Any) -> tuple[Any, ...]:
        result = run(values)
        if single:
            return (backend.adopt(result, outs[0] if outs else None, values),)
        wanted = outs or (None,) * len(result)
        return tuple([backend.adopt(r, s, values) for r, s in zip(result, wanted, strict=True)])

    return compute, None
