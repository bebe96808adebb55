"""Copies between views of any layout and dtype. Knows no operators."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.layout import Spec
from ....formula import Formula, var
from ..runtime.views import View
from . import types
from .pointwise import Made, build

_SAME = Formula("copy", ("x",), var("x"))
_made: dict[tuple[Spec, Spec], Made | None] = {}
# What kernels only move, as integers of the same size.
_BYTES = {1: dt.uint8, 2: dt.uint16, 4: dt.uint32}


def copy_view(to: View, source: View) -> None:
    """Write `source`, broadcast, over `to`, converting the dtype; the two must not overlap."""
    a, b = to.spec, source.spec
    if not a.numel:
        return
    if (a, b) not in _made:
        if len(_made) > 4096:
            _made.clear()
        _made[a, b] = _build(a, b)
    how = _made[a, b]
    if how is None:
        from .. import cpu_fallback

        cpu_fallback.warn_once(
            "copy", f"from {b.dtype} to {a.dtype} has no WebGPU kernel", frozenset((a.dtype, b.dtype))
        )
        cpu_fallback.store(cpu_fallback.fetch(source), to)
        return
    if a.dtype is b.dtype and a.dtype.itemsize == 16:
        to, source = View(to.storage, 2 * to.offset, a), View(source.storage, 2 * source.offset, b)
    how.program(how.groups, [to, source], *how.values)


def _build(to: Spec, source: Spec) -> Made | None:
    if to.dtype is source.dtype:
        return moving(to, source)
    if to.dtype not in types.NUMBERS or source.dtype not in types.NUMBERS:
        return None
    compute = dt.compute_type(source.dtype)
    return build(_SAME, ["x"], [(source.dtype, compute, None)], [source], to)


def moving(to: Spec, source: Spec) -> Made | None:
    """A copy without conversion: the bits stay as they are."""
    size = to.dtype.itemsize
    if size <= 4:
        kind = _BYTES[size]
        return build(_SAME, ["x"], [(kind, kind, None)], [source.like(dtype=kind)], to.like(dtype=kind))
    if size == 8:
        return build(_SAME, ["x"], [(dt.int64, dt.int64, None)], [source.like(dtype=dt.int64)], to.like(dtype=dt.int64))
    # Two pairs of words per element: a further dimension.
    return build(_SAME, ["x"], [(dt.int64, dt.int64, None)], [pairs_of(source)], pairs_of(to))


def pairs_of(spec: Spec) -> Spec:
    """Elements of 16 bytes as two of 8."""
    return spec.like((*spec.shape, 2), dtype=dt.int64, strides=(*[2 * s for s in spec.strides], 1))
