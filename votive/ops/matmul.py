"""Products of matrices and vectors, and the linear layer. Knows shapes, dtypes and gradients only.

Every product here is `matmul` after a check of ranks: one operator to make fast on each device.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Spec, broadcast_shapes
from ..core.mode import mode
from .autocast_policy import LOWER
from .matmul_gradient import by_columns, joins_sums, weight_and_bias
from .registry import F, composite, structured

if TYPE_CHECKING:
    from .types import Context, Tensor


def check_dtypes(op: str, first: Spec, *others: Spec) -> None:
    """Products do not promote: all factors have one dtype, and it is a number's."""
    for other in others:
        if other.dtype is not first.dtype:
            fail(
                DtypeError,
                op,
                f"all arguments must have the same dtype, got {first.dtype} and {other.dtype}; cast one with .to().",
            )
    if first.dtype in (dt.bool_, *dt.FLOAT8, *dt.BAREBONES):
        fail(UnsupportedError, op, f"not implemented for {first.dtype}.")


def check_rank(op: str, name: str, x: Tensor, rank: int) -> None:
    """Raise unless the argument `name` has `rank` dimensions."""
    if x.ndim != rank:
        fail(ShapeError, op, f"{name} must have {rank} dimension(s), got shape {tuple(x.shape)}.")


