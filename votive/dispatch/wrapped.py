"""Tensors whose class computes in its own way (sparse, masked, nested): how their calls leave the usual path.

No plan is made for such tensors: their specs are not those that plans are known by, so that calls of operators come
to the general way by themselves. There, and where the function of a composite would run, `elsewhere` is asked
first. As long as no such tensor was made nobody asks.
"""

from __future__ import annotations

from typing import Any

from ..backends.cpu.native.loader import module as native
from ..core.device import device as Device
from ..core.dtype import dtype as Dtype
from ..core.layout import Layout, Shape, Spec
from ..ops.operator import Operator


class OwnSpec(Spec):
    """Shape, dtype and device of a wrapped tensor: one for each tensor, so that it is nobody's key."""

    __slots__ = ()

    def __new__(cls, shape: Shape, dtype: Dtype, device: Device, strides: Shape | None = None) -> OwnSpec:
        layout = Layout(tuple(shape), strides)
        made = object.__new__(cls)
        made.layout, made.dtype, made.device = layout, dtype, device
        made.shape, made.strides, made.numel, made.ndim = layout.shape, layout.strides, layout.numel, layout.ndim
        made.byte_strides = tuple(s * dtype.itemsize for s in layout.strides)
        made.nbytes = layout.numel * dtype.itemsize
        return made


def wrapped_among(base: type, values: Any) -> Any:
    """The wrapped tensor, among values and lists of them, whose class decides; None without one."""
    found = None
    for v in values:
        if isinstance(v, (tuple, list)):
            v = wrapped_among(base, v)
        if isinstance(v, base) and (found is None or v._precedence > found._precedence):  # type: ignore[attr-defined]
            found = v
    return found


def install(base: type) -> None:
    """From now on calls with tensors of this class, or of one derived from it, go to its `_call`."""

    def elsewhere(name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        found = wrapped_among(base, (*args, *kwargs.values()))
        return NotImplemented if found is None else found._call(name, op, args, kwargs)

    Operator.elsewhere = staticmethod(elsewhere)
    if native is not None:
        native.set_wrapped(base)
