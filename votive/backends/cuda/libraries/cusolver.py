"""cuSOLVER and cuBLAS through ctypes: handles, scratch memory, and batches of matrices as the
libraries see them. Knows addresses and layouts, not operators.

The libraries think in columns: memory of a row-major matrix is its transpose to them.
"""

from __future__ import annotations

import ctypes as c
import threading
from typing import Any

import numpy as np

from ....core import dtype as dt
from ....core.errors import CudaError
from ....core.layout import Layout, Spec
from .. import runtime as rt
from ..programs.copy import copy_view
from ..runtime.views import View, empty, to_device, to_host
from . import cublas

LETTER = {dt.float32: "S", dt.float64: "D", dt.complex64: "C", dt.complex128: "Z"}
LOWER, UPPER = 0, 1
LEFT, RIGHT = 0, 1
PLAIN, TRANSPOSED, ADJOINT = 0, 1, 2
# Up to this many rows a batch is factored in one call rather than matrix by matrix.
TOGETHER = 512
P = c.c_void_p


class _Library:
    """The loaded libraries, and their handles per device."""

    blas: Any = None
    solver: Any = None
    reason = ""

    def __init__(self) -> None:
        self.handles: dict[tuple[str, int], int] = {}
        self.settings: dict[str, int] = {}
        self.sizes: dict[tuple[Any, ...], int] = {}
        self.streams: dict[tuple[str, int], int] = {}
        self.lock = threading.RLock()

    def load(self) -> bool:
        """Whether there are libraries."""
        if self.solver is None and not self.reason:
            if rt.runtime.driver.emulated:
                self.reason = "the GPU is emulated"
                return False
            self.blas = cublas.opened(["libcublas.so.13", "libcublas.so.12"])
            # What the solver needs, should its own search path not find it.
            for name in ("libnvJitLink.so.13", "libnvJitLink.so.12", "libcusparse.so.12"):
                cublas.opened([name], lambda path: c.CDLL(path, c.RTLD_GLOBAL))
            self.solver = cublas.opened(["libcusolver.so.12", "libcusolver.so.11"])
            if self.blas is None or self.solver is None:
                self.solver = None
                self.reason = "libcusolver is not installed; install votive[cuda]"
        return self.solver is not None

    def _handle(self, kind: str) -> P:
        key = kind, rt.here.device
        found = self.handles.get(key)
        if found is None:
            lib, create = (self.solver, "cusolverDnCreate") if kind == "solver" else (self.blas, "cublasCreate_v2")
            out = P()
            check(getattr(lib, create)(c.byref(out)), create)
            found = self.handles[key] = out.value or 0
        return P(found)

    def _current(self, kind: str) -> P:
        """The handle, on the current stream."""
        handle, key, stream = self._handle(kind), (kind, rt.here.device), rt.here.stream
        if self.streams.get(key) != stream:
            if kind == "solver":
                check(self.solver.cusolverDnSetStream(handle, P(stream)), "cusolverDnSetStream")
            else:
                check(self.blas.cublasSetStream_v2(handle, P(stream)), "cublasSetStream")
            self.streams[key] = stream
        return handle

    def solve(self, name: str, *args: Any) -> None:
        """A function of cuSOLVER on the current stream. Addresses are given as `P`."""
        with self.lock:
            handle = self._current("solver")
            check(getattr(self.solver, f"cusolverDn{name}")(handle, *args), f"cusolverDn{name}")

    def multiply(self, name: str, *args: Any) -> None:
        """A function of cuBLAS on the current stream."""
        with self.lock:
            handle = self._current("blas")
            check(getattr(self.blas, f"cublas{name}")(handle, *args), f"cublas{name}")

    def setting(self, kind: str) -> P:
        """The library's own parameters of an iteration ("Gesvdj", "Syevj"), left as they are."""
        found = self.settings.get(kind)
        if found is None:
            out = P()
            name = f"cusolverDnCreate{kind}Info"
            check(getattr(self.solver, name)(c.byref(out)), name)
            found = self.settings[kind] = out.value or 0
        return P(found)

    def work(self, name: str, like: Spec, *args: Any, last: tuple[Any, ...] = ()) -> tuple[View, int]:
        """(scratch memory, how many elements) that a function asks for; addresses make no difference."""
        key = (name, rt.here.device, *(a for a in (*args, *last) if a.__class__ is not P))
        found = self.sizes.get(key)
        if found is None:
            size = c.c_int()
            self.solve(f"{name}_bufferSize", *args, c.byref(size), *last)
            if len(self.sizes) >= 4096:
                self.sizes.clear()
            found = self.sizes[key] = size.value
        return empty(like.like((max(found, 1),))), found


library = _Library()


def check(code: int, what: str) -> None:
    if code:
        raise CudaError(f"{what}: the library returned error {code}.")


class Batch:
    """Matrices in one piece of memory, one after the other: their number and the bytes of each."""

    def __init__(self, view: View) -> None:
        self.view, self.ptr = view, view.ptr
        self.rows, self.cols = view.spec.shape[-2:]
        self.count = view.spec.numel // max(self.rows * self.cols, 1)
        self.step = self.rows * self.cols * view.spec.dtype.itemsize

    def at(self, k: int) -> P:
        return P(self.ptr + k * self.step)


def moved(array: np.ndarray[Any, Any], like: Spec, dtype: dt.dtype) -> View:
    """Values of the host in new device memory."""
    given = np.array(array, dtype.np, order="C")
    made = empty(Spec(Layout(given.shape), dtype, like.device))
    to_device(made.ptr, given)
    if rt.here.capturing:  # a graph copies them again with every replay
        rt.here.kept.append(given)
    return made


def ints(like: Spec, *shape: int) -> View:
    return empty(Spec(Layout(shape), dt.int32, like.device))


def transposed(v: View) -> View:
    """The transposes, in the same memory."""
    shape, strides = list(v.spec.shape), list(v.spec.strides)
    shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
    return View(v.ptr, v.spec.like(tuple(shape), strides=tuple(strides)), v.storage)


def copied(v: View) -> View:
    """The same matrices, row-major, in memory of their own."""
    made = empty(v.spec.like(v.spec.shape))
    copy_view(made, v)
    return made


def fetched(v: View) -> np.ndarray[Any, Any]:
    """Dense values on the host; waits."""
    out = np.empty(v.spec.shape, v.spec.dtype.np)
    to_host(out, v.ptr)
    return out


def takes(*specs: Spec) -> bool:
    """Whether the libraries have these matrices' type."""
    kind = specs[0].dtype
    return kind in LETTER and all(s.dtype is kind for s in specs)
