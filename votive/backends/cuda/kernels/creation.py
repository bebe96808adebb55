"""New tensors: without values, of one value, the identity."""

from __future__ import annotations

from ....core import dtype as dt
from ....core.device import device
from ...common.slot import Slot
from ..programs.fill import bits, can_fill, fill_view
from ..programs.index_space import IndexSpace, word
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View


@cuda("_full")
def full(size: tuple[int, ...], stride: tuple[int, ...], value: Slot, dtype: dt.dtype, device: device) -> Run:
    if not can_fill(dtype) or (isinstance(value.spec, complex) and not dtype.is_complex):
        return None
    return lambda outs, value: fill_view(outs[0], value)


def _complex_eye(outs: list[View]) -> None:
    spec = outs[0].spec
    fill_view(outs[0], 0)
    shape, strides = (min(spec.shape),), (sum(spec.strides),)
    fill_view(View(outs[0].ptr, spec.like(shape, strides=strides), outs[0].storage), 1)


@cuda("_eye")
def eye(n: int, m: int, dtype: dt.dtype, device: device) -> Run:
    if dtype is dt.complex128:
        return _complex_eye
    if word(dtype) is None:
        return None
    one = bits(1, dtype)
    p = IndexSpace((n, m), [(m, 1)], apart=(0, 1))
    body = [p.store(f"tl.where({p.at(0)} == {p.at(1)}, v, 0).to(o.dtype.element_ty)")]
    run = p.kernel("eye", {"o": word(dtype), "v": "i64"}, body)
    return lambda outs: run(outs[0].ptr, one)


@cuda("_empty")
def empty(size: tuple[int, ...], stride: tuple[int, ...], dtype: dt.dtype, device: device) -> Run:
    return lambda outs: None
