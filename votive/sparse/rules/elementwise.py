"""Elementwise operators on sparse tensors: those that leave zero at zero, sums, and products."""

from __future__ import annotations

from typing import Any

from ...core import dtype as dt
from ...core.mode import mode
from ...core.promotion import promote_types
from ...ops.operator import Op
from ...ops.registry import F
from ...tensor import Tensor
from ..convert import as_coo, coalesce, convert, dense, values_at, whole
from ..indices import lookup, ravel
from ..tensor import BLOCKED, CompressedTensor, CooTensor, SparseTensor, coo, like, values_of
from .table import into, is_coo, refuse, rule


def pointwise(name: str, op: Op, args: tuple[Any, ...], out: Any = None) -> Any:
    """An elementwise operator of one sparse tensor and numbers: where it leaves zero at zero, it acts on the values."""
    x, plain = args[0], op.name
    if not isinstance(x, SparseTensor) or any(isinstance(v, Tensor) for v in args[1:]):
        refuse(plain, next(v for v in args if isinstance(v, SparseTensor)), " together with others")
    at_zero = op.apply((F.zeros((), dtype=x.dtype, device=x.device), *args[1:]))
    if isinstance(at_zero, tuple) or bool((at_zero != 0).item()):
        refuse(plain, x, f" ({plain} of zero is not zero)")
    if isinstance(x, CooTensor):
        x = coalesce(x)
    made = like(x, op.apply((values_of(x), *args[1:])))
    if name.endswith("_"):
        return into(name, args[0], made)
    return made if out is None else into(name, out, made)


def _linear(name: str) -> None:
    """Linear functions need no coalescing."""

    def apply(input: SparseTensor, *, out: Any = None) -> Any:
        made = like(input, getattr(F, name)(values_of(input)))
        return made if out is None else into(name, out, made)

    rule(name)(apply)
    rule(name + "_")(lambda input: into(name + "_", input, apply(input)))


_linear("neg")
_linear("positive")
_linear("conj")
_linear("conj_physical")
_linear("real")


@rule("nan_to_num")
def _nan_to_num(
    input: SparseTensor, nan: Any = None, posinf: Any = None, neginf: Any = None, *, out: Any = None
) -> Any:
    x = coalesce(input) if isinstance(input, CooTensor) else input
    made = like(x, F.nan_to_num(values_of(x), nan, posinf, neginf))
    return made if out is None else into("nan_to_num", out, made)


@rule("nn.functional.relu")
def _relu(input: SparseTensor, inplace: bool = False) -> Any:
    x = coalesce(input) if isinstance(input, CooTensor) else input
    made = like(x, F.relu(values_of(x)))
    return into("relu_", input, made) if inplace else made


def _number(v: Any) -> bool:
    """A number, or a tensor of no dimension that serves as one."""
    return not isinstance(v, Tensor) or (v.ndim == 0 and not isinstance(v, SparseTensor))


def _together(a: SparseTensor, b: SparseTensor, name: str) -> None:
    if tuple(a.shape) != tuple(b.shape):
        raise RuntimeError(
            f"{name}: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != {list(b.shape)}"
        )
    if is_coo(a) != is_coo(b):
        refuse(name, a, f" together with {b._describe((b,))}")


def _in_layout(made: CooTensor, of: SparseTensor) -> Any:
    """A COO result in the layout of an operand."""
    if not isinstance(of, CompressedTensor):
        return made
    return convert(made, of._layout, of._block if of._layout in BLOCKED else None)


