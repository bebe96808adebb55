"""Determinants: linalg.det, slogdet, logdet. Knows shapes and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.layout import Spec
from .linalg_checks import check_float, check_square, identity
from .matmul import adjoint, conjugate
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Tensor

_LINALG_SLOGDET = results("linalg_slogdet", "sign", "logabsdet")
_SLOGDET = results("slogdet", "sign", "logabsdet")


def _infer_det(a: Spec) -> Spec:
    check_square("linalg.det", a, "A")
    check_float("linalg.det", a)
    return a.like(a.shape[:-2])


structured(
    "_det(Tensor A)",
    batch="same",
    infer=_infer_det,
    # By the matrix of cofactors, which exists for singular matrices too.
    grad={"A": lambda c, g: g.unsqueeze(-1).unsqueeze(-1) * conjugate(F._cofactor(c.A))},
    doc="The determinant of square matrices.",
)


def _grad_cofactor(c: Context, g: Tensor) -> Tensor:
    """The second derivative of det is the form `D[X, Y]`; the gradient is what it says of Y.

    Regular: D = det A (tr(A^-1 X) tr(A^-1 Y) - tr(A^-1 X A^-1 Y)). Singular: the same in the
    basis of singular vectors, where only products of the other singular values are left of it:
    D = det U det V^H sum_ij p_ij (X_ii Y_jj - X_ij Y_ji), p_ij = prod of S without i and j.
    """
    x = conjugate(g)
    inverse = F._inv(c.A)[0]
    if _trusted(c.A, inverse):
        product = F.matmul(inverse, x)
        trace = F.diagonal(product, 0, -2, -1).sum(-1)
        form = _column(trace) * inverse - F.matmul(product, inverse)
        return conjugate(F.transpose(_column(F._det(c.A)) * form, -2, -1))
    u, s, vh = F._svd(c.A, False, True)
    x = F.matmul(F.matmul(adjoint(u), x), adjoint(vh))
    others = _without_two(s)
    on = F.matmul(others.to(x.dtype), F.diagonal(x, 0, -2, -1).unsqueeze(-1)).squeeze(-1)
    form = F.diag_embed(on) - others * F.transpose(x, -2, -1)
    phase = conjugate(_column(F._det(u) * F._det(vh)))
    return phase * F.matmul(F.matmul(u, conjugate(form)), vh)


def _trusted(a: Tensor, inverse: Tensor) -> bool:
    """Whether half of the digits of all inverses and determinants are right."""
    if not a.numel():
        return True
    sizes = [F.amax(F.sum(F.abs(x.detach()), -2), -1) for x in (a, inverse)]
    return bool((sizes[0] * sizes[1] < dt.finfo(a.dtype).eps ** -0.5).all())


def _column(x: Tensor) -> Tensor:
    return x.unsqueeze(-1).unsqueeze(-1)


def _without_two(s: Tensor) -> Tensor:
    """Products of all but the i-th and j-th value, 0 on the diagonal."""
    n = s.shape[-1]
    eye = identity(n, s).bool()
    left_out = eye.unsqueeze(0) | eye.unsqueeze(1)
    products = F.prod(F.where(left_out, 1, s.unsqueeze(-2).unsqueeze(-2)), -1)
    return F.where(eye, 0, products)


structured(
    "_cofactor(Tensor A)",
    batch="same",
    infer=lambda a: a.like(a.shape),
    grad={"A": _grad_cofactor},
    doc="The derivative of the determinant by each element, also of singular matrices.",
)


def _infer_slogdet(a: Spec) -> tuple[Spec, Spec]:
    check_square("linalg.slogdet", a, "A")
    check_float("linalg.slogdet", a, lacks="none")
    return a.like(a.shape[:-2]), a.like(a.shape[:-2], dtype=a.dtype.to_real())


def _grad_slogdet(c: Context, g_sign: Tensor | None, g_log: Tensor | None) -> Tensor:
    g = g_log
    if g_sign is not None and g_sign.dtype.is_complex:
        # The sign moves on the unit circle; only the part of its gradient along it counts.
        along = 1j * F.imag(conjugate(g_sign) * c.out0)
        g = -along if g is None else g - along
    if g is None:  # the sign of reals, which does not move
        return F.zeros_like(c.A)
    return _column(g) * adjoint(F._inv(c.A)[0])


structured(
    "_slogdet(Tensor A)",
    batch="same",
    infer=_infer_slogdet,
    grad={"A": _grad_slogdet},
    partial=True,
    n_out=2,
    doc="Sign and logarithm of the modulus of the determinant.",
)


@composite(namespaces=("linalg",), name="det", method=False, out=True)
def linalg_det(A: Tensor) -> Tensor:
    """The determinant of square matrices.

    >>> votive.linalg.det(votive.tensor([[2.0, 1.0], [1.0, 3.0]]))
    tensor(5.)
    """
    return F._det(A)


@composite
def det(input: Tensor) -> Tensor:
    """The determinant of square matrices; see linalg.det.

    >>> votive.det(votive.tensor([[2.0]]))
    tensor(2.)
    """
    return F._det(input)


@composite(namespaces=("linalg",), name="slogdet", method=False, out=True)
def linalg_slogdet(A: Tensor) -> Any:
    """The determinant as sign (a phase, if complex) and logarithm of its modulus, in range.

    >>> votive.linalg.slogdet(votive.tensor([[-1e30, 0.0], [0.0, 1e30]])).logabsdet
    tensor(138.1551)
    """
    return _LINALG_SLOGDET(*F._slogdet(A))


@composite(out=True)
def slogdet(input: Tensor) -> Any:
    """The determinant as sign and logarithm of its modulus; see linalg.slogdet.

    >>> votive.slogdet(votive.tensor([[-1.0]])).sign
    tensor(-1.)
    """
    return _SLOGDET(*F._slogdet(input))


@composite
def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; NaN where a real determinant is negative.

    >>> votive.logdet(votive.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor(0.)
    """
    sign, log = F._slogdet(input)
    if sign.dtype.is_complex:
        return log + F.log(sign)
    return F.where(sign == -1, float("nan"), log)
