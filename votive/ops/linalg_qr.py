"""QR factors and Householder reflectors: linalg.qr, householder_product. Knows no kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import AutogradError, MissingGradientError, ShapeError, fail
from ..core.layout import Spec
from .linalg_checks import absent, check_float, check_matrix, check_pair, halve_diagonal
from .linalg_triangular import solve_triangular
from .matmul import adjoint, conjugate
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Tensor

_LINALG_QR = results("linalg_qr", "Q", "R")
_QR = results("qr", "Q", "R")
_GEQRF = results("geqrf", "a", "tau")


def _infer_qr(a: Spec, mode: str) -> tuple[Spec, Spec]:
    check_matrix("linalg.qr", a, "A")
    check_float("linalg.qr", a)
    *batch, m, n = a.shape
    k = m if mode == "complete" else min(m, n)
    q = a.like((0,)) if mode == "r" else a.like((*batch, m, k))
    return q, a.like((*batch, k, n))


def _grad_qr(c: Context, g_q: Tensor | None, g_r: Tensor | None) -> Tensor:
    """Walter, Lehmann, Lamour, "On evaluating higher-order derivatives of the QR decomposition"
    (2012), for tall matrices; of a wide one the leading square is factored, the rest is `Q^H A2`.
    """
    m, n = c.shape("A")[-2:]
    if c.mode == "r":
        fail(AutogradError, "linalg.qr", "the gradient takes Q, which mode='r' does not make.")
    if c.mode == "complete" and m > n:
        fail(
            AutogradError,
            "linalg.qr",
            f"mode='complete' has no gradient with more rows than columns, got {m} x {n}; use mode='reduced'.",
        )
    q, r = c.out0, c.out1
    if absent(g_q):
        g_q = None
        if g_r is None:
            return F.zeros(c.shape("A"), dtype=r.dtype, device=r.device)
    inner: Any = 0
    if g_r is not None:
        inner = F.matmul(g_r, adjoint(r))
    if g_q is not None:
        inner = inner - F.matmul(adjoint(q), g_q)
    if m >= n:
        inner = F.triu(inner)
        g = F.matmul(q, halve_diagonal(inner + adjoint(inner)))
        return solve_triangular(adjoint(r), g if g_q is None else g + g_q, upper=False, left=False)
    inner = halve_diagonal(F.tril(adjoint(inner) - inner))
    g = F.matmul(q, inner)
    g = solve_triangular(adjoint(F.narrow(r, -1, 0, m)), g, upper=False, left=False)
    rest = F.zeros((*g.shape[:-1], n - m), dtype=g.dtype, device=g.device)
    g = F.cat([g, rest], -1)
    return g if g_r is None else g + F.matmul(q, g_r)


structured(
    "_qr(Tensor A, str mode)",
    batch="same",
    infer=_infer_qr,
    grad={"A": _grad_qr},
    partial=True,
    n_out=2,
    doc="Q with orthonormal columns and R, upper triangular, with `A = Q R`.",
)


@composite(namespaces=("linalg",), name="qr", method=False, out=True, autocast={"cpu": "float32"})
def linalg_qr(A: Tensor, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and R, upper triangular, with `A = Q @ R`.

    `mode`: "reduced", "complete" (Q square) or "r" (only R).

    >>> votive.linalg.qr(votive.tensor([[3.0, 0.0], [4.0, 5.0]])).R
    tensor([[-5., -4.],
            [ 0.,  3.]])
    """
    if mode not in ("reduced", "complete", "r"):
        fail(RuntimeError, "linalg.qr", f"mode must be 'reduced', 'complete' or 'r', got {mode!r}.")
    return _LINALG_QR(*F._qr(A, mode))


@composite(out=True, autocast={"cpu": "float32"})
def qr(input: Tensor, some: bool = True) -> Any:
    """Q and R with `input = Q @ R`; see linalg.qr. Without `some` Q is square.

    >>> votive.qr(votive.tensor([[2.0]])).R
    tensor([[2.]])
    """
    return _QR(*F._qr(input, "reduced" if some else "complete"))


def _infer_geqrf(a: Spec) -> tuple[Spec, Spec]:
    check_matrix("geqrf", a)
    check_float("geqrf", a, lacks="all")
    *batch, m, n = a.shape
    return a.like(a.shape), a.like((*batch, min(m, n)))


def _grad_geqrf(c: Context, g: Tensor, g_tau: Tensor) -> Any:
    fail(MissingGradientError, "geqrf", "has no gradient; use linalg.qr.")


structured(
    "_geqrf(Tensor input)",
    batch="same",
    infer=_infer_geqrf,
    grad={"input": _grad_geqrf},
    n_out=2,
    doc="R on and above the diagonal, reflectors below it, and their factors.",
)


@composite(out=True, autocast={"cpu": "float32"})
def geqrf(input: Tensor) -> Any:
    """R on and above the diagonal, reflectors below it, and their factors tau: LAPACK's form of QR.

    >>> votive.geqrf(votive.tensor([[3.0], [4.0]])).tau
    tensor([1.6000])
    """
    return _GEQRF(*F._geqrf(input))


