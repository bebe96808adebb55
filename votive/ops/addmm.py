"""`beta * input + alpha * product` in its five ranks. Knows shapes, dtypes and gradients only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import ShapeError, fail
from ..core.layout import Spec, broadcast_shapes
from ..formula import apply, where
from .autocast_policy import LOWER
from .matmul import check_batches, check_dtypes, check_rank, left_gradient, product_shape, right_gradient
from .registry import F, composite, pointwise, structured

if TYPE_CHECKING:
    from .types import Expr, Number, Tensor


def _check_factors(op: str, dtype: dt.dtype, beta: Number, alpha: Number) -> None:
    if not dtype.is_complex and (isinstance(beta, complex) or isinstance(alpha, complex)):
        fail(RuntimeError, op, f"beta and alpha must be real for {dtype} tensors.")


def _fitted(op: str, x: Spec, a: Spec, b: Spec, shape: tuple[int, ...], *factors: Number) -> Spec:
    check_dtypes(op, x, a, b)
    _check_factors(op, x.dtype, *factors)
    if broadcast_shapes(op, shape, x.shape) != shape:
        fail(ShapeError, op, f"an input of shape {x.shape} does not fit into {shape}.")
    return a.like(shape)


def _infer_addmm(x: Spec, a: Spec, b: Spec, beta: int, alpha: Number) -> Spec:
    return _fitted("addmm", x, a, b, product_shape("addmm", a.shape, b.shape), beta, alpha)


def _infer_addbmm(x: Spec, a: Spec, b: Spec, beta: int, alpha: int) -> Spec:
    return _fitted("addbmm", x, a, b, product_shape("addbmm", a.shape, b.shape)[1:], beta, alpha)


def _scaled(g: Tensor, factor: float) -> Tensor:
    return g if factor == 1 else g * factor.conjugate()


structured(
    "_addmm(Tensor input, Tensor mat1, Tensor mat2, Scalar beta, Scalar alpha)",
    placement="addmm",
    infer=_infer_addmm,
    grad={
        "input": lambda c, g: _scaled(g, c.beta),
        "mat1": lambda c, g: _scaled(left_gradient(g, c.mat2, c.spec("mat1")), c.alpha),
        "mat2": lambda c, g: _scaled(right_gradient(g, c.mat1, c.spec("mat2")), c.alpha),
    },
    doc="`beta * input + alpha * mat1 @ mat2` for every rank, rounded once.",
)

structured(
    "_addbmm(Tensor input, Tensor batch1, Tensor batch2, Scalar beta, Scalar alpha)",
    placement="addmm",
    infer=_infer_addbmm,
    grad={
        "input": lambda c, g: _scaled(g, c.beta),
        "batch1": lambda c, g: _scaled(left_gradient(g.unsqueeze(0), c.batch2, c.spec("batch1")), c.alpha),
        "batch2": lambda c, g: _scaled(right_gradient(g.unsqueeze(0), c.batch1, c.spec("batch2")), c.alpha),
    },
    doc="`beta * input + alpha * sum(batch1 @ batch2)`, holding one product at a time.",
)


@composite(inplace=True, out=True, autocast=LOWER)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha * mat1 @ mat2`; with `beta=0` the input is ignored.

    >>> a = votive.tensor([[1, 2], [3, 4]])
    >>> votive.addmm(votive.tensor([100, 200]), a, a, alpha=2)
    tensor([[114, 220],
            [130, 244]])
    """
    check_rank("addmm", "mat1", mat1, 2)
    check_rank("addmm", "mat2", mat2, 2)
    return F._addmm(input, mat1, mat2, beta, alpha)


@composite(inplace=True, out=True, inplace_function=True, autocast={"cuda": "lower"})
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha * mat @ vec`; with `beta=0` the input is ignored.

    >>> votive.addmv(votive.tensor([1, 2]), votive.tensor([[1, 0], [0, 1]]), votive.tensor([5, 6]))
    tensor([6, 8])
    """
    check_rank("addmv", "mat", mat, 2)
    check_rank("addmv", "vec", vec, 1)
    return F._addmm(input, mat, vec, beta, alpha)


@composite(inplace=True, out=True, autocast=LOWER)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha * batch1 @ batch2` for each pair of matrices of two batches.

    >>> votive.baddbmm(votive.tensor(1.0), votive.ones(1, 1, 3), votive.ones(1, 3, 2))
    tensor([[[4., 4.]]])
    """
    check_batches("baddbmm", batch1, batch2)
    return F._addmm(input, batch1, batch2, beta, alpha)


@composite(inplace=True, out=True, autocast=LOWER)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha *` the sum of `batch1[i] @ batch2[i]` over the batch.

    >>> votive.addbmm(votive.tensor(1.0), votive.ones(2, 1, 3), votive.ones(2, 3, 2))
    tensor([[7., 7.]])
    """
    check_batches("addbmm", batch1, batch2)
    return F._addbmm(input, batch1, batch2, beta, alpha)


def _addr_types(promoted: dt.dtype, x: Spec, a: Spec, b: Spec, beta: int, alpha: float) -> tuple[dt.dtype, dt.dtype]:
    _check_factors("addr", promoted, beta, alpha)
    if promoted.category < dt.FLOAT and (isinstance(beta, float) or isinstance(alpha, float)):
        fail(RuntimeError, "addr", f"beta and alpha must be integers for {promoted} tensors.")
    return promoted, promoted


def _addr_formula(x: Expr, a: Expr, b: Expr, beta: Expr, alpha: Expr) -> Expr:
    product = alpha * (a * b)
    # With beta 0 the input does not count at all, not even its NaNs.
    return where(apply("eq", beta, 0), product, beta * x + product)


pointwise(
    "_addr(Tensor input, Tensor vec1, Tensor vec2, Scalar beta, Scalar alpha)",
    _addr_formula,
    dtypes=_addr_types,
    doc="`beta * input + alpha * vec1 * vec2`, elementwise.",
)


@composite(inplace=True, out=True, autocast={"cuda": "lower"})
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
    """`beta * input + alpha *` the outer product of two vectors; types promote.

    >>> votive.addr(votive.tensor([0, 1]), votive.tensor([1, 2]), votive.tensor([3, 4]))
    tensor([[3, 5],
            [6, 9]])
    """
    check_rank("addr", "vec1", vec1, 1)
    check_rank("addr", "vec2", vec2, 1)
    shape = (vec1.shape[0], vec2.shape[0])
    if broadcast_shapes("addr", shape, tuple(input.shape)) != shape:
        fail(ShapeError, "addr", f"an input of shape {tuple(input.shape)} does not fit {shape}.")
    return F._addr(input, vec1.unsqueeze(-1), vec2, beta, alpha)
