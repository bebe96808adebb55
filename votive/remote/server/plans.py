"""Plans of clients, built with this side's own rules: nothing that a client says of a result is believed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...backends.remote import wire
from ...backends.remote.wire import ProtocolError
from ...core import dtype as dt
from ...core.device import device
from ...core.errors import UnsupportedError
from ...core.layout import Spec, broadcast_shapes
from ...dispatch import KernelPlan, plan_of
from ...ops.registry import OPS
from ...ops.schema import Arg


class ServedPlan:
    """A kernel bound to specs, and how the numbers of a call are read."""

    compute: Callable[..., Any]
    into: Callable[[Any, Any], None] | None = None
    outs: tuple[Spec, ...] | None = None
    results = 1  # how many the client counts on
    failure: Exception | None = None
    writes: tuple[int, ...] = ()  # positions among the run-time values that are written

    def __init__(self, label: str, kinds: Any) -> None:
        self.label, self.kinds = label, _kinds(kinds)
        self.struct = struct.Struct("<" + wire.packing(self.kinds))
        self.specs: list[Any] = []  # of each run-time value; lists as tuples


def _kinds(kinds: Any) -> list[str]:
    if kinds.__class__ is not list or len(kinds) > 256:
        raise ProtocolError("the values of a plan are a list of at most 256 kinds.")
    total = 0
    for k in kinds:
        inside = k[1:-1] if k.__class__ is str and k[:1] == "[" and k[-1:] == "]" and len(k) > 1 else k
        bare = inside.__class__ is str and all(c in wire.FORMATS_OF for c in inside)
        if not bare or (inside is k and len(k) != 1):
            raise ProtocolError("a kind of value is none of the known ones.")
        total += len(inside)
    if total > 1 << 16:
        raise ProtocolError("a call has too many values.")
    return list(kinds)


def build(data: Any, place: device) -> ServedPlan:
    """The plan that a description asks for. What cannot be built is kept as its failure, to be told when it is run."""
    if data.__class__ is not dict:
        raise ProtocolError("a plan is described by an object.")
    formula = "formula" in data
    label = data.get("label") if formula else data.get("op")
    if label.__class__ is not str or len(label) > wire.NAME_LIMIT or not label.isprintable():
        raise ProtocolError("a plan has a name.")
    plan = ServedPlan(label, data.get("values"))
    if not formula:
        outs = data.get("outs")
        if outs is not None and (outs.__class__ is not list or len(outs) > 1 << 16):
            raise ProtocolError("the results of a plan are a list of specs.")
        plan.results = len(outs or ())
    try:
        if formula:
            _formula(plan, data, place)
        else:
            _operator(plan, data, place)
    except ProtocolError:
        raise
    except Exception as e:
        plan.failure = e
    return plan


def _formula(plan: ServedPlan, data: dict[str, Any], place: device) -> None:
    from ...backends.base import BACKENDS

    inputs = _list(data.get("inputs"), len(plan.kinds))
    roles_data = _list(data.get("roles"), len(plan.kinds))
    out = wire.spec_of(data.get("out"), place)
    specs: list[Spec | None] = []
    roles: list[Any] = []
    for kind, given, role in zip(plan.kinds, inputs, roles_data, strict=True):
        value = wire.argument_of(given, place)
        _fits(kind, value, place)
        spec = value if isinstance(value, Spec) else None
        have, compute, via = [None if t is None else wire.dtype_named(t) for t in _list(role, 3)]
        if have is not (None if spec is None else spec.dtype) or compute is None:
            raise ProtocolError("the role of an operand says another dtype than its spec.")
        specs.append(spec)
        roles.append((have, compute, via))
    shapes = [s.shape for s in specs if s is not None]
    if not shapes or broadcast_shapes("formula", out.shape, *shapes) != out.shape or not wire.dense(out):
        raise ProtocolError("the result of a formula has the common shape of its operands and fills its memory.")
    formula = wire.formula_of(data["formula"], len(inputs))
    names, backend = list(formula.params), BACKENDS[place.type]
    compute, into = backend.pointwise(formula, names, roles, specs, out, backend.empty)
    plan.specs, plan.outs, plan.into = list(specs), (out,), into

    def one(*values: Any) -> tuple[Any, ...]:
        return ((*compute(*values), out),)

    plan.compute = one


def _operator(plan: ServedPlan, data: dict[str, Any], place: device) -> None:
    op = OPS.get(plan.label)
    if op is None or op.kind != "structured" or op.own_process:
        raise UnsupportedError(f"{plan.label}: not an operator that a remote device runs.")
    given = [wire.argument_of(a, place) for a in _list(data.get("args"), len(op.schema.args))]
    for a, v in zip(op.schema.args, given, strict=True):
        _suits(a, v)
    runtime = [v for a, v in zip(op.schema.args, given, strict=True) if a.is_runtime]
    if len(runtime) != len(plan.kinds):
        raise ProtocolError("a plan has another number of values than its operator.")
    for kind, v in zip(plan.kinds, runtime, strict=True):
        _fits(kind, v, place)
    with _default(data.get("default", "float32")):
        made = plan_of(op, tuple(given))
    assert isinstance(made, KernelPlan)
    wanted = data.get("outs")
    if made.outs is not None:
        same = wanted.__class__ is list and [wire.spec_data(s) for s in made.outs] == wanted
        if not same or not all(wire.dense(s) and s.device is place for s in made.outs):
            raise UnsupportedError(f"{plan.label}: the server's votive plans other results than the client's.")
    elif wanted is not None:
        raise UnsupportedError(f"{plan.label}: the server's votive learns the size of results only while it computes.")
    plan.specs, plan.outs = list(runtime), made.outs
    plan.compute, plan.into = made.compute, made.into
    names = [a.name for a in op.schema.args if a.is_runtime]
    plan.writes = tuple(names.index(n) for n in op.mutates)


@contextmanager
def _default(name: Any) -> Iterator[None]:
    """The default dtype of the client's program, which rules of operators may ask for."""
    wanted, before = wire.dtype_named(name), dt.get_default_dtype()
    if wanted is before:
        yield
        return
    if not wanted.is_floating_point:
        raise ProtocolError("the default dtype is a floating-point one.")
    dt.set_default_dtype(wanted)
    try:
        yield
    finally:
        dt.set_default_dtype(before)


