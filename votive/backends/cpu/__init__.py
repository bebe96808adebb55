"""The CPU: NumPy arrays over votive's own storage."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dlpack
from ...core import dtype as dt
from ...core.device import cpu
from ...core.layout import Layout, Spec, extent
from ...core.storage import SMALL, Foreign, Storage, cpu_allocator, held, new_cpu, wrap_array
from ..base import BACKENDS, switched_off
from . import native as _native
from .reference import pointwise as _pointwise

_new = object.__new__
_ndarray = np.ndarray
_empty = np.empty
_copy = _native.module.Kernel("copy") if _native.available else None


class AdoptedStorage(Storage):
    """Memory that NumPy allocated for a kernel's result; counted while it lives."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        cpu_allocator.count(memory.nbytes)

    def __del__(self) -> None:
        cpu_allocator.count(-self.memory.nbytes)


class CpuBackend:
    """See `backends.base.Backend`."""

    name = "cpu"

    @staticmethod
    def pointwise(*args: Any) -> Any:
        """The tile engine where it can, NumPy where it cannot."""
        if _native.available and "native" not in switched_off:
            return _native.pointwise.compile_formula(*args)
        return _pointwise.compile_formula(*args)

    @staticmethod
    def map_reduce(*args: Any) -> Any:
        """compute(*values) -> (storage, data) of a formula under a reduction; None: do it apart."""
        if _native.available and "native" not in switched_off:
            return _native.pointwise.compile_reduction(*args)
        return None

    @staticmethod
    def prepare_regions(regions: list[Any]) -> None:
        """Compile kernels for several regions at once, where there is a compiler."""
        if _native.available and "native" not in switched_off:
            native: Any = _native
            native.row_region.prepare(regions)

    @staticmethod
    def compiles_rows() -> bool:
        """Whether regions may reduce rows: their loops are compiled."""
        native: Any = _native
        return _native.available and "native" not in switched_off and native.jit.compiler() is not None

    @staticmethod
    def region_source(region: Any, specs: tuple[Spec, ...]) -> str | None:
        """The text of the kernel for a region; None where it has none of its own."""
        native: Any = _native
        used = _native.available and "native" not in switched_off
        return native.row_region.source(region) if used else None

    def empty(self, spec: Spec) -> tuple[Storage, Any]:
        nbytes = spec.nbytes
        if nbytes < SMALL and spec.layout.contiguous:
            data = _empty(spec.shape, spec.dtype.np)
            st = _new(Storage)
            st.memory = data
            return st, data
        if nbytes < SMALL:
            st = Storage(_empty(nbytes, np.uint8))
        else:
            st = held(cpu_allocator.block(nbytes))
        return st, _ndarray(spec.shape, spec.dtype.np, st.memory, 0, spec.byte_strides)

    def view(self, storage: Storage, spec: Spec, offset: int) -> Any:
        if spec.numel == 0:
            return _empty(spec.shape, spec.dtype.np)
        return _ndarray(spec.shape, spec.dtype.np, storage.memory, offset * spec.dtype.itemsize, spec.byte_strides)

    def adopt(self, data: Any, spec: Spec | None, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Make a kernel's result our own memory: right dtype, right strides, no aliasing.

        A kernel that finds the size while it runs may have made (storage, data, spec) itself.
        """
        if data.__class__ is tuple:
            return data
        if (
            data.__class__ is _ndarray
            and spec is not None
            and data.base is None
            and data.dtype == spec.dtype.np
            and data.shape == spec.shape
            and data.strides == spec.byte_strides
            and not any(data is x for x in inputs)
        ):
            memory = data
            if not spec.layout.contiguous:
                # Views are cut from memory in row-major order: look at the block along its strides.
                order = sorted(range(data.ndim), key=lambda d: -data.strides[d])
                memory = data.transpose(order)
            if memory.flags.c_contiguous:
                held = Storage(memory) if data.nbytes < SMALL else AdoptedStorage(memory)
                return held, data, spec
        array = np.asarray(data)
        if spec is None:
            spec = Spec(Layout(array.shape), dt.from_numpy(array.dtype), cpu)
        if (
            array.dtype == spec.dtype.np
            and array.flags.owndata
            and array.flags.c_contiguous
            and spec.layout.contiguous
            and array.flags.writeable
            and not any(array is x for x in inputs)
        ):
            assert array.shape == spec.shape, f"kernel gave {array.shape}, planned {spec.shape}"
            st = Storage(array) if array.nbytes < SMALL else AdoptedStorage(array)
            return st, array, spec
        assert array.shape == spec.shape, f"kernel gave {array.shape}, planned {spec.shape}"
        st, out = self.empty(spec)
        with np.errstate(all="ignore"):
            np.copyto(out, array, casting="unsafe")
        return st, out, spec

    def copy(self, out: Any, data: Any) -> None:
        """Write `data` over `out`, converting the dtype."""
        if _copy is not None:
            try:
                return _copy(out, data)
            except (TypeError, ValueError):
                pass  # a type that kernels do not know, or shapes for NumPy to complain about
        with np.errstate(all="ignore"):
            np.copyto(out, data, casting="unsafe")

    def to_numpy(self, data: Any) -> Any:
        return data

    def item(self, data: Any) -> Any:
        return _native.module.item(data) if _native.available else data.item()

    def window(self, spec: Spec) -> Any:
        return _native.module.Window(spec) if _native.available and spec.numel else None

    def clone_storage(self, storage: Storage) -> Storage:
        """Another storage with the same bytes."""
        if storage.nbytes == 0:
            return Storage(_empty(0, np.uint8))
        out = new_cpu(storage.nbytes)
        out.memory[: storage.nbytes] = storage.bytes_view()
        return out

    def export(self, data: Any, spec: Spec, stream: Any, version: Any) -> Any:
        """A DLPack capsule over an array, made by NumPy."""
        if stream not in (None, -1):
            raise BufferError(f"__dlpack__: memory of the CPU has no streams, got stream={stream}.")
        if spec.dtype.np.kind not in "biufc":
            raise BufferError(f"__dlpack__: NumPy, which exports memory, does not know {spec.dtype}.")
        return data.__dlpack__(**({} if version is None else {"max_version": version}))

    def dlpack_device(self, spec: Spec) -> tuple[int, int]:
        """DLPack's kind and number of where a tensor lies."""
        return dlpack.CPU, 0

    def borrow(self, source: Any) -> tuple[Storage, Any, Spec, int]:
        """(storage, data, spec, offset) over memory of another library."""
        if isinstance(source, np.ndarray):
            return self.wrap(np.from_dlpack(source))
        held = dlpack.Borrowed(dlpack.capsule_of(source))
        strides = Layout(held.shape, held.strides).strides
        size = held.dtype.itemsize
        raw = np.asarray(Foreign(held.ptr, extent(held.shape, strides) * size, held.readonly, held))
        steps = tuple(s * size for s in strides)
        array = np.ndarray(held.shape, held.dtype.np, raw, 0, steps)
        return self.wrap(array)

    def wrap(self, array: np.ndarray[Any, Any]) -> tuple[Storage, Any, Spec, int]:
        """A foreign array's memory: (storage, data, spec, offset), zero-copy."""
        d = dt.from_numpy(array.dtype)
        if any(s < 0 for s in array.strides):
            raise ValueError("from_numpy: arrays with negative strides are not supported; pass array.copy() instead.")
        if any(s % d.itemsize for s in array.strides) and array.size > 1:
            raise ValueError("from_numpy: strides are not a multiple of the element size; pass array.copy().")
        st, offset = wrap_array(array)
        strides = tuple(s // d.itemsize for s in array.strides)
        if array.size == 0 or array.flags.c_contiguous:
            strides = Layout(array.shape).strides
        spec = Spec(Layout(array.shape, strides), d, cpu)
        return st, array, spec, offset // d.itemsize


BACKENDS["cpu"] = CpuBackend()
