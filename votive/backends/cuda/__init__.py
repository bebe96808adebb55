"""The GPU: device memory from the CUDA driver, kernels from Triton, products from cuBLASLt.

torch is never imported. Importing this package starts nothing; `backend()` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.device import device
from ...core.layout import Layout, Spec
from ...core.storage import Storage
from . import runtime as rt


class CudaBackend:
    """See `backends.base.Backend`."""

    name = "cuda"

    def __init__(self) -> None:
        rt.begin()
        from . import copy, data, families, pointwise, rows, trip

        families.load()
        self._copy, self._trip, self._data = copy, trip, data
        self.pointwise = pointwise.compile_formula
        self.bind = rows.bind

    def map_reduce(self, *args: Any) -> Any:
        """A formula under a reduction as one kernel; None: one after the other."""
        from .reduction import compile_reduction

        return compile_reduction(*args)

    def empty(self, spec: Spec) -> tuple[Storage, Any]:
        v = self._data.empty(spec)
        return v.storage, v

    def view(self, storage: Any, spec: Spec, offset: int) -> Any:
        return self._data.View(storage.ptr + offset * spec.dtype.itemsize, spec, storage)

    def adopt(self, data: Any, spec: Spec | None, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """(storage, data, spec) for what a user's kernel returned: a View, a tensor or an array."""
        if hasattr(data, "_data"):
            data = data._data
        if not isinstance(data, self._data.View):
            array = np.asarray(data)
            if spec is None:
                from ...core import dtype as dt

                spec = Spec(Layout(array.shape), dt.from_numpy(array.dtype), device("cuda", 0))
            data = self._trip.lifted(array, spec)
        if spec is not None and data.spec is not spec:
            made = self._data.empty(spec)
            self._copy.copy_view(made, data)
            data = made
        return data.storage, data, data.spec

    def copy(self, out: Any, data: Any) -> None:
        """Write `data` over `out`, converting the dtype."""
        self._copy.copy_view(out, data)

    def receive(self, array: Any, spec: Spec) -> Any:
        """Values of the host as new memory here."""
        return self._trip.lifted(array, spec)

    def to_numpy(self, data: Any) -> Any:
        return self._trip.fetch(data)

    def item(self, data: Any) -> Any:
        return self._trip.fetch(data).item()

    def window(self, spec: Spec) -> Any:
        return None

    def clone_storage(self, storage: Any) -> Any:
        made = self._data.CudaStorage(storage.nbytes, storage.device)
        if storage.nbytes:
            rt.runtime.driver.between(made.ptr, storage.ptr, storage.nbytes, rt.here.stream)
        return made
