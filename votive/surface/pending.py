"""Lazily conjugated and negated views: another tensor's memory, read as its conjugate or with the other sign.

No flag that a kernel could overlook: such a view has no memory that kernels can reach. Every call takes the general way
and comes here, where views stay views, writes go to the memory, and everything else computes with resolved values.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, ClassVar

from ..autograd.engine import grad as gradients
from ..autograd.function import Function
from ..autograd.views import edge_of
from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.mode import mode
from ..dispatch import overrides
from ..dispatch.wrapped import OwnSpec
from ..ops.operator import Operator
from ..ops.registry import F
from ..tensor import Tensor
from . import printing
from .wrapped import NoData, Rule, Wrapped


class Pending(Wrapped):
    """A view of a tensor whose values are the conjugates, or the negatives, of what stands in memory."""

    _kind = "lazily conjugated or negated"
    _advice = "use .resolve_conj() or .resolve_neg()."
    _rules: ClassVar[dict[str, Rule]] = {}
    _of: Tensor  # the tensor that is looked at, with its history
    _flip: str  # "conj" or "neg"
    _seen: Any  # the node of `_of` that this view's own node follows

    def _parts(self) -> tuple[Tensor, ...]:
        return (self._of,)

    @classmethod
    def _call(cls, name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return _rules_module().answer(cls._rules, name, op, args, kwargs)

    def is_conj(self) -> bool:
        return self._flip == "conj"

    def is_neg(self) -> bool:
        return self._flip == "neg"

    def resolve_conj(self) -> Any:
        return values_of(self) if self._flip == "conj" else self

    def resolve_neg(self) -> Any:
        return values_of(self) if self._flip == "neg" else self

    def detach(self) -> Any:
        return over(self._of.detach(), self._flip)

    def data_ptr(self) -> int:
        return self._of.data_ptr()

    def untyped_storage(self) -> Any:
        return self._of.untyped_storage()

    def stride(self, dim: int | None = None) -> Any:
        return self._of.stride() if dim is None else self._of.stride(dim)

    def storage_offset(self) -> int:
        return self._of.storage_offset()

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self._of.is_contiguous() if memory_format is None else self._of.is_contiguous(memory_format)

    def _is_view(self) -> bool:
        return True

    def is_shared(self) -> bool:
        return self._of.is_shared()

    def share_memory_(self) -> Any:
        self._of.share_memory_()
        return self

    def item(self) -> Any:
        return values_of(self.detach()).item()

    def tolist(self) -> Any:
        return values_of(self.detach()).tolist()

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return values_of(self.detach()).numpy(force=True)
        kind, way = ("conjugate", "conj") if self._flip == "conj" else ("negative", "neg")
        raise RuntimeError(
            f"Can't call numpy() on Tensor that has {kind} bit set. Use tensor.resolve_{way}().numpy() instead."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __dlpack__(self, **options: Any) -> Any:
        kind = "conjugate" if self._flip == "conj" else "negative"
        raise BufferError(f"Can't export tensors with the {kind} bit set")

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self._of.detach(), self._flip, self._rg)

    def __copy__(self) -> Any:
        out = over(self._of, self._flip)
        out._rg, out._edge, out._seen = self._rg, self._edge, self._seen
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if self._edge is not None:
                raise RuntimeError("only Tensors created explicitly by the user support the deepcopy protocol.")
            memo[id(self)] = values_of(self.detach()).clone().requires_grad_(self._rg)
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        node = self.grad_fn
        suffixes = printing.tensor_suffixes(
            dtype=self.dtype.name,
            shape=tuple(self.shape),
            default_dtype=dt.get_default_dtype().name,
            device=str(self.device),
            requires_grad=self._rg,
            grad_fn=None if node is None else node.name(),
        )
        if self.device.type == "meta":
            return printing.format_tensor(None, suffixes=suffixes)
        array = BACKENDS["cpu"].to_numpy(values_of(self.detach()).cpu()._data)
        return printing.format_tensor(array, suffixes=suffixes)


@cache
def _rules_module() -> Any:
    return import_module(".pending_rules", __package__)


_NO_DATA: Any = NoData(Pending)


def over(of: Tensor, flip: str) -> Any:
    """A view without history."""
    out: Pending = object.__new__(Pending)
    spec, own = of._spec, object.__new__(OwnSpec)
    own.layout, own.dtype, own.device, own.shape, own.strides = (
        spec.layout,
        spec.dtype,
        spec.device,
        spec.shape,
        spec.strides,
    )
    own.numel, own.ndim, own.byte_strides, own.nbytes = spec.numel, spec.ndim, spec.byte_strides, spec.nbytes
    out._spec, out._data, out._rg = own, _NO_DATA, False
    if mode.inference:
        out._inference = True
    out._of, out._flip, out._seen = of, flip, None
    return out


def _rebuild(of: Tensor, flip: str, requires_grad: bool) -> Any:
    out = over(of, flip)
    out._rg = requires_grad
    return out


def plain(x: Any) -> bool:
    """Whether a tensor may be looked at lazily: its class computes as usual, and no transformation runs."""
    special = isinstance(x, Wrapped) or overrides.overrides(type(x))
    return not special and x._level == 0 and not mode.levels and mode.tracing is None


def conjugated(x: Any) -> Any:
    """The conjugate as a view; of such a view the tensor itself."""
    if isinstance(x, Pending):
        if x._flip == "neg":
            return x
        if x._rg:
            return _Back.apply(current(x)) if mode.grad else x._of.detach()
        return F.view_as(x._of, x._of)
    return _flipped(x, "conj") if plain(x) else F._conj(x)


def _flipped(of: Any, flip: str) -> Any:
    """A view with the history of what it looks at."""
    if not (of._rg and mode.grad):
        return over(of if not of._rg else of.detach(), flip)
    out = Conj.apply(of, flip)
    out._of, out._seen = of, edge_of(of)
    return out


def turn(x: Tensor, flip: str) -> Tensor:
    made: Tensor = (F._conj(x) if x.dtype.is_complex else x) if flip == "conj" else F.neg(x)
    return made


class Conj(Function):
    """From a tensor to its lazy view."""

    @staticmethod
    def forward(ctx: Any, of: Tensor, flip: str) -> Any:
        ctx.flip = flip
        return over(of.detach(), flip)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return turn(g, ctx.flip), None


class _Values(Function):
    """From a lazy view to its values, which have its gradient."""

    @staticmethod
    def forward(ctx: Any, x: Pending) -> Tensor:
        return turn(x._of.detach(), x._flip)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class _Back(Function):
    """From a lazy view to the tensor that it looks at."""

    @staticmethod
    def forward(ctx: Any, x: Pending) -> Tensor:
        ctx.flip = x._flip
        return x._of.detach()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return turn(g, ctx.flip)


class Looked(Function):
    """A view of a lazy view. Its gradient goes back as through the same view of other numbers."""

    @staticmethod
    def forward(ctx: Any, x: Pending, run: Any) -> Any:
        ctx.run, ctx.like = run, x._of.detach()
        made = run(ctx.like)
        ctx.single = isinstance(made, Tensor)
        return over(made, x._flip) if ctx.single else tuple(over(m, x._flip) for m in made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        again = mode.grad and any(g.requires_grad for g in grads)
        with _recorded():
            at = F.zeros_like(ctx.like).requires_grad_()
            made = ctx.run(at)
            outs = (made,) if ctx.single else tuple(made)
            # The way back is linear in what comes, and has a gradient by that where somebody asks for one.
            found = gradients(
                outs, (at,), grad_outputs=grads if again else tuple(g.detach() for g in grads), create_graph=again
            )
        return found[0], None


class _recorded:
    def __enter__(self) -> None:
        self._before, mode.grad = mode.grad, True

    def __exit__(self, *exc: object) -> None:
        mode.grad = self._before


def current(x: Pending) -> Pending:
    """The view with a node that follows what its tensor has become."""
    of = x._of
    if of._rg and mode.grad and (not x._rg or edge_of(of) is not x._seen):
        made = Conj.apply(of, x._flip)
        x._rg, x._edge, x._seen = True, made._edge, edge_of(of)
    return x


def values_of(x: Any) -> Any:
    """The values of a lazy view, with its history; any other tensor as it is."""
    if not isinstance(x, Pending):
        return x
    x = current(x)
    return _Values.apply(x) if x._rg and mode.grad else turn(x._of.detach(), x._flip)


def resolved(v: Any) -> Any:
    if isinstance(v, (tuple, list)):
        items = [resolved(x) for x in v]
        return type(v)(*items) if hasattr(v, "_fields") else type(v)(items)
    return values_of(v)


def negated_view(x: Any) -> Any:
    """The negative as a view, which reads the same memory."""
    if isinstance(x, Pending):
        return F.neg(values_of(x)) if x._flip == "conj" else F.view_as(x._of, x._of)
    if x.dtype is dt.bool_:
        raise RuntimeError("_neg_view: a tensor of bool has no negative; convert it first.")
    return _flipped(x, "neg") if plain(x) else F.neg(x)