def product_shape(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of `a @ b`: vectors stand for a row on the left and a column on the right."""
    if not a or not b:
        fail(ShapeError, op, f"both arguments need at least one dimension, got {a} @ {b}.")
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        fail(ShapeError, op, f"inner sizes differ, {a} @ {b}: {a[-1]} != {inner}.")
    return (*broadcast_shapes(op, a[:-2], b[:-2]), *rows, *columns)


def _infer_matmul(a: Spec, b: Spec) -> Spec:
    shape = product_shape("matmul", a.shape, b.shape)
    check_dtypes("matmul", a, b)
    return a.like(shape)


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate, without a call for real numbers."""
    return F.conj_physical(x) if x.dtype.is_complex else x


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    return conjugate(F.transpose(x, -2, -1))


def _fold(x: Tensor) -> Tensor:
    """All but the last dimension as one, so that a sum over a batch is one large product."""
    shape = x._spec.shape
    return x if len(shape) == 2 else F.reshape(x, (math.prod(shape[:-1]), shape[-1]))


def left_gradient(g: Tensor, b: Tensor, a: Spec) -> Tensor:
    """The gradient of `a @ b` by a, possibly with dimensions that broadcasting added."""
    if b.ndim == 1:
        return conjugate(b) * (g if a.ndim == 1 else g.unsqueeze(-1))
    if a.ndim > 1:
        return F.matmul(g, adjoint(b))
    if b.ndim == 2:
        return F.matmul(conjugate(b), g)
    return F.matmul(conjugate(b), g.unsqueeze(-1)).squeeze(-1)


def right_gradient(g: Tensor, a: Tensor, b: Spec) -> Tensor:
    """The gradient of `a @ b` by b, possibly with dimensions that broadcasting added."""
    if a.ndim == 1:
        a = conjugate(a)
        return a * g if b.ndim == 1 else a.unsqueeze(-1) * g.unsqueeze(-2)
    if b.ndim == 1:
        return F.matmul(adjoint(_fold(a)), F.reshape(g, (g._spec.numel,)))
    if b.ndim == 2:
        return F.matmul(adjoint(_fold(a)), _fold(g))
    return F.matmul(adjoint(a), g)


structured(
    "matmul(Tensor input, Tensor other)",
    placement="matmul",
    multilinear=("input", "other"),
    infer=_infer_matmul,
    grad={
        "input": lambda c, g: left_gradient(g, c.other, c.spec("input")),
        "other": lambda c, g: right_gradient(g, c.input, c.spec("other")),
    },
    also=("linalg.matmul",),
    doc="""Matrix product; leading dimensions are a batch and broadcast, vectors a row or column.

    >>> votive.matmul(votive.tensor([[1, 2], [3, 4]]), votive.tensor([1, 1]))
    tensor([3, 7])
    """,
    autocast=LOWER,
)


@composite(out=True, autocast=LOWER)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Product of two matrices.

    >>> votive.mm(votive.tensor([[1, 2], [3, 4]]), votive.tensor([[1], [1]]))
    tensor([[3],
            [7]])
    """
    check_rank("mm", "input", input, 2)
    check_rank("mm", "mat2", mat2, 2)
    return F.matmul(input, mat2)


@composite(out=True, autocast=LOWER)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Products of two batches of matrices of the same length.

    >>> votive.bmm(votive.ones(2, 1, 3), votive.ones(2, 3, 1))
    tensor([[[3.]],
    <BLANKLINE>
            [[3.]]])
    """
    check_batches("bmm", input, mat2)
    return F.matmul(input, mat2)


def check_batches(op: str, a: Tensor, b: Tensor) -> None:
    """Raise unless both are batches of matrices of the same length: batches do not broadcast."""
    check_rank(op, "the first batch", a, 3)
    check_rank(op, "the second batch", b, 3)
    if a.shape[0] != b.shape[0]:
        fail(ShapeError, op, f"batches must have the same length, got shapes {tuple(a.shape)} and {tuple(b.shape)}.")


@composite(out=True, autocast={"cpu": "off", "cuda": "lower"})
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Product of a matrix and a vector.

    >>> votive.mv(votive.tensor([[1, 2], [3, 4]]), votive.tensor([1, 10]))
    tensor([21, 43])
    """
    check_rank("mv", "input", input, 2)
    check_rank("mv", "vec", vec, 1)
    return F.matmul(input, vec)


@composite(out=True, autocast={"cpu": "off", "cuda": "widest"})
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Sum of the products of two vectors' elements; complex ones are not conjugated.

    >>> votive.dot(votive.tensor([2, 3]), votive.tensor([2, 1]))
    tensor(7)
    """
    check_rank("dot", "input", input, 1)
    check_rank("dot", "tensor", tensor, 1)
    return F.matmul(input, tensor)


@composite(out=True, autocast={"cpu": "off", "cuda": "widest"})
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Like `dot`, with the first vector conjugated.

    >>> votive.vdot(votive.tensor([1j]), votive.tensor([1j]))
    tensor(1.+0.j)
    """
    check_rank("vdot", "input", input, 1)
    check_rank("vdot", "other", other, 1)
    check_dtypes("vdot", input._spec, other._spec)
    return F.matmul(conjugate(input), other)


@composite(out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products summed over the last dimension of both; a 0-d argument multiplies.

    >>> votive.inner(votive.tensor([[1, 2], [3, 4]]), votive.tensor([1, 1]))
    tensor([3, 7])
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        fail(
            ShapeError, "inner", f"the last sizes must match, got shapes {tuple(input.shape)} and {tuple(other.shape)}."
        )
    return F.tensordot(input, other, ([-1], [-1]))


@composite(out=True, aliases=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of an element of one vector and an element of another.

    >>> votive.outer(votive.tensor([1, 2]), votive.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    check_rank("outer", "input", input, 1)
    check_rank("outer", "vec2", vec2, 1)
    return input.unsqueeze(-1) * vec2


@composite(out=True)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Kronecker product: every element of `input` times the whole of `other`, laid out as blocks.

    >>> votive.kron(votive.tensor([1, 10]), votive.tensor([1, 2]))
    tensor([ 1,  2, 10, 20])
    """
    rank = max(input.ndim, other.ndim)
    a = [1] * (rank - input.ndim) + list(input.shape)
    b = [1] * (rank - other.ndim) + list(other.shape)
    spread_a = F.reshape(input, [x for n in a for x in (n, 1)])
    spread_b = F.reshape(other, [x for n in b for x in (1, n)])
    return F.reshape(spread_a * spread_b, [n * m for n, m in zip(a, b, strict=True)])


def _infer_linear(x: Spec, weight: Spec, bias: Spec | None) -> Spec:
    if weight.ndim > 2:
        fail(ShapeError, "linear", f"weight must have 1 or 2 dimensions, got shape {weight.shape}.")
    shape = product_shape("linear", x.shape, weight.shape[::-1])
    check_dtypes("linear", x, weight)
    if bias is not None:
        check_dtypes("linear", x, bias)
        if broadcast_shapes("linear", shape, bias.shape) != shape:
            fail(ShapeError, "linear", f"a bias of shape {bias.shape} does not fit into {shape}.")
    return x.like(shape)


def _linear_weight_gradient(g: Tensor, x: Tensor, weight: Spec) -> Tensor:
    if weight.ndim == 1 and x.ndim > 1:
        return right_gradient(g, x, weight)
    if x.ndim == 1:
        return conjugate(x) * (g if weight.ndim == 1 else g.unsqueeze(-1))
    if by_columns(weight):  # in the order of the weight's own memory
        return F.transpose(F.matmul(adjoint(_fold(x)), _fold(g)), 0, 1)
    return F.matmul(F.transpose(_fold(g), 0, 1), conjugate(_fold(x)))


def _linear_by_weight(c: Context, g: Tensor) -> Tensor:
    x, weight, bias = c.input, c.spec("weight"), c.spec("bias")
    if bias is not None and not mode.grad and joins_sums(g._spec, weight, bias) and c.needs("bias"):
        by_weight, c.__dict__["sums"] = weight_and_bias(g, x, weight)
        return by_weight
    return _linear_weight_gradient(g, x, weight)


structured(
    "linear(Tensor input, Tensor weight, Tensor? bias=None)",
    placement="linear",
    multilinear=("input", "weight"),
    infer=_infer_linear,
    grad={
        "input": lambda c, g: (
            left_gradient(g, c.weight, c.spec("input")) if c.weight.ndim == 1 else F.matmul(g, conjugate(c.weight))
        ),
        "weight": _linear_by_weight,
        # The product that made the weight's gradient may have summed its rows already.
        "bias": lambda c, g: c.__dict__.pop("sums", g),
    },
    namespaces=("nn.functional",),
    method=False,
    doc="""`input @ weight.T + bias`: each row of `weight` makes one output feature.

    >>> weight, bias = votive.tensor([[1.0, 1.0]]), votive.tensor([0.5])
    >>> votive.nn.functional.linear(votive.tensor([1.0, 2.0]), weight, bias)
    tensor([3.5000])
    """,
    autocast=LOWER,
)


@composite(namespaces=("nn.functional",), method=False, autocast={"cuda": "widest"})
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1 @ weight[k] @ input2 + bias[k]` for each output feature k.

    >>> a, b = votive.tensor([1.0, 2.0]), votive.tensor([3.0])
    >>> votive.nn.functional.bilinear(a, b, votive.ones(1, 2, 1))
    tensor([9.])
    """
    check_rank("bilinear", "weight", weight, 3)
    first, second = tuple(input1.shape), tuple(input2.shape)
    if first[:-1] != second[:-1]:
        fail(ShapeError, "bilinear", f"inputs must agree in all but the last size, got {first} and {second}.")
    features = tuple(weight.shape)
    if not first or (first[-1], second[-1]) != features[1:]:
        fail(ShapeError, "bilinear", f"inputs {first} and {second} do not fit weight {features}.")
    given = [input1, input2, weight] if bias is None else [input1, input2, weight, bias]
    check_dtypes("bilinear", *(t._spec for t in given))
    if bias is not None and tuple(bias.shape) != features[:1]:
        fail(ShapeError, "bilinear", f"bias must have shape {features[:1]}, got {tuple(bias.shape)}.")
    dtype = weight.dtype
    if dtype in dt.HALF:  # two products and a sum are rounded once
        return F._to_dtype(bilinear(*(F._to_dtype(t, dt.float32) for t in given)), dtype)
    y = F.einsum("...i,oij,...j->...o", input1, weight, input2)
    return F.contiguous(y if bias is None else y + bias)
