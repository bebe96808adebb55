"""The one way from a function to a kernel: normalise, infer, plan, record, launch, observe.

A plan is built at the first call with given specs and static arguments and found by identity later.
Knows neither formulas' content nor devices' internals; autograd and Tensor plug in from above.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .backends.base import BACKENDS, find, listeners
from .core import dtype as dt
from .core.errors import DeviceError, DtypeError, ShapeError, UnsupportedError, fail
from .core.layout import (
    Spec,
    broadcast_shapes,
    elementwise_strides,
    has_overlap,
    trim_tables,
)
from .core.mode import mode
from .core.promotion import can_cast, number_type, result_type_of
from .core.storage import Storage
from .ops.registry import OPS, Op
from .ops.schema import Arg

PLAN_LIMIT = 4096


class _State:
    """What every call looks at: whether anybody listens, and the classes from the layers above."""

    hooks: bool = False  # leave the short paths: somebody observes, or inference mode is on
    observers: tuple[Any, ...] = ()
    inference: int = 0  # how many threads are in inference mode
    tensor: Any = None
    graph: Any = None


state = _State()
_new = object.__new__


def install(tensor: type, graph: Any) -> None:
    """Give the dispatcher its Tensor class and the module that records calls."""
    state.tensor = tensor
    state.graph = graph
    Op.call = staticmethod(call)  # type: ignore[assignment]
    Op.inplace = staticmethod(call_inplace)


def make(storage: Storage, data: Any, spec: Spec, offset: int = 0) -> Any:
    """A tensor over existing memory."""
    t = _new(state.tensor)
    t._storage = storage
    t._data = data
    t._spec = spec
    if offset:
        t._offset = offset
    if mode.inference:
        t._inference = True
    return t


def drop_plans(op: str | None = None) -> None:
    """Forget plans: of one operator (its kernels changed) or all (the default dtype changed)."""
    if op is None:
        for o in OPS.values():
            o.forget()
    elif op in OPS:
        OPS[op].forget()


listeners.append(drop_plans)
dt.default_listeners.append(drop_plans)


# --- keys and argument lists, compiled once per schema --------------------------------------------


def _key_part(i: int, a: Arg) -> str:
    v = f"a[{i}]"
    if a.is_list and a.is_tensor:
        return f"tuple([t._spec for t in {v}])"
    if a.type == "Operand":
        return f"({v}._spec if hasattr({v}, '_spec') else {v}.__class__)"
    if a.is_tensor:
        return f"(None if {v} is None else {v}._spec)" if a.optional else f"{v}._spec"
    if a.type == "Scalar":
        return f"{v}.__class__"
    return f"{v}.__class__, {v}"


def _compile_access(op: Op) -> None:
    """Give `op` two functions of its argument tuple: the plan key and the runtime values."""
    args = op.schema.args
    key = ", ".join(_key_part(i, a) for i, a in enumerate(args))
    values = ", ".join(f"a[{i}]" for i, a in enumerate(args) if a.is_runtime)
    op.key = eval(f"lambda a: ({key}{',' if key else ''})")  # type: ignore[attr-defined]
    op.values = eval(f"lambda a: ({values}{',' if values else ''})")  # type: ignore[attr-defined]


# --- normalising ----------------------------------------------------------------------------------


def _as_int(op: str, a: Arg, v: Any) -> int:
    if v.__class__ is int:
        return int(v)
    if isinstance(v, (bool, float, complex, str)) or v is None:
        raise TypeError(f"{op}: argument {a.name!r} must be int, got {type(v).__name__}.")
    try:
        return int(v.__index__())
    except AttributeError:
        raise TypeError(
            f"{op}: argument {a.name!r} must be int, got {type(v).__name__}."
        ) from None


def _as_number(op: str, a: Arg, v: Any) -> Any:
    if v.__class__ in (int, float, bool, complex):
        return v
    if isinstance(v, np.generic):
        return v.item()
    if isinstance(v, state.tensor):
        if v.ndim:
            raise TypeError(f"{op}: argument {a.name!r} must be a number, got shape {v.shape}.")
        return v.item()
    raise TypeError(f"{op}: argument {a.name!r} must be a number, got {type(v).__name__}.")


def _as_tensor(op: str, a: Arg, v: Any) -> Any:
    if isinstance(v, state.tensor):
        return v
    if a.type == "Operand" and isinstance(v, (int, float, bool, complex, np.generic)):
        return v.item() if isinstance(v, np.generic) else v
    raise TypeError(
        f"{op}: argument {a.name!r} must be a Tensor{' or a number' * (a.type == 'Operand')}, "
        f"got {type(v).__name__}."
    )


def _normal(op: str, a: Arg, v: Any) -> Any:
    if v is None:
        if a.optional:
            return None
        raise TypeError(f"{op}: argument {a.name!r} must not be None.")
    if a.is_list:
        if a.type == "int" and isinstance(v, int) and not isinstance(v, bool):
            return (int(v),)
        if isinstance(v, (str, bytes)) or not hasattr(v, "__iter__"):
            if a.type in ("int", "float"):
                v = (v,)
            else:
                raise TypeError(
                    f"{op}: argument {a.name!r} must be a list, got {type(v).__name__}."
                )
        if a.is_tensor and isinstance(v, state.tensor):
            raise TypeError(f"{op}: argument {a.name!r} must be a tuple of Tensors, got a Tensor.")
        one = Arg(a.name, a.type, False, False, None, False)
        return tuple(_normal(op, one, x) for x in v)
    if a.is_tensor:
        return _as_tensor(op, a, v)
    if a.type == "int":
        return _as_int(op, a, v)
    if a.type in ("Scalar", "number"):
        return _as_number(op, a, v)
    if a.type == "float":
        return float(_as_number(op, a, v))
    if a.type == "bool":
        if isinstance(v, (bool, np.bool_)) or v in (0, 1):
            return bool(v)
        raise TypeError(f"{op}: argument {a.name!r} must be bool, got {type(v).__name__}.")
    if a.type == "str" and not isinstance(v, str):
        raise TypeError(f"{op}: argument {a.name!r} must be str, got {type(v).__name__}.")
    if a.type == "dtype":
        return as_dtype(op, v)
    return v


_PY_DTYPES: dict[Any, str] = {float: "float32", int: "int64", bool: "bool", complex: "complex64"}


def as_dtype(op: str, v: Any) -> dt.dtype:
    """The dtype meant by an argument; Python's own types are accepted as in torch."""
    if isinstance(v, dt.dtype):
        return v
    if v in _PY_DTYPES:
        return dt.get_default_dtype() if v is float else dt.by_name(_PY_DTYPES[v])
    raise TypeError(f"{op}: dtype must be a votive.dtype, got {v!r}.")


