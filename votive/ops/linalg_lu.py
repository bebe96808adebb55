"""LU factors: linalg.lu, lu_factor, lu_solve, lu_unpack, lu. Knows shapes and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec
from .linalg_checks import check_float, check_matrix, check_square, check_system, identity, require
from .linalg_triangular import solve_triangular
from .matmul import adjoint
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Tensor

_LU = results("linalg_lu", "P", "L", "U")
_FACTOR = results("linalg_lu_factor", "LU", "pivots")
_FACTOR_EX = results("linalg_lu_factor_ex", "LU", "pivots", "info")
_WITH_INFO = results("_lu_with_info", "LU", "pivots", "info")
_UNPACK = results("lu_unpack", "P", "L", "U")


def _infer_factor(a: Spec) -> tuple[Spec, Spec, Spec]:
    check_matrix("linalg.lu_factor", a, "A")
    check_float("linalg.lu_factor", a, lacks="all")
    *batch, m, n = a.shape
    pivots = a.like((*batch, min(m, n)), dtype=dt.int32)
    return a.like(a.shape), pivots, a.like(tuple(batch), dtype=dt.int32)


def _parts(lu: Tensor) -> tuple[Any, Any]:
    """L with its diagonal of ones and U, out of the packed form."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    low = F.tril(F.narrow(lu, -1, 0, k), -1)
    eye = identity(k, lu)
    if m > k:
        eye = F.cat([eye, F.zeros((m - k, k), dtype=lu.dtype, device=lu.device)], -2)
    return low + eye, F.triu(F.narrow(lu, -2, 0, k))


def _grad_factor(c: Context, g: Tensor, *_: Any) -> Tensor:
    """With L and U, A = P L U; the part of `g` below the diagonal belongs to L, the rest to U.

    Of a tall or wide matrix only the leading square is factored: the rest of L is `A2 U^-1`, the
    rest of U is `L^-1 A2`, and their gradients flow back through those two equations.
    """
    low, up = _parts(c.out0)
    m, n = c.shape("A")[-2:]
    k = min(m, n)
    low1, up1 = F.narrow(low, -2, 0, k), F.narrow(up, -1, 0, k)
    square = F.narrow(F.narrow(g, -2, 0, k), -1, 0, k)
    to_low = F.matmul(adjoint(low1), F.tril(square, -1))
    to_up = F.matmul(F.triu(square), adjoint(up1))
    if n > k:
        wide = F.narrow(g, -1, k, n - k)
        to_low = to_low - F.matmul(wide, adjoint(F.narrow(up, -1, k, n - k)))
    if m > k:
        tall = F.narrow(g, -2, k, m - k)
        to_up = to_up - F.matmul(adjoint(F.narrow(low, -2, k, m - k)), tall)
    inner = F.tril(to_low, -1) + F.triu(to_up)
    inner = solve_triangular(adjoint(up1), inner, upper=False, left=False)
    if n > k:
        inner = F.cat([inner, wide], -1)
    inner = F._solve_triangular(adjoint(low1), inner, True, True)
    if m > k:
        outer = solve_triangular(adjoint(up1), tall, upper=False, left=False)
        inner = F.cat([inner, outer], -2)
    return _permuted(inner, F._row_order(c.out1, m), back=True)


structured(
    "_lu_factor(Tensor A)",
    batch="same",
    infer=_infer_factor,
    grad={"A": _grad_factor},
    n_out=3,
    doc="L and U in one matrix, row swaps counted from 1, and the first zero pivot, or 0.",
)

structured(
    "_row_order(Tensor pivots, int rows)",
    batch="same",
    infer=lambda pivots, rows: pivots.like((*pivots.shape[:-1], rows), dtype=dt.int64),
    differentiable=False,
    doc="Where each row of `P^T A` comes from, given row swaps counted from 1.",
)


def _permuted(x: Tensor, order: Tensor, back: bool = False) -> Tensor:
    """`P^T X`, or `P X` for `back`."""
    if back:
        order = F.argsort(order, -1)
    rows = F.expand(F.unsqueeze(order, -1), (*x.shape[:-1], 1))
    return F.gather(x, -2, F.expand(rows, x.shape))


def _check_pivot(op: str, pivot: bool) -> None:
    if not pivot:
        fail(RuntimeError, op, "factors without pivoting are not implemented; use pivot=True.")


def _zero_pivot(code: int) -> str:
    return f"U[{code},{code}] is zero: the matrix is singular; factor it with linalg.lu_factor_ex."


@composite(namespaces=("linalg",), method=False, out=True)
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """The factors of `A = P L U` in one matrix, L's diagonal of ones left out, and the row swaps.

    >>> votive.linalg.lu_factor(votive.tensor([[1.0, 2.0], [2.0, 2.0]]))
    votive.return_types.linalg_lu_factor(
    LU=tensor([[2.0000, 2.0000],
            [0.5000, 1.0000]]),
    pivots=tensor([2, 2], dtype=votive.int32))
    """
    _check_pivot("linalg.lu_factor", pivot)
    lu, pivots, info = F._lu_factor(A)
    require("linalg.lu_factor", info, _zero_pivot)
    return _FACTOR(lu, pivots)