def add(a: Any, b: Any, *, alpha: Any = 1) -> Any:
    """a + alpha * b."""
    if not isinstance(a, SparseTensor):
        if not isinstance(a, Tensor) or not isinstance(b, SparseTensor):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        scaled = b if alpha == 1 else mul(b, alpha)
        if tuple(a.shape) != tuple(b.shape) or (b._rg and mode.grad):
            return F.add(a, whole(scaled) if scaled is b else whole(b) * alpha)
        return _add_to_dense(a, scaled)
    if not isinstance(b, SparseTensor):
        if isinstance(a, CompressedTensor) and isinstance(b, Tensor):
            return F.add(b * alpha, whole(a))
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    _together(a, b, "add")
    common = promote_types(a.dtype, b.dtype)
    va, vb = values_of(a).to(common), values_of(b).to(common)
    vb = vb if alpha == 1 else vb * alpha
    if a._same_indices(b):
        return like(a, va + vb)
    if isinstance(a, CompressedTensor) and a._batch:
        refuse("add", a, " with batches")
    if isinstance(a, CompressedTensor):
        left, right = as_coo(like(a, va)), as_coo(like(b, vb))
        return _in_layout(coalesce(add(left, right)), a)
    assert isinstance(a, CooTensor)
    assert isinstance(b, CooTensor)
    if a.sparse_dim() != b.sparse_dim():
        raise RuntimeError(f"add: the numbers of sparse dimensions differ, {a.sparse_dim()} and {b.sparse_dim()}.")
    joined = coo(F.cat((a._at, b._at), 1), F.cat((va, vb)), a.shape, False)
    return coalesce(joined) if a._coalesced and b._coalesced else joined


def _add_to_dense(a: Tensor, b: SparseTensor) -> Tensor:
    """A dense tensor with the elements of a sparse one added where they are."""
    common = promote_types(a.dtype, b.dtype)
    if not isinstance(b, CooTensor) or common is dt.bool_ or b.sparse_dim() == 0:
        return F.add(a, dense(b))
    sizes = b._spec.shape[: b.sparse_dim()]
    rows = a.to(common).reshape(-1, *b._spec.shape[b.sparse_dim() :]) if 0 not in a.shape else None
    if rows is None:
        return F.add(a, dense(b))
    return F.index_add(rows, 0, ravel(b._at, sizes), values_of(b).to(common)).reshape(a.shape)


@rule("add")
def _add(input: Any, other: Any, alpha: Any = 1, *, out: Any = None) -> Any:
    made = add(input, other, alpha=alpha)
    return made if out is None else into("add", out, made)


@rule("sub")
def _sub(input: Any, other: Any, alpha: Any = 1, *, out: Any = None) -> Any:
    made = add(input, other, alpha=-alpha)
    return made if out is None else into("sub", out, made)


@rule("rsub")
def _rsub(input: Any, other: Any, alpha: Any = 1) -> Any:
    return add(other, input, alpha=-alpha)


@rule("add_")
def _add_(input: Any, other: Any, alpha: Any = 1) -> Any:
    return _accumulated("add_", input, other, alpha)


@rule("sub_")
def _sub_(input: Any, other: Any, alpha: Any = 1) -> Any:
    return _accumulated("sub_", input, other, -alpha)


def _accumulated(name: str, x: Any, other: Any, alpha: Any) -> Any:
    if isinstance(x, SparseTensor) or not isinstance(other, SparseTensor):
        return into(name, x, add(x, other, alpha=alpha))
    if isinstance(other, CooTensor) and tuple(x.shape) == tuple(other.shape) and x.is_contiguous() and x.numel():
        # Only the rows that are there are written.
        sizes = other._spec.shape[: other.sparse_dim()]
        values = values_of(other).to(x.dtype)
        values = values if alpha == 1 else values * alpha
        tracked = mode.grad and (x._rg or other._rg)
        if x.dtype is not dt.bool_ and other.sparse_dim() and not tracked:
            x.view(-1, *other._spec.shape[other.sparse_dim() :]).index_add_(0, ravel(other._at, sizes), values)
            return x
    return x.add_(whole(other), alpha=alpha)


def mul(a: Any, b: Any) -> Any:
    """a * b: sparse where one of them is."""
    if not isinstance(a, SparseTensor):
        a, b = b, a
    if _number(b):
        return like(a, values_of(a) * b)
    if isinstance(b, SparseTensor):
        return _intersection(a, b)
    if isinstance(a, CompressedTensor):
        return like(a, values_of(a) * values_at(b.expand(a.shape), a))
    assert isinstance(a, CooTensor)
    shape = F.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    if tuple(shape) != tuple(a.shape):
        raise RuntimeError(f"mul: the sparse tensor of shape {tuple(a.shape)} cannot be broadcast to {tuple(shape)}.")
    at = tuple(a._at[d] for d in range(a.sparse_dim()))
    whole = b.expand(shape)
    picked = whole[at] if at else whole.unsqueeze(0)
    return coo(a._at, values_of(a) * picked, shape, a._coalesced)


