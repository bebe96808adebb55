"""Tensors on their way between the host and a GPU, and from one GPU to another. Knows views, arrays
and streams, no operators.

With `non_blocking` a copy from or to page-locked memory is only begun; whoever looks at the memory
before the stream came so far sees what was there before. Everything else ends before it returns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.device import cpu, device
from ....core.layout import Layout, Spec
from .. import runtime as rt
from ..runtime.pinned import PinnedStorage, used
from ..runtime.views import View, empty, to_device, to_host, wait
from .copy import copy_view


def spec_of(array: np.ndarray, device: device = cpu) -> Spec:
    """The spec of an array."""
    kind = dt.from_numpy(array.dtype)
    layout = Layout(array.shape, tuple(s // kind.itemsize for s in array.strides))
    return Spec(layout, kind, device)


def _flat(array: Any) -> Any:
    """The memory of an array without holes, in the order in which it lies."""
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    return array.transpose(order).reshape(-1)


def upload(to: View, array: Any, non_blocking: bool = False) -> None:
    """Fill a view without holes from an array of the same dtype and order."""
    flat = _flat(array)
    to_device(to.ptr, flat)
    if flat.nbytes and used(flat.__array_interface__["data"][0]) and not non_blocking:
        if not rt.here.capturing:
            wait()  # the caller may write over it


def download(array: Any, source: View, non_blocking: bool = False) -> None:
    """Fill an array without holes from a view of the same dtype and order."""
    flat = _flat(array)
    if not flat.nbytes:
        return
    address = flat.__array_interface__["data"][0]
    assert address == array.__array_interface__["data"][0]
    if not used(address) or not non_blocking:
        to_host(flat, source.ptr)
        return
    if rt.here.capturing:
        rt.here.kept.append(array)
    rt.runtime.driver.to_host(address, source.ptr, flat.nbytes, rt.here.stream)


def without_holes(v: View) -> View:
    """A view without holes on the same values."""
    wanted = v.spec.dense_like()
    if wanted is v.spec:
        return v
    made = empty(wanted)
    copy_view(made, v)
    return made


def from_host(array: Any, spec: Spec, non_blocking: bool = False) -> View:
    """An array as new memory of a GPU; `spec` is dense."""
    made = empty(spec)
    if spec.numel:
        have = spec_of(array)
        if have.layout is not spec.layout or have.dtype is not spec.dtype:
            flat = np.empty(spec.numel, spec.dtype.np)
            laid = np.ndarray(spec.shape, spec.dtype.np, flat, 0, spec.byte_strides)
            with np.errstate(all="ignore"):
                np.copyto(laid, array, casting="unsafe")
            array = laid
        upload(made, array, non_blocking)
    return made


def to_host_copy(v: View, non_blocking: bool) -> tuple[Any, Any, Spec]:
    """(storage, array, spec) of a view's values on the host; page-locked if nobody is to wait."""
    from ...base import BACKENDS

    v = without_holes(v)
    spec = v.spec.like(device=cpu)
    if non_blocking and spec.nbytes:
        storage: Any = PinnedStorage(spec.nbytes)
        array = np.ndarray(spec.shape, spec.dtype.np, storage.memory, 0, spec.byte_strides)
    else:
        storage, array = BACKENDS["cpu"].empty(spec)
    download(array, v, non_blocking)
    return storage, array, spec


def to_other_device(v: View, there: Any) -> View:
    """A view's values on another GPU. Each side's current stream waits for the other's."""
    driver = rt.runtime.driver
    home, away = v.spec.device.index or 0, there.index or 0
    with rt.on(home):
        v = without_holes(v)
    made = empty(v.spec.like(device=there))
    if not v.spec.nbytes:
        return made
    here, other = rt.here.stream_of(home), rt.here.stream_of(away)
    wait_for_stream(home, here, away, other)  # the new memory may still be in use there
    with rt.on(home):
        driver.across(made.ptr, away, v.ptr, home, v.spec.nbytes, here)
    wait_for_stream(away, other, home, here)
    return made


def wait_for_stream(device: int, stream: int, first: int, source: int) -> None:
    """Let a stream wait for what another was given so far."""
    driver = rt.runtime.driver
    with driver.on(first):
        event = driver.new_event(False)
        driver.record(event, source)
    with driver.on(device):
        driver.hold(stream, event)
    driver.end_event(event)


def overwrite(to: Any, source: Any, non_blocking: bool) -> None:
    """Write one side's values over the other's: views and arrays of any layout and dtype."""
    if to.__class__ is not View:
        with rt.on(source.spec.device.index or 0):
            _to_array(to, source, non_blocking)
        return
    with rt.on(to.spec.device.index or 0):
        if source.__class__ is View:
            copy_view(to, to_other_device(source, to.spec.device))
            return
        have = spec_of(source)
        if have.layout is to.spec.layout and have.dtype is to.spec.dtype and _whole(to.spec):
            upload(to, source, non_blocking)
        else:
            wanted = have.dense_like().like(device=to.spec.device)
            copy_view(to, from_host(source, wanted, non_blocking))


def _whole(spec: Spec) -> bool:
    return spec.dense_like() is spec


def _to_array(to: np.ndarray, source: View, non_blocking: bool) -> None:
    wanted = spec_of(to, source.spec.device)
    if not wanted.numel:
        return
    if _whole(wanted):
        if wanted is not source.spec:
            made = empty(wanted)
            copy_view(made, source)
            source = made
        download(to, source, non_blocking)
        return
    from ...common.assign import assign

    _, array, _ = to_host_copy(source, False)
    assign(to, np.broadcast_to(array, to.shape))