def normalise(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with the types that the schema names, or a TypeError."""
    return tuple(_normal(op.name, a, v) for a, v in zip(op.schema.args, args, strict=True))


# --- plans ----------------------------------------------------------------------------------------


class Plan:
    """How to run one operator on given specs: static arguments, result specs, bound kernel."""

    __slots__ = (
        "backend", "compute", "formula", "into", "is_complex", "op", "out", "outs", "recipes",
        "roles", "row", "specs", "static",
    )  # fmt: skip
    op: Op
    static: tuple[Any, ...]  # canonical arguments in schema order; runtime ones are Specs or types
    out: Spec | None
    outs: tuple[Spec, ...] | None
    compute: Any
    into: Any
    backend: Any
    formula: Any
    is_complex: bool
    row: Any
    specs: tuple[Any, ...]
    roles: Any
    recipes: dict[Any, Any]


def _spec_of(v: Any) -> Any:
    if isinstance(v, tuple):
        return tuple(_spec_of(x) for x in v)
    return v._spec if isinstance(v, state.tensor) else v


def _flat_specs(values: Any) -> list[Spec]:
    out: list[Spec] = []
    for v in values:
        if v.__class__ is Spec:
            out.append(v)
        elif v.__class__ is tuple:
            out.extend(x for x in v if x.__class__ is Spec)
    return out


def _device_of(op: str, specs: list[Spec]) -> Any:
    found = None
    for s in specs:
        if found is None or (found is not s.device and found_0d):
            found, found_0d = s.device, s.ndim == 0
        elif s.device is not found and not (s.ndim == 0 and s.device.type == "cpu"):
            raise DeviceError(
                f"{op}: tensors are on different devices, {found} and {s.device}; "
                f"move one with .to()."
            )
    return found


def prepare(op: Op, args: tuple[Any, ...]) -> tuple[Plan, tuple[Any, ...]]:
    """Find or build the plan for these arguments; also gives them back normalised."""
    if not hasattr(op, "key"):
        _compile_access(op)
    args = normalise(op, args)
    key = op.key(args)  # type: ignore[attr-defined]
    plan = op.plans.get(key)
    if plan is None:
        if len(op.plans) > PLAN_LIMIT:
            op.forget()
        plan = _BUILD[op.kind](op, args)
        op.plans[key] = plan
    return plan, args


def trim() -> None:
    """Bound what plans and interned specs may hold, for programs with ever new shapes."""
    drop_plans()
    trim_tables(0)


_KIND = "bifc"
_KIND_NAME = {"b": "bool", "i": "integer", "f": "floating-point", "c": "complex"}


def pointwise_types(op: Op, args: tuple[Any, ...]) -> tuple[dt.dtype, dt.dtype, dt.dtype]:
    """(promoted, compute, result) types of an elementwise call."""
    dims, zeros, numbers = [], [], []
    for a, v in zip(op.schema.args, args, strict=True):
        if a.type not in ("Tensor", "Operand") or v is None:
            continue
        if isinstance(v, Spec):
            (dims if v.ndim else zeros).append(v.dtype)
        else:
            numbers.append(number_type(v.__class__))
    promoted = result_type_of(dims, zeros, numbers)
    kind = _KIND[promoted.category]
    if kind not in op.allow or promoted in dt.FLOAT8 or promoted in dt.BAREBONES:
        if not (promoted in dt.BAREBONES + dt.FLOAT8 and op.dtype_rule == "any"):
            allowed = ", ".join(_KIND_NAME[k] for k in op.allow)
            fail(
                UnsupportedError, op.name,
                f"not implemented for {promoted}; it takes {allowed} tensors.",
            )  # fmt: skip
    rule = op.dtype_rule
    if callable(rule):
        compute, result = rule(promoted, *args)
    elif rule == "float":
        compute = result = promoted if promoted.is_inexact else dt.get_default_dtype()
    elif rule == "bool":
        compute, result = promoted, dt.bool_
    else:
        compute = result = promoted
    return promoted, dt.compute_type(compute), result


def _build_pointwise(op: Op, args: tuple[Any, ...]) -> Plan:
    spec_args = tuple(_spec_of(v) for v in args)
    specs = _flat_specs(spec_args)
    if not specs:
        raise TypeError(f"{op.name}: at least one argument must be a Tensor.")
    dev = _device_of(op.name, specs)
    _, compute, result = pointwise_types(op, spec_args)
    static = tuple(v for a, v in zip(op.schema.args, args, strict=True) if not a.is_runtime)
    shape = broadcast_shapes(op.name, *(s.shape for s in specs))
    strides = elementwise_strides(shape, specs)
    plan = _new(Plan)
    plan.op, plan.static, plan.recipes = op, spec_args, {}
    plan.specs = tuple(v for a, v in zip(op.schema.args, spec_args, strict=True) if a.is_runtime)
    plan.out = Spec(specs[0].like(shape, strides=strides).layout, result, dev)
    plan.outs = (plan.out,)
    plan.formula = op.formula(static)
    plan.is_complex = compute.is_complex
    names, roles = [], []
    for a, v in zip(op.schema.args, spec_args, strict=True):
        if a.is_runtime:
            names.append(a.name)
            if a.type == "Mask":
                if v.dtype is not dt.bool_:
                    fail(
                        DtypeError, op.name,
                        f"{a.name} must be a bool tensor, got {v.dtype}; use .bool() or a comparison.",
                    )  # fmt: skip
                roles.append((v.dtype, v.dtype))
            else:
                roles.append((v.dtype if isinstance(v, Spec) else None, compute))
    plan.roles = roles
    plan.backend = BACKENDS[dev.type]
    plan.row = None
    plan.compute, plan.into = plan.backend.pointwise(
        plan.formula, names, roles, [v if isinstance(v, Spec) else None for v in plan.specs],
        plan.out, plan.backend.empty,
    )
    return plan


def _build_structured(op: Op, args: tuple[Any, ...]) -> Plan:
    spec_args = tuple(_spec_of(v) for v in args)
    if op.canon is not None:
        spec_args = tuple(op.canon(*spec_args))
    specs = _flat_specs(spec_args)
    dev = _device_of(op.name, specs)
    assert op.infer is not None
    out = op.infer(*spec_args)
    plan = _new(Plan)
    plan.op, plan.static, plan.recipes = op, spec_args, {}
    plan.specs = tuple(v for a, v in zip(op.schema.args, spec_args, strict=True) if a.is_runtime)
    plan.formula, plan.is_complex, plan.into, plan.roles = None, False, None, None
    plan.out = out if isinstance(out, Spec) else None
    plan.outs = (out,) if isinstance(out, Spec) else out
    if dev is None:
        dev = plan.outs[0].device if plan.outs else None
    plan.backend = BACKENDS[dev.type]
    plan.row = find(op.name, dev.type, specs)
    template = [None if a.is_runtime else v for a, v in zip(op.schema.args, spec_args, strict=True)]
    slots = [i for i, a in enumerate(op.schema.args) if a.is_runtime]
    single = plan.out is not None or (plan.outs is None and op.n_out == 1)
    plan.compute, plan.into = plan.backend.bind(
        plan.backend, plan.row, template, slots, specs, plan.outs, single
    )
    return plan


def _build_view(op: Op, args: tuple[Any, ...]) -> Plan:
    spec_args = tuple(_spec_of(v) for v in args)
    if op.canon is not None:
        spec_args = tuple(op.canon(*spec_args))
    assert op.infer is not None
    spec, shift = op.infer(*spec_args)
    plan = _new(Plan)
    plan.op, plan.static, plan.recipes = op, spec_args, {}
    plan.specs = (spec_args[0],)
    plan.formula, plan.is_complex, plan.into, plan.roles, plan.row = None, False, None, None, None
    plan.out, plan.outs = spec, (spec,)
    plan.backend = BACKENDS[spec.device.type]
    plan.compute = shift
    return plan


_BUILD: dict[str, Callable[[Op, tuple[Any, ...]], Plan]] = {
    "pointwise": _build_pointwise,
    "structured": _build_structured,
    "view": _build_view,
}


# --- running --------------------------------------------------------------------------------------


def call(op: Op, args: tuple[Any, ...]) -> Any:
    """Run an operator on arguments in schema order."""
    try:
        plan = op.plans[op.key(args)]  # type: ignore[attr-defined]
    except (KeyError, TypeError, AttributeError):
        plan, args = prepare(op, args)
    if state.observers:
        return _observed(plan, args)
    return execute(plan, args)


def _data(v: Any) -> Any:
    if v.__class__ in (tuple, list):
        return [x._data for x in v]
    return getattr(v, "_data", v)


def _any_grad(values: Any) -> bool:
    for v in values:
        if v.__class__ in (tuple, list):
            if any(x._rg for x in v):
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
    if op.kind == "pointwise":
        storage, data = plan.compute(*[getattr(v, "_data", v) for v in values])
        out = make(storage, data, plan.out)
    else:
        parts = plan.compute(*[_data(v) for v in values])
        if plan.out is not None or (plan.outs is None and op.n_out == 1):
            out = make(*parts[0])
        else:
            out = tuple([make(*p) for p in parts])
    if mode.grad and op.differentiable and _any_grad(values):
        state.graph.record(plan, values, out)
    return out


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


# --- in place and out= ----------------------------------------------------------------------------


def call_inplace(op: Op, args: tuple[Any, ...], any_cast: bool = False) -> Any:
    """Run an operator and write its result into its first argument."""
    x = args[0]
    plan, args = prepare(op, args)
    if state.observers:
        return _observed(plan, args, lambda: _write(plan, args, x, any_cast))
    return _write(plan, args, x, any_cast)


def _write(plan: Plan, args: tuple[Any, ...], x: Any, any_cast: bool) -> Any:
    op, out = plan.op, plan.out
    values = op.values(args)  # type: ignore[attr-defined]
    tracked = mode.grad and op.differentiable and (x._rg or _any_grad(values))
    check_writable(op.name + "_", x, tracked)
    assert out is not None
    if not any_cast and not can_cast(out.dtype, x._spec.dtype):
        fail(
            DtypeError, op.name + "_",
            f"result type {out.dtype} can't be cast to the tensor's type {x._spec.dtype}.",
        )  # fmt: skip
    if out.shape != x._spec.shape:
        fail(
            ShapeError, op.name + "_",
            f"the tensor's shape {x._spec.shape} doesn't match the broadcast shape {out.shape}.",
        )  # fmt: skip
    # Backward may need the old value of x, which is about to go.
    kept = values
    if tracked and state.graph.needs_self(plan, values):
        with_copy = _copy_of(x)
        kept = tuple(with_copy if v is x else v for v in values)
    direct = (
        plan.into is not None
        and out.dtype is x._spec.dtype
        and not any(_collides(v, x) for v in _leaves(values))
    )
    if direct:
        plan.into([_data(v) for v in values], x._data)
    elif op.kind == "pointwise":
        _, data = plan.compute(*[getattr(v, "_data", v) for v in values])
        plan.backend.copy(x._data, data)
    else:
        _, data, _ = plan.compute(*[_data(v) for v in values])[0]
        plan.backend.copy(x._data, data)
    x._storage.version += 1
    if tracked:
        state.graph.record_inplace(plan, values, kept, x)
    return x


def _copy_of(x: Any) -> Any:
    """A private copy of x that stands in for it in the graph."""
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


def _collides(v: Any, x: Any) -> bool:
    """Whether reading v while x is written could see new values."""
    if getattr(v, "_storage", None) is not x._storage:
        return False
    return not (v._spec is x._spec and v._offset == x._offset)


def check_writable(op: str, x: Any, tracked: bool) -> None:
    """Raise when torch would refuse to write into x."""
    if has_overlap(x._spec.shape, x._spec.strides):
        fail(
            RuntimeError, op,
            "more than one element of the written-to tensor refers to a single memory location; "
            "clone() the tensor first.",
        )  # fmt: skip
    if x._inference and not mode.inference and tracked:
        fail(
            RuntimeError, op,
            "an inference tensor cannot be changed in place outside inference_mode; clone() it.",
        )  # fmt: skip
    if mode.grad and x._rg:
        if x._edge is None and x._base is None:
            fail(
                RuntimeError, op,
                "a leaf Variable that requires grad is being used in an in-place operation; "
                "use no_grad() or a copy.",
            )  # fmt: skip
        base = x._base
        if base is not None and base._rg and base._edge is None:
            fail(
                RuntimeError, op,
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation; use no_grad() or a copy.",
            )  # fmt: skip
        if base is not None and x._no_grad_view:
            fail(
                RuntimeError, op,
                "a view made under no_grad() cannot be changed in place with grad enabled; "
                "clone() it.",
            )  # fmt: skip


def call_out(op: Op, args: tuple[Any, ...], out: Any) -> Any:
    """Run an operator and write the result into `out`, resizing it when the shape differs."""
    plan, args = prepare(op, args)
    refuse_grad(op.name, op.values(args), out)  # type: ignore[attr-defined]
    saved, mode.grad = mode.grad, False
    try:
        result = _observed(plan, args) if state.observers else execute(plan, args)
    finally:
        mode.grad = saved
    return write_out(op.name, result, out)


def refuse_grad(op: str, values: Any, out: Any) -> None:
    """`out=` has no place in a graph: torch refuses when a graph would be built."""
    outs = out if isinstance(out, (tuple, list)) else (out,)
    if mode.grad and (_any_grad(values) or any(getattr(o, "_rg", False) for o in outs)):
        fail(
            RuntimeError, op,
            "out= does not support automatic differentiation, but one of the arguments requires grad.",
        )  # fmt: skip


def write_out(op: str, result: Any, out: Any) -> Any:
    """Copy results into `out` tensors by torch's rules."""
    if isinstance(result, tuple):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"{op}: out must be a tuple of {len(result)} tensors.")
        written = tuple(write_out(op, r, o) for r, o in zip(result, out, strict=True))
        return type(result)(*written) if hasattr(result, "_fields") else written
    if not isinstance(out, state.tensor):
        raise TypeError(f"{op}: out must be a Tensor, got {type(out).__name__}.")
    if out._spec.device is not result._spec.device:
        fail(
            DeviceError, op,
            f"out is on {out._spec.device}, the result on {result._spec.device}.",
        )  # fmt: skip
    if not can_cast(result._spec.dtype, out._spec.dtype):
        fail(
            DtypeError, op,
            f"result type {result._spec.dtype} can't be cast to the type of out {out._spec.dtype}.",
        )  # fmt: skip
    if out._spec.shape != result._spec.shape:
        if out._spec.numel:
            warnings.warn(
                f"{op}: out of shape {out._spec.shape} was resized to {result._spec.shape}; "
                "pass an empty tensor or one of the right shape.",
                UserWarning,
                stacklevel=4,
            )
        out.resize_(result._spec.shape)
    check_writable(op, out, False)
    BACKENDS[out._spec.device.type].copy(out._data, result._data)
    out._storage.version += 1
    return out


