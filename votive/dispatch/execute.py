"""Running plans: the general way of a call, which sees everything, and recording for autograd."""

from __future__ import annotations

from typing import Any

from ..backends.cpu.native.loader import module as native
from ..core import device
from ..core.dtype import dtype
from ..core.errors import refuse_readonly
from ..core.mode import mode
from ..ops.operator import Op
from .autocast import cast
from .build import find
from .observe import observed
from .plan import KernelPlan, Plan
from .state import state


def install(tensor: type, graph: Any) -> None:
    """Give the dispatcher its Tensor class and the module that records calls."""
    state.tensor = tensor
    state.graph = graph
    if native is not None:
        native.install_calls(tensor, KernelPlan, state, mode)
        native.install_recall(dtype, device._stack)


def run(op: Op, args: tuple[Any, ...]) -> Any:
    """Run an operator on arguments in schema order: the general way, which the native class of operators takes for all
    that is unusual.
    """
    if Op.elsewhere is not None:
        result = Op.elsewhere(op.name, op, args, {})
        if result is not NotImplemented:
            return result
    if state.interpret is not None:
        result = state.interpret(op, args)
        if result is not NotImplemented:
            return result
    if not state.unusual:
        return execute(*find(op, args))
    if op.autocast is not None and state.autocast and mode.autocast:
        args = cast(op.autocast, args)
    try:
        plan, args = find(op, args)
    except Exception as e:
        for o in state.observers:
            o.refused(op, args, e)
        raise
    return observed(plan, args, execute) if state.observers else execute(plan, args)


def any_grad(values: Any) -> bool:
    """Whether any tensor among the values, or in lists among them, requires grad."""
    for v in values:
        if v.__class__ in (tuple, list):
            if any(getattr(x, "_rg", False) for x in v):
                return True
        elif getattr(v, "_rg", False):
            return True
    return False


def execute(plan: Plan, args: tuple[Any, ...]) -> Any:
    """Run a plan on normalised arguments and record it for autograd."""
    op = plan.op
    values = op.values(args)
    out = _execute_writing(plan, args, values) if op.mutates else plan.run(values)
    if mode.grad and op.differentiable and any_grad(values):
        state.graph.record(plan, values, out)
    return out


def _execute_writing(plan: Plan, args: tuple[Any, ...], values: tuple[Any, ...]) -> Any:
    """A kernel that writes into some of its arguments: these must be writable, and backward must notice that values
    which it may have saved were changed.
    """
    written = writable_arguments(plan.op, args)
    out = plan.run(values)
    for t in written:
        t._storage.version += 1
    return out


def writable_arguments(op: Op, args: tuple[Any, ...]) -> list[Any]:
    """The tensors that a kernel will write into; an error when the memory of one is read-only."""
    written = []
    for name in op.mutates:
        v = args[op.schema.names.index(name)]
        written += [t for t in (v if v.__class__ in (tuple, list) else (v,)) if t is not None]
    if any(t._storage.readonly for t in written):
        refuse_readonly(op.name)
    return written


Op.run = staticmethod(run)
