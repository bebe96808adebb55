"""LDL factors of symmetric matrices: linalg.ldl_factor, ldl_solve. Knows shapes, no kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, MissingGradientError, ShapeError, fail
from ..core.layout import Spec
from .linalg_checks import check_float, check_square, check_system, require
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Tensor

_FACTOR = results("linalg_ldl_factor", "LD", "pivots")
_FACTOR_EX = results("linalg_ldl_factor_ex", "LD", "pivots", "info")


def _infer_factor(a: Spec, hermitian: bool) -> tuple[Spec, Spec, Spec]:
    check_square("linalg.ldl_factor", a)
    check_float("linalg.ldl_factor", a)
    pivots = a.like(a.shape[:-1], dtype=dt.int32)
    return a.like(a.shape), pivots, a.like(a.shape[:-2], dtype=dt.int32)


def _grad_factor(c: Context, *gs: Any) -> Any:
    fail(MissingGradientError, "linalg.ldl_factor", "has no gradient; use linalg.solve.")


def _grad_solve(c: Context, g: Tensor) -> Any:
    fail(MissingGradientError, "linalg.ldl_solve", "has no gradient; use linalg.solve.")


structured(
    "_ldl_factor(Tensor input, bool hermitian)",
    batch="same",
    infer=_infer_factor,
    grad={"input": _grad_factor},
    n_out=3,
    doc="L and D of `A = L D L^T` in one matrix, pivots, and the first zero block of D, or 0.",
)


def _zero_block(code: int) -> str:
    return f"D[{code},{code}] is zero: the matrix is singular."


@composite(namespaces=("linalg",), method=False, out=True)
def ldl_factor(input: Tensor, *, hermitian: bool = False) -> Any:
    """The factors of `input = L D L^T` (`L^H` if `hermitian`) in one matrix, and the pivots.

    L has ones on its diagonal; D has blocks of size 1, or 2 where two pivots are negative. Reads
    the lower triangle.

    >>> votive.linalg.ldl_factor(votive.tensor([[2.0, 1.0], [1.0, 3.0]])).LD
    tensor([[2.0000, 0.0000],
            [0.5000, 2.5000]])
    """
    factors, pivots, info = F._ldl_factor(input, hermitian)
    require("linalg.ldl_factor", info, _zero_block)
    return _FACTOR(factors, pivots)


@composite(namespaces=("linalg",), method=False, out=True)
def ldl_factor_ex(input: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """Like `linalg.ldl_factor`, but tells of singular matrices by `info` instead of raising.

    >>> votive.linalg.ldl_factor_ex(votive.zeros(2, 2)).info
    tensor(1, dtype=votive.int32)
    """
    factors, pivots, info = F._ldl_factor(input, hermitian)
    if check_errors:
        require("linalg.ldl_factor_ex", info, _zero_block)
    return _FACTOR_EX(factors, pivots, info)


def _infer_solve(ld: Spec, pivots: Spec, b: Spec, hermitian: bool) -> Spec:
    op = "linalg.ldl_solve"
    _, shape = check_system(op, ld, b)
    check_float(op, ld)
    if pivots.shape != ld.shape[:-1]:
        fail(ShapeError, op, f"pivots of shape {pivots.shape} do not fit factors {ld.shape}.")
    if pivots.dtype.category != dt.INT:
        fail(DtypeError, op, f"pivots must be integers, got {pivots.dtype}.")
    return b.like(shape)


structured(
    "_ldl_solve(Tensor LD, Tensor pivots, Tensor B, bool hermitian)",
    infer=_infer_solve,
    grad={"LD": _grad_solve, "pivots": None, "B": _grad_solve},
    doc="X with `A X = B` for the A that `ldl_factor` factored.",
)


@composite(namespaces=("linalg",), method=False, out=True)
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with `A @ X = B` for the A that `linalg.ldl_factor` factored.

    >>> ld, pivots = votive.linalg.ldl_factor(votive.tensor([[2.0, 0.0], [0.0, 4.0]]))
    >>> votive.linalg.ldl_solve(ld, pivots, votive.tensor([[2.0], [2.0]]))
    tensor([[1.0000],
            [0.5000]])
    """
    return F._ldl_solve(LD, pivots, B, hermitian)
