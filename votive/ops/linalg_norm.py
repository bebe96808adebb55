"""Norms of matrices: linalg.norm, matrix_norm, cond, matrix_rank. Written with other operators."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import wrap_dim
from .linalg_checks import check_float, check_matrix, check_square
from .linalg_eig import eigvalsh
from .linalg_svd import svdvals
from .registry import F, composite
from .schema import is_tensor
from .vector_norm import _as_type, vector_norm

if TYPE_CHECKING:
    from .types import Ints, Operand, Tensor, dtype


def _two_dims(op: str, dim: Ints, ndim: int) -> tuple[int, int]:
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"{op}: dim must be a tuple of two integers, got {dim!r}.")
    if len(dim) != 2:
        fail(ShapeError, op, f"dim must name two dimensions, got {dim}.")
    a, b = (wrap_dim(op, d, ndim) for d in dim)
    if a == b:
        fail(ShapeError, op, f"the two dimensions must differ, got dim={tuple(dim)}.")
    return a, b


def _singular(x: Tensor, dims: tuple[int, int]) -> Tensor:
    return svdvals(F.movedim(x, dims, (-2, -1)))


def _kept(x: Tensor, dims: tuple[int, int], keepdim: bool) -> Tensor:
    """The two dimensions that are gone come back with size 1."""
    for d in sorted(dims) if keepdim else ():
        x = F.unsqueeze(x, d)
    return x


def _extreme(x: Tensor, dim: int, largest: bool, keepdim: bool) -> Tensor:
    """amax or amin; of no elements the largest norm is 0, and there is no smallest."""
    if x.shape[dim] == 0 and largest:
        return F.sum(x, dim, keepdim)
    return (F.amax if largest else F.amin)(x, dim, keepdim)


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cuda": "float32"})
def matrix_norm(
    input: Tensor, ord: float | str = "fro", dim: Ints = (-2, -1), keepdim: bool = False, *, dtype: dtype | None = None
) -> Tensor:
    """The norm of matrices: 'fro', 'nuc' (sum of singular values), 2 and -2 (largest and smallest),
    1 and -1 (largest and smallest sum of a column's moduli), inf and -inf (of a row's).

    >>> votive.linalg.matrix_norm(votive.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6.)
    """
    op = "linalg.matrix_norm"
    check_matrix(op, input._spec)
    check_float(op, input._spec, half=True)
    if isinstance(ord, complex):
        fail(DtypeError, op, f"ord must be a real number, got {ord}.")
    if ord is None:
        raise TypeError(f"{op}: ord must be a number, 'fro' or 'nuc', got None.")
    a, b = _two_dims(op, dim, input.ndim)
    if ord == "fro":
        return vector_norm(input, 2, (a, b), keepdim, dtype=dtype)
    x = _as_type(op, input, dtype)
    if ord == "nuc":
        check_float(op, x._spec, lacks="none")
        return _kept(F.sum(_singular(x, (a, b)), -1), (a, b), keepdim)
    if isinstance(ord, str) or abs(ord) not in (1, 2, math.inf):
        fail(RuntimeError, op, f"ord must be 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {ord!r}.")
    if abs(ord) == 2:
        check_float(op, x._spec, lacks="none")
        return _kept(_extreme(_singular(x, (a, b)), -1, ord > 0, False), (a, b), keepdim)
    if abs(ord) == math.inf:
        a, b = b, a
    sums = vector_norm(x, 1, a, True)
    result = _extreme(sums, b, ord > 0, True)
    return result if keepdim else F.squeeze(result, (a, b))


@composite(namespaces=("linalg",), name="norm", method=False, out=True)
def linalg_norm(
    input: Tensor,
    ord: float | str | None = None,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    dtype: dtype | None = None,
) -> Tensor:
    """The norm of a vector (see linalg.vector_norm) or a matrix (see linalg.matrix_norm).

    One dimension makes a vector, two a matrix. Without `ord`, the root of the sum of squares.

    >>> votive.linalg.norm(votive.tensor([3.0, 4.0]))
    tensor(5.)
    """
    op = "linalg.norm"
    if isinstance(dim, int):
        dim = (dim,)
    if dim is not None and len(dim) not in (1, 2):
        fail(ShapeError, op, f"dim must name one or two dimensions, got {tuple(dim)}.")
    if ord is not None and dim is None and input.ndim not in (1, 2):
        fail(ShapeError, op, f"ord without dim takes 1 or 2 dimensions, got {input._spec.shape}.")
    if ord is None:
        return vector_norm(input, 2, dim, keepdim, dtype=dtype)
    if isinstance(ord, str) or (input.ndim if dim is None else len(dim)) == 2:
        return matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, ord, dim, keepdim, dtype=dtype)


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def cond(input: Tensor, p: float | str | None = None) -> Tensor:
    """The condition number `norm(input) * norm(inverse)` in the matrix norm p; None means 2.

    >>> votive.linalg.cond(votive.tensor([[4.0, 0.0], [0.0, 2.0]]))
    tensor(2.)
    """
    op = "linalg.cond"
    check_matrix(op, input._spec)
    if p is None or p in (2, -2):
        if input.numel() == 0:
            return _zeros(input)
        s = svdvals(input)
        first, last = F.select(s, -1, 0), F.select(s, -1, -1)
        return last / first if p == -2 else first / last
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        fail(RuntimeError, op, f"p must be 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2, got {p!r}.")
    check_square(op, input._spec)
    if input.numel() == 0:
        return _zeros(input)
    if p == "nuc":  # by the values themselves: the inverse may hold infinities
        s = svdvals(input)
        return F.sum(s, -1) * F.sum(1 / s, -1)
    inverse, info = F._inv(input)
    return F.where(info > 0, math.inf, matrix_norm(input, p) * matrix_norm(inverse, p))


def _zeros(x: Tensor) -> Tensor:
    return F.zeros(tuple(x.shape)[:-2], dtype=x.dtype.to_real(), device=x.device)


def tolerances(op: str, x: Tensor, atol: Operand | None, rtol: Operand | None) -> tuple[Operand, Operand]:
    """Absolute and relative tolerance of singular values; by default the rounding error of x."""
    for tol in (atol, rtol):
        if is_tensor(tol) and tol.dtype.is_complex:
            fail(DtypeError, op, f"tolerances must be real, got {tol.dtype}.")
    if rtol is None:
        usual = dt.finfo(x.dtype).eps * max(x.shape[-2:])
        if is_tensor(atol):
            rtol = F.where(atol > 0, 0.0, usual)
        else:
            rtol = 0.0 if atol else usual
    return 0.0 if atol is None else atol, rtol


def cut(values: Tensor, atol: Operand, rtol: Operand) -> Tensor:
    """What counts as zero among values >= 0: `max(atol, rtol * largest)`, with the last dim."""
    atol, rtol = (t.unsqueeze(-1) if is_tensor(t) else t for t in (atol, rtol))
    if values.shape[-1] == 0:
        return values
    return F.clamp(rtol * F.amax(values, -1, True), atol)


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def matrix_rank(
    input: Tensor,
    tol: Operand | None = None,
    hermitian: bool = False,
    *,
    atol: Operand | None = None,
    rtol: Operand | None = None,
) -> Tensor:
    """How many singular values are above `max(atol, rtol * largest)`; `tol` is another `atol`.

    >>> votive.linalg.matrix_rank(votive.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    op = "linalg.matrix_rank"
    check_matrix(op, input._spec)
    check_float(op, input._spec, lacks="none" if tol is None else "half")
    if tol is not None:
        atol, rtol = tol, 0.0
    x = input.detach()
    values = F.abs(eigvalsh(x)) if hermitian else svdvals(x)
    atol, rtol = tolerances(op, input, atol, rtol)
    return F.sum(values > cut(values, atol, rtol), -1)
