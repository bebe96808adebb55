"""What must hold of the parts of a sparse tensor, and the switch that says whether it is checked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core import dtype as dt
from ..core.memory_format import layout as Layout
from ..core.memory_format import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr
from ..tensor import Tensor
from .tensor import BLOCKED, BY_ROWS


class check_sparse_tensor_invariants:
    """Switch the checks of indices on or off: as a function, a `with` block or a decorator.

    >>> with votive.sparse.check_sparse_tensor_invariants():
    ...     votive.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    _on = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether indices are checked where `check_invariants` is not given."""
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable() -> None:
        """Check from now on."""
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable() -> None:
        """Trust indices from now on."""
        check_sparse_tensor_invariants._on = False

    def __enter__(self) -> None:
        if self.saved is not None:
            raise RuntimeError("This context manager is already activated; make a second one for a block inside it.")
        self.saved = self._on
        check_sparse_tensor_invariants._on = self.state

    def __exit__(self, *exc: object) -> None:
        assert self.saved is not None
        check_sparse_tensor_invariants._on, self.saved = self.saved, None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def wanted(check_invariants: bool | None) -> bool:
    """Whether to check, by the argument or the switch."""
    return check_sparse_tensor_invariants.is_enabled() if check_invariants is None else bool(check_invariants)


def check_coo(indices: Tensor, values: Tensor, size: tuple[int, ...], *, deep: bool) -> None:
    """Raise when indices, values and size do not make a COO tensor; `deep` looks at the indices themselves."""
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if indices.dtype.is_inexact or indices.dtype is dt.bool_:
        raise RuntimeError(f"indices must be an int64 tensor, got {indices.dtype}.")
    sparse, dense = int(indices.shape[0]), values.ndim - 1
    if values.ndim == 0:
        raise RuntimeError("values must have at least one dimension, the number of specified elements.")
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: "
            f"{values.shape[0]}"
        )
    if sparse + dense != len(size):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({sparse}) + dense_dim ({dense}), but got {len(size)}"
        )
    if tuple(values.shape[1:]) != tuple(size[sparse:]):
        raise RuntimeError(
            f"values has incorrect size, expected {[values.shape[0], *size[sparse:]]}, got {list(values.shape)}"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension: {list(size)}")
    if deep and indices.numel():
        for d in range(sparse):
            low, high = int(indices[d].min().item()), int(indices[d].max().item())
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {d}")
            if high >= size[d]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {high}"
                )


_WORDS = {
    sparse_csr: ("crow_indices", "col_indices", "nrows", "ncols"),
    sparse_bsr: ("crow_indices", "col_indices", "nrowblocks", "ncolblocks"),
    sparse_csc: ("ccol_indices", "row_indices", "ncols", "nrows"),
    sparse_bsc: ("ccol_indices", "row_indices", "ncolblocks", "nrowblocks"),
}


def check_compressed(
    layout: Layout, starts: Tensor, plain: Tensor, values: Tensor, size: tuple[int, ...], *, deep: bool
) -> None:
    """Raise when the parts do not make a tensor of a compressed layout."""
    c_name, p_name, c_dim, _ = _WORDS[layout]
    if plain.layout is not values.layout or starts.ndim < 1:
        raise RuntimeError(f"{c_name} must have dimensionality >= 1 but got {starts.ndim}")
    batch = starts.ndim - 1
    inner = 2 if layout in BLOCKED else 0
    dense = values.ndim - batch - 1 - inner
    if plain.ndim != starts.ndim:
        raise RuntimeError(
            f"{c_name} and {p_name} dimensionalities must be equal but got {starts.ndim} and {plain.ndim}, respectively"
        )
    if dense < 0:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities ({batch} + {inner}) "
            f"but got {values.ndim}"
        )
    if len(size) != batch + 2 + dense:
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={batch} + 2 + {dense}) but got {len(size)}"
        )
    lead = tuple(size[:batch])
    for name, part in ((c_name, starts), (p_name, plain)):
        if tuple(part.shape[:-1]) != lead:
            raise RuntimeError(
                f"all batch dimensions of {name} (={list(part.shape[:-1])}) and of size must be equal (={list(lead)})"
            )
    if tuple(values.shape[:batch]) != lead:
        raise RuntimeError(
            f"all batch dimensions of values (={list(values.shape[:batch])}) must be equal to those of size."
        )
    block = tuple(values.shape[batch + 1 : batch + 1 + inner]) or (1, 1)
    rows, columns = size[batch], size[batch + 1]
    if min(block) < 1 or rows % block[0] or columns % block[1]:
        raise RuntimeError(
            f"tensor shape[{batch}:{batch + 2}] must be divisible by the blocksize {block}, got {(rows, columns)}."
        )
    grid = (rows // block[0], columns // block[1])
    major, minor = grid if layout in BY_ROWS else grid[::-1]
    if starts.shape[-1] != major + 1:
        raise RuntimeError(
            f"{c_name}.shape[-1] must be equal to the number of {c_dim} + 1 (={major + 1}), but got {starts.shape[-1]}"
        )
    nnz = plain.shape[-1]
    if values.shape[batch] != nnz:
        raise RuntimeError(
            f"{p_name}.shape[-1] must be equal to nnz (={values.shape[batch]}) as defined by values.shape[{batch}], "
            f"but got {nnz}"
        )
    if tuple(values.shape[batch + 1 + inner :]) != tuple(size[batch + 2 :]):
        raise RuntimeError(
            f"dense sizes of values {list(values.shape[batch + 1 + inner :])} do not match {list(size[batch + 2 :])}."
        )
    for name, part in ((c_name, starts), (p_name, plain)):
        if part.dtype not in (dt.int32, dt.int64):
            raise RuntimeError(f"{name} must be int32 or int64 type, but got {part.dtype}")
    if starts.dtype is not plain.dtype:
        raise RuntimeError(
            f"{c_name} and {p_name} must have the same dtype, but got {starts.dtype} and {plain.dtype}, respectively"
        )
    if deep and starts.numel():
        _check_indices(_WORDS[layout], starts, plain, minor)


def _check_indices(words: tuple[str, ...], starts: Tensor, plain: Tensor, minor: int) -> None:
    c_name, p_name, _, p_dim = words
    nnz = plain.shape[-1]
    if bool((starts[..., 0] != 0).any()):
        raise RuntimeError(f"`{c_name}[..., 0] == 0` is not satisfied.")
    if bool((starts[..., -1] != nnz).any()):
        raise RuntimeError(f"`{c_name}[..., -1] == nnz` is not satisfied.")
    steps = starts[..., 1:] - starts[..., :-1]
    if bool(((steps < 0) | (steps > minor)).any()):
        raise RuntimeError(f"`0 <= {c_name}[..., 1:] - {c_name}[..., :-1] <= {p_dim}` is not satisfied.")
    if nnz == 0:
        return
    if bool(((plain < 0) | (plain >= minor)).any()):
        raise RuntimeError(f"`0 <= {p_name} < {p_dim}` is not satisfied.")
    from .indices import expanded

    major = expanded(starts, nnz)
    same = major[..., 1:] == major[..., :-1]
    if bool((same & (plain[..., 1:] <= plain[..., :-1])).any()):
        raise RuntimeError(
            f"`{p_name}[..., {c_name}[..., i - 1]:{c_name}[..., i]] for all i = 1, ..., are sorted "
            "and distinct along the last dimension values` is not satisfied."
        )
