"""Declares WebGPU kernels as rows of the kernel table, and binds them into plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...core.device import device
from ...core.dtype import dtype
from ...core.layout import Spec
from ..base import Bound, Fn, Request, Row, add_row
from ..common.slot import Slot
from . import cpu_fallback
from .runtime.views import View, WebGpuStorage

Run = Callable[..., Any] | None


def kind_of(x: Slot | None) -> dtype | None:
    """The dtype of a tensor that may be absent."""
    return None if x is None else x.dtype


class Whole:
    """What a row returns whose results are made elsewhere: `compute(*values)` gives (storage, data, spec) of each."""

    def __init__(self, compute: Callable[..., tuple[Any, ...]]) -> None:
        self.compute = compute


def webgpu(
    op: str,
    *,
    accepts: Callable[..., bool] | None = None,
    priority: int = 10,
    into: bool = False,
    careful: bool = False,
) -> Callable[[Fn], Fn]:
    """Register a WebGPU kernel for an operator.

    The decorated function is called once per plan with the operator's arguments: runtime ones as `Slot` (spec known,
    value to come; lists of tensors as tuples of Slots, absent ones None), static ones as they are. It returns None to
    refuse, or `run(outs, *values)`: `outs` are Views of new memory in the planned specs, `values` the runtime arguments
    (Views, numbers, lists, None). `into`: `run` takes outs of any strides. `careful`: it reads first what it would
    overwrite. Where no spec was planned, `run(None, *values)` returns the Views.
    """

    def register(arrange: Fn) -> Fn:
        add_row(
            WebGpuRow(op=op, device="webgpu", fn=arrange, priority=priority, takes=accepts, into=into, careful=careful)
        )
        return arrange

    return register


def _target(request: Request) -> device:
    """Where the kernel runs: 0-d tensors of the CPU may join tensors of the device."""
    found = next((s.device for s in request.specs if s.device.type == "webgpu"), None)
    if found is None:
        assert request.outs is not None
        found = request.outs[0].device
    return found


def _slot(k: int, v: Any, target: device) -> Any:
    if v is None:
        return None
    if v.__class__ is tuple:
        return tuple(_slot(k, x, target) for x in v)
    if v.__class__ is Spec and v.device is not target:
        v = v.like(device=target)
    return Slot(k, v)


def _from_cpu(request: Request, target: device) -> list[tuple[int, Spec]]:
    """The runtime arguments that lie on the CPU, as they will be on the device."""
    return [
        (k, v.like(device=target))
        for k, v in enumerate(request.values)
        if v.__class__ is Spec and v.device.type == "cpu"
    ]


@dataclass(frozen=True, kw_only=True)
class WebGpuRow(Row):
    """A kernel of ours; `fn` arranges its dispatches once per plan, see `webgpu`."""

    label: str = "webgpu"
    into: bool = False

    def bind(self, request: Request) -> Bound | None:
        target = _target(request)
        args = list(request.args)
        for k, i in enumerate(request.slots):
            args[i] = _slot(k, request.values[k], target)
        run = self.fn(*args)
        if run is None:
            return None
        if isinstance(run, Whole):
            return Bound(run.compute)
        loose = _from_cpu(request, target)
        if loose:
            run = _lifting(run, loose)
        if request.outs is None:

            def found(*given: Any) -> tuple[Any, ...]:
                return tuple([(v.storage, v, v.spec) for v in run(None, *given)])

            return Bound(found)
        plan = [(s, s.nbytes) for s in request.outs]

        def compute(*given: Any) -> tuple[Any, ...]:
            made = [View(WebGpuStorage(nbytes), 0, spec) for spec, nbytes in plan]
            run(made, *given)
            return tuple([(v.storage, v, v.spec) for v in made])

        def into(given: Any, out: Any) -> None:
            run([out], *given)

        return Bound(compute, into if self.into and request.single else None)


def _lifting(run: Callable[..., Any], loose: list[tuple[int, Spec]]) -> Callable[..., Any]:
    """The same with 0-d CPU tensors copied to the device first."""

    def lifted(outs: Any, *values: Any) -> Any:
        moved = list(values)
        for k, spec in loose:
            moved[k] = cpu_fallback.uploaded(values[k], spec)
        return run(outs, *moved)

    return lifted


@dataclass(frozen=True, kw_only=True)
class FunctionRow(Row):
    """A plain function of views, as users write it."""

    def bind(self, request: Request) -> Bound:
        template, slots, outs, backend = list(request.args), request.slots, request.outs, request.backend

        def compute(*given: Any) -> tuple[Any, ...]:
            args = template.copy()
            for i, v in zip(slots, given, strict=True):
                args[i] = v
            result = self.fn(*args)
            results = (result,) if request.single else result
            wanted = outs or (None,) * len(results)
            return tuple([backend.adopt(r, s, given) for r, s in zip(results, wanted, strict=True)])

        return Bound(compute)


@dataclass(frozen=True, kw_only=True)
class FallbackRow(Row):
    """The row of last resort: by way of the CPU. `mutated`: positions of written arguments."""

    label: str = "cpu_fallback"
    priority: int = -100
    mutated: frozenset[int] = frozenset()

    def bind(self, request: Request) -> Bound:
        target, outs = _target(request), request.outs
        values = list(request.values)
        for k, spec in _from_cpu(request, target):
            values[k] = spec
        mutated = [k for k, i in enumerate(request.slots) if i in self.mutated]
        # Where there is nothing to copy, nothing is worth a warning.
        quiet = all(s.numel == 0 for s in request.specs) and bool(request.specs)
        quiet = quiet or (outs is not None and all(s.numel == 0 for s in outs) and not mutated)
        asked = replace(request, values=tuple(values))
        return Bound(cpu_fallback.structured(asked, mutated, target, quiet))


def fallback_row(op: str, mutated: frozenset[int]) -> Row:
    """The row that computes an operator on the CPU."""
    return FallbackRow(op=op, device="webgpu", fn=cpu_fallback.structured, mutated=mutated)
