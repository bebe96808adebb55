"""Calls of which only the sizes are computed: tensors without memory whose sizes are expressions, and plans for them.

The operators' own rules (`canon`, `infer`, gradients) compute with the expressions as they do with numbers. Beside
each such plan stands the ordinary one for the sizes of this run, whose results must look the same.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..core.layout import Layout, Spec, broadcast_shapes, elementwise_strides
from ..core.remembered import symbolic
from ..core.storage import Storage
from ..dispatch import Plan, PointwisePlan, StructuredPlan, ViewPlan, make, state
from ..dispatch.arguments import configure, normalise
from ..dispatch.build import _canonical, _flat_specs, _spec_of, prepare
from ..ops.operator import Op
from ..surface.wrapped import Wrapped
from .symbols import Symbols, is_symbolic, key_of, plain

if TYPE_CHECKING:
    from ..core.device import DeviceLike


class Abandoned(BaseException):
    """A trace of sizes cannot go on: `why`, for readers."""


class Nothing:
    """What stands in place of memory. Whoever touches it ends the trace."""

    __slots__ = ("storage",)

    def __getattr__(self, name: str) -> Any:
        raise Abandoned("it looks at the memory of a tensor")


class _Memory(Storage):
    """A block that has no memory, only an identity."""

    def __init__(self, device_type: str) -> None:
        self.device_type = device_type

    @property
    def nbytes(self) -> int:
        raise Abandoned("it asks for the size of a tensor's memory")

    def data_ptr(self) -> int:
        raise Abandoned("it asks for the address of a tensor")

    def is_pinned(self, device: DeviceLike | None = None) -> bool:
        return False


class _Backend:
    """What plans ask of a device; see `backends.base.Backend`."""

    name = "unsized"

    def empty(self, spec: Spec) -> tuple[Storage, Any]:
        return _Memory(spec.device.type), Nothing()

    def view(self, storage: Storage, spec: Spec, offset: int) -> Any:
        return Nothing()

    def copy(self, out: Any, data: object) -> None:
        return

    def window(self, spec: Spec) -> None:
        return None


_BACKEND = _Backend()


class _Stand:
    """A spec in place of a tensor, for plans."""

    __slots__ = ("_spec",)

    def __init__(self, spec: Spec) -> None:
        self._spec = spec


def plain_spec(spec: Spec) -> Spec:
    """A spec with the sizes of this run."""
    if not is_symbolic(spec.shape) and not is_symbolic(spec.strides):
        return spec
    return Spec(Layout(plain(spec.shape), plain(spec.strides)), spec.dtype, spec.device)


def plain_specs(a: object) -> Any:
    """Arguments of a call, specs in place of tensors, with the sizes of this run."""
    if a.__class__ is tuple or a.__class__ is list:
        return a.__class__([plain_specs(x) for x in a])
    return plain_spec(a) if a.__class__ is Spec else plain(a)


def unsized(spec: Spec, like: Any = None) -> Any:
    """A tensor without memory; of the class and with the flags of another."""
    made = make(_Memory(spec.device.type), Nothing(), spec)
    if like is None:
        return made
    if type(like) is not state.tensor:
        out = object.__new__(type(like))
        out._take_fields(made)
        made = out
    made._rg = bool(like._rg)
    made._inference = like._inference
    return made


class Unsized:
    """While it is entered, calls of this thread compute sizes only."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.thread = threading.get_ident()
        self.twins: dict[int, tuple[Any, Any]] = {}  # tensors with memory, and those that stand for them
        self.off = 0

    def __enter__(self) -> Unsized:
        self.outer = state.symbolic, symbolic.key
        state.symbolic, symbolic.key = self.prepare, key_of
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        state.symbolic, symbolic.key = self.outer

    def suspended(self) -> _Suspended:
        """A block that computes as always."""
        return _Suspended(self)

    def twin(self, t: Any, spec: Spec | None = None) -> Any:
        """The tensor that stands for one from outside."""
        if t.__class__ is not state.tensor and not isinstance(t, state.tensor):
            return t
        if isinstance(t._data, Nothing):
            return t
        found = self.twins.get(id(t))
        if found is None:
            made = self._rewrapped(t) if isinstance(t, Wrapped) else unsized(spec or t._spec, t)
            found = self.twins[id(t)] = t, made
        return found[1]

    def _rewrapped(self, t: Wrapped) -> Any:
        """One that is made of other tensors: of those that stand for them."""
        if not t._traced:
            raise Abandoned(f"it uses a {t._kind} tensor")
        out = object.__new__(type(t))
        out._take_fields(t)
        for name in t._traced:
            setattr(out, name, self.twin(getattr(t, name)))
        return out

    def real(self, twin: Any) -> Any:
        """The tensor that one stands for."""
        return next((t for t, w in self.twins.values() if w is twin), None)

    def _known(self, a: object) -> Any:
        if isinstance(a, state.tensor):
            found = self.twins.get(id(a))
            return a if found is None else found[1]
        if a.__class__ is tuple or a.__class__ is list:
            return a.__class__([self._known(x) for x in a])
        return a

    # --- plans -----------------------------------------------------------------------------------

    def prepare(self, op: Op, args: tuple[Any, ...]) -> tuple[Plan, tuple[Any, ...]] | None:
        """The plan of a call that gives tensors without memory."""
        if self.off or threading.get_ident() != self.thread:
            return None
        if not hasattr(op, "key"):
            configure(op)
        args = normalise(op, tuple([self._known(a) for a in args]))
        if op.kind == "pointwise":
            args = tuple(
                [
                    v if a.is_runtime or not is_symbolic(v) else _fixed(v, f"{op.name} is made for it")
                    for a, v in zip(op.schema.args, args, strict=True)
                ]
            )
        with self.suspended():
            concrete, _ = prepare(op, tuple([_stand(a) for a in args]))
        if concrete.outs is None and not op.mutates:
            raise Abandoned(f"the shape of what {op.name} gives depends on the numbers")
        plan = _PLANS[type(concrete)](op, args, concrete)
        plan.backend = _BACKEND
        for mine, theirs in zip(plan.outs or (), concrete.outs or (), strict=True):
            with self.suspended():
                if plain_spec(mine) is not theirs:
                    raise Abandoned(f"the sizes of what {op.name} gives are not known")
        return plan, args


