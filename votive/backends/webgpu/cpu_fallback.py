"""What has no kernel in WGSL is computed on the CPU, with one warning per operator, and counted.

Inputs are copied to the host, the CPU's kernel runs, results and written arguments are copied back. The CPU's numbers
are exact in every dtype, so doubles lose no digits that way.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core.device import cpu, device
from ...core.layout import Layout, Spec
from ..base import BACKENDS, Bound, Request, bind
from .runtime.views import View, WebGpuStorage, empty, to_device, to_host
from .shaders import types

# How often operators were computed on the CPU.
counts: Counter[str] = Counter()


class WebGpuFallbackWarning(UserWarning):
    """An operator was computed on the CPU because WebGPU has no kernel for it.

    >>> issubclass(votive.webgpu.WebGpuFallbackWarning, UserWarning)
    True
    """


def warn_once(
    op: str, why: str = "has no WebGPU kernel for these arguments", kinds: frozenset[dt.dtype] = frozenset()
) -> None:
    """Count an operator that leaves the device, and say so the first time. `kinds`: the dtypes of its tensors."""
    moved = sorted(d.name for d in kinds if d not in types.NUMBERS)
    if moved:
        why = f"of {', '.join(moved)} has no WebGPU kernel"
    counts[op] += 1
    if counts[op] == 1:
        warnings.warn(
            f"{op.lstrip('_')} {why}; it is computed on the CPU, which copies its tensors there and back.",
            WebGpuFallbackWarning,
            stacklevel=6,
        )


def on_cpu(v: Any) -> Any:
    """A spec (or devices and tuples among static arguments) as it is on the CPU."""
    if v.__class__ is Spec:
        return v.like(device=cpu)
    if v.__class__ is device:
        return cpu if v.type == "webgpu" else v
    if v.__class__ is tuple:
        return tuple(on_cpu(x) for x in v)
    return v


def downloaded(v: Any) -> Any:
    """A value of the device as the CPU's kernels take it."""
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
    if reach > max(8 * spec.numel, 4096):  # mostly holes, which nobody asks for
        from .shaders.copy import copy_view

        close = empty(Spec(Layout(spec.shape), spec.dtype, spec.device))
        copy_view(close, v)
        dense = to_host(close, spec.nbytes).view(spec.dtype.np).reshape(spec.shape)
        laid = np.ndarray(spec.shape, spec.dtype.np, np.empty(reach, spec.dtype.np), 0, spec.byte_strides)
        laid[...] = dense
        return laid
    flat = to_host(v, reach * spec.dtype.itemsize).copy()
    return np.ndarray(spec.shape, spec.dtype.np, flat, 0, spec.byte_strides)


def uploaded(array: Any, spec: Spec) -> View:
    """An array as new memory of the device, dense in the order of the spec."""
    storage = WebGpuStorage(spec.nbytes)
    if spec.numel:
        flat = np.empty(spec.numel, spec.dtype.np)
        shaped = np.ndarray(spec.shape, spec.dtype.np, flat, 0, spec.byte_strides)
        with np.errstate(all="ignore"):
            np.copyto(shaped, array, casting="unsafe")
        to_device(storage, flat)
    return View(storage, 0, spec)


def store(array: Any, to: View) -> None:
    """Write an array over a view of any strides."""
    if to.spec.numel:
        from .shaders.copy import copy_view

        copy_view(to, uploaded(array, to.spec.dense_like()))


def pointwise(formula: Any, names: list[str], roles: list[Any], inputs: list[Any], out: Spec) -> Bound:
    """An elementwise operator by way of the CPU."""
    backend = BACKENDS["cpu"]
    there = out.like(device=cpu)
    kinds = frozenset(d for d in (out.dtype, *(x for role in roles for x in role)) if d is not None)
    compute, _ = backend.pointwise(formula, names, roles, [on_cpu(s) for s in inputs], there, backend.empty)

    def run(*values: Any) -> tuple[Any, Any]:
        warn_once(formula.name, kinds=kinds)
        _, data = compute(*[downloaded(v) for v in values])
        made = uploaded(data, out)
        return made.storage, made

    def into(values: Any, to: View) -> None:
        warn_once(formula.name, kinds=kinds)
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
    kinds = frozenset(s.dtype for s in (*request.specs, *(outs or ())))

    def run(*given: Any) -> tuple[Any, ...]:
        if not quiet:
            warn_once(op, kinds=kinds)
        arrays = [downloaded(v) for v in given]
        parts = compute(*arrays)
        for i in mutated:
            back = zip(given[i], arrays[i], strict=True) if isinstance(arrays[i], list) else [(given[i], arrays[i])]
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
