"""The other forms of operators: in place, `out=`, and Python's `+` with anything on its other side."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.base import BACKENDS
from ..core.errors import DeviceError, DtypeError, ShapeError, fail, foreign, received, refuse_readonly
from ..core.layout import Spec, extent
from ..core.mode import mode
from ..core.promotion import can_cast
from ..ops.operator import Composite, Form, Op, Operator
from ..ops.registry import OPS, F
from .arguments import configure_form
from .build import find, prepare
from .execute import any_grad, execute, run
from .failure import FAILURES, failed
from .observe import observed
from .plan import KernelPlan, Plan, StructuredPlan, data_of, make
from .state import state

if TYPE_CHECKING:
    from ..tensor import Tensor


def write(op: Op, args: tuple[Any, ...]) -> Any:
    """Run an operator on arguments in schema order, and write its result over the first."""
    x = args[0]
    if Op.elsewhere is not None:
        result = Op.elsewhere(op.name + "_", op, args, {})
        if result is not NotImplemented:
            return result
    if state.interpret is not None:
        result = state.interpret(op, args, x)
        if result is not NotImplemented:
            return result
    plan, args = find(op, args)
    assert isinstance(plan, KernelPlan)
    if state.observers:
        result = observed(plan, args, lambda plan, args: _write(plan, args, x), x)
        return x if result is x else _overwrite(x, result)
    if plan.writes is None:
        plan.writes = _writes_directly(plan)
    plain = plan.writes and not x._rg and not x._inference and not x._storage.readonly
    if plain and (x._base is None or not x._base._rg):
        values = op.values(args)
        if not any_grad(values):
            _write_into(plan, values, x)
            return x
    return _write(plan, args, x)


def _write_into(plan: KernelPlan, values: tuple[Any, ...], x: Tensor) -> None:
    assert plan.into is not None
    try:
        plan.into([data_of(v) for v in values], x._data)
    except FAILURES as e:
        failed(plan, e)
    x._storage.version += 1


def write_over(op: Op, args: tuple[Any, ...], x: Tensor) -> None:
    """Write a result over one of the operands, by a kernel that reads first what it overwrites."""
    plan, args = prepare(op, args)
    assert isinstance(plan, StructuredPlan)
    if plan.into is not None and plan.row.careful and plan.out is x._spec:
        _write_into(plan, op.values(args), x)
    else:
        plan.backend.copy(x._data, plan.result_data(op.values(args)))
        x._storage.version += 1


def _writes_directly(plan: KernelPlan) -> bool:
    """Whether the kernel may write over the first argument: nothing to convert or to refuse.

    Native elementwise kernels look themselves whether what they read and write overlaps.
    """
    out, spec = plan.out, plan.specs[0] if plan.specs else None
    return (
        (hasattr(plan.compute, "checks_overlap") or (isinstance(plan, StructuredPlan) and plan.row.careful))
        and out is not None
        and isinstance(spec, Spec)
        and plan.op.schema.args[0].is_runtime
        and out.dtype is spec.dtype
        and out.shape == spec.shape
        and not spec.layout.overlaps
    )


def _write(plan: Plan, args: tuple[Any, ...], x: Tensor) -> Any:
    op, out = plan.op, plan.out
    assert isinstance(plan, KernelPlan)
    values = op.values(args)
    tracked = mode.grad and op.differentiable and (x._rg or any_grad(values))
    check_writable(op.name + "_", x, tracked)
    assert out is not None
    if not op.inplace_casts and not can_cast(out.dtype, x._spec.dtype):
        fail(DtypeError, op.name + "_", f"result type {out.dtype} can't be cast to the tensor's type {x._spec.dtype}.")
    if out.shape != x._spec.shape:
        fail(
            ShapeError,
            op.name + "_",
            f"the tensor's shape {x._spec.shape} doesn't match the broadcast shape {out.shape}.",
        )
    if tracked and x._base is not None and args[0] is not x:
        # An observer gave another value to read. The base's history takes the first argument to
        # be the part of it that is overwritten, so compute apart and write the result there.
        return _overwrite(x, execute(plan, args))
    # Backward may need the old value of x, which is about to go.
    kept = values
    if tracked and state.graph.needs_self(plan, values):
        with_copy = private_copy(x)
        kept = tuple(with_copy if v is x else v for v in values)
    direct = plan.into is not None and out.dtype is x._spec.dtype and not any(_collides(v, x) for v in _leaves(values))
    if direct:
        _write_into(plan, values, x)
    else:
        plan.backend.copy(x._data, plan.result_data(values))
        x._storage.version += 1
    if tracked:
        state.graph.record_inplace(plan, values, kept, x)
    return x


def _overwrite(x: Tensor, new: Tensor) -> Any:
    """Write into x what an observer gave for an in-place call: its callers go on with x."""
    plan, args = prepare(OPS["copy"], (x, new))
    return _write(plan, args, x)


def private_copy(x: Tensor) -> Any:
    """A private copy of x that stands in for it in the graph."""
    if any(o.follows_copies for o in state.observers):
        saved, mode.grad = mode.grad, False
        try:
            t = run(OPS["_copy_as"], (x, x._spec.dtype, x._spec.dense_like().strides))
        finally:
            mode.grad = saved
        t._rg, t._edge = x._rg, x._edge
        return t
    storage, data = BACKENDS[x._spec.device.type].empty(x._spec.dense_like())
    BACKENDS[x._spec.device.type].copy(data, x._data)
    t = make(storage, data, x._spec.dense_like())
    t._rg, t._edge = x._rg, x._edge
    return t


def _leaves(values: Any) -> Any:
    for v in values:
        if v.__class__ in (tuple, list):
            yield from v
        else:
            yield v


def _collides(v: Any, x: Tensor) -> bool:
    """Whether reading v while x is written could see new values."""
    other = getattr(v, "_storage", None)
    if other is None or other.root is not x._storage.root:
        return False
    return not (v._spec is x._spec and v._offset == x._offset)


def _span(t: Tensor) -> range:
    """The addresses a tensor reaches; two storages may be windows on one foreign block."""
    start = t.data_ptr()
    return range(start, start + extent(t._spec.shape, t._spec.strides) * t._spec.dtype.itemsize)


def refuse_overlap(op: str, values: Any, out: Any) -> None:
    """Raise when `out` shares memory with an input."""
    mine = _span(out)
    for v in _leaves(values):
        if isinstance(v, state.tensor) and v._spec.device is out._spec.device:
            theirs = _span(v)
            if max(mine.start, theirs.start) < min(mine.stop, theirs.stop):
                fail(RuntimeError, op, "out overlaps an input in memory; clone() one of them.")


def refuse_shared_elements(op: str, x: Tensor) -> None:
    """Raise when several elements of the tensor to be written are one place in memory."""
    if x._spec.layout.overlaps:
        fail(
            RuntimeError,
            op,
            "more than one element of the written-to tensor refers to a single memory location; "
            "clone() the tensor first.",
        )


def check_writable(op: str, x: Tensor, tracked: bool) -> None:
    """Raise when x must not be written: it looks at read-only memory, or torch would refuse."""
    if x._storage.readonly:
        refuse_readonly(op)
    refuse_shared_elements(op, x)
    if x._inference and not mode.inference:
        fail(RuntimeError, op, "an inference tensor cannot be changed in place outside inference_mode; clone() it.")
    if not mode.grad:
        return
    base = x._base
    if base is not None and x._no_grad_view and (base._rg or tracked):
        fail(
            RuntimeError,
            op,
            "a view made under no_grad() cannot be changed in place with grad enabled; "
            "make the view with grad enabled, or clone() it.",
        )
    if x._rg and x._edge is None and base is None:
        fail(
            RuntimeError,
            op,
            "a leaf Variable that requires grad is being used in an in-place operation; use no_grad() or a copy.",
        )
    # A view that requires grad while its base does not was made a leaf, or comes from one.
    if base is not None and (base._edge is None if base._rg else x._rg):
        fail(
            RuntimeError,
            op,
            "a view of a leaf Variable that requires grad is being used in an in-place "
            "operation; use no_grad() or a copy.",
        )


def run_out(op: Op, args: tuple[Any, ...], out: Any) -> Any:
    """Run an operator and write the result into `out`, resizing it when the shape differs."""
    if Op.elsewhere is not None:
        made = Op.elsewhere(op.name, op, args, {"out": out})
        if made is not NotImplemented:
            return made
    if state.interpret is not None:
        result = state.interpret(op, args)
        if result is not NotImplemented:
            return write_out(op, result, out)
    plan, args = prepare(op, args)
    refuse_grad(op, op.values(args), out)
    saved, mode.grad = mode.grad, False
    try:
        result = observed(plan, args, execute, out) if state.observers else execute(plan, args)
    finally:
        mode.grad = saved
    return write_out(op, result, out)


def refuse_grad(op: Operator, values: Any, out: Any) -> None:
    """`out=` has no place in a graph: torch refuses when a graph would be built."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    for o in outs:
        if isinstance(o, state.tensor):
            if o._storage.readonly:
                refuse_readonly(op.name)
            refuse_shared_elements(op.name, o)
            if op.out_no_overlap:
                refuse_overlap(op.name, values, o)
    if mode.grad and (any_grad(values) or any(getattr(o, "_rg", False) for o in outs)):
        fail(RuntimeError, op.name, "out= does not support automatic differentiation, but an argument requires grad.")


