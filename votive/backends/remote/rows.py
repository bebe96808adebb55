"""Plans of remote calls: what an operator is on given specs is told once, and a call is numbers.

A plan names an operator and its arguments, or is a formula; the server builds the same plan with its own rules and
kernels, and refuses where the results would look otherwise.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from ...core.device import device
from ...core.dtype import float32, from_numpy, get_default_dtype
from ...core.errors import UnsupportedError, fail
from ...core.layout import Layout, Spec
from ...core.storage import Storage
from ..base import BACKENDS, MUTATES, Bound, Request, Row, add_row
from ..region import SeparateRow
from . import wire
from .connection import Connection
from .errors import RemoteError
from .views import RemoteStorage, RemoteView

# These move values between devices, which is done here.
_MOVING = ("_to_device", "_transfer_")


class RemotePlan:
    """What a server is told of a call, when it is first needed."""

    def __init__(self, connection: Connection, description: dict[str, Any], values: tuple[Any, ...]) -> None:
        self.connection = connection
        self.number = -1
        self.kinds = wire.kinds_of(values)
        self.body = wire.packed({**description, "values": self.kinds})
        if len(self.body) > wire.FRAME_LIMIT // 2:
            fail(UnsupportedError, str(description.get("op", "formula")), "its arguments are too many to be sent.")
        self.frame = -1  # not sent
        self.flat = _flattening(self.kinds)
        form = wire.packing(self.kinds)
        self.call = struct.Struct("<BIIQ" + form)
        self.write = struct.Struct("<BIIQqI" + form)

    def tell(self) -> None:
        """Send the description."""
        connection = self.connection
        self.number = next(connection.plan_numbers)  # a new one, since the old may still be about to be forgotten
        connection.send(wire.message(wire.PLAN, wire.COUNT.pack(self.number) + self.body))
        self.frame = connection.frame
        connection.told(self)

    def forget(self) -> None:
        """Let the server forget it."""
        if self.frame >= 0:
            self.connection.gone_plans.append(self.number)
            self.frame = -1

    def _told(self) -> None:
        if not self.connection.is_open:
            self.connection.open()  # which may find that the server knows no plan any more
        if self.frame < 0:
            self.tell()

    def run(self, first: int, values: Any, *written: int) -> None:
        """Send a call whose results begin with storage `first`; it writes these storages."""
        connection = self.connection
        with connection.lock:
            self._told()
            try:
                message = self.call.pack(wire.CALL, self.call.size - 5, self.number, first, *self.flat(*values))
            except struct.error:
                _too_large()
            connection.send(message, *written)

    def find(self, first: int, values: Any) -> Any:
        """Send a call whose results are not known before, and wait for their specs."""
        connection = self.connection
        with connection.lock:
            self._told()
            try:
                message = self.call.pack(wire.FIND, self.call.size - 5, self.number, first, *self.flat(*values))
            except struct.error:
                _too_large()
            return connection.ask(wire.FIND, message[wire.HEAD.size :])

    def into(self, values: Any, out: RemoteView) -> None:
        """Run it and write the result over existing memory."""
        connection = self.connection
        with connection.lock:
            self._told()
            spec = connection.spec_number(out.spec)
            head = (wire.INTO, self.write.size - 5, self.number, out.id, out.offset, spec)
            try:
                message = self.write.pack(*head, *self.flat(*values))
            except struct.error:
                _too_large()
            connection.send(message, out.id)

    def __del__(self) -> None:
        if getattr(self, "frame", -1) >= 0:
            self.forget()


def _too_large() -> NoReturn:
    raise OverflowError("a number among its arguments does not fit into 128 bits.") from None


def _flattening(kinds: list[str]) -> Callable[..., tuple[Any, ...]]:
    """A function of the run-time values that gives the numbers of the message. Written out once per plan, since it
    runs at every call.
    """
    low = wire.LOW
    parts = {
        wire.TENSOR: "{0}.id, {0}.offset",
        wire.ALONG: "bits({0})",
        wire.INT: f"{{0}} & {low}, {{0}} >> 64",
        wire.FLOAT: "{0}",
        wire.BOOL: "{0}",
        wire.COMPLEX: "{0}.real, {0}.imag",
    }
    names, text = [], []
    for i, kind in enumerate(kinds):
        names.append(f"v{i}")
        if kind[0] == "[":
            text += [parts[k].format(f"v{i}[{j}]") for j, k in enumerate(kind[1:-1]) if k != wire.NOTHING]
        elif kind != wire.NOTHING:
            text.append(parts[kind].format(f"v{i}"))
    made: Callable[..., tuple[Any, ...]] = eval(
        f"lambda {', '.join(names)}: ({''.join(t + ', ' for t in text)})", {"bits": _bits}
    )
    return made


def _bits(v: Any) -> bytes:
    """The bytes of a tensor of the CPU without dimensions."""
    return np.asarray(v).tobytes()


def connection_of(specs: tuple[Any, ...]) -> Connection:
    """The connection that the tensors of a call lie behind."""
    from . import connections

    place = next(s.device for s in specs if isinstance(s, Spec) and s.device.type == "remote")
    return connections.of(place)


def _refuse_far(op: str, specs: Any) -> None:
    for s in specs:
        if s.device.type not in ("remote", "cpu") or (s.device.type == "cpu" and s.ndim):
            raise RemoteError(f"{op.lstrip('_')}: takes tensors of one device; move the one on {s.device} with .to().")


def pointwise(
    formula: Any, names: list[str], roles: list[Any], inputs: list[Any], out: Spec
) -> tuple[Callable[..., Any], Callable[..., None]]:
    """See `backends.base.Backend.pointwise`: the formula goes as a tree of known primitives."""
    connection = connection_of((out,))
    nodes = wire.formula_data(formula, names)
    if len(nodes) > wire.NODES:
        fail(UnsupportedError, formula.name, f"a formula of {len(nodes)} steps is too long to be sent.")
    named = [[None if t is None else t.name for t in role] for role in roles]
    data = {"label": formula.name[: wire.NAME_LIMIT], "formula": nodes, "roles": named, "out": wire.spec_data(out)}
    return _Formula(connection, data, inputs, out).pair()


class _Formula:
    """A formula's plans, one per combination of types that its numbers have had."""

    def __init__(self, connection: Connection, data: dict[str, Any], inputs: list[Any], out: Spec) -> None:
        self.connection, self.data, self.inputs, self.out = connection, data, inputs, out
        self.numbers = [i for i, s in enumerate(inputs) if s is None]
        self.plans: dict[Any, RemotePlan] = {}
        self.only: RemotePlan | None = None if self.numbers else self._made(())

    def _made(self, types: tuple[type, ...]) -> RemotePlan:
        values = list(self.inputs)
        for i, t in zip(self.numbers, types, strict=True):
            values[i] = t
        specs = [wire.argument_data(v) for v in values]
        made = self.plans[types] = RemotePlan(self.connection, {**self.data, "inputs": specs}, tuple(values))
        return made

    def plan(self, values: Any) -> RemotePlan:
        if self.only is not None:
            return self.only
        types = tuple([_plain_type(values[i]) for i in self.numbers])
        return self.plans.get(types) or self._made(types)

    def pair(self) -> tuple[Callable[..., Any], Callable[..., None]]:
        connection, out, nbytes, plan_for = self.connection, self.out, self.out.nbytes, self.plan
        only, number = self.only, self.connection.number

        def compute(*values: Any) -> tuple[Storage, Any]:
            plan = only or plan_for(values)
            first = number()
            plan.run(first, values, first)
            storage = RemoteStorage(connection, first, nbytes)
            return storage, RemoteView(storage, out)

        def into(values: Any, target: Any) -> None:
            (only or plan_for(values)).into(values, target)

        compute.checks_overlap = True  # type: ignore[attr-defined]  # the server looks, see server/session.py
        return compute, into


