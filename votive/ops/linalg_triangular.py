"""Triangular systems: linalg.solve_triangular, triangular_solve. Knows shapes and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.layout import Spec
from .linalg_checks import check_float, check_system
from .matmul import adjoint
from .registry import F, composite, structured
from .results import results

if TYPE_CHECKING:
    from .types import Context, Tensor

_TRIANGULAR = results("triangular_solve", "solution", "cloned_coefficient")


def _infer(a: Spec, b: Spec, upper: bool, unit: bool) -> Spec:
    check_float("linalg.solve_triangular", a, lacks="all")
    _, shape = check_system("linalg.solve_triangular", a, b)
    return b.like(shape)


def _grad(c: Context, g: Tensor) -> tuple[Any, Any]:
    g_b = F._solve_triangular(adjoint(c.A), g, not c.upper, c.unit)
    if not c.needs("A"):
        return None, g_b
    g_a = -F.matmul(g_b, adjoint(c.out))
    # Only the triangle that was read has an influence.
    skip = 1 if c.unit else 0
    return F.triu(g_a, skip) if c.upper else F.tril(g_a, -skip), g_b


structured(
    "_solve_triangular(Tensor A, Tensor B, bool upper, bool unit)",
    batch="broadcast",
    infer=_infer,
    grad=_grad,
    doc="X with `A X = B`, where only one triangle of A is read.",
)


@composite(namespaces=("linalg",), method=False, out=True)
def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """X with `input @ X = B`, or `X @ input = B` if not `left`; reads one triangle of `input`.

    >>> a = votive.tensor([[1.0, 0.0], [2.0, 4.0]])
    >>> votive.linalg.solve_triangular(a, votive.tensor([[1.0], [6.0]]), upper=False)
    tensor([[1.],
            [1.]])
    """
    if left:
        return F._solve_triangular(input, B, upper, unitriangular)
    check_system("linalg.solve_triangular", input._spec, B._spec, left=False)
    across = F._solve_triangular(F.transpose(input, -2, -1), F.transpose(B, -2, -1), not upper, unitriangular)
    return F.transpose(across, -2, -1)


@composite(out=True, autocast={"cpu": "float32"})
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """X with `A @ X = input` (or with A transposed), and a copy of A; see linalg.solve_triangular.

    >>> a = votive.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> votive.triangular_solve(votive.tensor([[2.0], [3.0]]), a, upper=False).solution
    tensor([[1.],
            [2.]])
    """
    shape, _ = check_system("triangular_solve", A._spec, input._spec)
    matrix = F.transpose(A, -2, -1) if transpose else A
    x = F._solve_triangular(matrix, input, upper != transpose, unitriangular)
    return _TRIANGULAR(x, F.expand(A, shape).clone())
