"""Any GPU through WebGPU: memory and dispatches by wgpu, kernels in WGSL printed from formulas and templates.

Importing this package starts nothing; `backend()` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.device import device as Device
from ...core.dtype import from_numpy
from ...core.layout import Layout, Spec
from ...core.storage import Storage


class WebGpuBackend:
    """See `backends.base.Backend`."""

    name = "webgpu"

    def __init__(self) -> None:
        from .runtime import runtime

        self._runtime = runtime.start()
        from . import cpu_fallback, kernels
        from .runtime import views
        from .shaders import copy, pointwise

        kernels.load()
        self._views, self._copy, self._pointwise, self._cpu_fallback = views, copy, pointwise, cpu_fallback

    def pointwise(self, formula: Any, names: Any, roles: Any, inputs: Any, out: Spec, empty: Any) -> tuple[Any, Any]:
        """See `backends.base.Backend.pointwise`."""
        return self._pointwise.compile_formula(formula, names, roles, inputs, out, empty)

    def empty(self, spec: Spec) -> tuple[Storage, Any]:
        view = self._views.empty(spec)
        return view.storage, view

    def view(self, storage: Any, spec: Spec, offset: int) -> Any:
        # Kernels tell by the storage whether memory overlaps.
        return self._views.View(storage.root, offset, spec)

    def adopt(self, data: Any, spec: Spec | None, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """(storage, data, spec) for what a user's kernel returned: a View, a tensor or an array."""
        if hasattr(data, "_data"):
            data = data._data
        if not isinstance(data, self._views.View):
            array = np.asarray(data)
            if spec is None:
                spec = Spec(Layout(array.shape), from_numpy(array.dtype), Device("webgpu", 0))
            data = self._cpu_fallback.uploaded(array, spec)
        if spec is not None and data.spec is not spec:
            made = self._views.empty(spec)
            self._copy.copy_view(made, data)
            data = made
        return data.storage, data, data.spec

    def copy(self, out: Any, data: Any) -> None:
        """Write `data` over `out`, converting the dtype."""
        self._copy.copy_view(out, data)

    def receive(self, array: Any, spec: Spec, non_blocking: bool = False) -> tuple[Any, Any, Spec]:
        """(storage, data, spec) of new memory here with values of the host."""
        view = self._cpu_fallback.uploaded(array, spec)
        return view.storage, view, view.spec

    def to_numpy(self, data: Any) -> Any:
        return self._cpu_fallback.fetch(data)

    def item(self, data: Any) -> Any:
        return self.to_numpy(data).item()

    def window(self, spec: Spec) -> Any:
        return None

    def clone_storage(self, storage: Any) -> Any:
        made = self._views.WebGpuStorage(storage.nbytes)
        if storage.nbytes:
            flat = Spec(Layout((storage.nbytes,)), from_numpy(np.uint8), Device("webgpu", 0))
            self._copy.copy_view(self._views.View(made, 0, flat), self._views.View(storage.root, 0, flat))
        return made