def _plain_type(v: Any) -> type:
    for t in (bool, int, float, complex):
        if isinstance(v, t):
            return t
    raise TypeError(f"expected a number, got {type(v).__name__}.")


def _signature(schema: Any) -> int:
    return zlib.crc32(str(schema).encode())


@dataclass(frozen=True, kw_only=True)
class RemoteRow(Row):
    """Serves every operator that the server has."""

    def bind(self, request: Request) -> Bound:
        if request.op in _MOVING:
            return _moving(request)
        connection = _place(request)
        connection.open()
        known = connection.welcome["operators"].get(request.op)
        name = request.op.lstrip("_")
        if known is None:
            fail(
                UnsupportedError,
                name,
                f"the votive {connection.welcome.get('votive')} at {connection.address.url} has no operator of this "
                "name. Operators that a program declares with kernels of its own run on its own machine: move the "
                "tensors with .cpu(), or declare the operator as a formula, which is sent.",
            )
        if known[0] != _signature(request.schema):
            fail(
                UnsupportedError,
                name,
                f"the votive {connection.welcome.get('votive')} at {connection.address.url} declares it otherwise; "
                "use the same version on both sides.",
            )
        _refuse_far(request.op, request.specs)
        return _bound(request, connection)


def _place(request: Request) -> Connection:
    from . import connections

    specs = (*request.specs, *(request.outs or ()))
    places = {s.device for s in specs if s.device.type == "remote"}
    return connections.of(next(iter(places)))


