"""COO tensors that change their size in place."""

from __future__ import annotations

from typing import Any, NoReturn

from ..ops.registry import F
from .tensor import CooTensor


def _sizes(x: CooTensor, size: Any, sparse_dim: int, dense_dim: int) -> tuple[int, ...]:
    sizes = tuple(int(n) for n in size)
    if sparse_dim + dense_dim != len(sizes):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse_dim}) + dense_dim ({dense_dim}), but got {len(sizes)}"
        )
    return sizes


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(
        f"{what} on a non-empty sparse tensor is not supported; for an empty one of this size call "
        "votive.sparse_coo_tensor(size)."
    )


def sparse_resize_(x: CooTensor, size: Any, sparse_dim: int, dense_dim: int) -> CooTensor:
    """Another size, in place; with elements the tensor may only grow and keeps its numbers of dimensions."""
    sizes = _sizes(x, size, sparse_dim, dense_dim)
    if x._nnz():
        old = x._spec.shape
        for what, had, new in (("sparse", x.sparse_dim(), sparse_dim), ("dense", x.dense_dim(), dense_dim)):
            if had != new:
                _refuse(f"changing the number of {what} dimensions (from {had} to {new})")
        for what, part in (("sparse", slice(0, sparse_dim)), ("dense", slice(sparse_dim, None))):
            if any(new < had for new, had in zip(sizes[part], old[part], strict=True)):
                _refuse(f"shrinking the size of {what} dimensions (from {list(old[part])} to {list(sizes[part])})")
        values = x._held
        if tuple(values.shape[1:]) != sizes[sparse_dim:]:
            wider = F.zeros((x._nnz(), *sizes[sparse_dim:]), dtype=values.dtype, device=values.device)
            wider[(slice(None), *(slice(0, n) for n in values.shape[1:]))] = values
            values = wider
        made: CooTensor = x._become(CooTensor.make(x._at, values, sizes, x._coalesced))
        return made
    return sparse_resize_and_clear_(x, size, sparse_dim, dense_dim)


def sparse_resize_and_clear_(x: CooTensor, size: Any, sparse_dim: int, dense_dim: int) -> CooTensor:
    """Another size, in place, and no elements."""
    sizes = _sizes(x, size, sparse_dim, dense_dim)
    at = F.zeros((sparse_dim, 0), dtype=x._at.dtype, device=x.device)
    values = F.zeros((0, *sizes[sparse_dim:]), dtype=x.dtype, device=x.device)
    made: CooTensor = x._become(CooTensor.make(at, values, sizes, x._coalesced))
    return made
