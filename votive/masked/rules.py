"""How operators compute on masked tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.layout import wrap_dims
from ..ops.operator import Op, Operator
from ..ops.registry import F
from ..tensor import Tensor
from . import functions
from .tensor import MaskedTensor, data_of, with_mask

if TYPE_CHECKING:
    from ..core.dtype import dtype as Dtype

Rule = Callable[..., Any]


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Let a function run the operators of these names when an argument is masked."""

    def enter(function: Rule) -> Rule:
        for name in names:
            MaskedTensor._rules[name] = function
        return function

    return enter


def common_mask(values: tuple[Any, ...]) -> Tensor:
    """The mask that all masked operands have; an error when they differ."""
    masks = [v._mask for v in values if isinstance(v, MaskedTensor)]
    for m in masks[1:]:
        if m is not masks[0] and (tuple(m.shape) != tuple(masks[0].shape) or not bool(F.equal(m, masks[0]))):
            raise ValueError("Input masks must match; bring the operands to one mask first.")
    return masks[0]


def opened(v: Any) -> Any:
    """The data of a masked tensor; others as they are."""
    return data_of(v) if isinstance(v, MaskedTensor) else v


def pointwise(name: str, op: Op, args: tuple[Any, ...]) -> Any:
    """An elementwise operator acts on the data, and the mask stays."""
    mask = common_mask(args)
    made = op.apply(tuple(opened(v) for v in args))
    made = with_mask(made, F.expand(mask, tuple(made.shape)))
    if not name.endswith("_"):
        return made
    x = args[0]
    if not isinstance(x, MaskedTensor):
        raise TypeError(f"{name}: a plain tensor cannot hold the masked result; use {op.name}.")
    if made.dtype is not x.dtype:
        raise RuntimeError(f"{name}: result type {made.dtype} can't be cast to the tensor's type {x.dtype}.")
    return x._become(made)


def rearranged(op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A view of the data, and the same view of the mask."""

    def call(values: tuple[Any, ...]) -> Any:
        return op.apply(values) if isinstance(op, Op) else op(*values, **kwargs)

    x = args[0]
    data, mask = call((data_of(x), *args[1:])), call((x._mask, *args[1:]))
    if isinstance(data, tuple):
        return tuple(with_mask(d, m) for d, m in zip(data, mask, strict=True))
    return with_mask(data, mask)


def _both(name: str) -> None:
    """A composite that moves elements moves data and mask alike."""

    def move(input: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        return rearranged(getattr(F, name), (input, *args), kwargs)

    rule(name)(move)


_both("reshape")
_both("flatten")
_both("permute")
_both("expand")
_both("contiguous")
_both("clone")
_both("unbind")
_both("split")
_both("chunk")
_both("index_select")
_both("repeat")
_both("flip")
_both("roll")


@rule("_getitem")
def _getitem(input: MaskedTensor, index: Any) -> Any:
    return with_mask(data_of(input)[index], input._mask[index])


def _by_data(name: str) -> None:
    """A composite that computes element by element."""

    def compute(input: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        return with_mask(getattr(F, name)(data_of(input), *args, **kwargs), input._mask)

    rule(name)(compute)


_by_data("clamp")
_by_data("clamp_min")
_by_data("clamp_max")
_by_data("to")
_by_data("_to_dtype")
_by_data("float")
_by_data("double")
_by_data("half")
_by_data("bfloat16")
_by_data("int")
_by_data("long")
_by_data("bool")
_by_data("nan_to_num")
_by_data("float_power")
_by_data("nn.functional.relu")
_by_data("nn.functional.silu")
_by_data("nn.functional.dropout")
_by_data("ones_like")
_by_data("zeros_like")
_by_data("full_like")


@rule("pow")
def _pow(input: Tensor, exponent: Any) -> Any:
    return with_mask(F.pow(opened(input), opened(exponent)), common_mask((input, exponent)))


@rule("where")
def _where(condition: Tensor, input: Any, other: Any) -> Any:
    made = F.where(condition, opened(input), opened(other))
    shape = tuple(made.shape)
    parts = [v._mask if isinstance(v, MaskedTensor) else F.ones(shape, dtype=condition.dtype) for v in (input, other)]
    return with_mask(made, F.where(condition, *parts))


@rule("cat")
def _cat(tensors: Any, dim: int = 0) -> Any:
    return with_mask(F.cat([opened(t) for t in tensors], dim), F.cat([_mask_of(t) for t in tensors], dim))


@rule("stack")
def _stack(tensors: Any, dim: int = 0) -> Any:
    return with_mask(F.stack([opened(t) for t in tensors], dim), F.stack([_mask_of(t) for t in tensors], dim))


def _mask_of(v: Any) -> Tensor:
    return v._mask if isinstance(v, MaskedTensor) else F.isfinite(F.zeros_like(v))


def _left(mask: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """Whether anything counts in what is reduced."""
    dims = wrap_dims("masked", dim, mask.ndim)
    for d in reversed(dims):
        mask = F.any(mask, d, keepdim)
    return mask


def _reduction(name: str, reduce: Rule) -> None:
    def compute(input: MaskedTensor, dim: Any = None, keepdim: bool = False, *args: Any, **kwargs: Any) -> Any:
        if args:  # the dtype, in the order of the operator's schema
            kwargs["dtype"] = args[0]
        made = reduce(data_of(input), dim, keepdim=keepdim, mask=input._mask, **kwargs)
        return with_mask(made, _left(input._mask, dim, keepdim))

    rule(name)(compute)


_reduction("sum", functions.sum)
_reduction("mean", functions.mean)
_reduction("prod", functions.prod)
_reduction("amax", functions.amax)
_reduction("amin", functions.amin)
_reduction("argmax", functions.argmax)
_reduction("argmin", functions.argmin)
_reduction("logsumexp", functions.logsumexp)
_reduction("var", functions.var)
_reduction("std", functions.std)


@rule("all")
def _all(input: MaskedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    made = F.where(input._mask, data_of(input) != 0, True)
    made = F.all(made) if dim is None else F.all(made, dim, keepdim)
    return with_mask(made, _left(input._mask, dim, keepdim))


@rule("any")
def _any(input: MaskedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    made = F.where(input._mask, data_of(input) != 0, False)
    made = F.any(made) if dim is None else F.any(made, dim, keepdim)
    return with_mask(made, _left(input._mask, dim, keepdim))


def _along(name: str, compute: Rule) -> None:
    def run(input: MaskedTensor, dim: int, dtype: Dtype | None = None) -> Any:
        return with_mask(compute(data_of(input), dim, dtype=dtype, mask=input._mask), input._mask)

    rule(name)(run)
    rule(f"nn.functional.{name}")(lambda input, dim, _stacklevel=3, dtype=None: run(input, dim, dtype))


_along("softmax", functions.softmax)
_along("log_softmax", functions.log_softmax)
_along("softmin", functions.softmin)


@rule("cumsum")
def _cumsum(input: MaskedTensor, dim: int, dtype: Dtype | None = None) -> Any:
    return with_mask(functions.cumsum(data_of(input), dim, dtype=dtype, mask=input._mask), input._mask)


@rule("cumprod")
def _cumprod(input: MaskedTensor, dim: int, dtype: Dtype | None = None) -> Any:
    return with_mask(functions.cumprod(data_of(input), dim, dtype=dtype, mask=input._mask), input._mask)


rule("is_floating_point")(lambda input: input._held.is_floating_point())
rule("is_complex")(lambda input: False)
rule("is_tensor")(lambda obj: True)
rule("numel")(lambda input: input._held.numel())