def _bound(request: Request, connection: Connection) -> Bound:
    outs, written = request.outs, _written(request)
    loose = [k for k in written if any(s.device.type == "cpu" for s in _specs(request.values[k]))]
    if loose:
        return _returning(request, connection, loose)
    try:
        args = [wire.argument_data(v) for v in request.given]
    except wire.Unsendable as e:
        fail(UnsupportedError, request.op, f"an argument of type {e} cannot be sent to a remote device.")
    data: dict[str, Any] = {"op": request.op, "args": args}
    data["outs"] = None if outs is None else [wire.spec_data(s) for s in outs]
    if get_default_dtype() is not float32:
        data["default"] = get_default_dtype().name
    plan = RemotePlan(connection, data, request.values)
    if outs is None:
        return Bound(_finding(plan))
    planned = [(s, s.nbytes) for s in outs]
    number = connection.number

    def compute_one(*values: Any) -> tuple[Any, ...]:
        first = number()
        plan.run(first, values, first)
        storage = RemoteStorage(connection, first, nbytes)
        return ((storage, RemoteView(storage, spec), spec),)

    def compute(*values: Any) -> tuple[Any, ...]:
        first = number()
        changed = [x.id for k in written for x in _tensors(values[k])]
        plan.run(first, values, *range(first, first + len(planned)), *changed)
        made = [(RemoteStorage(connection, first + i, n), s) for i, (s, n) in enumerate(planned)]
        return tuple([(storage, RemoteView(storage, s), s) for storage, s in made])

    if not request.single or written:
        return Bound(compute)
    ((spec, nbytes),) = planned
    compute_one.checks_overlap = True  # type: ignore[attr-defined]
    return Bound(compute_one, plan.into)


def _specs(value: Any) -> list[Spec]:
    return [s for s in (value if value.__class__ is tuple else (value,)) if isinstance(s, Spec)]


