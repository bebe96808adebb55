"""Rows of NumPy kernels: static arguments in place, half types widened, results made ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import dtype as dt
from ..base import FUNCTION_ROWS, Bound, Request, Row
from .quiet import QUIET, quiet_reset, quiet_set

_NARROW = {d.np for d in (*dt.HALF, *dt.FLOAT8)}


@dataclass(frozen=True, kw_only=True)
class ReferenceRow(Row):
    """A function of arrays. `widen`: half types arrive as float32. `into`: it writes into arrays given as `out=`."""

    widen: bool = True
    into: bool = False

    def bind(self, request: Request) -> Bound:
        run = _caller(self, request)
        return _filling(run, request) if self.into else _adopting(run, request)


FUNCTION_ROWS["cpu"] = ReferenceRow


def widen(v: Any) -> Any:
    """Half types as float32: arithmetic on them is done there."""
    if isinstance(v, list):
        return [widen(x) for x in v]
    if isinstance(v, np.ndarray) and v.dtype in _NARROW:
        return v.astype(np.float32)
    return v


def _caller(row: ReferenceRow, request: Request) -> Callable[..., Any]:
    """A function of the runtime values that calls the kernel quietly."""
    fn, slots = row.fn, request.slots
    widening = row.widen and any(s.dtype.np in _NARROW for s in request.specs)

    if slots == (0,) and not widening:
        rest = request.args[1:]

        def run_one(values: Any, **out: Any) -> Any:
            token = quiet_set(QUIET)
            try:
                return fn(values[0], *rest, **out)
            finally:
                quiet_reset(token)

        return run_one

    template = list(request.args)

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


def _filling(run: Callable[..., Any], request: Request) -> Bound:
    """A kernel that writes into memory made for it."""
    outs, single, empty = request.outs, request.single, request.backend.empty
    assert outs is not None

    def compute(*values: Any) -> tuple[Any, ...]:
        made = [empty(s) for s in outs]
        arrays = [data for _, data in made]
        run(values, out=arrays[0] if single else arrays)
        return tuple([(st, data, s) for (st, data), s in zip(made, outs, strict=True)])

    def into(values: Any, out: Any) -> None:
        run(values, out=out)

    return Bound(compute, into)


def _adopting(run: Callable[..., Any], request: Request) -> Bound:
    """A kernel that returns arrays of its own."""
    outs, single, adopt = request.outs, request.single, request.backend.adopt

    def compute(*values: Any) -> tuple[Any, ...]:
        result = run(values)
        if single:
            return (adopt(result, outs[0] if outs else None, values),)
        wanted = outs or (None,) * len(result)
        return tuple([adopt(r, s, values) for r, s in zip(result, wanted, strict=True)])

    return Bound(compute)