@composite(namespaces=("linalg",), method=False, out=True)
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Like `linalg.lu_factor`, but tells of singular matrices by `info` instead of raising.

    >>> votive.linalg.lu_factor_ex(votive.zeros(2, 2)).info
    tensor(1, dtype=votive.int32)
    """
    _check_pivot("linalg.lu_factor_ex", pivot)
    lu, pivots, info = F._lu_factor(A)
    if check_errors:
        require("linalg.lu_factor_ex", info, _zero_pivot)
    return _FACTOR_EX(lu, pivots, info)


@composite(namespaces=("linalg",), name="lu", method=False, out=True)
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Any:
    """P, L and U with `A = P @ L @ U`: a permutation, a lower and an upper triangle.

    >>> votive.linalg.lu(votive.tensor([[1.0, 2.0], [2.0, 2.0]])).P
    tensor([[0., 1.],
            [1., 0.]])
    """
    _check_pivot("linalg.lu", pivot)
    lu, pivots, _ = F._lu_factor(A)
    return _LU(*lu_unpack(lu, pivots))


@composite(key="lu", out=True)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """The packed factors and the row swaps of linalg.lu_factor; with `get_infos` also its `info`.

    >>> votive.lu(votive.tensor([[2.0]]))
    (tensor([[2.]]), tensor([1], dtype=votive.int32))
    """
    _check_pivot("lu", pivot)
    factors, pivots, info = F._lu_factor(A)
    if get_infos:
        return _WITH_INFO(factors, pivots, info)
    require("lu", info, _zero_pivot)
    return factors, pivots


def _check_pivots(op: str, lu: Spec, pivots: Spec) -> None:
    if pivots.dtype is not dt.int32:
        fail(DtypeError, op, f"pivots must have dtype votive.int32, got {pivots.dtype}.")
    *batch, m, n = lu.shape
    if pivots.shape != (*batch, min(m, n)):
        fail(ShapeError, op, f"pivots of shape {pivots.shape} do not fit factors {lu.shape}.")


@composite(method=False, out=True)
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """P, L and U out of the packed factors and row swaps of `linalg.lu_factor`.

    >>> lu, pivots = votive.linalg.lu_factor(votive.tensor([[1.0, 2.0], [2.0, 2.0]]))
    >>> votive.lu_unpack(lu, pivots).L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    check_matrix("lu_unpack", LU_data._spec, "LU_data")
    none = F.zeros((0,), dtype=LU_data.dtype, device=LU_data.device)
    # Cut off instead of made, so that they stay in the graph.
    unused = F.clone(F.reshape(LU_data, -1)[:0])
    swap = none
    low, up = _parts(LU_data) if unpack_data else (unused, unused.clone())
    if unpack_pivots:
        _check_pivots("lu_unpack", LU_data._spec, LU_pivots._spec)
        rows = LU_data.shape[-2]
        order = F._row_order(LU_pivots, rows)
        eye = F.expand(identity(rows, none), (*order.shape, rows))
        swap = _permuted(eye, order, back=True)
    return _UNPACK(swap, low, up)


@composite(namespaces=("linalg",), name="lu_solve", method=False, out=True)
def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with `A @ X = B`, or `X @ A = B` if not `left`, for the A that `linalg.lu_factor` factored.

    >>> lu, pivots = votive.linalg.lu_factor(votive.tensor([[0.0, 2.0], [4.0, 0.0]]))
    >>> votive.linalg.lu_solve(lu, pivots, votive.tensor([[2.0], [4.0]]))
    tensor([[1.],
            [1.]])
    """
    check_float("linalg.lu_solve", LU._spec)
    check_square("linalg.lu_solve", LU._spec, "LU")
    check_system("linalg.lu_solve", LU._spec, B._spec, left=left)
    _check_pivots("linalg.lu_solve", LU._spec, pivots._spec)
    order = F._row_order(pivots, LU.shape[-1])
    if not left:  # X A = B is A^H X^H = B^H
        return _adjoint(_solved(LU, order, _adjoint(B), not adjoint))
    return _solved(LU, order, B, adjoint)


_adjoint = adjoint


def _solved(lu: Tensor, order: Tensor, b: Tensor, backwards: bool) -> Tensor:
    """Two substitutions and a permutation: by P L U, or by its adjoint U^H L^H P^T."""
    if not backwards:
        batch = (*lu.shape[:-2], *b.shape[-2:]) if b.ndim < lu.ndim else b.shape
        x = _permuted(F.expand(b, batch), order)
        x = F._solve_triangular(lu, x, False, True)
        return F._solve_triangular(lu, x, True, False)
    x = F._solve_triangular(_adjoint(lu), b, False, False)
    x = F._solve_triangular(_adjoint(lu), x, True, True)
    return _permuted(x, order, back=True)


@composite(out=True, autocast={"cpu": "float32"})
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with `A @ X = input` for the A that `lu_factor` factored; see linalg.lu_solve.

    >>> lu, pivots = votive.linalg.lu_factor(votive.tensor([[2.0]]))
    >>> votive.lu_solve(votive.tensor([[4.0]]), lu, pivots)
    tensor([[2.]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, input)