def _returning(request: Request, connection: Connection, loose: list[int]) -> Bound:
    """A call that writes into tensors of the CPU without dimensions, such as the step counts of an optimizer: they go
    there together, and are waited for.
    """
    place = device("remote", connection.index)

    def there(v: Any) -> Any:
        if v.__class__ is tuple:
            return tuple([there(x) for x in v])
        return v.like(device=place) if isinstance(v, Spec) else v

    given, values = list(request.given), list(request.values)
    for k in loose:
        given[request.slots[k]], values[k] = there(given[request.slots[k]]), there(values[k])
    moved = replace(request, given=tuple(given), values=tuple(values))
    run = _bound(moved, connection).compute
    backend = BACKENDS["remote"]

    def compute(*given: Any) -> tuple[Any, ...]:
        lists = {k: given[k] if given[k].__class__ is list else [given[k]] for k in loose}
        arrays = [a for k in loose for a in lists[k] if not isinstance(a, RemoteView)]
        kinds = {a.dtype for a in arrays}
        spots: dict[int, RemoteView] = {}
        sent = []
        for kind in kinds:
            mine = [a for a in arrays if a.dtype == kind]
            one = Spec(Layout(()), from_numpy(kind), place)
            storage, whole, _ = backend.receive(np.array(mine), one.like((len(mine),)))
            spots |= {id(a): backend.view(storage, one, i) for i, a in enumerate(mine)}
            sent.append((mine, whole))
        values = list(given)
        for k, listed in lists.items():
            seen = [spots.get(id(a), a) for a in listed]
            values[k] = seen if given[k].__class__ is list else seen[0]
        made = run(*values)
        for mine, whole in sent:
            for a, new in zip(mine, backend.to_numpy(whole), strict=True):
                a[...] = new
        return made

    return Bound(compute)


def _tensors(value: Any) -> list[RemoteView]:
    found = value if value.__class__ is list else [value]
    return [x for x in found if isinstance(x, RemoteView)]


def _written(request: Request) -> list[int]:
    positions = MUTATES[request.op]() if request.op in MUTATES else ()
    return [k for k, i in enumerate(request.slots) if i in positions]


def _finding(plan: RemotePlan) -> Callable[..., tuple[Any, ...]]:
    """A call whose results' sizes depend on numbers: the one kind that waits."""
    connection = plan.connection
    place = device("remote", connection.index)

    def compute(*values: Any) -> tuple[Any, ...]:
        first = connection.number()
        answer = plan.find(first, values)
        specs = [wire.spec_of(s, place) for s in answer]
        connection.holds(range(first, first + len(specs)))
        made = [(RemoteStorage(connection, first + i, s.nbytes), s) for i, s in enumerate(specs)]
        return tuple([(storage, RemoteView(storage, s), s) for storage, s in made])

    return compute


def _moving(request: Request) -> Bound:
    """Values from here to there and back."""
    if request.op == "_transfer_":

        def transfer(to: Any, source: Any, *rest: Any) -> tuple[Any, ...]:
            target, origin = request.values[0], request.values[1]
            array = BACKENDS[origin.device.type].to_numpy(source)
            BACKENDS[target.device.type].copy(to, _placed(array, target, origin))
            return ()

        return Bound(transfer)
    outs = request.outs
    assert outs is not None
    (spec,) = outs

    def to_device(source: Any, *rest: Any) -> tuple[Any, ...]:
        array = BACKENDS["remote"].to_numpy(source)
        made: tuple[Any, ...]
        if spec.device.type == "cpu":
            made = BACKENDS["cpu"].adopt(array, spec, ())
        else:
            made = BACKENDS[spec.device.type].receive(array, spec)
        return (made,)

    return Bound(to_device)


def _placed(array: Any, target: Spec, origin: Spec) -> Any:
    """Values as data of the device that `target` lies on."""
    if target.device.type == "cpu":
        return array
    spec = Spec(origin.dense_like().layout, origin.dtype, target.device)
    return BACKENDS[target.device.type].receive(array, spec)[1]


def add_rows(operators: dict[str, Any]) -> None:
    """Rows for operators that a server has kernels of its own for: programs then join operators as they would there."""
    for name, (_, own) in operators.items():
        if own and name not in _named:
            _named.add(name)
            add_row(RemoteRow(op=name, device="remote", fn=add_rows, label="remote"))


_named: set[str] = set()
add_row(RemoteRow(op="*", device="remote", fn=add_rows, label="remote"))
add_row(SeparateRow(op="_region", device="remote", fn=add_rows, label="region"))
