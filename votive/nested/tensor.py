"""Nested tensors: components that differ in one dimension, laid end to end in one dense tensor of values.

`offsets` says where each component begins in the values; with `lengths`, components may be shorter than the room
between two offsets. Gradients pass through two links, from the values in and out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from ..autograd.engine import backward
from ..autograd.function import Function
from ..core import dtype as dt
from ..core.layout import Size, wrap_dim
from ..core.memory_format import jagged, strided
from ..core.memory_format import layout as Layout
from ..core.mode import mode
from ..ops.operator import Op, Operator
from ..ops.registry import F
from ..surface.wrapped import Rule, Wrapped
from ..tensor import Tensor
from .size import RaggedSize


class Rows:
    """How values fall into components: shared by all tensors that were computed from each other."""

    __slots__ = ("_ids", "_limits", "count", "lengths", "offsets", "size")

    def __init__(self, offsets: Tensor, lengths: Tensor | None = None) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.size = RaggedSize()
        self.count = int(offsets.shape[0]) - 1
        self._ids: Tensor | None = None
        self._limits: list[tuple[int, int]] | None = None

    @property
    def limits(self) -> list[tuple[int, int]]:
        """Begin and length of each component."""
        if self._limits is None:
            starts = self.offsets.tolist()
            spans = [b - a for a, b in pairwise(starts)]
            lengths = spans if self.lengths is None else self.lengths.tolist()
            self._limits = list(zip(starts[:-1], lengths, strict=True))
        return self._limits

    @property
    def longest(self) -> int:
        return max((n for _, n in self.limits), default=0)

    @property
    def ids(self) -> Tensor:
        """The component of each row; only for components without holes between them."""
        if self._ids is None:
            total = sum(n for _, n in self.limits)
            places = F.arange(total, device=self.offsets.device)
            self._ids = F.searchsorted(self.offsets[1:].to(dt.int64).contiguous(), places, right=True)
        return self._ids


class NestedTensor(Wrapped):
    """A batch of tensors that differ in one dimension."""

    is_nested = True
    _kind = "nested"
    _advice = "use .unbind() or .to_padded_tensor(value)."
    _precedence = 3
    _rules: ClassVar[dict[str, Rule]] = {}
    _held: Tensor  # the values, without history; components lie along dimension `_ragged - 1`
    _rows: Rows
    _ragged: int
    _layout: Layout

    def _parts(self) -> tuple[Tensor, ...]:
        return self._rows.offsets, self._held

    @classmethod
    def _call(cls, name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from . import rules

        if name not in cls._rules and isinstance(op, Op) and op.kind == "pointwise":
            return rules.pointwise(name, op, args)
        return super()._call(name, op, args, kwargs)

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Accumulate the gradients of the components; `gradient` is a nested tensor of the same sizes."""
        if self._layout is not strided or not isinstance(gradient, NestedTensor):
            super().backward(gradient, retain_graph, create_graph, inputs)
            return
        mine, given = self.unbind(), gradient.unbind()
        if [tuple(x.shape) for x in mine] != [tuple(g.shape) for g in given]:
            raise RuntimeError("backward: the gradient of a nested tensor must have components of the same sizes.")
        backward(mine, given, retain_graph, create_graph, inputs=inputs)

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def shape(self) -> Size:
        return self._sizes("shape")

    def _sizes(self, name: str) -> Size:
        if self._layout is strided:
            raise RuntimeError(f"{name}: a nested tensor of layout strided has no single shape; use .size(dim).")
        return self._shown()

    def _shown(self) -> Size:
        sizes: list[Any] = [self._rows.count, *self._held.shape]
        sizes[self._ragged] = self._rows.size
        return Size(sizes)

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self._sizes("size")
        d = wrap_dim("size", dim, self.ndim)
        if d == self._ragged and self._layout is strided:
            raise RuntimeError(f"Given dimension {d} is irregular and does not have a size.")
        return self._shown()[d]

    def numel(self) -> int:
        return self._held.numel() if self._rows.lengths is None else sum(c.numel() for c in self.detach().unbind())

    def stride(self, dim: int | None = None) -> Any:
        inner: list[Any] = list(self._held.stride())
        room = self._held.stride(self._ragged - 1)
        strides = (self._rows.size * int(room), *inner)
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self._rows.lengths is None and self._ragged == 1 and self._held.is_contiguous()

    def offsets(self) -> Tensor:
        """Where each component begins in the values."""
        return self._rows.offsets

    def lengths(self) -> Tensor | None:
        """The length of each component; None where components lie end to end."""
        return self._rows.lengths

    def values(self) -> Tensor:
        """All components in one tensor, end to end."""
        held = values_of(self)
        return held.reshape(held.numel()) if self._layout is strided else held

    @property
    def _ragged_idx(self) -> int:
        return self._ragged

    def __len__(self) -> int:
        return self._rows.count

    def __iter__(self) -> Iterator[Any]:
        return iter(F.unbind(self))

    def detach(self) -> Any:
        return self._like(self._held)

    def _like(self, values: Tensor, ragged: int | None = None, rows: Rows | None = None) -> Any:
        return make(values, rows or self._rows, ragged or self._ragged, self._layout)

    def to_padded_tensor(self, padding: float, output_size: Sequence[int] | None = None) -> Tensor:
        """One dense tensor, with `padding` behind the components that are shorter."""
        from .convert import padded

        return padded(self, padding, output_size)

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(f"numpy: not supported for nested tensors; {self._advice}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if self.grad_fn is not None:
                raise RuntimeError("only Tensors created explicitly by the user support the deepcopy protocol.")
            out = self._like(self._held.clone())
            out._rg, memo[id(self)] = self._rg, out
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self._held, self._rows.offsets, self._rows.lengths, self._ragged, self._layout.name, self._rg)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        if self._layout is strided:
            shown = ",\n".join("  " + repr(c).replace("\n", "\n  ") for c in self.detach().unbind())
            return f"nested_tensor([\n{shown}\n])"
        node = self.grad_fn
        grad = f", grad_fn=<{node.name()}>" if node is not None else ", requires_grad=True" if self._rg else ""
        size = f"({', '.join(map(str, self._shown()))})"
        return f"NestedTensor(size={size}, offsets={self._rows.offsets}{grad}, contiguous={self.is_contiguous()})"