class _Suspended:
    def __init__(self, owner: Unsized) -> None:
        self.owner = owner

    def __enter__(self) -> None:
        self.owner.off += 1
        self.key, symbolic.key = symbolic.key, None

    def __exit__(self, *exc: object) -> None:
        self.owner.off -= 1
        symbolic.key = self.key


def _fixed(v: Any, why: str) -> Any:
    if v.__class__ is tuple or v.__class__ is list:
        return v.__class__([_fixed(x, why) for x in v])
    return v.fixed(why) if is_symbolic(v) else v


def _stand(a: object) -> Any:
    if isinstance(a, state.tensor):
        made = object.__new__(state.tensor)
        made._spec, made._rg, made._data = plain_spec(a._spec), False, None
        return made
    if a.__class__ is tuple or a.__class__ is list:
        return a.__class__([_stand(x) for x in a])
    return plain(a)


def _pointwise(op: Op, args: tuple[Any, ...], concrete: PointwisePlan) -> PointwisePlan:
    static = tuple([_spec_of(v) for v in args])
    specs = _flat_specs(static)
    shape = broadcast_shapes(op.name, *(s.shape for s in specs))
    spec = specs[0].like(shape, strides=elementwise_strides(shape, specs))
    out = Spec(spec.layout, concrete.out.dtype, concrete.out.device)
    plan = PointwisePlan(op, static, out, out.device.type)
    plan.formula, plan.is_complex, plan.roles = concrete.formula, concrete.is_complex, concrete.roles
    plan.compute, plan.writes = lambda *values: (_Memory(out.device.type), Nothing()), None
    plan.into = None if concrete.into is None else _nowhere
    return plan


def _structured(op: Op, args: tuple[Any, ...], concrete: StructuredPlan) -> StructuredPlan:
    static = _canonical(op, args)
    assert op.infer is not None
    outs = op.infer(*static)
    device = concrete.backend.name
    plan = StructuredPlan(op, static, outs, device)
    plan.row = concrete.row
    made = plan.outs or ()
    plan.compute, plan.writes = lambda *values: tuple([(_Memory(s.device.type), Nothing(), s) for s in made]), None
    plan.into = None if concrete.into is None else _nowhere
    return plan


def _view(op: Op, args: tuple[Any, ...], concrete: ViewPlan) -> ViewPlan:
    static = _canonical(op, args)
    assert op.infer is not None
    spec, offset = op.infer(*static)
    plan = ViewPlan(op, static, spec, spec.device.type)
    plan.specs = (static[0],)
    plan.offset, plan.window = offset, None
    if plain(offset) != concrete.offset:
        raise Abandoned(f"where {op.name} begins is not known")
    return plan


def _nowhere(values: Any, out: Any) -> None:
    return


_PLANS: dict[type, Any] = {PointwisePlan: _pointwise, StructuredPlan: _structured, ViewPlan: _view}
