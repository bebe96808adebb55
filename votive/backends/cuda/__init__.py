"""The GPU: device memory from the CUDA driver, kernels from Triton, products from cuBLASLt.

torch is never imported. Importing this package starts nothing; `backend()` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dlpack
from ...core.device import cpu
from ...core.device import device as Device
from ...core.dtype import from_numpy
from ...core.layout import Layout, Spec, extent
from ...core.storage import Storage, memory
from . import runtime as rt
from .precision import matmul as matmul


class CudaBackend:
    """See `backends.base.Backend`."""

    name = "cuda"

    def __init__(self) -> None:
        rt.begin()
        from . import cpu_fallback, kernels
        from .programs import copy, pointwise, transfer
        from .runtime import fast_path, pinned, views

        kernels.load()
        self._copy, self._cpu_fallback, self._views, self._fast_path = copy, cpu_fallback, views, fast_path
        self._transfer, self._pinned, self._pointwise = transfer, pinned, pointwise
        memory.is_pinned = pinned.is_pinned

    def pointwise(self, formula: Any, names: Any, roles: Any, inputs: Any, out: Spec, empty: Any) -> tuple[Any, Any]:
        """See `backends.base.Backend.pointwise`."""
        made = self._pointwise.compile_formula(formula, names, roles, inputs, out, empty)
        compute, into = (rt.guarded(fn, out.device.index or 0) for fn in made)
        return compute, into

    def map_reduce(self, *args: Any) -> Any:
        """A formula under a reduction as one kernel; None: one after the other."""
        from .programs.reduction import compile_reduction

        return rt.guarded(compile_reduction(*args), args[-1].device.index or 0)

    def region_source(self, region: Any, specs: tuple[Spec, ...]) -> str | None:
        """The text of the kernel for a region; None where it has none of its own."""
        from .kernels.region import source

        found = source(region, specs)
        return None if found is None else found[0]

    def empty(self, spec: Spec) -> tuple[Storage, Any]:
        v = self._views.empty(spec)
        return v.storage, v

    def view(self, storage: Any, spec: Spec, offset: int) -> Any:
        # Kernels tell by the storage whether memory overlaps.
        storage = storage.root
        return self._views.View(storage.ptr + offset * spec.dtype.itemsize, spec, storage)

    def adopt(self, data: Any, spec: Spec | None, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """(storage, data, spec) for what a user's kernel returned: a View, a tensor or an array."""
        if hasattr(data, "_data"):
            data = data._data
        if not isinstance(data, self._views.View):
            array = np.asarray(data)
            if spec is None:
                place = Device("cuda", rt.here.device)
                spec = Spec(Layout(array.shape), from_numpy(array.dtype), place)
            data = self._cpu_fallback.uploaded(array, spec)
        if spec is not None and data.spec is not spec:
            made = self._views.empty(spec)
            self._copy.copy_view(made, data)
            data = made
        return data.storage, data, data.spec

    def copy(self, out: Any, data: Any) -> None:
        """Write `data` over `out`, converting the dtype."""
        with rt.on(out.spec.device.index or 0):
            self._copy.copy_view(out, data)

    def receive(self, array: Any, spec: Spec, non_blocking: bool = False) -> tuple[Any, Any, Spec]:
        """(storage, data, spec) of new memory here with values of the host."""
        with rt.on(spec.device.index or 0):
            view = self._transfer.from_host(array, spec, non_blocking)
        return view.storage, view, view.spec

    def pinned(self, shape: Any, strides: Any, dtype: Any) -> tuple[Any, Any, Spec]:
        """(storage, array, spec) of page-locked memory of the host; strides in bytes."""
        size = dtype.itemsize
        spec = Spec(Layout(tuple(shape), tuple(s // size for s in strides)), from_numpy(dtype), cpu)
        spec = spec.dense_like()
        storage = self._pinned.PinnedStorage(spec.nbytes)
        array = np.ndarray(spec.shape, dtype, storage.memory, 0, spec.byte_strides)
        return storage, array, spec

    def record_stream(self, storage: Any, stream: Any) -> None:
        """Let a stream of the user's keep memory from being handed out again too early."""
        storage.record_stream(stream.device.index or 0, stream.cuda_stream)

    def export(self, data: Any, spec: Spec, stream: Any, version: Any) -> Any:
        """A DLPack capsule over a view; the asking stream waits for what was given to ours."""
        if data.storage.readonly:
            raise BufferError("__dlpack__: the memory is read-only; export a clone() of it.")
        index = spec.device.index or 0
        if stream == 2:
            raise BufferError("__dlpack__: the per-thread default stream is not supported.")
        if stream == 0:
            raise BufferError("__dlpack__: stream 0 may mean two streams; pass 1 or a handle.")
        asking = 0 if stream in (None, 1) else stream
        ours = rt.here.stream_of(index)
        if stream != -1 and asking != ours:
            self._transfer.wait_for_stream(index, asking, index, ours)
        return dlpack.export(data.ptr, spec, dlpack.CUDA, index, data.storage)

    def dlpack_device(self, spec: Spec) -> tuple[int, int]:
        """DLPack's kind and number of where a tensor lies."""
        return dlpack.CUDA, spec.device.index or 0

    def borrow(self, source: Any) -> tuple[Any, Any, Spec, int]:
        """(storage, data, spec, offset) over memory of another library."""
        index = source.__dlpack_device__()[1]
        rt.runtime.check(index)
        stream = rt.here.stream_of(index) or 1
        held = dlpack.Borrowed(dlpack.capsule_of(source, stream=stream))
        over = self._over(held.ptr, held.shape, held.strides, held.dtype, index, held)
        over[0].readonly = held.readonly
        return over

    def array_interface(self, data: Any, spec: Spec) -> dict[str, Any]:
        """What Numba and CuPy read of a view."""
        return {
            "version": 3,
            "shape": tuple(spec.shape),
            "typestr": spec.dtype.np.str,
            "data": (data.ptr if spec.numel else 0, data.storage.readonly),
            "stream": rt.here.stream_of(spec.device.index or 0) or 1,
            "strides": None if spec.contiguous else spec.byte_strides,
        }

    def look_at(self, owner: Any) -> tuple[Any, Any, Spec, int]:
        """(storage, data, spec, offset) over what `__cuda_array_interface__` describes."""
        interface = owner.__cuda_array_interface__
        kind = from_numpy(np.dtype(interface["typestr"]))
        if interface.get("mask") is not None:
            raise ValueError("__cuda_array_interface__: masks are not supported.")
        strides = interface.get("strides")
        if strides is not None:
            strides = tuple(s // kind.itemsize for s in strides)
        index = rt.runtime.driver.device_of(interface["data"][0])
        if index is None:  # empty, or memory that the driver does not know
            index = rt.here.device
        ours, stream = rt.here.stream_of(index), interface.get("stream")
        if stream is not None and (0 if stream == 1 else stream) != ours:
            self._transfer.wait_for_stream(index, ours, index, 0 if stream == 1 else stream)
        over = self._over(interface["data"][0], tuple(interface["shape"]), strides, kind, index, owner)
        over[0].readonly = bool(interface["data"][1])
        return over

    def _over(
        self, ptr: int, shape: Any, strides: Any, dtype: Any, index: int, owner: Any
    ) -> tuple[Any, Any, Spec, int]:
        layout = Layout(shape, strides)
        spec = Spec(layout, dtype, Device("cuda", index))
        nbytes = extent(shape, layout.strides) * dtype.itemsize
        storage = self._views.ForeignStorage(ptr, nbytes, index, owner)
        return storage, self._views.View(ptr, spec, storage), spec, 0

    def to_numpy(self, data: Any) -> Any:
        with rt.on(data.spec.device.index or 0):
            return self._cpu_fallback.fetch(data)

    def item(self, data: Any) -> Any:
        return self.to_numpy(data).item()

    def window(self, spec: Spec) -> Any:
        return self._fast_path.window(spec)

    def clone_storage(self, storage: Any) -> Any:
        made = self._views.CudaStorage(storage.nbytes, storage.device)
        if storage.nbytes:
            with rt.on(storage.device):
                rt.runtime.driver.between(made.ptr, storage.ptr, storage.nbytes, rt.here.stream)
        return made


def __getattr__(name: str) -> Any:
    # torch's public names live in a file of their own, which no kernel needs.
    from importlib import import_module

    public = import_module(f"{__name__}.public")
    if name in public.PUBLIC:
        return getattr(public, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