def _intersection(a: SparseTensor, b: SparseTensor) -> Any:
    """The product of two sparse tensors: the indices that both have."""
    if is_coo(a) and is_coo(b) and tuple(a.shape) != tuple(b.shape):
        refuse("mul", a, f" of shapes {tuple(a.shape)} and {tuple(b.shape)}")
    _together(a, b, "mul")
    if a._same_indices(b) and (not isinstance(a, CooTensor) or a._coalesced):
        return like(a, values_of(a) * values_of(b))
    if isinstance(a, CompressedTensor):
        if a._batch:
            refuse("mul", a, " with batches")
        return _in_layout(_intersection(as_coo(a), as_coo(b)), a)
    assert isinstance(a, CooTensor)
    assert isinstance(b, CooTensor)
    x, y = coalesce(a), coalesce(b)
    if x.sparse_dim() != y.sparse_dim():
        return mul(x, dense(y)) if x.sparse_dim() > y.sparse_dim() else mul(y, dense(x))
    sizes = x._spec.shape[: x.sparse_dim()]
    places, there = lookup(ravel(y._at, sizes), ravel(x._at, sizes))
    kept = F.nonzero(there).reshape(-1)
    values = F.index_select(values_of(x), 0, kept) * F.index_select(values_of(y), 0, places[kept])
    return coo(x._at[:, kept], values, x.shape, True)


@rule("mul")
def _mul(input: Any, other: Any, *, out: Any = None) -> Any:
    made = mul(input, other)
    return made if out is None else into("mul", out, made)


@rule("mul_")
def _mul_(input: Any, other: Any) -> Any:
    return into("mul_", input, mul(input, other))


def div(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    """a / b for a number b."""
    if not isinstance(a, SparseTensor):
        refuse("div", b, " as divisors")
    if not _number(b):
        raise RuntimeError(
            "Sparse division requires a scalar or zero-dim dense tensor divisor "
            f"(got shape {list(b.shape)} for divisor)"
        )
    if rounding_mode is not None and isinstance(a, CooTensor):
        a = coalesce(a)
    return like(a, F.div(values_of(a), b, rounding_mode=rounding_mode))


@rule("div")
def _div(input: Any, other: Any, rounding_mode: str | None = None, *, out: Any = None) -> Any:
    made = div(input, other, rounding_mode)
    return made if out is None else into("div", out, made)


@rule("div_")
def _div_(input: Any, other: Any, rounding_mode: str | None = None) -> Any:
    return into("div_", input, div(input, other, rounding_mode))


@rule("floor_divide")
def _floor_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    made = div(input, other, "floor")
    return made if out is None else into("floor_divide", out, made)


@rule("floor_divide_")
def _floor_divide_(input: Any, other: Any) -> Any:
    return into("floor_divide_", input, div(input, other, "floor"))


@rule("pow")
def _pow(input: Any, exponent: Any, *, out: Any = None) -> Any:
    if not isinstance(input, SparseTensor) or isinstance(exponent, Tensor):
        refuse("pow", exponent if isinstance(exponent, SparseTensor) else input, " with a tensor as exponent")
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    if isinstance(input, CooTensor):
        input = coalesce(input)
    made = like(input, F.pow(values_of(input), exponent))
    return made if out is None else into("pow", out, made)


@rule("pow_")
def _pow_(input: Any, exponent: Any) -> Any:
    return into("pow_", input, _pow(input, exponent))


@rule("nn.functional.threshold")
def _threshold(input: SparseTensor, threshold: float, value: float, inplace: bool = False) -> Any:
    x = coalesce(input) if isinstance(input, CooTensor) else input
    made = like(x, getattr(F, "nn.functional.threshold")(values_of(x), threshold, value))
    return into("threshold_", input, made) if inplace else made
