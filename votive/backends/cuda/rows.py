"""Declares CUDA kernels as rows of the kernel table, and binds them into plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.device import device
from ...core.layout import Spec
from ..base import Row, add_row
from ..common.slot import Slot
from . import cpu_fallback
from . import runtime as rt
from .runtime import fast_path
from .runtime.views import CudaStorage, View


class Whole:
    """What a row returns whose results are made elsewhere: `compute(*values)` gives (storage, data,
    spec) of each.
    """

    def __init__(self, compute: Callable[..., tuple[Any, ...]]) -> None:
        self.compute = compute


def cuda(
    op: str, *, accepts: Callable[..., bool] | None = None, priority: int = 10, into: bool = False
) -> Callable[[Any], Any]:
    """Register a CUDA kernel for an operator.

    The decorated function is called once per plan with the operator's arguments: runtime ones as
    `Slot` (spec known, value to come; lists of tensors as tuples of Slots, absent ones None),
    static ones as they are. It returns None to refuse, or `run(outs, *values)`: `outs` are Views of
    new memory in the planned specs, `values` the runtime arguments (Views, numbers, lists, None).
    `into`: `run` takes outs of any strides. Where no spec was planned, `run(None, *values)` returns
    the Views.
    """

    def register(arrange: Any) -> Any:
        add_row(Row(op, "cuda", arrange, priority, accepts, False, into, "cuda", "cuda"))
        return arrange

    return register


def _slot(k: int, v: Any, target: device) -> Any:
    if v is None:
        return None
    if v.__class__ is tuple:
        return tuple(_slot(k, x, target) for x in v)
    if v.__class__ is Spec and v.device is not target:
        v = v.like(device=target)
    return Slot(k, v)


def bind(
    backend: Any,
    row: Row,
    template: list[Any],
    slots: list[int],
    values: tuple[Any, ...],
    specs: list[Spec],
    outs: tuple[Spec, ...] | None,
    single: bool,
) -> tuple[Any, Any] | None:
    """See `backends.base.Backend.bind`."""
    target = next((s.device for s in specs if s.device.type == "cuda"), None)
    if target is None:
        target = outs[0].device  # type: ignore[index]
    loose = [(k, v.like(device=target)) for k, v in enumerate(values) if v.__class__ is Spec and v.device.type == "cpu"]
    if row.label == "cpu_fallback":
        there = tuple(v.like(device=target) if v.__class__ is Spec and v.device.type == "cpu" else v for v in values)
        mutated = [k for k, i in enumerate(slots) if i in row.fn]
        # Where there is nothing to copy, nothing is worth a warning.
        quiet = all(s.numel == 0 for s in specs) and bool(specs)
        quiet = quiet or (outs is not None and all(s.numel == 0 for s in outs) and not mutated)
        compute, _ = cpu_fallback.structured(row.op, template, slots, there, outs, single, mutated, target, quiet)
        return rt.guarded(compute, target.index or 0), None
    args = list(template)
    for k, i in enumerate(slots):
        args[i] = _slot(k, values[k], target)
    if row.label != "cuda":  # a row that a user added: a plain function of views
        compute, _ = _plain(backend, row, template, slots, outs, single)
        return rt.guarded(compute, target.index or 0), None
    run = row.fn(*args)
    if run is None:
        return None
    where = target.index or 0
    if isinstance(run, Whole):
        return rt.guarded(run.compute, where), None
    if loose:
        run = _lifting(run, loose)
    if outs is None:

        def found(*given: Any) -> tuple[Any, ...]:
            return tuple([(v.storage, v, v.spec) for v in run(None, *given)])

        return rt.guarded(found, where), None
    plan = [(s, s.nbytes, s.device.index or 0) for s in outs]

    def compute(*given: Any) -> tuple[Any, ...]:
        made = []
        for spec, nbytes, where in plan:
            storage = CudaStorage(nbytes, where)
            made.append(View(storage.ptr, spec, storage))
        run(made, *given)
        return tuple([(v.storage, v, v.spec) for v in made])

    def into(given: Any, out: Any) -> None:
        run([out], *given)

    quick = fast_path.results(run, plan, compute)
    return rt.guarded(quick, where), rt.guarded(into, where) if row.into and single else None


def _lifting(run: Any, loose: list[tuple[int, Spec]]) -> Any:
    """The same with 0-d CPU tensors copied to the device first."""

    def lifted(outs: Any, *values: Any) -> Any:
        moved = list(values)
        for k, spec in loose:
            moved[k] = cpu_fallback.lifted(values[k], spec)
        return run(outs, *moved)

    return lifted


def _plain(backend: Any, row: Row, template: list[Any], slots: list[int], outs: Any, single: bool) -> tuple[Any, Any]:
    def compute(*given: Any) -> tuple[Any, ...]:
        args = list(template)
        for i, v in zip(slots, given, strict=True):
            args[i] = v
        result = row.fn(*args)
        results = (result,) if single else result
        wanted = outs or (None,) * len(results)
        return tuple([backend.adopt(r, s, given) for r, s in zip(results, wanted, strict=True)])

    return compute, None


def cpu_fallback_row(op: str, mutated: frozenset[int]) -> Row:
    """The row of last resort: by way of the CPU. `mutated`: positions of written arguments."""
    return Row(op, "cuda", mutated, -100, None, False, False, "cpu_fallback")  # type: ignore[arg-type]
