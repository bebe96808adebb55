"""Linear systems and inverses: linalg.solve, inv, tensorsolve, tensorinv. Knows no kernels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, fail
from ..core.layout import Spec, wrap_dim
from .linalg_checks import check_float, check_square, check_system, require
from .matmul import adjoint
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Sequence, Tensor

_SOLVE = results("linalg_solve_ex", "result", "info")
_INV = results("linalg_inv_ex", "inverse", "info")


def _infer_solve(a: Spec, b: Spec) -> tuple[Spec, Spec]:
    check_square("linalg.solve", a, "A")
    check_float("linalg.solve", a)
    _, shape = check_system("linalg.solve", a, b)
    return b.like(shape), a.like(a.shape[:-2], dtype=dt.int32)


def _grad_solve(c: Context, g: Tensor, *_: Any) -> tuple[Any, Any]:
    g_b = F._solve(adjoint(c.A), g)[0]
    return (-F.matmul(g_b, adjoint(c.out0)) if c.needs("A") else None), g_b


structured(
    "_solve(Tensor A, Tensor B)",
    batch="broadcast",
    infer=_infer_solve,
    grad=_grad_solve,
    n_out=2,
    doc="X with `A X = B`, and for each A the number of its first zero pivot, or 0.",
)


def _is_vector(a: Spec, b: Spec) -> bool:
    """Whether B holds one vector per matrix: torch decides by the shape without A's last size."""
    return b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])


def _solution(A: Tensor, B: Tensor, left: bool) -> tuple[Any, Any]:
    vector = _is_vector(A._spec, B._spec)
    if vector and not left:
        fail(
            ShapeError,
            "linalg.solve",
            f"left=False takes B as matrices, got shapes {A._spec.shape} and {B._spec.shape}; use B.unsqueeze(-2).",
        )
    if not left:
        check_system("linalg.solve", A._spec, B._spec, left=False)
        x, info = F._solve(F.transpose(A, -2, -1), F.transpose(B, -2, -1))
        return F.transpose(x, -2, -1), info
    x, info = F._solve(A, F.unsqueeze(B, -1) if vector else B)
    return F.squeeze(x, -1) if vector else x, info


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with `A @ X = B`, or `X @ A = B` if not `left`.

    >>> a = votive.tensor([[2.0, 0.0], [0.0, 4.0]])
    >>> votive.linalg.solve(a, votive.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    x, info = _solution(A, B, left)
    require("linalg.solve", info, lambda code: "the matrix is singular, no solution was found.")
    return x


@composite(namespaces=("linalg",), method=False, out=True)
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """Like `linalg.solve`, but tells of singular matrices by `info` (0: solved) instead of raising.

    >>> votive.linalg.solve_ex(votive.zeros(2, 2), votive.ones(2)).info
    tensor(1, dtype=votive.int32)
    """
    x, info = _solution(A, B, left)
    if check_errors:
        require("linalg.solve_ex", info, lambda code: "the matrix is singular.")
    return _SOLVE(x, info)


def _infer_inv(a: Spec) -> tuple[Spec, Spec]:
    check_square("linalg.inv", a, "A")
    check_float("linalg.inv", a, lacks="none")
    return a.like(a.shape), a.like(a.shape[:-2], dtype=dt.int32)


def _grad_inv(c: Context, g: Tensor, *_: Any) -> Tensor:
    back = adjoint(c.out0)
    return -F.matmul(back, F.matmul(g, back))


structured(
    "_inv(Tensor A)",
    batch="same",
    infer=_infer_inv,
    grad={"A": _grad_inv},
    n_out=2,
    doc="The inverse, and for each matrix the number of its first zero pivot, or 0.",
)


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices.

    >>> votive.linalg.inv(votive.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    x, info = F._inv(A)
    require(
        "linalg.inv", info, lambda code: f"the matrix is singular: diagonal element {code} of its factor U is zero."
    )
    return x


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """Like `linalg.inv`, but tells of singular matrices by `info` (0: inverted) instead of raising.

    >>> votive.linalg.inv_ex(votive.zeros(2, 2)).info
    tensor(1, dtype=votive.int32)
    """
    x, info = F._inv(A)
    if check_errors:
        require("linalg.inv_ex", info, lambda code: "the matrix is singular.")
    return _INV(x, info)


@composite(out=True, autocast={"cpu": "float32"})
def inverse(input: Tensor) -> Tensor:
    """The inverse of square matrices; see linalg.inv.

    >>> votive.inverse(votive.tensor([[2.0]]))
    tensor([[0.5000]])
    """
    return inv(input)


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def tensorsolve(input: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """X with `tensordot(input, X, dims=X.ndim) = other`; `dims` of `input` are moved last first.

    >>> votive.linalg.tensorsolve(votive.eye(4).reshape(2, 2, 4), votive.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    rank = input.ndim
    if dims is not None:
        moved = [wrap_dim("linalg.tensorsolve", d, rank) for d in dims]
        input = F.permute(input, [d for d in range(rank) if d not in moved] + moved)
    shape = tuple(input.shape)[other.ndim :]
    if math.prod(shape) != other.numel():
        fail(
            ShapeError,
            "linalg.tensorsolve",
            f"the leading {other.ndim} sizes and the others must have equal products, got shape {tuple(input.shape)}.",
        )
    n = other.numel()
    return F.reshape(solve(F.reshape(input, (n, n)), F.reshape(other, (n,))), shape)


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cpu": "float32"})
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """The inverse of `tensordot(input, ., dims=input.ndim - ind)`: the first `ind` sizes come last.

    >>> votive.linalg.tensorinv(votive.eye(4).reshape(2, 2, 4)).shape
    votive.Size([4, 2, 2])
    """
    if ind <= 0:
        fail(RuntimeError, "linalg.tensorinv", f"ind must be positive, got {ind}.")
    shape = tuple(input.shape)
    first, last = shape[:ind], shape[ind:]
    n = math.prod(first)
    if math.prod(last) != n:
        fail(
            ShapeError,
            "linalg.tensorinv",
            f"the first {ind} sizes and the others must have equal products, got shape {shape}.",
        )
    return F.reshape(inv(F.reshape(input, (n, n))), (*last, *first))
