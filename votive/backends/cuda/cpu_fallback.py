"""What has no kernel on the GPU is computed on the CPU, with one warning that names the operator.

Inputs are copied to the host, the CPU's kernel runs, results and written arguments are copied back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.device import cpu, device
from ...core.layout import Layout, Spec
from ..base import BACKENDS, Bound, Request, bind
from .runtime.views import CudaStorage, View, to_device, to_host

_warned: set[str] = set()


class CpuFallbackWarning(UserWarning):
    """An operator was computed on the CPU because the GPU has no kernel for it."""


def warn_once(op: str, why: str = "has no CUDA kernel for these arguments") -> None:
    """Say once per operator that it leaves the GPU."""
    if op not in _warned:
        _warned.add(op)
        warnings.warn(
            f"{op.lstrip('_')} {why}; it is computed on the CPU, which copies its tensors there and back.",
            CpuFallbackWarning,
            stacklevel=6,
        )


def on_cpu(v: Any) -> Any:
    """A spec (or devices and tuples among static arguments) as it is on the CPU."""
    if v.__class__ is Spec:
        return v.like(device=cpu)
    if v.__class__ is device:
        return cpu if v.type == "cuda" else v
    if v.__class__ is tuple:
        return tuple(on_cpu(x) for x in v)
    return v


def downloaded(v: Any) -> Any:
    """A value of the GPU as the CPU's kernels take it."""
    if v.__class__ is View:
        return fetch(v)
    if v.__class__ in (list, tuple):
        return [downloaded(x) for x in v]
    return v


def fetch(v: View) -> np.ndarray[Any, Any]:
    """A view's values as an array with the same strides."""
    spec = v.spec
    if spec.numel == 0:
        return np.empty(spec.shape, spec.dtype.np)
    reach = 1 + sum((n - 1) * s for n, s in zip(spec.shape, spec.strides, strict=True))
    flat = np.empty(reach, spec.dtype.np)
    laid = np.ndarray(spec.shape, spec.dtype.np, flat, 0, spec.byte_strides)
    if reach > max(8 * spec.numel, 4096):  # mostly holes, which nobody asks for
        from .programs.copy import copy_view

        close = Spec(Layout(spec.shape), spec.dtype, spec.device)
        storage = CudaStorage(close.nbytes, close.device.index or 0)
        copy_view(View(storage.ptr, close, storage), v)
        dense = np.empty(spec.shape, spec.dtype.np)
        to_host(dense.reshape(-1), storage.ptr)
        laid[...] = dense
    else:
        to_host(flat, v.ptr)
    return laid


def uploaded(array: Any, spec: Spec) -> View:
    """An array as new memory of the GPU, dense in the order of the spec."""
    storage = CudaStorage(spec.nbytes, spec.device.index or 0)
    if spec.numel:
        flat = np.empty(spec.numel, spec.dtype.np)
        shaped = np.ndarray(spec.shape, spec.dtype.np, flat, 0, spec.byte_strides)
        with np.errstate(all="ignore"):
            np.copyto(shaped, array, casting="unsafe")
        to_device(storage.ptr, flat)
    return View(storage.ptr, spec, storage)


def store(array: Any, to: View) -> None:
    """Write an array over a view of any strides."""
    if not to.spec.numel:
        return
    from .programs.copy import copy_view

    dense = to.spec.dense_like()
    if dense is to.spec:
        flat = np.empty(dense.numel, dense.dtype.np)
        shaped = np.ndarray(dense.shape, dense.dtype.np, flat, 0, dense.byte_strides)
        np.copyto(shaped, array, casting="unsafe")
        to_device(to.ptr, flat)
    else:
        copy_view(to, uploaded(array, dense))


def pointwise(formula: Any, names: list[str], roles: list[Any], inputs: list[Any], out: Spec) -> Bound:
    """An elementwise operator by way of the CPU."""
    backend = BACKENDS["cpu"]
    there = out.like(device=cpu)
    compute, _ = backend.pointwise(formula, names, roles, [on_cpu(s) for s in inputs], there, backend.empty)

    def run(*values: Any) -> tuple[Any, Any]:
        warn_once(formula.name)
        _, data = compute(*[downloaded(v) for v in values])
        made = uploaded(data, out)
        return made.storage, made

    def into(values: Any, to: View) -> None:
        warn_once(formula.name)
        _, data = compute(*[downloaded(v) for v in values])
        store(data, to)

    return Bound(run, into)


def structured(
    request: Request, mutated: list[int], target: device, quiet: bool = False
) -> Callable[..., tuple[Any, ...]]:
    """A structured operator by way of the CPU. `mutated`: the runtime arguments it writes into."""
    op, outs = request.op, request.outs
    asked = replace(
        request,
        args=tuple(on_cpu(v) for v in request.args),
        values=tuple(on_cpu(v) for v in request.values),
        specs=tuple(on_cpu(s) for s in request.specs),
        outs=None if outs is None else tuple(on_cpu(s) for s in outs),
        backend=BACKENDS["cpu"],
    )
    _, (compute, _) = bind("cpu", asked)

    def run(*given: Any) -> tuple[Any, ...]:
        if not quiet:
            warn_once(op)
        arrays = [downloaded(v) for v in given]
        parts = compute(*arrays)
        for i in mutated:
            back = zip(given[i], arrays[i]) if isinstance(arrays[i], list) else [(given[i], arrays[i])]
            for v, a in back:
                if v.__class__ is View:
                    store(a, v)
        made = []
        for k, (_, data, spec) in enumerate(parts):
            wanted = outs[k] if outs is not None else spec.like(device=target)
            if outs is None and not wanted.contiguous:
                wanted = Spec(Layout(spec.shape), spec.dtype, target)
            view = uploaded(data, wanted)
            made.append((view.storage, view, wanted))
        return tuple(made)

    return run
