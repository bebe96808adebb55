"""Eigenvalues: linalg.eig, eigvals, eigh, eigvalsh. Knows shapes and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import fail
from ..core.layout import Spec
from ..core.mode import mode
from .linalg_checks import absent, check_float, check_square
from .linalg_svd import check_phase
from .matmul import adjoint, conjugate
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Tensor

_EIG = results("linalg_eig", "eigenvalues", "eigenvectors")
_EIGH = results("linalg_eigh", "eigenvalues", "eigenvectors")


def _inner(g_values: Tensor | None, projected: Tensor, values: Tensor) -> Tensor:
    """`projected / (l_j - l_i)`, and the gradient of the values on the diagonal."""
    gap = conjugate(values.unsqueeze(-2) - values.unsqueeze(-1))
    on = F.diag_embed(F.ones_like(values))
    off = projected / (gap + on)
    return F.where(on != 0, 0 if g_values is None else g_values.unsqueeze(-1), off)


def _grad_eigh(c: Context, g_values: Tensor | None, g_vectors: Tensor | None) -> Tensor:
    values, v = c.out0, c.out1
    if absent(g_vectors):
        if g_values is None:
            return F.zeros_like(v)
        return F.matmul(v * g_values.unsqueeze(-2), adjoint(v))
    projected = F.matmul(adjoint(v), g_vectors)
    if v.dtype.is_complex:
        check_phase("linalg.eigh", *_phase(projected))
    # Half of the difference makes the gradient Hermitian, like the matrices.
    inner = _inner(g_values, (projected - adjoint(projected)) / 2, values)
    return F.matmul(v, F.matmul(inner, adjoint(v)))


def _phase(projected: Tensor) -> tuple[Any, Any]:
    on = F.imag(F.diagonal(projected, 0, -2, -1))
    return on, F.zeros_like(on)


def _infer_eigh(a: Spec, uplo: str, vectors: bool) -> tuple[Spec, Spec]:
    check_square("linalg.eigh", a)
    check_float("linalg.eigh", a, lacks="all")
    values = a.like(a.shape[:-1], dtype=a.dtype.to_real())
    return values, a.like(a.shape if vectors else (0,))


structured(
    "_eigh(Tensor input, str uplo, bool vectors)",
    batch="same",
    infer=_infer_eigh,
    grad={"input": _grad_eigh},
    partial=True,
    n_out=2,
    doc="Real eigenvalues, rising, and orthonormal eigenvectors of Hermitian matrices.",
)


def _grad_eig(c: Context, g_values: Tensor | None, g_vectors: Tensor | None) -> Tensor:
    """`V^-H (diag(g_l) + (V^H g_V - V^H V diag(re(V^H g_V))) / gap*) V^H`, for unit vectors."""
    values, v = c.out0, c.out1
    if absent(g_vectors):
        if g_values is None:
            return F.zeros_like(v)
        inner = g_values.unsqueeze(-1) * adjoint(v)
        return F._solve(adjoint(v), inner)[0]
    projected = F.matmul(adjoint(v), g_vectors)
    check_phase("linalg.eig", *_phase(projected))
    along = F.real(F.diagonal(projected, 0, -2, -1)).unsqueeze(-2)
    projected = projected - F.matmul(adjoint(v), v * along)
    inner = _inner(g_values, projected, values)
    return F._solve(adjoint(v), F.matmul(inner, adjoint(v)))[0]


def _infer_eig(a: Spec, vectors: bool) -> tuple[Spec, Spec]:
    check_square("linalg.eig", a)
    check_float("linalg.eig", a)
    kind = a.dtype.to_complex()
    return a.like(a.shape[:-1], dtype=kind), a.like(a.shape if vectors else (0,), dtype=kind)


structured(
    "_eig(Tensor input, bool vectors)",
    batch="same",
    infer=_infer_eig,
    grad={"input": _grad_eig},
    partial=True,
    n_out=2,
    doc="Complex eigenvalues and eigenvectors of length 1 of square matrices.",
)


def _recorded(x: Tensor) -> bool:
    """Whether a gradient may be asked for, which takes the vectors."""
    return (mode.grad and x._rg) or x._differentiated


def _check_uplo(op: str, uplo: str) -> str:
    if not isinstance(uplo, str) or uplo.upper() not in ("L", "U"):
        fail(RuntimeError, op, f"UPLO must be 'L' or 'U', got {uplo!r}.")
    return uplo.upper()


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def eig(input: Tensor) -> Any:
    """Eigenvalues and eigenvectors with `input @ V = V @ diag(L)`; both complex.

    >>> votive.linalg.eig(votive.tensor([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    return _EIG(*F._eig(input, True))


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def eigvals(input: Tensor) -> Tensor:
    """The complex eigenvalues, in no particular order.

    >>> votive.linalg.eigvals(votive.tensor([[0.0, -1.0], [1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
    return F._eig(input, _recorded(input))[0]


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def eigh(input: Tensor, UPLO: str = "L") -> Any:
    """Real eigenvalues, rising, and orthonormal eigenvectors of Hermitian matrices.

    Only the triangle that `UPLO` names is read.

    >>> votive.linalg.eigh(votive.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return _EIGH(*F._eigh(input, _check_uplo("linalg.eigh", UPLO), True))


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """The real eigenvalues of Hermitian matrices, rising.

    >>> votive.linalg.eigvalsh(votive.tensor([[2.0, 0.0], [0.0, 1.0]]))
    tensor([1., 2.])
    """
    return F._eigh(input, _check_uplo("linalg.eigvalsh", UPLO), _recorded(input))[0]
