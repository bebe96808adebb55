"""Linear algebra with NumPy's names, over votive's decompositions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy

from .. import linalg as L
from ..core import dtype as dt
from ..ops.registry import F
from .convert import Tensor, cast, ndarray, result, tensors, to_tensor, truth, wrap
from .element_types import FLOAT64
from .layout import axis_of
from .manipulation import matrix_transpose
from .norms import _matrix_norm, matrix_norm, norm, vector_norm
from .products import _conj, matmul, product, tensordot
from .products import cross as _cross
from .products import diagonal as _diagonal
from .products import outer as _outer
from .products import trace as _trace
from .products import vecdot as _vecdot

__all__ = ["LinAlgError", "matmul", "matrix_norm", "matrix_transpose", "norm", "tensordot", "vector_norm"]
LinAlgError = numpy.linalg.LinAlgError


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of a symmetric matrix."""

    eigenvalues: ndarray
    eigenvectors: ndarray


class QRResult(NamedTuple):
    """An orthogonal and an upper triangular matrix."""

    Q: ndarray
    R: ndarray


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its size."""

    sign: ndarray
    logabsdet: ndarray


class SVDResult(NamedTuple):
    """Left vectors, singular values and right vectors."""

    U: ndarray
    S: ndarray
    Vh: ndarray


def _matrix(a: Any, square: bool = False) -> Tensor:
    t = to_tensor(a)
    if t.ndim < 2:
        raise LinAlgError(f"{t.ndim}-dimensional array given. Array must be at least two-dimensional")
    if square and t.shape[-1] != t.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    return _inexact(t)


def _inexact(t: Tensor) -> Tensor:
    if t.dtype.category in (dt.INT, dt.BOOL):
        return cast(t, FLOAT64)
    if t.dtype in dt.HALF:
        raise TypeError(f"array type {t.dtype.name} is unsupported in linalg")
    return t


def _run(fn: Any, *args: Any, **options: Any) -> Any:
    try:
        return fn(*args, **options)
    except L.LinAlgError as problem:
        raise LinAlgError(str(problem)) from None


def inv(a: Any) -> ndarray:
    """The inverse of matrices.

    >>> votive.np.linalg.inv([[2.0]])
    array([[0.5]])
    """
    return wrap(_run(L.inv, _matrix(a, True)))


def det(a: Any) -> Any:
    """The determinant."""
    return result(L.det(_matrix(a, True)))


def slogdet(a: Any) -> SlogdetResult:
    """Sign and logarithm of the determinant."""
    sign, log = L.slogdet(_matrix(a, True))
    return SlogdetResult(result(sign), result(log))


def solve(a: Any, b: Any) -> ndarray:
    """Solutions of linear systems; `b` with one dimension is a vector.

    >>> votive.np.linalg.solve([[2.0, 0], [0, 4]], [2.0, 8])
    array([1., 2.])
    """
    x, y = (_inexact(t) for t in tensors(a, b))
    _matrix(x, True)
    if y.ndim == 0 or y.shape[0 if y.ndim == 1 else -2] != x.shape[-1]:
        raise ValueError(f"solve: matrices of shape {tuple(x.shape)} and right sides of shape {tuple(y.shape)}")
    if y.ndim == 1:
        return wrap(_run(L.solve, x, y.unsqueeze(-1)).squeeze(-1))
    return wrap(_run(L.solve, x, y))


def cholesky(a: Any, /, *, upper: bool = False) -> ndarray:
    """The triangular matrix whose product with its adjoint is `a`."""
    return wrap(_run(L.cholesky, _matrix(a, True), upper=upper))


def qr(a: Any, mode: str = "reduced") -> Any:
    """An orthogonal and a triangular factor."""
    if mode == "raw":
        raise NotImplementedError("qr: mode='raw' gives LAPACK's reflectors; use 'reduced', 'complete' or 'r'.")
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    q, r = L.qr(_matrix(a), mode="reduced" if mode == "r" else mode)
    return wrap(r) if mode == "r" else QRResult(wrap(q), wrap(r))


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """The singular value decomposition."""
    t = _matrix(a)
    if not compute_uv:
        return wrap(L.svdvals(t))
    u, s, vh = _run(L.svd, t, full_matrices=full_matrices)
    return SVDResult(wrap(u), wrap(s), wrap(vh))


def svdvals(x: Any, /) -> ndarray:
    """Singular values, largest first."""
    return wrap(L.svdvals(_matrix(x)))


def eig(a: Any) -> EigResult:
    """Eigenvalues and vectors of any square matrix; real where all of them are, as in NumPy."""
    t = _matrix(a, True)
    values, vectors = _run(L.eig, t)
    if not t.dtype.is_complex and not bool(F.ne(F.imag(values.detach()), 0).any()):
        values, vectors = F.real(values), F.real(vectors)
    return EigResult(wrap(values), wrap(vectors))


def eigvals(a: Any) -> ndarray:
    """Eigenvalues of any square matrix; real where all of them are, as in NumPy."""
    t = _matrix(a, True)
    values = _run(L.eigvals, t)
    if not t.dtype.is_complex and not bool(F.ne(F.imag(values.detach()), 0).any()):
        values = F.real(values)
    return wrap(values)


def _uplo(UPLO: str) -> str:
    if UPLO.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return UPLO.upper()


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """Eigenvalues and vectors of symmetric or Hermitian matrices."""
    values, vectors = _run(L.eigh, _matrix(a, True), UPLO=_uplo(UPLO))
    return EighResult(wrap(values), wrap(vectors))


def eigvalsh(a: Any, UPLO: str = "L") -> ndarray:
    """Eigenvalues of symmetric or Hermitian matrices."""
    return wrap(_run(L.eigvalsh, _matrix(a, True), UPLO=_uplo(UPLO)))


def _tolerance(s: Tensor, rtol: Any, shape: Any) -> Tensor:
    largest = F.amax(s, [-1], keepdim=True) if s.shape[-1] else s
    if rtol is None:
        rtol = max(shape[-2:]) * numpy.finfo(s.dtype.np).eps
    limit = to_tensor(rtol, s.dtype.np, s.device)
    return largest * (limit.unsqueeze(-1) if limit.ndim else limit)


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """How many singular values are not negligible."""
    t = to_tensor(A)
    if t.ndim < 2:
        return result(truth(t).any().to(dt.int64))
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    s = L.svdvals(_inexact(t).detach())
    if tol is not None:
        limit = to_tensor(tol, s.dtype.np, s.device)
        limit = limit.unsqueeze(-1) if limit.ndim else limit
    elif s.shape[-1] == 0:
        return result(F.zeros(tuple(s.shape[:-1]), dtype=dt.int64, device=s.device))
    else:
        limit = _tolerance(s, rtol, t.shape)
    return result(F.sum(F.gt(s, limit), [-1]))


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> ndarray:
    """The Moore-Penrose inverse."""
    t = _matrix(a)
    if rcond is not None and rtol is not None:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    cut = rcond if rcond is not None else rtol
    if t.numel() == 0:
        return wrap(F.zeros((*t.shape[:-2], t.shape[-1], t.shape[-2]), dtype=t.dtype, device=t.device))
    u, s, vh = _run(L.svd, t, full_matrices=False)
    large = F.gt(s, _tolerance(s, cut, t.shape))
    inverse = F.where(large, F.reciprocal(F.where(large, s, F.ones_like(s))), F.zeros_like(s))
    left = _conj(vh).transpose(-1, -2) * inverse.unsqueeze(-2)
    return wrap(F.matmul(left, _conj(u).transpose(-1, -2)))


def matrix_power(a: Any, n: int) -> ndarray:
    """A square matrix to an integer power."""
    t = to_tensor(a)
    if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise LinAlgError("Last 2 dimensions of the array must be square")
    if isinstance(n, float) or not hasattr(n, "__index__"):
        raise TypeError("exponent must be an integer")
    if n < 0:
        t, n = inv(t).tensor, -n
    out = cast(F.eye(t.shape[-1], device=t.device), t.dtype.np).expand(tuple(t.shape)).clone()
    while n:
        if n & 1:
            out = product(out, t)
        n >>= 1
        if n:
            t = product(t, t)
    return wrap(out)


def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of several matrices in the cheapest order."""
    ts = tensors(*arrays)
    if len(ts) < 2:
        raise ValueError("Expecting at least two arrays.")
    value = L.multi_dot(ts) if ts[0].dtype.is_inexact else ts[0]
    if not ts[0].dtype.is_inexact:
        for t in ts[1:]:
            value = product(value, t)
    from .reductions import finished

    return finished("matmul", value, out)


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """Least squares: solution, residuals, rank and singular values."""
    x, y = (_inexact(t) for t in tensors(a, b))
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        raise LinAlgError("Incompatible dimensions")
    right = y.unsqueeze(1) if y.ndim == 1 else y
    s = L.svdvals(x)
    cut = (
        numpy.finfo(x.dtype.to_real().np).eps * (max(x.shape) if rcond is None else 1) if rcond in (None, -1) else rcond
    )
    found = F.matmul(pinv(x, cut).tensor, right)
    count = F.sum(F.gt(s.detach(), _tolerance(s.detach(), cut, x.shape)))
    rank = int(count.item())
    left = right - F.matmul(x, found)
    squares = F.real(left * _conj(left)).sum(0) if left.dtype.is_complex else (left * left).sum(0)
    residuals = squares if rank == x.shape[1] and x.shape[0] > x.shape[1] else squares[:0]
    return wrap(found.squeeze(1) if y.ndim == 1 else found), wrap(residuals), result(cast(count, "int32")), wrap(s)


