"""Complex numbers of two halves: a way to store them. Every operator computes in complex64, and what only comes from
halves is rounded to halves again.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..autograd.function import Function
from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.mode import mode
from ..dispatch.wrapped import OwnSpec
from ..ops.operator import Op, Operator
from ..ops.registry import F
from ..tensor import Tensor
from . import printing
from .wrapped import Rule, Wrapped

# What a half keeps company with without becoming wider.
_NARROW = (dt.float16, dt.bool_, dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64)


class ComplexHalf(Wrapped):
    """A tensor of complex32: real and imaginary parts as float16, in the last dimension of another tensor."""

    _kind = "complex32"
    _advice = "use .to(votive.complex64)."
    _rules: ClassVar[dict[str, Rule]] = {}
    _pairs: Tensor

    def _parts(self) -> tuple[Tensor, ...]:
        return (self._pairs,)

    @classmethod
    def _call(cls, name: str, op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name in cls._rules:
            return cls._rules[name](*args, **kwargs)
        if "out" in kwargs:
            raise NotImplementedError(f"{name}: out= is not implemented for complex32 tensors; {cls._advice}")
        wide = tuple(_widened(v) for v in args)
        named = {k: _widened(v) for k, v in kwargs.items()}
        in_place = name.endswith("_") and not op.name.endswith("_")
        made = op.apply(wide) if isinstance(op, Op) else op(*wide, **named)
        narrow = all(_is_narrow(v) for v in (*args, *kwargs.values()))
        if in_place or (name.endswith("_") and args and isinstance(args[0], ComplexHalf)):
            target: Any = args[0]
            if not isinstance(target, ComplexHalf):
                return target.copy_(made)
            return _written(name, target, made)
        return _narrowed(made) if narrow else made

    def detach(self) -> Any:
        return from_pairs(self._pairs)

    def data_ptr(self) -> int:
        return self._pairs.data_ptr()

    def stride(self, dim: int | None = None) -> Any:
        strides = tuple(s // 2 for s in self._pairs.stride()[:-1])
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        return self._pairs.is_contiguous()

    def item(self) -> Any:
        return _widened(self.detach()).item()

    def tolist(self) -> Any:
        return _widened(self.detach()).tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self._pairs, self._rg)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            out = from_pairs(self._pairs.clone())
            out._rg, memo[id(self)] = self._rg, out
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        node = self.grad_fn
        suffixes = printing.tensor_suffixes(
            dtype="complex32",
            shape=tuple(self.shape),
            default_dtype=dt.get_default_dtype().name,
            device=str(self.device),
            requires_grad=self._rg,
            grad_fn=None if node is None else node.name(),
        )
        array = BACKENDS["cpu"].to_numpy(_widened(self.detach()).cpu()._data)
        return printing.format_tensor(array, suffixes=suffixes)


def from_pairs(pairs: Tensor) -> Any:
    """A tensor of complex32 over pairs of float16 in the last dimension."""
    if pairs.dtype is not dt.float16 or pairs.ndim < 1 or pairs.shape[-1] != 2:
        raise RuntimeError(f"complex32 is made of pairs of float16, got {pairs.dtype} of shape {tuple(pairs.shape)}.")
    out: ComplexHalf = object.__new__(ComplexHalf)
    shape = tuple(pairs.shape[:-1])
    out._begin(shape, dt.complex32, pairs.device)
    out._spec = OwnSpec(shape, dt.complex32, pairs.device, tuple(s // 2 for s in pairs.stride()[:-1]))
    out._pairs = pairs
    return out


def _rebuild(pairs: Tensor, requires_grad: bool) -> Any:
    out = from_pairs(pairs)
    out._rg = requires_grad
    return out


class _Wide(Function):
    @staticmethod
    def forward(ctx: Any, x: ComplexHalf) -> Tensor:
        return F.view_as_complex(x._pairs.float())

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return halved(g)


class _Half(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        ctx.dtype = x.dtype
        return from_pairs(F.view_as_real(x).to(dt.float16))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return widened(g).to(ctx.dtype)


def widened(x: Any) -> Any:
    """A tensor of complex32 as complex64; others as they are."""
    if not isinstance(x, ComplexHalf):
        return x
    return _Wide.apply(x) if x._rg and mode.grad else F.view_as_complex(x._pairs.detach().float())


def halved(x: Any) -> Any:
    """Any tensor as complex32."""
    if isinstance(x, ComplexHalf):
        return x
    x = F.resolve_conj(x) if x.dtype.is_complex else F.to(x, dt.complex64)
    return _Half.apply(x) if x._rg and mode.grad else from_pairs(F.view_as_real(x.detach()).to(dt.float16))


def _widened(v: Any) -> Any:
    if isinstance(v, (tuple, list)):
        return type(v)(_widened(x) for x in v)
    return dt.complex64 if v is dt.complex32 else widened(v)


def _narrowed(made: Any) -> Any:
    if isinstance(made, tuple):
        return tuple(_narrowed(m) for m in made)
    if not isinstance(made, Tensor):
        return made
    if made.dtype is dt.complex64:
        return halved(made)
    return made.to(dt.float16) if made.dtype is dt.float32 else made


def _is_narrow(v: Any) -> bool:
    if isinstance(v, (tuple, list)):
        return all(_is_narrow(x) for x in v)
    if isinstance(v, dt.dtype):
        return v is dt.complex32
    return not isinstance(v, Tensor) or v.ndim == 0 or isinstance(v, ComplexHalf) or v.dtype in _NARROW


def _written(name: str, target: ComplexHalf, made: Any) -> Any:
    if tuple(made.shape) != tuple(target.shape):
        raise RuntimeError(f"{name}: the result has shape {tuple(made.shape)}, the tensor {tuple(target.shape)}.")
    if mode.grad and (target._rg or made._rg):
        return target._become(halved(made))
    target._pairs.copy_(halved(made)._pairs)
    return target


def _to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Casts and moves: what asks for another dtype leaves complex32."""
    if not isinstance(input, ComplexHalf):
        return F.to(input, *(_widened(a) for a in args), **kwargs)
    wanted = [a for a in (*args, kwargs.get("dtype")) if isinstance(a, dt.dtype)]
    others = [a for a in args if isinstance(a, Tensor)]
    target = wanted[0] if wanted else others[0].dtype if others else dt.complex32
    kwargs.pop("dtype", None)
    rest = [a.device if isinstance(a, Tensor) else a for a in args if not isinstance(a, dt.dtype)]
    if target is not dt.complex32:
        return F.to(widened(input), *rest, dtype=target, **kwargs)
    if not rest and not kwargs.get("device") and not kwargs.get("copy"):
        return input
    return halved(F.to(widened(input), *rest, **kwargs))