def _grad_reflect(c: Context, g: Tensor) -> tuple[Any, ...]:
    """Of `H_1 ... H_k x`, H = 1 - tau v v^H (adjoint and in opposite order for `back`).

    The steps are walked forwards to have what each H was applied to, then backwards.
    """
    m, n = c.shape("v")[-2:]
    k = c.shape("tau")[-1]
    if not k:
        return None, None, g
    eye = F.eye(m, k, dtype=g.dtype, device=g.device)
    vs = F.split(F.tril(F.narrow(c.v, -1, 0, k), -1) + eye, 1, -1)
    taus = [c.tau[..., i, None, None] for i in range(k)]
    if c.back:
        taus = [conjugate(t) for t in taus]
    order = list(range(k)) if c.back else list(range(k))[::-1]
    x, before = c.x, {}
    for i in order:
        before[i] = x
        x = x - taus[i] * F.matmul(vs[i], F.matmul(adjoint(vs[i]), x))
    g_v: list[Any] = [None] * k
    g_tau: list[Any] = [None] * k
    for i in reversed(order):
        v, t = vs[i], taus[i]
        vx, vg = F.matmul(adjoint(v), before[i]), F.matmul(adjoint(v), g)
        overlap = F.matmul(vg, adjoint(vx))
        g_tau[i] = -overlap[..., 0]
        g_v[i] = -(conjugate(t) * F.matmul(g, adjoint(vx)) + t * F.matmul(before[i], adjoint(vg)))
        g = g - conjugate(t) * F.matmul(v, vg)
    total = F.cat(g_tau, -1)
    columns = F.tril(F.cat(g_v, -1), -1)
    if n > k:
        none = F.zeros((*columns.shape[:-1], n - k), dtype=g.dtype, device=g.device)
        columns = F.cat([columns, none], -1)
    return columns, conjugate(total) if c.back else total, g


structured(
    "_reflect(Tensor v, Tensor tau, Tensor x, bool back)",
    batch="same",
    infer=lambda v, tau, x, back: x.like(x.shape),
    grad=_grad_reflect,
    doc="`Q x`, or `Q^H x` for `back`, Q the product of the reflectors `1 - tau v v^H`.",
)


def _check_reflectors(op: str, v: Spec, tau: Spec) -> None:
    check_matrix(op, v)
    check_pair(op, v, tau)
    check_float(op, v, lacks="all")
    *batch, m, n = v.shape
    if m < n:
        fail(ShapeError, op, f"needs at least as many rows as columns, got shape {v.shape}.")
    if tau.ndim != v.ndim - 1 or tau.shape[:-1] != tuple(batch) or tau.shape[-1] > n:
        fail(ShapeError, op, f"tau of shape {tau.shape} does not fit reflectors {v.shape}.")


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of `H_1 H_2 ... H_k`, `H = 1 - tau v v^H` with v below the diagonal.

    >>> v, tau = votive.geqrf(votive.tensor([[3.0], [4.0]]))
    >>> votive.linalg.householder_product(v, tau)
    tensor([[-0.6000],
            [-0.8000]])
    """
    _check_reflectors("linalg.householder_product", input._spec, tau._spec)
    n = input.shape[-1]
    eye = F.eye(input.shape[-2], n, dtype=input.dtype, device=input.device)
    return F._reflect(input, tau, F.expand(eye, input.shape), False)


@composite(out=True, autocast={"cpu": "float32"})
def orgqr(input: Tensor, input2: Tensor) -> Tensor:
    """The Q of `geqrf`'s result, given its reflectors and tau; see linalg.householder_product.

    >>> votive.orgqr(votive.tensor([[1.0]]), votive.tensor([0.0]))
    tensor([[1.]])
    """
    return householder_product(input, input2)


@composite(out=True, autocast={"cpu": "float32"})
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """`Q @ input3`, or `input3 @ Q` if not `left`, Q given by its reflectors and tau (`input2`).

    With `transpose` Q^H stands for Q.

    >>> votive.ormqr(votive.tensor([[1.0]]), votive.tensor([2.0]), votive.tensor([[3.0]]))
    tensor([[-3.]])
    """
    v, tau, x = input, input2, input3
    for other in (tau, x):
        check_pair("ormqr", v._spec, other._spec)
    check_matrix("ormqr", v._spec)
    check_matrix("ormqr", x._spec, "input3")
    check_float("ormqr", v._spec, lacks="all")
    *batch, m, n = v.shape
    if tuple(x.shape[:-2]) != tuple(batch) or x.shape[-2 if left else -1] != m:
        fail(ShapeError, "ormqr", f"reflectors {v._spec.shape} do not fit {x._spec.shape} with left={left}.")
    if tau._spec.shape != (*batch, min(m, n)):
        fail(ShapeError, "ormqr", f"tau must have shape {(*batch, min(m, n))}, got {tau._spec.shape}.")
    if left:
        return F._reflect(v, tau, x, transpose)
    return adjoint(F._reflect(v, tau, adjoint(x), not transpose))