def _list(v: Any, count: int) -> list[Any]:
    if v.__class__ is not list or len(v) != count:
        raise ProtocolError(f"expected a list of {count}.")
    return list(v)


def _fits(kind: str, value: Any, place: device) -> None:
    """A kind that values are read as is that of the spec or number in the plan."""
    if kind[0] == "[":
        if value.__class__ is not tuple or len(value) != len(kind) - 2:
            raise ProtocolError("a list of tensors has another length than its kinds.")
        for k, v in zip(kind[1:-1], value, strict=True):
            _fits(k, v, place)
        return
    if isinstance(value, Spec):
        along = kind == wire.ALONG and not value.ndim and value.dtype.itemsize <= 16
        fits = along or kind == wire.TENSOR
        if place.type != "cpu":
            fits = fits and along == (value.device.type == "cpu")
    else:
        fits = value.__class__ is not tuple and wire.kinds_of((value,)) == [kind]
    if not fits:
        raise ProtocolError("a value is of another kind than its argument.")


_STATIC: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "str": (str,),
    "number": (bool, int, float, complex),
    "dtype": (dt.dtype,),
}


def _suits(a: Arg, v: Any) -> None:
    """An argument is of the type that the schema says, as a call of the user's would be made to be."""
    if v is None:
        if not a.optional:
            raise ProtocolError(f"argument {a.name!r} must not be null.")
        return
    if a.is_list:
        if v.__class__ is not tuple:
            raise ProtocolError(f"argument {a.name!r} is a list.")
        one = Arg(a.name, a.type, False, True, None, False)
        for x in v:
            _suits(one, x)
        return
    if a.is_tensor:
        number = a.type == "Operand" and v.__class__ in (bool, int, float, complex)
        if not isinstance(v, Spec) and not number:
            raise ProtocolError(f"argument {a.name!r} is a tensor.")
    elif a.type == "Scalar":
        if v.__class__ not in (bool, int, float, complex):
            raise ProtocolError(f"argument {a.name!r} is a number.")
    elif a.type in _STATIC and not (v.__class__ in _STATIC[a.type] or (a.type == "dtype" and isinstance(v, dt.dtype))):
        raise ProtocolError(f"argument {a.name!r} is of the wrong type.")
