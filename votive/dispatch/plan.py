"""Plans: how one operator runs on given specs, built once and found by identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.base import BACKENDS, candidates, listeners
from ..backends.cpu.native.loader import module as native
from ..core import device
from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, devices_differ, fail
from ..core.layout import Spec, broadcast_shapes, elementwise_strides
from ..core.promotion import number_type, result_type_of
from ..ops.registry import OPS, Op
from ..ops.schema import Arg
from .failure import FAILURES, raise_for
from .normalise import normalise
from .state import state

PLAN_LIMIT = 4096
_new = object.__new__


# What functions remember: (spec, arguments) -> plan, window or call of an operator.
memories: list[dict[Any, Any]] = []


def drop_plans(op: str | None = None) -> None:
    """Forget plans: of one operator (its kernels changed) or all (the default dtype or the set of
    kernels in use changed).
    """
    if not op:
        for o in OPS.values():
            o.forget()
        for known in memories:
            known.clear()
    elif op in OPS:
        OPS[op].forget()


listeners.append(drop_plans)
dt.default_listeners.append(drop_plans)
device.default_listeners.append(drop_plans)


def remembering(function: Any, indexes: bool = False) -> Any:
    """A function whose results are views, with a memory of the plan that given arguments led to.

    `indexes`: the function is `x[index]`, which mostly needs none.
    """
    if native is None:
        return function
    return native.Memo(function, forgettable(), indexes)


def shortened(function: Any, resolve: Any) -> Any:
    """A function with a memory of the operator call that given arguments came down to.

    `resolve` gives that call, or None when the function itself must run.
    """
    if native is None:
        return function
    return native.Recall(function, forgettable(), resolve)


def forgettable() -> dict[Any, Any]:
    """A table that is emptied when all plans are dropped."""
    memories.append({})
    return memories[-1]


def _key_part(i: int, a: Arg) -> str:
    v = f"a[{i}]"
    if a.is_list and a.is_tensor:
        # Only lists: a tensor iterates over its rows, whose specs may be those of another call.
        return f"({v}.__class__ in (tuple, list) and tuple([t._spec for t in {v}]))"
    if a.type == "Operand":
        return f"({v}._spec if hasattr({v}, '_spec') else {v}.__class__)"
    if a.is_tensor:
        return f"(None if {v} is None else {v}._spec)" if a.optional else f"{v}._spec"
    if a.type == "Scalar":
        return f"{v}.__class__"
    return f"{v}.__class__, {v}"


def _kind(a: Arg) -> str:
    """What the short way of calls must know of an argument, see src/python/calls.cpp."""
    if a.is_list and a.is_tensor:
        return "l"
    if a.type == "Operand":
        return "o"
    if a.is_tensor:
        return "T" if a.optional else "t"
    return "n" if a.type == "Scalar" else "s"


def _compile_access(op: Op) -> None:
    """Give `op` two functions of its argument tuple: the plan key and the runtime values."""
    args = op.schema.args
    key = ", ".join(_key_part(i, a) for i, a in enumerate(args))
    values = ", ".join(f"a[{i}]" for i, a in enumerate(args) if a.is_runtime)
    op.key = eval(f"lambda a: ({key}{',' if key else ''})")  # type: ignore[attr-defined]
    op.values = eval(f"lambda a: ({values}{',' if values else ''})")  # type: ignore[attr-defined]
    kinds = "".join(_kind(a) for a in args)
    assert all((k != "s") == a.is_runtime for k, a in zip(kinds, args, strict=True)), op.name
    if native is not None and not op.mutates:
        op.access = native.Access(kinds, op.plans, op.differentiable, op.kind, op.n_out)


class Plan:
    """How to run one operator on given specs: static arguments, result specs, bound kernel."""

    __slots__ = (
        "backend",
        "compute",
        "formula",
        "into",
        "is_complex",
        "op",
        "out",
        "outs",
        "recipes",
        "roles",
        "row",
        "specs",
        "static",
        "writes",
    )
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
    writes: bool | None  # whether in-place forms may run the kernel straight into the tensor


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
    """The one device of all tensors; 0-d tensors on the CPU may join any."""
    devices = dict.fromkeys(s.device for s in specs)
    if len(devices) > 1:
        for s in specs:
            if s.ndim == 0 and s.device.type == "cpu":
                devices.pop(s.device, None)
        devices.update(dict.fromkeys(s.device for s in specs if s.ndim))
    if len(devices) > 1:
        devices_differ(op, *list(devices)[:2])
    return next(iter(devices), None)


def _check_results(op: str, outs: Any, dev: Any) -> None:
    """A 0-d tensor of the CPU serves as a number, not as what the result is made like."""
    for s in outs or ():
        if s.device != dev:
            devices_differ(op, s.device, dev)


def _abroad(specs: list[Spec]) -> Any:
    """Whose kernel moves tensors between devices: that of the one which is not the CPU."""
    return next((s.device for s in specs if s.device.type != "cpu"), specs[0].device)


def prepare(op: Op, args: tuple[Any, ...]) -> tuple[Plan, tuple[Any, ...]]:
    """Find or build the plan for these arguments; also gives them back normalised."""
    if not hasattr(op, "key"):
        _compile_access(op)
    given, args = args, normalise(op, args)
    key = op.key(args)  # type: ignore[attr-defined]
    plan = op.plans.get(key)
    if plan is None:
        if len(op.plans) > PLAN_LIMIT:
            op.forget()
        try:
            plan = _BUILD[op.kind](op, args)
        except FAILURES as e:
            raise_for(op.name, None, e)
        op.plans[key] = plan
    if all(v is a or _is_plain(v) for v, a in zip(given, args, strict=True)):
        # As it was given it leads to the same plan: `dim=1` need not become `(1,)` again.
        op.plans[op.key(given)] = plan  # type: ignore[attr-defined]
    return plan, args


def _is_plain(v: Any) -> bool:
    """Whether a static argument is known by its value, as plans know it."""
    if v.__class__ is tuple:
        return all(x.__class__ is int for x in v)
    return v.__class__ in (int, float, bool, type)


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
            fail(UnsupportedError, op.name, f"not implemented for {promoted}; it takes {allowed} tensors.")
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


def _rounded(op: Op, have: dt.dtype | None, promoted: dt.dtype) -> dt.dtype | None:
    """The type an operand is rounded to before it is widened for computing, if that matters."""
    if promoted not in dt.HALF or have is promoted:
        return None
    if have is None:
        return promoted if op.dtype_rule == "bool" or op.rounds_numbers else None
    return promoted


def _build_pointwise(op: Op, args: tuple[Any, ...]) -> Plan:
    spec_args = tuple(_spec_of(v) for v in args)
    specs = _flat_specs(spec_args)
    if not specs:
        raise TypeError(f"{op.name}: at least one argument must be a Tensor.")
    dev = _device_of(op.name, specs)
    promoted, compute, result = pointwise_types(op, spec_args)
    static = tuple(v for a, v in zip(op.schema.args, args, strict=True) if not a.is_runtime)
    shape = broadcast_shapes(op.name, *(s.shape for s in specs))
    strides = elementwise_strides(shape, specs)
    plan = _new(Plan)
    plan.op, plan.static, plan.recipes, plan.writes = op, spec_args, {}, None
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
                    fail(DtypeError, op.name, f"{a.name} must be a bool tensor, got {v.dtype}; use .bool().")
                roles.append((v.dtype, v.dtype, None))
            else:
                have = v.dtype if isinstance(v, Spec) else None
                roles.append((have, compute, _rounded(op, have, promoted)))
    plan.roles = roles
    plan.backend = BACKENDS[dev.type]
    plan.row = None
    plan.compute, plan.into = plan.backend.pointwise(
        plan.formula,
        names,
        roles,
        [v if isinstance(v, Spec) else None for v in plan.specs],
        plan.out,
        plan.backend.empty,
    )
    return plan


def _build_structured(op: Op, args: tuple[Any, ...]) -> Plan:
    spec_args = tuple(_spec_of(v) for v in args)
    if op.canon is not None:
        spec_args = tuple(op.canon(*spec_args))
    specs = _flat_specs(spec_args)
    dev = _abroad(specs) if op.across else _device_of(op.name, specs)
    assert op.infer is not None
    out = op.infer(*spec_args)
    plan = _new(Plan)
    plan.op, plan.static, plan.recipes, plan.writes = op, spec_args, {}, None
    plan.specs = tuple(v for a, v in zip(op.schema.args, spec_args, strict=True) if a.is_runtime)
    plan.formula, plan.is_complex, plan.into, plan.roles = None, False, None, None
    plan.out = out if isinstance(out, Spec) else None
    plan.outs = (out,) if isinstance(out, Spec) else out
    if dev is None:
        dev = plan.outs[0].device if plan.outs else None
    if not op.across and any(s.device != dev for s in specs):
        _check_results(op.name, plan.outs, dev)
    plan.backend = BACKENDS[dev.type]
    template = [None if a.is_runtime else v for a, v in zip(op.schema.args, spec_args, strict=True)]
    slots = [i for i, a in enumerate(op.schema.args) if a.is_runtime]
    single = plan.out is not None or (plan.outs is None and op.n_out == 1)
    for row in candidates(op.name, dev.type, specs):
        bound = plan.backend.bind(plan.backend, row, template, slots, plan.specs, specs, plan.outs, single)
        if bound is not None:
            plan.row = row
            plan.compute, plan.into = bound
            return plan
    raise AssertionError("candidates() raises when no row is left")


def _build_view(op: Op, args: tuple[Any, ...]) -> Plan:
    spec_args = tuple(_spec_of(v) for v in args)
    if op.canon is not None:
        spec_args = tuple(op.canon(*spec_args))
    assert op.infer is not None
    spec, shift = op.infer(*spec_args)
    plan = _new(Plan)
    plan.op, plan.static, plan.recipes, plan.writes = op, spec_args, {}, None
    plan.specs = (spec_args[0],)
    plan.formula, plan.is_complex, plan.into, plan.roles, plan.row = None, False, None, None, None
    plan.out, plan.outs = spec, (spec,)
    plan.backend = BACKENDS[spec.device.type]
    plan.compute = shift
    if spec.dtype.itemsize == spec_args[0].dtype.itemsize:
        plan.into = plan.backend.window(spec)
    return plan


_BUILD: dict[str, Callable[[Op, tuple[Any, ...]], Plan]] = {
    "pointwise": _build_pointwise,
    "structured": _build_structured,
    "view": _build_view,
}