def _pairs_of(input: ComplexHalf) -> Tensor:
    if input._rg and mode.grad:
        return F.view_as_real(widened(input)).to(dt.float16)
    return input._pairs.detach()


def _real(input: ComplexHalf) -> Tensor:
    return _pairs_of(input).select(-1, 0)


def _imag(input: ComplexHalf) -> Tensor:
    return _pairs_of(input).select(-1, 1)


def _clone(input: ComplexHalf, memory_format: Any = None) -> Any:
    return halved(widened(input)) if input._rg and mode.grad else from_pairs(input._pairs.clone())


def _cfloat(input: ComplexHalf, memory_format: Any = None) -> Any:
    return widened(input)


def _rule(name: str, function: Rule) -> None:
    ComplexHalf._rules[name] = function


_rule("to", _to)
_rule("_to_dtype", _to)
_rule("view_as_real", _pairs_of)
_rule("real", _real)
_rule("_real", _real)
_rule("imag", _imag)
_rule("_imag", _imag)
_rule("clone", _clone)
_rule("cfloat", _cfloat)
_rule("is_complex", lambda input: True)
_rule("is_floating_point", lambda input: False)
_rule("is_signed", lambda input: True)
_rule("is_tensor", lambda obj: True)
_rule("numel", lambda input: input._spec.numel)