def tensorinv(a: Any, ind: int = 2) -> ndarray:
    """The inverse of an array under `tensordot`."""
    t = _inexact(to_tensor(a))
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    return wrap(_run(L.tensorinv, t, ind))


def tensorsolve(a: Any, b: Any, axes: Any = None) -> ndarray:
    """The array whose `tensordot` with `a` gives `b`."""
    x, y = (_inexact(t) for t in tensors(a, b))
    if axes is not None:
        rest = [i for i in range(x.ndim) if i not in [k % x.ndim for k in axes]]
        x = x.permute(*rest, *[k % x.ndim for k in axes])
    shape = tuple(x.shape[y.ndim :])
    n = int(numpy.prod(shape, dtype=int))
    if x.numel() != n * n:
        raise LinAlgError("Input arrays must satisfy prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])")
    return wrap(_run(L.solve, x.reshape(-1, n), y.reshape(-1, 1)).reshape(shape))


def cond(x: Any, p: Any = None) -> Any:
    """The condition number."""
    t = _matrix(x)
    if t.numel() == 0:
        raise LinAlgError("cond is not defined on empty arrays")
    if p in (None, 2, -2):
        s = L.svdvals(t)
        return result(s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1])
    _matrix(t, True)
    axes = (t.ndim - 2, t.ndim - 1)
    inverse = L.inv_ex(t)
    other = F.where((inverse[1] != 0).reshape((*t.shape[:-2], 1, 1)), math.inf, inverse[0])
    return result(_matrix_norm(t, p, axes, False) * _matrix_norm(other, p, axes, False))


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> ndarray:
    """The cross product of vectors of three numbers."""
    a, b = tensors(x1, x2)
    if a.shape[axis_of(axis, a.ndim)] != 3 or b.shape[axis_of(axis, b.ndim)] != 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors")
    return _cross(a, b, axis=axis)


def diagonal(x: Any, /, *, offset: int = 0) -> ndarray:
    """Diagonals of the matrices in the last two axes."""
    return _diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Sums of the diagonals of the matrices in the last two axes."""
    return _trace(x, offset, -2, -1, dtype)


def outer(x1: Any, x2: Any, /) -> ndarray:
    """The products of all pairs of two vectors."""
    if to_tensor(x1).ndim != 1 or to_tensor(x2).ndim != 1:
        raise ValueError("Input arrays must be one-dimensional")
    return _outer(x1, x2)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Dot products of vectors along an axis, the first ones conjugated."""
    return _vecdot(x1, x2, axis=axis)
