"""Leading singular vectors of large matrices by random projection: svd_lowrank, pca_lowrank."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.errors import fail
from .linalg_checks import check_float, check_matrix
from .linalg_qr import linalg_qr
from .linalg_svd import linalg_svd
from .matmul import adjoint
from .registry import F, composite

if TYPE_CHECKING:
    from .types import Tensor


def _basis(a: Tensor, q: int, niter: int) -> Tensor:
    """Columns that span nearly what the leading q left singular vectors do.

    Halko, Martinsson, Tropp, "Finding structure with randomness" (2009), algorithm 4.4.
    """
    found = linalg_qr(F.matmul(a, F.randn(a.shape[-1], q, dtype=a.dtype, device=a.device))).Q
    for _ in range(niter):
        found = linalg_qr(F.matmul(adjoint(a), found)).Q
        found = linalg_qr(F.matmul(a, found)).Q
    return found


@composite(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, ...]:
    """U, S and V of the leading q singular values of A (less M), found by random projection.

    >>> votive.svd_lowrank(votive.tensor([[3.0, 0.0], [0.0, 0.0]]), q=1)[1]
    tensor([3.])
    """
    check_matrix("svd_lowrank", A._spec, "A")
    check_float("svd_lowrank", A._spec)
    a = A if M is None else A - M
    wide = a.shape[-2] < a.shape[-1]
    if wide:
        a = adjoint(a)
    found = _basis(a, 6 if q is None else q, 2 if niter is None else niter)
    u, s, vh = linalg_svd(F.matmul(adjoint(found), a), full_matrices=False)
    u, v = F.matmul(found, u), adjoint(vh)
    return (v, s, u) if wide else (u, s, v)


@composite(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, ...]:
    """U, S and V of the leading q principal components of A's rows; their mean is taken off first.

    >>> votive.pca_lowrank(votive.tensor([[1.0, 5.0], [3.0, 5.0]]), q=1)[1]
    tensor([1.4142])
    """
    op = "pca_lowrank"
    check_matrix(op, A._spec, "A")
    check_float(op, A._spec)
    most = min(A.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most:
        fail(ValueError, op, f"q must lie in 0..{most}, got {q}.")
    if niter < 0:
        fail(ValueError, op, f"niter must not be negative, got {niter}.")
    return svd_lowrank(A - F.mean(A, -2, True) if center else A, q, niter)