# --- fast paths -----------------------------------------------------------------------------------


def _is_operand(v: Any) -> bool:
    return hasattr(v, "_spec") or isinstance(v, (int, float, complex, np.number, np.bool_))


def unary(op: Op) -> Callable[[Any], Any]:
    """A function (x) for an elementwise operator of one tensor, static arguments at their defaults."""
    plans: dict[Spec, Plan] = {}
    op.fast_plans.append(plans)
    rest = tuple(a.default for a in op.schema.args[1:])
    new, cls, flags, switches = _new, state.tensor, state, mode
    differentiable = op.differentiable

    def fast(x: Any) -> Any:
        try:
            plan = plans[x._spec]
            if flags.hooks:
                return call(op, (x, *rest))
            st, data = plan.compute(x._data)
        except (KeyError, AttributeError):
            plan, args = prepare(op, (x, *rest))
            if len(plans) < PLAN_LIMIT:
                plans[args[0]._spec] = plan
            return call(op, args)
        out = new(cls)
        out._storage = st
        out._data = data
        out._spec = plan.out
        if x._rg and differentiable and switches.grad:
            flags.graph.record_one(plan, x, out)
        return out

    return fast


def binary(op: Op, operator: bool = False) -> Callable[[Any, Any], Any]:
    """A function (a, b) for an elementwise operator of two operands, the rest at defaults.

    As a Python operator it answers NotImplemented to what is neither tensor nor number.
    """
    plans: dict[Any, Plan] = {}
    op.fast_plans.append(plans)
    rest = tuple(a.default for a in op.schema.args[2:])
    new, cls, flags, switches = _new, state.tensor, state, mode
    differentiable = op.differentiable

    def fast(a: Any, b: Any) -> Any:
        try:
            plan = plans[a._spec, b._spec]
            if flags.hooks:
                return call(op, (a, b, *rest))
            st, data = plan.compute(a._data, b._data)
        except AttributeError:  # a number on one side
            if operator and not (_is_operand(a) and _is_operand(b)):
                return NotImplemented
            return call(op, (a, b, *rest))
        except KeyError:
            plan, args = prepare(op, (a, b, *rest))
            if len(plans) < PLAN_LIMIT:
                plans[a._spec, b._spec] = plan
            return call(op, args)
        out = new(cls)
        out._storage = st
        out._data = data
        out._spec = plan.out
        if (a._rg or b._rg) and differentiable and switches.grad:
            flags.graph.record_pair(plan, a, b, out)
        return out

    return fast


