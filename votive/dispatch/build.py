"""How a plan comes about: arguments normalised, types promoted, shapes broadcast, a kernel chosen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..backends.base import Request, Row, bind, listeners
from ..core import device
from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, devices_differ, fail
from ..core.layout import Spec, broadcast_shapes, elementwise_strides
from ..core.promotion import number_type, result_type_of
from ..ops.operator import Composite, Op
from ..ops.registry import OPS
from .arguments import configure, normalise
from .failure import FAILURES, raise_for
from .plan import Plan, PointwisePlan, StructuredPlan, ViewPlan
from .state import state

PLAN_LIMIT = 4096

# What composites remember: (spec, arguments) -> plan, window or call of an operator.
_memories: list[dict[Any, Any]] = []


def forgettable() -> dict[Any, Any]:
    """A table that is emptied when all plans are dropped."""
    _memories.append({})
    return _memories[-1]


def drop_plans(op: str | None = None) -> None:
    """Forget plans: of one operator (its kernels changed) or all (the default dtype or the set of
    kernels in use changed).
    """
    if not op:
        for o in OPS.values():
            o.forget()
        for known in _memories:
            known.clear()
    elif op in OPS:
        OPS[op].forget()


listeners.append(drop_plans)
dt.default_listeners.append(drop_plans)
device.default_listeners.append(drop_plans)
Composite.memory = staticmethod(forgettable)


def prepare(op: Op, args: tuple[Any, ...]) -> tuple[Plan, tuple[Any, ...]]:
    """Find or build the plan for these arguments; also gives them back normalised."""
    if state.symbolic is not None:
        found: tuple[Plan, tuple[Any, ...]] | None = state.symbolic(op, args)
        if found is not None:
            return found
    if not hasattr(op, "key"):
        configure(op)
    given, args = args, normalise(op, args)
    key = op.key(args)
    plan: Plan | None = op.plans.get(key)
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
        op.plans[op.key(given)] = plan
    return plan, args


def find(op: Op, args: tuple[Any, ...]) -> tuple[Plan, tuple[Any, ...]]:
    """`prepare`, without a second look at arguments that led to a plan before."""
    if state.symbolic is not None:
        return prepare(op, args)
    try:
        return op.plans[op.key(args)], args
    except (KeyError, TypeError, AttributeError):
        return prepare(op, args)


def kernel_for(op: Op, args: tuple[Any, ...]) -> Row | None:
    """The row that a call with specs in place of tensors would run; None where it is refused."""
    try:
        plan = _BUILD[op.kind](op, args)
    except (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError):
        return None
    return getattr(plan, "row", None)


def plan_of(op: Op, args: tuple[Any, ...]) -> Plan:
    """The plan of a call with specs in place of tensors; nobody keeps it."""
    plan: Plan = _BUILD[op.kind](op, args)
    return plan


def _is_plain(v: object) -> bool:
    """Whether a static argument is known by its value, as plans know it."""
    if v.__class__ is tuple:
        return all(x.__class__ is int for x in v)
    return v.__class__ in (int, float, bool, type)


def _spec_of(v: object) -> Any:
    if isinstance(v, tuple):
        return tuple(_spec_of(x) for x in v)
    return v._spec if isinstance(v, state.tensor) else v


def _flat_specs(values: Iterable[Any]) -> list[Spec]:
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


def _check_results(op: str, outs: tuple[Spec, ...] | None, dev: device.device) -> None:
    """A 0-d tensor of the CPU serves as a number, not as what the result is made like."""
    for s in outs or ():
        if s.device != dev:
            devices_differ(op, s.device, dev)


def _abroad(specs: list[Spec]) -> Any:
    """Whose kernel moves tensors between devices: that of the one which is not the CPU."""
    return next((s.device for s in specs if s.device.type != "cpu"), specs[0].device)


_KIND = "bifc"
_KIND_NAME = {"b": "bool", "i": "integer", "f": "floating-point", "c": "complex"}


def pointwise_types(op: Op, args: tuple[Any, ...]) -> tuple[dt.dtype, dt.dtype, dt.dtype]:
    """(promoted, compute, result) types of an elementwise call."""
    dims: list[dt.dtype] = []
    zeros: list[dt.dtype] = []
    numbers: list[dt.dtype] = []
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


def _canonical(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments with specs in place of tensors, as the operator's own rule writes them."""
    specs = tuple(_spec_of(v) for v in args)
    return specs if op.canon is None else tuple(op.canon(*specs))


def _build_pointwise(op: Op, args: tuple[Any, ...]) -> PointwisePlan:
    static = tuple(_spec_of(v) for v in args)
    specs = _flat_specs(static)
    if not specs:
        raise TypeError(f"{op.name}: at least one argument must be a Tensor.")
    place = _device_of(op.name, specs)
    promoted, compute, result = pointwise_types(op, static)
    shape = broadcast_shapes(op.name, *(s.shape for s in specs))
    layout = specs[0].like(shape, strides=elementwise_strides(shape, specs)).layout
    plan = PointwisePlan(op, static, Spec(layout, result, place), place.type)
    plan.formula = op.formula(tuple(v for a, v in zip(op.schema.args, args, strict=True) if not a.is_runtime))
    plan.is_complex = compute.is_complex
    plan.roles = []
    for a, v in zip(op.schema.args, static, strict=True):
        if a.is_runtime and a.type == "Mask":
            if v.dtype is not dt.bool_:
                fail(DtypeError, op.name, f"{a.name} must be a bool tensor, got {v.dtype}; use .bool().")
            plan.roles.append((v.dtype, v.dtype, None))
        elif a.is_runtime:
            have = v.dtype if isinstance(v, Spec) else None
            plan.roles.append((have, compute, _rounded(op, have, promoted)))
    inputs = [v if isinstance(v, Spec) else None for v in plan.specs]
    names = list(op.schema.runtime_names)
    plan.bind(plan.backend.pointwise(plan.formula, names, plan.roles, inputs, plan.out, plan.backend.empty))
    return plan


def _build_structured(op: Op, args: tuple[Any, ...]) -> StructuredPlan:
    static = _canonical(op, args)
    specs = _flat_specs(static)
    place = _abroad(specs) if op.across else _device_of(op.name, specs)
    assert op.infer is not None
    outs = op.infer(*static)
    if place is None:
        place = (outs if isinstance(outs, Spec) else outs[0]).device
    plan = StructuredPlan(op, static, outs, place.type)
    if not op.across and any(s.device != place for s in specs):
        _check_results(op.name, plan.outs, place)
    request = Request(
        op.name,
        tuple(None if a.is_runtime else v for a, v in zip(op.schema.args, static, strict=True)),
        tuple(i for i, a in enumerate(op.schema.args) if a.is_runtime),
        plan.specs,
        tuple(specs),
        plan.outs,
        plan.single,
        plan.backend,
        tuple(_spec_of(v) for v in args),
        op.schema,
    )
    plan.row, bound = bind(place.type, request)
    plan.bind(bound)
    return plan


def _build_view(op: Op, args: tuple[Any, ...]) -> ViewPlan:
    static = _canonical(op, args)
    assert op.infer is not None
    spec, offset = op.infer(*static)
    plan = ViewPlan(op, static, spec, spec.device.type)
    plan.specs = (static[0],)
    plan.offset = offset
    plan.window = plan.backend.window(spec) if spec.dtype.itemsize == static[0].dtype.itemsize else None
    return plan


_BUILD = {"pointwise": _build_pointwise, "structured": _build_structured, "view": _build_view}