def make(values: Tensor, rows: Rows, ragged: int, layout: Layout = jagged) -> Any:
    """A nested tensor over values without history."""
    out: NestedTensor = object.__new__(NestedTensor)
    # To autograd the shape is that of the values with the batch in front: equal for tensors of the same rows.
    out._begin((rows.count, *values.shape), values.dtype, values.device)
    out._spec.numel = values.numel()
    out._held, out._rows, out._ragged, out._layout = values, rows, ragged, layout
    return out


def _rebuild(values: Tensor, offsets: Tensor, lengths: Tensor | None, ragged: int, layout: str, rg: bool) -> Any:
    out = make(values, Rows(offsets, lengths), ragged, strided if layout == "strided" else jagged)
    out._rg = rg
    return out


class _ValuesOf(Function):
    @staticmethod
    def forward(ctx: Any, x: NestedTensor) -> Tensor:
        ctx.like = x.detach()
        return x._held.detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return nested_like(ctx.like, g)


class _Nested(Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, pattern: NestedTensor, ragged: int) -> Any:
        return pattern._like(values.detach(), ragged)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        if not isinstance(g, NestedTensor):
            raise RuntimeError("the gradient of a nested tensor must be nested, too; use ones_like() of the output.")
        return values_of(g), None, None


def values_of(x: NestedTensor) -> Tensor:
    """The values, with the history of the nested tensor."""
    if x._rg and mode.grad:
        made: Tensor = _ValuesOf.apply(x)
        return made
    return x._held.detach()


def nested_like(pattern: NestedTensor, values: Tensor, ragged: int | None = None, rows: Rows | None = None) -> Any:
    """A nested tensor of values with their history, with the components of another."""
    pattern = pattern.detach() if pattern._rg else pattern
    if rows is not None:
        pattern = make(pattern._held, rows, pattern._ragged, pattern._layout)
    at = ragged or pattern._ragged
    if values._rg and mode.grad:
        return _Nested.apply(values, pattern, at)
    return pattern._like(values, at)