def write_out(op: Operator, result: Any, out: Any) -> Any:
    """Copy results into `out` tensors by torch's rules."""
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{op.name}: out must be a tuple of {len(result)} tensors.")
        written = tuple(write_out(op, r, o) for r, o in zip(result, out, strict=True))
        return type(result)(*written) if hasattr(result, "_fields") else written
    if not isinstance(out, state.tensor):
        raise TypeError(f"{op.name}: out must be a Tensor, got {received(out)}.")
    if state.interpret is not None:
        written = state.interpret(OPS["copy"], (out, result), out)
        if written is not NotImplemented:
            return written
    if out._spec.device is not result._spec.device:
        fail(DeviceError, op.name, f"out is on {out._spec.device}, the result on {result._spec.device}.")
    if op.out_exact_dtype and result._spec.dtype is not out._spec.dtype:
        fail(DtypeError, op.name, f"out must be {result._spec.dtype}, got {out._spec.dtype}.")
    if not can_cast(result._spec.dtype, out._spec.dtype):
        fail(
            DtypeError, op.name, f"result type {result._spec.dtype} can't be cast to the type of out {out._spec.dtype}."
        )
    if out._storage.readonly:
        refuse_readonly(op.name)
    if out._spec.shape != result._spec.shape:
        if out._spec.numel:
            warnings.warn(
                f"{op.name}: out of shape {out._spec.shape} was resized to {result._spec.shape}; "
                "pass an empty tensor or one of the right shape.",
                UserWarning,
                stacklevel=4,
            )
        out.resize_(result._spec.shape)
    check_writable(op.name, out, False)
    BACKENDS[out._spec.device.type].copy(out._data, result._data)
    out._storage.version += 1
    return out


