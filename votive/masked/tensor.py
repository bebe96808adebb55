"""MaskedTensor: data and a mask in one object. Gradients pass through two links, from the data in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..autograd.function import Function
from ..core import dtype as dt
from ..core.mode import mode
from ..dispatch.wrapped import OwnSpec
from ..ops.operator import Composite, Op, Operator
from ..ops.registry import F
from ..surface.wrapped import Rule, Wrapped
from ..tensor import Tensor

if TYPE_CHECKING:
    from ..core.dtype import dtype as Dtype


def _check(data: Any, mask: Tensor) -> None:
    for name, part in (("data", data), ("mask", mask)):
        if not isinstance(part, Tensor):
            raise TypeError(f"{name} must be a Tensor")
        if isinstance(part, MaskedTensor):
            raise TypeError(f"{name} must not be a MaskedTensor itself")
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if mask.dtype is not dt.bool_:
        raise TypeError("mask must have dtype bool.")
    if data.layout.name != "strided":
        raise NotImplementedError("MaskedTensor: data must be strided; use .to_dense().")
    if data.dtype.is_complex:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.ndim != mask.ndim:
        raise ValueError("data.dim() must equal mask.dim()")
    if tuple(data.shape) != tuple(mask.shape):
        raise ValueError("data.size() must equal mask.size()")


class MaskedTensor(Wrapped):
    """Elements with a mask of the same shape that says which of them count.

    >>> x = votive.masked.MaskedTensor(votive.tensor([1.0, 2.0, 4.0]), votive.tensor([True, False, True]))
    >>> x * 2
    MaskedTensor(
      [  2.0000,       --,   8.0000]
    )
    """

    _kind = "masked"
    _advice = "use .to_tensor(value), or .get_data() and .get_mask()."
    _precedence = 2
    _rules: ClassVar[dict[str, Rule]] = {}
    _held: Tensor
    _mask: Tensor

    def __new__(cls, data: Any, mask: Tensor, requires_grad: bool = False) -> Any:
        _check(data, mask)
        out = wrap(data.detach(), mask.detach())
        return out.requires_grad_() if requires_grad else out

    def _parts(self) -> tuple[Tensor, ...]:
        return self._mask, self._held

    @classmethod
    def _call(cls, name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from . import rules

        if name not in cls._rules:
            if isinstance(op, Op) and op.kind == "pointwise":
                return rules.pointwise(name, op, args)
            if (isinstance(op, Op) and op.kind == "view") or (isinstance(op, Composite) and op.returns_view):
                return rules.rearranged(op, args, kwargs)
        return super()._call(name, op, args, kwargs)

    def get_data(self) -> Tensor:
        """All elements, also those that are masked out; without the mask."""
        return data_of(self)

    def data_with_history(self) -> Tensor:
        """All elements, with a gradient that is masked."""
        return data_of(self)

    def get_mask(self) -> Tensor:
        """Which elements count."""
        return self._mask

    def to_tensor(self, value: Any) -> Tensor:
        """The elements that count, and `value` in place of the others."""
        return F.where(self._mask, data_of(self), value)

    def to_dense(self, dtype: Dtype | None = None, *, masked_grad: bool | None = None) -> Any:
        return self if dtype is None else self.to(dtype)

    def detach(self) -> Any:
        return wrap(self._held, self._mask)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self._held.is_contiguous()

    def stride(self, dim: int | None = None) -> Any:
        return self._held.stride(dim)

    def item(self) -> Any:
        if self.numel() == 1 and not bool(self._mask.item()):
            raise ValueError("item: the element is masked out.")
        return self._held.item()

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(f"numpy: not supported for masked tensors; {self._advice}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            if self.grad_fn is not None:
                raise RuntimeError("only Tensors created explicitly by the user support the deepcopy protocol.")
            out = wrap(self._held.clone(), self._mask.clone())
            out._rg, memo[id(self)] = self._rg, out
            out._grad = None if self._grad is None else self._grad.clone()
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return MaskedTensor, (self._held, self._mask, self._rg)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        from .printing import text_of

        return text_of(self._held, self._mask)


def wrap(data: Tensor, mask: Tensor) -> Any:
    """A masked tensor over data without history."""
    out: MaskedTensor = object.__new__(MaskedTensor)
    out._begin(tuple(data.shape), data.dtype, data.device)
    out._spec = OwnSpec(tuple(data.shape), data.dtype, data.device, data._spec.strides)
    out._held, out._mask = data, mask
    return out


class _DataOf(Function):
    @staticmethod
    def forward(ctx: Any, x: MaskedTensor) -> Tensor:
        ctx.mask = x._mask
        return x._held.detach()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return with_mask(g, ctx.mask)


class _WithMask(Function):
    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Any:
        return wrap(data.detach(), mask)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return (g.to_tensor(0) if isinstance(g, MaskedTensor) else g), None


class _AsMasked(Function):
    """As `_WithMask`, with a gradient that keeps its mask, for tensors that users have made."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Any:
        return wrap(data.detach(), mask)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g, None


def data_of(x: MaskedTensor) -> Tensor:
    """The data, with the history of the masked tensor."""
    if x._rg and mode.grad:
        made: Tensor = _DataOf.apply(x)
        return made
    return x._held.detach()


def with_mask(data: Tensor, mask: Tensor) -> Any:
    """A masked tensor of data with their history."""
    if data._rg and mode.grad:
        return _WithMask.apply(data, mask)
    return wrap(data, mask)


def masked_tensor(data: Any, mask: Tensor, requires_grad: bool = False) -> Any:
    """A masked tensor of a copy of `data`: a leaf of its own.

    >>> votive.masked.masked_tensor(votive.tensor([1, 2]), votive.tensor([True, False]))
    MaskedTensor(
      [1,       --]
    )
    """
    _check(data, mask)
    out = wrap(data.detach().clone(), mask.detach().clone())
    return out.requires_grad_() if requires_grad else out


def as_masked_tensor(data: Any, mask: Tensor) -> Any:
    """A masked tensor over `data`, whose gradient reaches it as a masked tensor.

    >>> x = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> votive.masked.as_masked_tensor(x, votive.tensor([True, False])).sum().backward()
    >>> x.grad
    MaskedTensor(
      [  1.0000,       --]
    )
    """
    _check(data, mask)
    return _AsMasked.apply(data, mask) if data._rg and mode.grad else wrap(data, mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether an object is a MaskedTensor.

    >>> votive.masked.is_masked_tensor(votive.ones(1))
    False
    """
    return isinstance(obj, MaskedTensor)
