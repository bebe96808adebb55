"""Products of many matrices in the cheapest order. Python over `matmul`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.errors import ShapeError, fail
from .matmul import check_dtypes, check_rank
from .registry import F, composite

if TYPE_CHECKING:
    from .types import Sequence, Tensor


def _split_points(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each run of a chain of products for the fewest multiplications.

    `sizes[i]` and `sizes[i + 1]` are the sides of matrix i. Cormen et al., "Introduction to
    Algorithms", matrix-chain order.
    """
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def _chain(matrices: list[Any]) -> Tensor:
    sizes = [matrices[0].shape[0], *(m.shape[1] for m in matrices)]
    split = _split_points(sizes)

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return matrices[i]
        return F.matmul(product(i, split[i, j]), product(split[i, j] + 1, j))

    return product(0, len(matrices) - 1)


@composite(namespaces=("linalg",), method=False, out=True, autocast={"cuda": "lower"})
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Product of a chain of matrices in the cheapest order; the first and last may be vectors.

    >>> a = votive.ones(2, 2)
    >>> votive.linalg.multi_dot([a, a, a])
    tensor([[4., 4.],
            [4., 4.]])
    """
    matrices = list(tensors)
    if len(matrices) < 2:
        fail(RuntimeError, "multi_dot", f"expected at least 2 tensors, got {len(matrices)}.")
    check_dtypes("multi_dot", *(m._spec for m in matrices))
    row, column = matrices[0].ndim == 1, matrices[-1].ndim == 1
    if row:
        matrices[0] = matrices[0].unsqueeze(0)
    if column:
        matrices[-1] = matrices[-1].unsqueeze(1)
    for i, m in enumerate(matrices):
        check_rank("multi_dot", f"tensor {i}", m, 2)
        if i and matrices[i - 1].shape[1] != m.shape[0]:
            fail(
                ShapeError,
                "multi_dot",
                f"tensors {i - 1} and {i} with shapes {tuple(matrices[i - 1].shape)} and "
                f"{tuple(m.shape)} cannot be multiplied.",
            )
    out = _chain(matrices)
    shape = tuple(out.shape)[1 if row else 0 : 1 if column else 2]
    return F.reshape(out, shape)


@composite(method=False, out=True, autocast={"cuda": "lower"})
def chain_matmul(*matrices: Tensor) -> Tensor:
    """Product of a chain of matrices in the cheapest order.

    >>> votive.chain_matmul(votive.ones(1, 2), votive.ones(2, 3))
    tensor([[2., 2., 2.]])
    """
    for i, m in enumerate(matrices):
        check_rank("chain_matmul", f"matrix {i}", m, 2)
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(matrices)
