"""Plans: how one operator runs on given layouts. Made once by `build`, found by key, run many times."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..backends.base import BACKENDS, Bound, Row
from ..core.layout import Spec
from ..core.mode import mode
from ..core.storage import Storage
from ..formula import Formula
from ..ops.operator import Op
from .failure import FAILURES, failed
from .state import state

if TYPE_CHECKING:
    from ..tensor import Tensor


_new = object.__new__


def make(storage: Storage | None, data: object, spec: Spec, offset: int = 0) -> Tensor:
    """A tensor over existing memory."""
    t = _new(state.tensor)
    # The data is a NumPy view on the storage's block; it must die first, or the block still looks used when the storage
    # hands it back. Slots do, before other attributes.
    t._data, t._spec, t._rg = data, spec, False
    if storage is not None:
        t._storage = storage
    if offset:
        t._offset = offset
    if mode.inference:
        t._inference = True
    return t


def data_of(v: object) -> Any:
    """What a kernel takes of a runtime argument."""
    if v.__class__ in (tuple, list):
        return [x._data for x in v]
    return getattr(v, "_data", v)


class Plan:
    """What every plan knows: its operator, the arguments it was made for, and how its results look."""

    __slots__ = ("backend", "op", "out", "outs", "recipes", "specs", "static")
    op: Op
    static: tuple[Any, ...]  # canonical arguments in schema order; runtime ones are Specs or types
    specs: tuple[Any, ...]  # those of the runtime arguments
    out: Spec | None  # of the only result; None when there are several, or it depends on the data
    outs: tuple[Spec, ...] | None
    backend: Any
    recipes: dict[tuple[bool, ...], Any]  # how autograd records it, by which inputs want a gradient
    formula: Formula | None = None

    def __init__(self, op: Op, static: tuple[Any, ...], outs: Spec | tuple[Spec, ...] | None, device: str) -> None:
        self.op, self.static, self.recipes = op, static, {}
        self.specs = tuple(v for a, v in zip(op.schema.args, static, strict=True) if a.is_runtime)
        self.out = outs if isinstance(outs, Spec) else None
        self.outs = (outs,) if isinstance(outs, Spec) else outs
        self.backend = BACKENDS[device]

    def run(self, values: tuple[Any, ...]) -> Any:
        """The result, a tensor or a tuple of them, for the runtime arguments."""
        raise NotImplementedError


class KernelPlan(Plan):
    """A plan that computes. `into(values, out data)` writes over existing memory, where the kernel can."""

    __slots__ = ("compute", "into", "writes")
    compute: Callable[..., tuple[Any, ...]]
    into: Callable[[Any, Any], None] | None
    writes: bool | None  # whether in-place forms may run the kernel straight into the tensor; found when needed

    def bind(self, bound: Bound) -> None:
        self.compute, self.into = bound
        self.writes = None

    def parts(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the kernel gives."""
        try:
            return self.compute(*[data_of(v) for v in values])
        except FAILURES as e:
            failed(self, e)

    def result_data(self, values: tuple[Any, ...]) -> Any:
        """The data of the first result."""
        raise NotImplementedError


class PointwisePlan(KernelPlan):
    """A formula on given layouts: compute(*values) -> (storage, data)."""

    __slots__ = ("formula", "is_complex", "roles")
    out: Spec
    formula: Formula
    is_complex: bool
    roles: list[tuple[Any, Any, Any]]  # per input: its dtype, the compute type, and what it is rounded to before

    def run(self, values: tuple[Any, ...]) -> Tensor:
        storage, data = self.parts(values)
        return make(storage, data, self.out)

    def result_data(self, values: tuple[Any, ...]) -> Any:
        return self.parts(values)[1]


class StructuredPlan(KernelPlan):
    """A kernel row on given layouts: compute(*values) -> ((storage, data, spec), ...)."""

    __slots__ = ("row",)
    row: Row

    @property
    def single(self) -> bool:
        """Whether the result is one tensor, not a tuple of them."""
        return self.out is not None or (self.outs is None and self.op.n_out == 1)

    def run(self, values: tuple[Any, ...]) -> Any:
        parts = self.parts(values)
        return make(*parts[0]) if self.single else tuple([make(*p) for p in parts])

    def result_data(self, values: tuple[Any, ...]) -> Any:
        return self.parts(values)[0][1]


class ViewPlan(Plan):
    """The same memory through another spec: `offset` elements further on."""

    __slots__ = ("offset", "window")
    out: Spec
    offset: int
    window: Any  # what the native module makes such views from, or None

    def run(self, values: tuple[Any, ...]) -> Tensor:
        x, spec = values[0], self.out
        start, have, want = x._offset, x._spec.dtype.itemsize, spec.dtype.itemsize
        # A view that reinterprets bytes counts its offset in its own element size.
        offset = (start if have == want else start * have // want) + self.offset
        out = make(x._storage, self.backend.view(x._storage, spec, offset), spec, offset)
        base = x if x._base is None else x._base
        out._base, out._chain = base, (*x._chain, self)
        base._remember_view(out)
        if not mode.grad:
            out._no_grad_view = True
        return out
