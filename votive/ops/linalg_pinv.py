"""Pseudo-inverses and least squares: linalg.pinv, lstsq. Knows shapes and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, fail
from ..core.layout import Spec, broadcast_shapes
from .linalg_checks import check_float, check_matrix, check_pair, check_square, require
from .linalg_norm import tolerances
from .matmul import adjoint, conjugate
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Operand, Tensor

_LSTSQ = results("linalg_lstsq", "solution", "residuals", "rank", "singular_values")
DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _through_pinv(g: Tensor, p: Tensor, a: Tensor) -> Tensor:
    """The gradient by A of its pseudo-inverse P; Golub, Pereyra (1973), eq. 4.12, at fixed rank.

    The order of products keeps the small side of A in the middle.
    """
    gh, ph = adjoint(g), adjoint(p)
    if a.shape[-2] <= a.shape[-1]:
        k = F.matmul(gh, p)
        kp = F.matmul(k, ph)
        return (
            kp - adjoint(F.matmul(p, k)) - F.matmul(F.matmul(a, p), kp) + F.matmul(F.matmul(ph, p), gh - F.matmul(k, a))
        )
    k = F.matmul(p, gh)
    pk = F.matmul(ph, k)
    return pk - adjoint(F.matmul(k, p)) - F.matmul(F.matmul(pk, p), a) + F.matmul(F.matmul(gh - F.matmul(a, k), p), ph)


def _infer_pinv(a: Spec, atol: Spec, rtol: Spec, hermitian: bool) -> Spec:
    (check_square if hermitian else check_matrix)("linalg.pinv", a)
    *batch, m, n = a.shape
    return a.like((*broadcast_shapes("linalg.pinv", tuple(batch), atol.shape, rtol.shape), n, m))


structured(
    "_pinv(Tensor A, Tensor atol, Tensor rtol, bool hermitian)",
    infer=_infer_pinv,
    grad={
        "A": lambda c, g: _through_pinv(g, c.out, c.A),
        # The tolerances decide which singular values count: a step, flat on both sides.
        "atol": None,
        "rtol": None,
    },
    doc="The pseudo-inverse, singular values up to `max(atol, rtol * largest)` taken as zero.",
)


def _pseudo_inverse(op: str, a: Tensor, hermitian: bool, atol: Operand | None, rtol: Operand | None) -> Tensor:
    check_matrix(op, a._spec)
    check_float(op, a._spec, lacks="none")
    real = a.dtype.to_real()
    tols = (
        t if hasattr(t, "_spec") else F.full((), t, dtype=real, device=a.device) for t in tolerances(op, a, atol, rtol)
    )
    return F._pinv(a, *tols, hermitian)


@composite(namespaces=("linalg",), method=False, out=True)
def pinv(
    input: Tensor,
    rcond: Operand | None = None,
    hermitian: bool = False,
    *,
    atol: Operand | None = None,
    rtol: Operand | None = None,
) -> Tensor:
    """The pseudo-inverse; singular values up to `max(atol, rtol * largest)` count as zero.

    `rcond` is an old name of `rtol`.

    >>> votive.linalg.pinv(votive.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    if rcond is not None:
        atol, rtol = 0.0, rcond
    return _pseudo_inverse("linalg.pinv", input, hermitian, atol, rtol)


@composite(autocast={"cpu": "float32"})
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverse; see linalg.pinv.

    >>> votive.pinverse(votive.tensor([[2.0], [0.0]]))
    tensor([[0.5000, 0.0000]])
    """
    return _pseudo_inverse("pinverse", input, False, 0.0, rcond)


def _infer_lstsq(a: Spec, b: Spec, rcond: float, driver: str) -> tuple[Spec, Spec, Spec, Spec]:
    *batch, m, n = a.shape
    both = broadcast_shapes("linalg.lstsq", tuple(batch), b.shape[:-2])
    values = a.like((*batch, min(m, n)), dtype=a.dtype.to_real())
    count = a.like(tuple(batch), dtype=dt.int64)
    return b.like((*both, n, b.shape[-1])), count, values, a.like(tuple(batch), dtype=dt.int32)


def _grad_lstsq(c: Context, g: Tensor, *_: Any) -> tuple[Any, Any]:
    p = pinv(c.A)
    g_b = F.matmul(adjoint(p), g)
    if not c.needs("A"):
        return None, g_b
    return _through_pinv(F.matmul(g, adjoint(c.B)), p, c.A), g_b


structured(
    "_lstsq(Tensor A, Tensor B, float rcond, str driver)",
    infer=_infer_lstsq,
    grad=_grad_lstsq,
    n_out=4,
    doc="The shortest X that minimises `|A X - B|`, ranks, singular values, failures.",
)


def _check_lstsq(a: Spec, b: Spec) -> bool:
    """Whether B holds one vector per matrix."""
    op = "linalg.lstsq"
    check_matrix(op, a)
    vector = b.ndim == a.ndim - 1
    if b.ndim == 0 or not (vector or b.ndim == a.ndim):
        fail(ShapeError, op, f"b must have as many dimensions or one less: {a.shape}, {b.shape}.")
    if b.shape[-1 if vector else -2] != a.shape[-2]:
        fail(ShapeError, op, f"both must have the same number of rows, got {a.shape}, {b.shape}.")
    check_float(op, a, lacks="none")
    check_pair(op, a, b)
    return vector


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def lstsq(input: Tensor, b: Tensor, rcond: Operand | None = None, *, driver: str | None = None) -> Any:
    """The X that minimises `|input @ X - b|`, the shortest if there are several.

    Also the squares left over (full rank, more rows than columns, driver not 'gelsy'), the rank
    (not for 'gels', which takes full rank for granted), the singular values ('gelsd', 'gelss').

    >>> a = votive.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> votive.linalg.lstsq(a, votive.tensor([[1.0], [3.0], [5.0]])).solution
    tensor([[1.0000],
            [2.0000]])
    """
    driver = "gelsy" if driver is None else driver
    if driver not in DRIVERS:
        fail(RuntimeError, "linalg.lstsq", f"driver must be one of {DRIVERS}, got {driver!r}.")
    vector = _check_lstsq(input._spec, b._spec)
    right = b.unsqueeze(-1) if vector else b
    m, n = input.shape[-2:]
    if rcond is None:
        rcond = dt.finfo(input.dtype).eps * max(m, n)
    x, rank, values, info = F._lstsq(input, right, rcond, driver)
    require("linalg.lstsq", info, lambda code: "the matrix has no full rank, which driver='gels' takes for granted.")
    full = driver == "gels" or bool((rank == n).all())
    if m > n and driver != "gelsy" and full:
        left_over = F.matmul(input, x) - right
        residuals = F.sum(F.real(conjugate(left_over) * left_over), -2)
    else:
        residuals = F.abs(x).reshape(-1)[:0]
    if driver == "gels":
        rank = rank.reshape(-1)[:0]
    values = values.detach()
    if driver not in ("gelsd", "gelss"):
        values = values.reshape(-1)[:0]
    return _LSTSQ(x.squeeze(-1) if vector else x, residuals, rank, values)
