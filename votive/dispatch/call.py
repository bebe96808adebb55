"""Running plans: the general way, and the short paths of elementwise operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.cpu.native.loader import module as native
from ..core import device
from ..core.dtype import dtype
from ..core.errors import foreign, received, refuse_readonly
from ..core.layout import Spec
from ..core.mode import mode
from ..ops.registry import F, Op
from .autocast import cast
from .failure import FAILURES, failed
from .observe import observed
from .plan import PLAN_LIMIT, Plan, prepare
from .state import make, state

_new = object.__new__


def install(tensor: type, graph: Any) -> None:
    """Give the dispatcher its Tensor class and the module that records calls."""
    state.tensor = tensor
    state.graph = graph
    if native is not None:
        native.install_calls(tensor, state, mode, call_general)
        native.install_recall(dtype, device._stack)


def call_general(op: Op, args: tuple[Any, ...]) -> Any:
    """Run an operator on arguments in schema order."""
    if state.hooks:
        return _hooked(op, args)
    try:
        plan = op.plans[op.key(args)]  # type: ignore[attr-defined]
    except (KeyError, TypeError, AttributeError):
        plan, args = prepare(op, args)
    return execute(plan, args)


# The native module takes the same steps without Python, and comes here for all that is unusual.
call: Callable[[Op, tuple[Any, ...]], Any] = call_general if native is None else native.call


def _hooked(op: Op, args: tuple[Any, ...]) -> Any:
    """`call` while something unusual is on."""
    if op.autocast is not None and state.autocast and mode.autocast:
        args = cast(op.autocast, args)
    try:
        plan = op.plans[op.key(args)]  # type: ignore[attr-defined]
    except (KeyError, TypeError, AttributeError):
        try:
            plan, args = prepare(op, args)
        except Exception as e:
            for o in state.observers:
                o.refused(op, args, e)
            raise
    if state.observers:
        return observed(plan, args, execute)
    return execute(plan, args)


def data_of(v: Any) -> Any:
    if v.__class__ in (tuple, list):
        return [x._data for x in v]
    return getattr(v, "_data", v)


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
    values = op.values(args)  # type: ignore[attr-defined]
    if op.kind == "view":
        return _execute_view(plan, values[0])
    if op.mutates:
        _refuse_readonly(op, args)
    try:
        parts = plan.compute(*[data_of(v) for v in values])
    except FAILURES as e:
        failed(plan, e)
    if op.kind == "pointwise":
        out = make(*parts, plan.out)
    else:
        if plan.out is not None or (plan.outs is None and op.n_out == 1):
            out = make(*parts[0])
        else:
            out = tuple([make(*p) for p in parts])
        if op.mutates:
            _count_writes(op, args)
    if mode.grad and op.differentiable and any_grad(values):
        state.graph.record(plan, values, out)
    return out


def _refuse_readonly(op: Op, args: tuple[Any, ...]) -> None:
    """Kernels write into some of their arguments without a word: look at these first."""
    for name in op.mutates:
        written = args[op.schema.names.index(name)]
        for t in written if written.__class__ in (tuple, list) else (written,):
            if t is not None and t._storage.readonly:
                refuse_readonly(op.name)


def _count_writes(op: Op, args: tuple[Any, ...]) -> None:
    """Backward must notice that a kernel changed values which it may have saved."""
    for name in op.mutates:
        written = args[op.schema.names.index(name)]
        for t in written if written.__class__ in (tuple, list) else (written,):
            t._storage.version += 1


def _execute_view(plan: Plan, x: Any) -> Any:
    spec = plan.out
    offset = x._offset + plan.compute
    if spec.dtype.itemsize != x._spec.dtype.itemsize:  # type: ignore[union-attr]
        # A view that reinterprets bytes counts its offset in its own element size.
        offset = x._offset * x._spec.dtype.itemsize // spec.dtype.itemsize + plan.compute  # type: ignore[union-attr]
    out = make(x._storage, plan.backend.view(x._storage, spec, offset), spec, offset)  # type: ignore[arg-type]
    base = x._base
    if base is None:
        base = x
    out._base = base
    out._chain = (*x._chain, plan)
    base._remember_view(out)
    if mode.grad and x._rg:
        if plan.op.differentiable:
            state.graph.record(plan, (x,), out)
    elif not mode.grad:
        out._no_grad_view = True
    return out


_NUMBERS = (int, float, bool, complex)


def _is_operand(v: Any) -> bool:
    return hasattr(v, "_spec") or isinstance(v, (int, float, complex, np.number, np.bool_))


def with_foreign(op: str, run: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """What a Python operator makes of an operand that is neither tensor nor number.

    NumPy's arrays become tensors, as in torch. Tensors of other libraries are refused here, because
    Python would say "unsupported: Tensor and Tensor", or that the two are not equal. Anything else
    may know itself what to do.
    """
    x, other = (a, b) if hasattr(a, "_spec") else (b, a)
    if isinstance(other, np.ndarray):
        made = F._from_data(other, None, x._spec.device)
        return run(a, made) if other is b else run(made, b)
    if foreign(other):
        raise TypeError(f"{op}: expected a Tensor or a number, got {received(other)}.")
    return NotImplemented


def unary(op: Op) -> Callable[[Any], Any]:
    """A function (x) for an elementwise operator of one tensor, static arguments at their
    defaults.
    """
    plans: dict[Spec, Plan] = {}
    op.fast_plans.append(plans)
    new, cls, flags, switches = _new, state.tensor, state, mode
    differentiable = op.differentiable

    def fast(x: Any) -> Any:
        try:
            plan = plans[x._spec]
            if flags.hooks:
                return call(op, (x, *op.defaults(1)))
            st, data = plan.compute(x._data)
        except (KeyError, AttributeError):
            if flags.hooks:
                return call(op, (x, *op.defaults(1)))
            plan, args = prepare(op, (x, *op.defaults(1)))
            if len(plans) < PLAN_LIMIT:
                plans[args[0]._spec] = plan
            return call(op, args)
        except FAILURES as e:
            failed(plan, e)
        out = new(cls)
        out._data = data  # before _storage, see dispatch.state.make
        if st is not None:
            out._storage = st
        out._spec = plan.out
        if x._rg and differentiable and switches.grad:
            flags.graph.record_one(plan, x, out)
        return out

    return fast if native is None else native.Fast(plans, fast, 1, differentiable)


def binary(op: Op, operator: bool = False) -> Callable[[Any, Any], Any]:
    """A function (a, b) for an elementwise operator of two operands, the rest at defaults.

    As a Python operator it answers NotImplemented to what is neither tensor nor number.
    """
    plans: dict[Any, Plan] = {}
    op.fast_plans.append(plans)
    new, cls, flags, switches = _new, state.tensor, state, mode
    differentiable = op.differentiable

    def with_number(a: Any, b: Any) -> Any:
        plan = plans.get((getattr(a, "_spec", a.__class__), getattr(b, "_spec", b.__class__)))
        if plan is None or flags.hooks:
            if operator and not (_is_operand(a) and _is_operand(b)):
                return with_foreign(op.name, fast, a, b)
            if flags.hooks:
                return call(op, (a, b, *op.defaults(2)))
            plan, args = prepare(op, (a, b, *op.defaults(2)))
            if len(plans) < PLAN_LIMIT and (a.__class__ in _NUMBERS or b.__class__ in _NUMBERS):
                plans[getattr(a, "_spec", a.__class__), getattr(b, "_spec", b.__class__)] = plan
            return call(op, args)
        x, i = (a, 0) if hasattr(a, "_spec") else (b, 1)
        try:
            st, data = plan.compute(x._data, b) if i == 0 else plan.compute(a, x._data)
        except FAILURES as e:
            failed(plan, e)
        out = new(cls)
        out._data = data
        if st is not None:
            out._storage = st
        out._spec = plan.out
        if x._rg and differentiable and switches.grad:
            flags.graph.record(plan, (a, b), out)
        return out

    def fast(a: Any, b: Any) -> Any:
        try:
            plan = plans[a._spec, b._spec]
            if flags.hooks:
                return call(op, (a, b, *op.defaults(2)))
            st, data = plan.compute(a._data, b._data)
        except AttributeError:  # a number on one side
            return with_number(a, b)
        except KeyError:
            if flags.hooks:
                return call(op, (a, b, *op.defaults(2)))
            plan, args = prepare(op, (a, b, *op.defaults(2)))
            if len(plans) < PLAN_LIMIT:
                plans[a._spec, b._spec] = plan
            return call(op, args)
        except FAILURES as e:
            failed(plan, e)
        out = new(cls)
        out._data = data  # before _storage, see dispatch.state.make
        if st is not None:
            out._storage = st
        out._spec = plan.out
        if (a._rg or b._rg) and differentiable and switches.grad:
            flags.graph.record_pair(plan, a, b, out)
        return out

    return fast if native is None else native.Fast(plans, fast, 2, differentiable)


Op.call = staticmethod(call)  # type: ignore[assignment]
