"""Cholesky factors and what they solve: linalg.cholesky, cholesky_solve, cholesky_inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.layout import Spec
from .linalg_checks import check_float, check_square, check_system, require
from .linalg_triangular import solve_triangular
from .matmul import adjoint
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Tensor

_EX = results("linalg_cholesky_ex", "L", "info")


def _infer_cholesky(a: Spec, upper: bool) -> tuple[Spec, Spec]:
    check_square("linalg.cholesky", a)
    check_float("linalg.cholesky", a)
    return a.like(a.shape), a.like(a.shape[:-2], dtype=dt.int32)


def _grad_cholesky(c: Context, g: Tensor, *_: Any) -> Tensor:
    """`L^-H  P(L^H g)  L^-1`, P: the Hermitian matrix with that lower triangle, halved.

    Murray, "Differentiation of the Cholesky decomposition" (2016), eq. 10.
    """
    low = c.out0
    if c.upper:
        low, g = adjoint(low), adjoint(g)
    inner = F.tril(F.matmul(adjoint(low), g))
    inner = (inner + adjoint(F.tril(inner, -1))) / 2
    inner = F._solve_triangular(adjoint(low), inner, True, False)
    return solve_triangular(low, inner, upper=False, left=False)


structured(
    "_cholesky(Tensor input, bool upper)",
    batch="same",
    infer=_infer_cholesky,
    grad={"input": _grad_cholesky},
    n_out=2,
    doc="L with `A = L L^H`, and the order of the first minor that is not positive, or 0.",
)


def _not_positive(code: int) -> str:
    return f"the matrix is not positive-definite: its minor of order {code} is not positive."


@composite(namespaces=("linalg",), name="cholesky", method=False, out=True, autocast={"cpu": "float32"})
def linalg_cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """L, lower triangular, with `input = L @ L^H`; or its adjoint, if `upper`. Reads one triangle.

    >>> votive.linalg.cholesky(votive.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    factor, info = F._cholesky(input, upper)
    require("linalg.cholesky", info, _not_positive)
    return factor


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Like `linalg.cholesky`, but tells of failure by `info` (0: factored) instead of raising.

    >>> votive.linalg.cholesky_ex(votive.tensor([[1.0, 0.0], [0.0, -1.0]])).info
    tensor(2, dtype=votive.int32)
    """
    factor, info = F._cholesky(input, upper)
    if check_errors:
        require("linalg.cholesky_ex", info, _not_positive)
    return _EX(factor, info)


@composite(out=True, autocast={"cpu": "float32"})
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """L with `input = L @ L^H`; see linalg.cholesky.

    >>> votive.cholesky(votive.tensor([[4.0]]))
    tensor([[2.]])
    """
    check_float("cholesky", input._spec, lacks="all")
    factor, info = F._cholesky(input, upper)
    require("cholesky", info, _not_positive)
    return factor


def _through_factor(factor: Tensor, common: Tensor, upper: bool) -> Tensor:
    """The gradient by a factor, given `common + common^H` of what its product is used for."""
    return -F.matmul(factor, common) if upper else -F.matmul(common, factor)


def _grad_inverse(c: Context, g: Tensor) -> Tensor:
    inverse = c.out
    common = F.matmul(inverse, F.matmul(g + adjoint(g), inverse))
    return _through_factor(c.input, common, c.upper)


structured(
    "_cholesky_inverse(Tensor input, bool upper)",
    batch="same",
    infer=lambda x, upper: x.like(x.shape),
    grad={"input": _grad_inverse},
    doc="The inverse of `L L^H`.",
)


@composite(out=True, autocast={"cpu": "float32"})
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, given its Cholesky factor.

    >>> votive.cholesky_inverse(votive.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([[0.2500, 0.0000],
            [0.0000, 1.0000]])
    """
    check_square("cholesky_inverse", input._spec)
    check_float("cholesky_inverse", input._spec, lacks="all")
    zero = F.diagonal(input, 0, -2, -1).detach() == 0
    if not zero.is_meta and bool(zero.any()):
        first = F.where(zero.any(-1), zero.int().argmax(-1) + 1, 0)
        require(
            "cholesky_inverse",
            first,
            lambda code: f"the matrix is singular: diagonal element {code} of its factor is zero.",
        )
    return F._cholesky_inverse(input, upper)


def _infer_solve(b: Spec, factor: Spec, upper: bool) -> Spec:
    _, shape = check_system("cholesky_solve", factor, b)
    check_float("cholesky_solve", b, lacks="all")
    return b.like(shape)


def _grad_solve(c: Context, g: Tensor) -> tuple[Any, Any]:
    g_b = F._cholesky_solve(g, c.L, c.upper)
    if not c.needs("L"):
        return g_b, None
    common = F.matmul(g_b, adjoint(c.out))
    return g_b, _through_factor(c.L, common + adjoint(common), c.upper)


structured(
    "_cholesky_solve(Tensor B, Tensor L, bool upper)",
    infer=_infer_solve,
    batch="broadcast",
    grad=_grad_solve,
    doc="X with `L L^H X = B`.",
)


@composite(out=True, autocast={"cpu": "float32"})
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """X with `A @ X = input`, given A's Cholesky factor `input2`.

    >>> votive.cholesky_solve(votive.tensor([[8.0]]), votive.tensor([[2.0]]))
    tensor([[2.]])
    """
    return F._cholesky_solve(input, input2, upper)
