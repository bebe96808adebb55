"""Rows that move data: between devices, casts, copies, fills."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from . import moves
from .copy import copy_view
from .data import View
from .data import empty as new
from .rows import Whole, cuda


@cuda("_to_device")
def to_device(x: Any, device: Any, non_blocking: bool) -> Any:
    if device.type == "cuda":

        def across(x: View) -> tuple[Any, ...]:
            made = moves.crossed(x, device)
            return ((made.storage, made, made.spec),)

        return Whole(across)

    def home(x: View) -> tuple[Any, ...]:
        return (moves.returned(x, non_blocking),)

    return Whole(home)


@cuda("_transfer_")
def transfer(x: Any, src: Any, non_blocking: bool) -> Any:
    def run(to: Any, source: Any) -> tuple[Any, ...]:
        moves.overwrite(to, source, non_blocking)
        return ()

    return Whole(run)


@cuda("_copy_as")
def copy_as(x: Any, dtype: dt.dtype, stride: Any) -> Any:
    def run(outs: list[View], x: View) -> None:
        copy_view(outs[0], x)

    return run


@cuda("copy", into=True)
def copy(x: Any, src: Any) -> Any:
    def run(outs: list[View], x: View, src: View) -> None:
        to = outs[0]
        if src.storage is to.storage and src.ptr != to.ptr:
            # The two may overlap: read everything before the first write.
            apart = new(src.spec.dense_like())
            copy_view(apart, src)
            src = apart
        copy_view(to, src)

    return run


@cuda("_empty")
def empty(size: Any, stride: Any, dtype: Any, device: Any) -> Any:
    return lambda outs: None
