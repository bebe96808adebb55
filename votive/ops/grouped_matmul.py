"""Products of groups of rows with a matrix each: the experts of a mixture. Composites; knows no kernel."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from ..core import dtype as dt
from ..core.errors import fail
from .registry import F, composite

if TYPE_CHECKING:
    from .types import Tensor

OP = "grouped_mm"
NN = ("nn.functional",)


def _check(a: Tensor, b: Tensor, offs: Tensor | None) -> None:
    for name, x in (("mat_a", a), ("mat_b", b)):
        if x.ndim not in (2, 3):
            fail(RuntimeError, OP, f"{name} must have 2 or 3 dimensions, got shape {tuple(x.shape)}.")
        if not x.dtype.is_floating_point:
            fail(RuntimeError, OP, f"{name} must be of a floating type, got {x.dtype}.")
    if a.dtype != b.dtype:
        fail(RuntimeError, OP, f"mat_a and mat_b must be of one type, got {a.dtype} and {b.dtype}.")
    if a.shape[-1] != b.shape[-2]:
        fail(RuntimeError, OP, f"contraction dimensions differ: {tuple(a.shape)} and {tuple(b.shape)}.")
    flat = a.ndim == 2 or b.ndim == 2
    if flat != (offs is not None):
        fail(RuntimeError, OP, "give offs if one of the matrices has 2 dimensions, and only then.")
    if offs is None:
        if a.shape[0] != b.shape[0]:
            fail(RuntimeError, OP, f"as many matrices on both sides, got {a.shape[0]} and {b.shape[0]}.")
        return
    if offs.ndim != 1 or offs.dtype != dt.int32:
        fail(RuntimeError, OP, f"offs must be one row of int32, got {offs.dtype} of shape {tuple(offs.shape)}.")
    for x in (a, b):
        if x.ndim == 3 and x.shape[0] != offs.shape[0]:
            fail(RuntimeError, OP, f"offs ends {offs.shape[0]} groups, but there are {x.shape[0]} matrices.")


@composite(namespaces=NN, method=False)
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: dt.dtype | None = None,
) -> Tensor:
    """A product per group; group i ends before `offs[i]` in the dimension that a flat matrix has for all groups.

    Rows of `mat_a` (M, K) times `mat_b[i]` (K, N) give (M, N); `mat_a[i]` (M, K) times columns of `mat_b` (K, N) give
    (M, N); columns of `mat_a` (M, K) times rows of `mat_b` (K, N) give (groups, M, N). Behind the last group are zeros.

    >>> rows = votive.ones(3, 2)
    >>> experts = votive.stack([votive.eye(2), 10 * votive.eye(2)])
    >>> votive.nn.functional.grouped_mm(rows, experts, offs=votive.tensor([1, 3], dtype=votive.int32))
    tensor([[ 1.,  1.],
            [10., 10.],
            [10., 10.]])
    """
    if bias is not None:
        fail(RuntimeError, OP, "bias is not supported; add it to the result.")
    if out_dtype is not None and out_dtype != mat_a.dtype:
        fail(RuntimeError, OP, f"out_dtype must be that of mat_a, {mat_a.dtype}, got {out_dtype}.")
    _check(mat_a, mat_b, offs)
    if offs is None:
        return F.bmm(mat_a, mat_b)
    # One look at where groups end, instead of one per group.
    spans = list(pairwise([0, *offs.tolist()]))
    if mat_a.ndim == 2 and mat_b.ndim == 2:
        return F.stack([mat_a[:, lo:hi] @ mat_b[lo:hi] for lo, hi in spans])
    if mat_a.ndim == 2:
        parts = [mat_a[lo:hi] @ mat_b[i] for i, (lo, hi) in enumerate(spans)]
        rest = mat_a.new_zeros((max(mat_a.shape[0] - spans[-1][1], 0), mat_b.shape[2]))
        return F.cat([*parts, rest], 0)
    parts = [mat_a[i] @ mat_b[:, lo:hi] for i, (lo, hi) in enumerate(spans)]
    rest = mat_a.new_zeros((mat_a.shape[1], max(mat_b.shape[1] - spans[-1][1], 0)))
    return F.cat([*parts, rest], 1)