_NUMBERS = (int, float, complex, np.number, np.bool_)


def is_operand(v: object) -> bool:
    """Whether Python's operators take a value: a tensor or a number."""
    return hasattr(v, "_spec") or isinstance(v, _NUMBERS)


def run_form(form: Form, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The general way of a form."""
    of = form.of
    if not form.configured:
        configure_form(form)
        form.configured = True
    if form.kind == "in place":
        if Form.elsewhere is not None and not isinstance(of, Op):
            result = Form.elsewhere(of.name + "_", of, args, kwargs)
            if result is not NotImplemented:
                return result
        return write(of, of.bind(args, kwargs)) if isinstance(of, Op) else _composite_inplace(of, args, kwargs)
    a, b = args[::-1] if form.kind == "reflected" else args
    if not (is_operand(a) and is_operand(b)):
        return with_foreign(
            of.name, lambda a, b: run_form(form, (b, a) if form.kind == "reflected" else (a, b), {}), a, b
        )
    if form.kind == "operator in place":
        return write(of, (a, b, *of.defaults(2))) if isinstance(of, Op) else getattr(a, of.name + "_")(b)
    return run(of, (a, b, *of.defaults(2))) if isinstance(of, Op) else of(a, b)


def with_foreign(op: str, again: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """What a Python operator makes of an operand that is neither tensor nor number.

    NumPy's arrays become tensors, as in torch. Tensors of other libraries are refused here, because
    Python would say "unsupported: Tensor and Tensor", or that the two are not equal. Anything else
    may know itself what to do.
    """
    x, other = (a, b) if hasattr(a, "_spec") else (b, a)
    if isinstance(other, np.ndarray):
        made = F._from_data(other, None, x._spec.device)
        return again(a, made) if other is b else again(made, b)
    if hasattr(type(other), "__torch_function__"):  # a class that was not seen before
        Operator.watch()
        result = Operator.ask(getattr(F, op), (a, b), {})
        return NotImplemented if result is Operator.nothing else result
    if foreign(other):
        raise TypeError(f"{op}: expected a Tensor or a number, got {received(other)}.")
    return NotImplemented


def _composite_out(c: Composite, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """`out=` of a composite: compute without a graph, then write."""
    refuse_grad(c, (*args, *kwargs.values()), out)
    saved, mode.grad = mode.grad, False
    cast, mode.autocast = mode.autocast, {}  # who names the result's dtype wants no other
    try:
        result = c.fn(*args, **kwargs)
    finally:
        mode.grad, mode.autocast = saved, cast
    return write_out(c, result, out)


def _composite_inplace(c: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """In-place form of a composite: compute from x, then write over it."""
    assert isinstance(c, Composite)
    bound = c.signature.bind(*args, **kwargs)
    first = next(iter(c.signature.parameters))
    x = bound.arguments[first]
    name = c.name + "_"
    tracked = mode.grad and x._rg
    check_writable(name, x, tracked)
    cast, mode.autocast = mode.autocast, {}
    try:
        # Backward may need the old value of x, so the graph holds a copy instead.
        bound.arguments[first] = private_copy(x) if tracked else x
        result = c.fn(*bound.args, **bound.kwargs)
    finally:
        mode.autocast = cast
    if not can_cast(result._spec.dtype, x._spec.dtype):
        fail(DtypeError, name, f"result type {result._spec.dtype} can't be cast to {x._spec.dtype}.")
    if result._spec.shape != x._spec.shape:
        fail(ShapeError, name, f"the tensor's shape {x._spec.shape} doesn't match the result's {result._spec.shape}.")
    written: Tensor = F.copy_(x, result)
    return written


Op.write_out = staticmethod(run_out)
Form.run = staticmethod(run_form)
Form.write = staticmethod(write)
Composite.run_out = staticmethod(_composite_out)
