"""Copies between views of any layout and dtype, and to and from the host. Knows no operators."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.layout import Spec
from ....formula import Formula, var
from .. import runtime as rt
from ..runtime.views import View
from .program import TYPE

_SAME = Formula("copy", ("x",), var("x"))
_programs: dict[tuple[Spec, Spec], Any] = {}


def _compute(have: dt.dtype, want: dt.dtype) -> dt.dtype:
    """The type values pass through on their way; integers never through floats."""
    if have is want:
        return have
    return dt.compute_type(have)


def copy_view(to: View, source: View) -> None:
    """Write `source`, broadcast, over `to`, converting the dtype; the two must not overlap."""
    a, b = to.spec, source.spec
    if not a.numel:
        return
    if a.layout is b.layout and a.dtype is b.dtype and a.contiguous:
        rt.runtime.driver.between(to.ptr, source.ptr, a.nbytes, rt.here.stream)
        return
    how = _programs.get((a, b))
    if how is None:
        if len(_programs) > 4096:
            _programs.clear()
        how = _programs[a, b] = _build(a, b)
    if how is None:
        from .. import cpu_fallback

        cpu_fallback.warn_once("copy", f"from {b.dtype} to {a.dtype} has no CUDA kernel")
        cpu_fallback.store(cpu_fallback.fetch(source), to)
        return
    program, numbers, grid = how
    program(grid, to.ptr, source.ptr, *numbers)


def _build(to: Spec, source: Spec) -> Any:
    from .pointwise import build

    if to.dtype is source.dtype and (to.dtype.is_complex or to.dtype not in TYPE):
        return _build_bytes(to, source)
    compute = _compute(source.dtype, to.dtype)
    if to.dtype.is_complex or source.dtype.is_complex:
        # Integers of 64 bits need the digits of a double.
        wide = dt.float64 in (to.dtype.to_real(), source.dtype.to_real()) or dt.int64 in (to.dtype, source.dtype)
        compute = dt.complex128 if wide else dt.complex64
    if source.dtype in dt.FLOAT8:
        compute = dt.float32
    return build(_SAME, ["x"], [(source.dtype, compute, None)], [source], to)


def _build_bytes(to: Spec, source: Spec) -> Any:
    """Copy what kernels have no type for as integers of the same size."""
    from .complex_pointwise import pairs_of
    from .pointwise import build

    if to.dtype is dt.complex128:
        # Two words per element: a further dimension of doubles.
        return build(_SAME, ["x"], [(dt.float64, dt.float64, None)], [pairs_of(source)], pairs_of(to))
    kind: Any = {8: dt.int64, 4: dt.int32, 2: dt.int16, 1: dt.uint8}[to.dtype.itemsize]
    return build(_SAME, ["x"], [(kind, kind, None)], [source.like(dtype=kind)], to.like(dtype=kind))
