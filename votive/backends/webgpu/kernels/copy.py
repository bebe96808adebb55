"""Rows that move data: between devices, casts, copies, fills."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.device import device
from ....core.errors import DeviceError
from ....core.layout import Layout, Spec
from ...base import BACKENDS
from ...common.assign import assign
from ...common.slot import Slot
from .. import cpu_fallback
from ..rows import Run, Whole, webgpu
from ..runtime.views import View, empty, to_device
from ..shaders.copy import copy_view


@webgpu("_to_device")
def _to(x: Slot, device: device, non_blocking: bool) -> Whole:
    if device.type == "webgpu":
        raise DeviceError(f"to: tensors move between {device} and the CPU only.")
    if device.type != "cpu":
        raise DeviceError(
            f"to: a tensor of {x.spec.device} reaches {device} through the CPU: x.cpu().to({str(device)!r})."
        )

    def home(v: View) -> tuple[Any, ...]:
        spec = v.spec.dense_like()
        if spec is not v.spec:
            made = empty(spec)
            copy_view(made, v)
            v = made
        there = spec.like(device=device)
        storage, array = BACKENDS["cpu"].empty(there)
        array[...] = cpu_fallback.fetch(v)
        return ((storage, array, there),)

    return Whole(home)


@webgpu("_transfer_")
def overwrite(x: Slot, src: Slot, non_blocking: bool) -> Whole:
    def run(to: Any, source: Any) -> tuple[Any, ...]:
        if to.__class__ is not View:
            assign(to, np.broadcast_to(cpu_fallback.fetch(source), to.shape))
        elif source.__class__ is View:
            copy_view(to, source)
        else:
            have = Spec(Layout(source.shape), dt.from_numpy(source.dtype), to.spec.device)
            whole = to.spec is have.like(dtype=to.spec.dtype) and to.offset == 0
            if whole and to.storage.nbytes == to.spec.nbytes:
                flat = np.empty(source.shape, to.spec.dtype.np)
                with np.errstate(all="ignore"):
                    np.copyto(flat, source, casting="unsafe")
                to_device(to.storage, flat)
            else:
                copy_view(to, cpu_fallback.uploaded(source, have))
        return ()

    return Whole(run)


@webgpu("_copy_as")
def copy_as(x: Slot, dtype: dt.dtype, stride: tuple[int, ...]) -> Run:
    def run(outs: list[View], x: View) -> None:
        copy_view(outs[0], x)

    return run


@webgpu("copy", into=True, careful=True)
def copy(x: Slot, src: Slot) -> Run:
    def run(outs: list[View], x: View, src: View) -> None:
        to = outs[0]
        if src.storage is to.storage and (src.offset != to.offset or src.spec is not to.spec):
            # The two may overlap: read everything before the first write.
            apart = empty(src.spec.dense_like())
            copy_view(apart, src)
            src = apart
        copy_view(to, src)

    return run