# --- observers ------------------------------------------------------------------------------------


class Call:
    """What observers see of one call: operator, plan, arguments, result, seconds."""

    __slots__ = ("args", "op", "plan", "result", "seconds")

    def __init__(self, op: Op, plan: Plan, args: tuple[Any, ...]) -> None:
        self.op, self.plan, self.args = op, plan, args
        self.result: Any = None
        self.seconds = math.nan

    @property
    def module_path(self) -> str:
        return mode.module_path

    def __repr__(self) -> str:
        return f"<call {self.op.name} -> {getattr(self.result, 'shape', None)}>"


def _observed(plan: Plan, args: tuple[Any, ...], run: Callable[[], Any] | None = None) -> Any:
    event = Call(plan.op, plan, args)
    watching = state.observers
    for o in watching:
        o.before(event)
    start = time.perf_counter()
    event.result = execute(plan, args) if run is None else run()
    event.seconds = time.perf_counter() - start
    for o in watching:
        replaced = o.after(event)
        if replaced is not None:
            event.result = replaced
    return event.result


class Observer:
    """Base of everything that watches calls; use it as a context manager.

    `before(call)` sees the arguments; `after(call)` sees the result and may return another one.
    """

    def before(self, call: Call) -> None: ...

    def after(self, call: Call) -> Any: ...

    def __enter__(self) -> Any:
        attach(self)
        return self

    def __exit__(self, *exc: object) -> None:
        detach(self)


def attach(observer: Any) -> None:
    """Let `observer` see every call from now on."""
    state.observers = (*state.observers, observer)
    refresh_hooks()


def detach(observer: Any) -> None:
    """Stop an observer."""
    state.observers = tuple(o for o in state.observers if o is not observer)
    refresh_hooks()


def refresh_hooks(inference: int = 0) -> None:
    """Recompute whether calls must leave the short paths."""
    with _hooks_lock:
        state.inference += inference
        state.hooks = bool(state.observers) or state.inference > 0


_hooks_lock = threading.Lock()
