"""Rows that move data: between devices, casts, copies, fills."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from ....core.device import device
from ...common.slot import Slot
from ..programs import transfer
from ..programs.copy import copy_view
from ..programs.types import Run
from ..rows import Whole, cuda
from ..runtime.views import View
from ..runtime.views import empty as new


@cuda("_to_device")
def to_device(x: Slot, device: device, non_blocking: bool) -> Whole:
    if device.type == "cuda":

        def across(x: View) -> tuple[Any, ...]:
            made = transfer.to_other_device(x, device)
            return ((made.storage, made, made.spec),)

        return Whole(across)

    def home(x: View) -> tuple[Any, ...]:
        return (transfer.to_host_copy(x, non_blocking),)

    return Whole(home)


@cuda("_transfer_")
def overwrite(x: Slot, src: Slot, non_blocking: bool) -> Whole:
    def run(to: Any, source: Any) -> tuple[Any, ...]:
        transfer.overwrite(to, source, non_blocking)
        return ()

    return Whole(run)


@cuda("_copy_as")
def copy_as(x: Slot, dtype: dt.dtype, stride: tuple[int, ...]) -> Run:
    def run(outs: list[View], x: View) -> None:
        copy_view(outs[0], x)

    return run


@cuda("copy", into=True, careful=True)
def copy(x: Slot, src: Slot) -> Run:
    def run(outs: list[View], x: View, src: View) -> None:
        to = outs[0]
        if src.storage is to.storage and (src.ptr != to.ptr or src.spec is not to.spec):
            # The two may overlap: read everything before the first write.
            apart = new(src.spec.dense_like())
            copy_view(apart, src)
            src = apart
        copy_view(to, src)

    return run
