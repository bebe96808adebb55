"""Rows that move data: between devices, casts, copies, fills."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ..base import BACKENDS
from .copy import copy_view
from .data import View
from .data import empty as new
from .rows import Whole, cuda
from .trip import fetch


@cuda("_to_device")
def to_device(x: Any, device: Any) -> Any:
    if device.type == "cuda":

        def across(outs: list[View], x: View) -> None:
            if outs[0].spec.layout is x.spec.layout and x.spec.contiguous:
                from . import runtime as rt

                rt.runtime.driver.synchronize()
                rt.runtime.driver.between(outs[0].ptr, x.ptr, x.spec.nbytes, rt.here.stream)
                rt.runtime.driver.synchronize()
            else:
                made = BACKENDS["cuda"].receive(fetch(x), outs[0].spec)
                copy_view(outs[0], made)

        return across

    def home(x: View) -> tuple[Any, ...]:
        array = fetch(x)
        return (BACKENDS["cpu"].adopt(array, x.spec.dense_like().like(device=device), ()),)

    return Whole(home)


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
