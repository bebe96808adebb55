"""Powers and exponentials of matrices, Vandermonde matrices, and two short forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import DtypeError, fail
from ..core.layout import Spec
from .autocast_policy import LOWER
from .linalg_checks import check_float, check_pair, check_square, identity
from .linalg_solve import inv
from .matmul import adjoint, conjugate
from .registry import F, composite, structured
from .sizes import int_of

if TYPE_CHECKING:
    from .types import Context, Tensor


@composite(out=True, also=("linalg.matrix_power",))
def matrix_power(input: Tensor, n: int) -> Tensor:
    """The product of n copies of a square matrix; of -n copies of its inverse, if n is negative.

    >>> votive.matrix_power(votive.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
    tensor([[1., 3.],
            [0., 1.]])
    """
    check_square("matrix_power", input._spec)
    n = int_of("matrix_power", "n", n)
    if n == 0:
        # Written over a copy, so that the result stays in the graph, with a gradient of zero.
        return F.copy_(F.clone(input), identity(input.shape[-1], input))
    base = inv(input) if n < 0 else input
    result = base.clone() if n == 1 else base
    # The binary digits of n after the first, from the highest: square, and multiply at a 1.
    for digit in f"{abs(n):b}"[1:]:
        result = F.matmul(result, result)
        if digit == "1":
            result = F.matmul(result, base)
    return result


def _infer_exp(a: Spec) -> Spec:
    check_square("linalg.matrix_exp", a)
    check_float("linalg.matrix_exp", a, half=True)
    return a.like(a.shape)


def _grad_exp(c: Context, g: Tensor) -> Tensor:
    """The upper right block of `exp([[A^H, g], [0, A^H]])`.

    Mathias, "A chain rule for matrix functions and applications" (1996), theorem 4.13.
    """
    n = g.shape[-1]
    a = adjoint(c.input)
    block = F.cat([F.cat([a, g], -1), F.cat([F.zeros_like(a), a], -1)], -2)
    return F.narrow(F.narrow(F._matrix_exp(block), -2, 0, n), -1, n, n)


structured(
    "_matrix_exp(Tensor input)",
    batch="same",
    infer=_infer_exp,
    grad={"input": _grad_exp},
    doc="`sum_k input^k / k!` of square matrices.",
)


@composite(also=("linalg.matrix_exp",))
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential `sum_k input^k / k!` of square matrices.

    >>> votive.matrix_exp(votive.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return F._matrix_exp(input)


@composite(namespaces=("linalg",), name="vander", method=False)
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element along a new last dimension; N is the last size if None.

    >>> votive.linalg.vander(votive.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    if x.dtype is dt.bool_ or x.dtype in dt.HALF:
        fail(DtypeError, "linalg.vander", f"not implemented for {x.dtype}.")
    shape = tuple(x.shape) or (1,)
    count = shape[-1] if N is None else int_of("linalg.vander", "N", N)
    if count < 2:
        fail(RuntimeError, "linalg.vander", f"N must be at least 2, got {count}.")
    base = F.expand(F.reshape(x, shape).unsqueeze(-1), (*shape, count - 1))
    powers = F.cumprod(base, -1)
    one = F.ones((*shape, 1), dtype=powers.dtype, device=x.device)
    return F.cat([one, powers], -1)


@composite(namespaces=("linalg",), method=False, out=True, autocast=LOWER)
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """`sum(conj(x) * y)` along a dimension.

    >>> votive.linalg.vecdot(votive.tensor([[1.0, 2.0]]), votive.tensor([3.0, 4.0]))
    tensor([11.])
    """
    check_float("linalg.vecdot", x._spec, half=True)
    check_pair("linalg.vecdot", x._spec, y._spec)
    return F.sum(conjugate(x) * y, dim)


@composite(namespaces=("linalg",), name="diagonal", method=False)
def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of matrices as the last dimension, without copying.

    >>> votive.linalg.diagonal(votive.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return F.diagonal(A, offset, dim1, dim2)
