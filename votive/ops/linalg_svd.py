"""Singular values: linalg.svd, svdvals, svd. Knows shapes and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import AutogradError, fail
from ..core.layout import Spec
from ..core.mode import mode
from .linalg_checks import absent, check_float, check_matrix
from .matmul import adjoint
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Tensor

_LINALG_SVD = results("linalg_svd", "U", "S", "Vh")
_SVD = results("svd", "U", "S", "V")


def _infer(a: Spec, full: bool, vectors: bool) -> tuple[Spec, Spec, Spec]:
    check_matrix("linalg.svd", a, "A")
    check_float("linalg.svd", a)
    *batch, m, n = a.shape
    k = min(m, n)
    s = a.like((*batch, k), dtype=a.dtype.to_real())
    if not vectors:
        return a.like((0,)), s, a.like((0,))
    u = a.like((*batch, m, m if full else k))
    return u, s, a.like((*batch, n if full else k, n))


def _skew(x: Tensor) -> Tensor:
    return x - adjoint(x)


def check_phase(op: str, first: Tensor, second: Tensor) -> None:
    """Raise when a loss depends on the phase of complex vectors, which is arbitrary."""
    if not F.allclose(first, second, rtol=1e-2, atol=1e-2):
        fail(
            AutogradError,
            op,
            "complex vectors are unique only up to a phase e^(i phi), and the loss depends on it: "
            "its gradient has no meaning; use a loss that does not, such as one of U @ Vh.",
        )


def _inner(g_u: Tensor | None, g_vh: Tensor | None, u: Tensor, s: Tensor, vh: Tensor) -> Tensor:
    """The gradient by `U^H A V` of what U and Vh are used for; None stands for unused."""
    skew_u = None if g_u is None else _skew(F.matmul(adjoint(u), g_u))
    skew_v = None if g_vh is None else _skew(F.matmul(vh, adjoint(g_vh)))
    if u.dtype.is_complex:
        zero = F.zeros_like(s)
        first, second = (zero if x is None else F.imag(F.diagonal(x, 0, -2, -1)) for x in (skew_u, skew_v))
        check_phase("linalg.svd", first, -second)
    square = s * s
    gap = square.unsqueeze(-2) - square.unsqueeze(-1)
    gap = gap + F.diag_embed(F.ones_like(s))
    total: Any = 0
    if skew_u is not None:
        total = skew_u * s.unsqueeze(-2)
    if skew_v is not None:
        total = total + s.unsqueeze(-1) * skew_v
    total = total / gap
    if u.dtype.is_complex and skew_u is not None and skew_v is not None:
        total = total + F.diag_embed(F.diagonal(skew_u, 0, -2, -1) / (2 * s))
    return total


def _backward(g_u: Tensor | None, g_s: Tensor | None, g_vh: Tensor | None, u: Tensor, s: Tensor, vh: Tensor) -> Tensor:
    """Townsend, "Differentiating the singular value decomposition" (2016), with complex phases."""
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    if g_u is None and g_vh is None:
        return F.matmul(u * (F.zeros_like(s) if g_s is None else g_s).unsqueeze(-2), vh)
    inner = _inner(g_u, g_vh, u, s, vh)
    if g_s is not None:
        inner = inner + F.diag_embed(g_s)
    if m > k and g_u is not None:
        # The part of g_u outside of the span of U.
        rest = g_u / s.unsqueeze(-2)
        rest = rest - F.matmul(u, F.matmul(adjoint(u), rest))
        return F.matmul(F.matmul(u, inner) + rest, vh)
    if n > k and g_vh is not None:
        rest = g_vh / s.unsqueeze(-1)
        rest = rest - F.matmul(F.matmul(rest, adjoint(vh)), vh)
        return F.matmul(u, F.matmul(inner, vh) + rest)
    return F.matmul(u, F.matmul(inner, vh))


def _grad(c: Context, g_u: Tensor | None, g_s: Tensor | None, g_vh: Tensor | None) -> Tensor:
    u, s, vh = c.out0, c.out1, c.out2
    k = s.shape[-1]
    if c.full:
        # What lies outside of the leading k vectors is arbitrary; nothing may depend on it.
        u, vh = F.narrow(u, -1, 0, k), F.narrow(vh, -2, 0, k)
        g_u = None if g_u is None else F.narrow(g_u, -1, 0, k)
        g_vh = None if g_vh is None else F.narrow(g_vh, -2, 0, k)
    return _backward(None if absent(g_u) else g_u, g_s, None if absent(g_vh) else g_vh, u, s, vh)


structured(
    "_svd(Tensor A, bool full, bool vectors)",
    batch="same",
    infer=_infer,
    grad={"A": _grad},
    partial=True,
    n_out=3,
    doc="U, S and V^H with `A = U diag(S) V^H`; without `vectors` only S.",
)


def _check_driver(driver: str | None) -> None:
    if driver is not None:
        fail(RuntimeError, "linalg.svd", f"driver is for CUDA only, got {driver!r}; use None.")


@composite(namespaces=("linalg",), name="svd", method=False, out=True, autocast={"cpu": "float32"})
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """U, S and Vh with `A = U @ diag(S) @ Vh`: orthonormal columns and rows, S falling.

    >>> votive.linalg.svd(votive.tensor([[0.0, 3.0], [2.0, 0.0]])).S
    tensor([3., 2.])
    """
    _check_driver(driver)
    return _LINALG_SVD(*F._svd(A, full_matrices, True))


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, falling.

    >>> votive.linalg.svdvals(votive.tensor([[0.0, 3.0], [2.0, 0.0]]))
    tensor([3., 2.])
    """
    _check_driver(driver)
    # The gradient needs the vectors; without one they would be made for nothing.
    return F._svd(A, False, (mode.grad and A._rg) or A._differentiated)[1]


@composite(out=True, autocast={"cpu": "float32"})
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """U, S and V with `input = U @ diag(S) @ V^H`; see linalg.svd. `some`: only vectors for S.

    >>> votive.svd(votive.tensor([[0.0, 3.0], [2.0, 0.0]])).S
    tensor([3., 2.])
    """
    check_matrix("svd", input._spec)
    if compute_uv:
        u, s, vh = F._svd(input, not some, True)
        return _SVD(u, s, adjoint(vh))
    *batch, m, n = input.shape
    u, v = (F.zeros((*batch, k, k), dtype=input.dtype, device=input.device) for k in (m, n))
    return _SVD(u, svdvals(input), v)
