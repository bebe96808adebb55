"""SciPy's sparse arrays and ours look at the same memory. SciPy is needed only by who asks for one of its arrays."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..surface.interchange import from_numpy
from .construct import sparse_compressed_tensor
from .tensor import CompressedTensor, CooTensor, SparseTensor

if TYPE_CHECKING:
    from ..tensor import Tensor

_COMPRESSED = {"csr": "sparse_csr", "csc": "sparse_csc", "bsr": "sparse_bsr"}


def from_scipy(array: Any) -> Any:
    """A sparse tensor over the memory of one of SciPy's sparse arrays or matrices: `coo`, `csr`, `csc` or `bsr`.

    Values are never copied. Indices are not either where their type is one that the layout has: int64 for COO, int32
    or int64 for the others.
    """
    from ..core import memory_format as formats

    kind = getattr(array, "format", None)
    if kind in _COMPRESSED and hasattr(array, "indptr"):
        starts, plain = (np.asarray(a) for a in (array.indptr, array.indices))
        if starts.dtype != plain.dtype:
            starts, plain = starts.astype(np.int64), plain.astype(np.int64)
        parts = (from_numpy(starts), from_numpy(plain), from_numpy(np.asarray(array.data)))
        return sparse_compressed_tensor(*parts, array.shape, layout=getattr(formats, _COMPRESSED[kind]))
    if kind == "coo":
        coords = getattr(array, "coords", None) or (array.row, array.col)
        base = coords[0].base
        if base is not None and base.ndim == 2 and base.dtype == np.int64 and all(c.base is base for c in coords):
            at = base
        else:
            at = np.stack([np.asarray(c, dtype=np.int64) for c in coords])
        made = CooTensor.make(from_numpy(at), from_numpy(np.asarray(array.data)), array.shape, False)
        return made._coalesced_(bool(getattr(array, "has_canonical_format", False)))
    raise TypeError(
        f"from_scipy: expected a sparse array in coo, csr, csc or bsr format, got {type(array).__name__}; "
        "use its .tocsr() first."
    )


def to_scipy(x: Tensor) -> Any:
    """One of SciPy's sparse arrays over the memory of a sparse tensor on the CPU; needs SciPy."""
    if not isinstance(x, SparseTensor):
        raise TypeError("to_scipy: expected a sparse tensor; use .to_sparse() first.")
    if x._rg:
        raise RuntimeError("to_scipy: the tensor requires grad; use .detach() first.")
    if x.dense_dim() or x.ndim != 2:
        raise RuntimeError("to_scipy: SciPy has matrices only, without batches or dense dimensions.")
    try:
        scipy = importlib.import_module("scipy.sparse")
    except ImportError:
        raise ImportError("to_scipy: SciPy is not installed; `pip install scipy` adds it.") from None
    shape = tuple(x.shape)
    if isinstance(x, CooTensor):
        at = x._at.numpy()
        return scipy.coo_array((x._held.numpy(), (at[0], at[1])), shape=shape, copy=False)
    assert isinstance(x, CompressedTensor)
    name = x._layout.name.removeprefix("sparse_")
    if name == "bsc":
        raise RuntimeError("to_scipy: SciPy has no BSC layout; use .to_sparse_bsr() first.")
    parts = (x._held.numpy(), x._plain.numpy(), x._starts.numpy())
    return getattr(scipy, f"{name}_array")(parts, shape=shape, copy=False)
