"""Sparse tensors in files: the parts they are saved as, and back. What comes from a file is checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core import dtype as dt
from ..core import memory_format as formats
from ..tensor import Tensor
from .indices import ravel
from .invariants import check_compressed, check_coo
from .tensor import CompressedTensor, CooTensor

_LAYOUTS = {f.name: f for f in (formats.sparse_csr, formats.sparse_csc, formats.sparse_bsr, formats.sparse_bsc)}


def describe(x: Any) -> tuple[dict[str, Any], tuple[Tensor, ...]]:
    """What is to be known of a sparse tensor beside its parts, and the parts."""
    known: dict[str, Any] = {"layout": x._layout.name, "shape": [int(n) for n in x.shape]}
    if isinstance(x, CooTensor):
        known["coalesced"] = x._coalesced
    if x._rg:
        known["grad"] = True
    return known, x._parts()


def restore(
    layout: Any, shape: Sequence[int], parts: Sequence[Tensor], coalesced: Any = False, grad: Any = False
) -> Any:
    """A sparse tensor from a file; a RuntimeError when its parts do not belong together."""
    size = tuple(shape)
    if any(type(n) is not int or n < 0 for n in size) or not all(type(p) is Tensor for p in parts):
        raise RuntimeError("a sparse tensor has a wrong size, or parts that are not tensors.")
    if layout == "sparse_coo" and len(parts) == 2:
        at, values = parts
        if at.dtype is not dt.int64:
            raise RuntimeError(f"indices of a sparse tensor must be int64, got {at.dtype}.")
        check_coo(at, values, size, deep=True)
        flat = ravel(at, size[: at.shape[0]])
        if coalesced and bool((flat[1:] <= flat[:-1]).any()):
            raise RuntimeError("a sparse tensor is said to be coalesced and is not.")
        made: Any = CooTensor.make(at, values, size, bool(coalesced))
    elif layout in _LAYOUTS and len(parts) == 3:
        starts, plain, values = parts
        check_compressed(_LAYOUTS[layout], starts, plain, values, size, deep=True)
        made = CompressedTensor.make(_LAYOUTS[layout], starts, plain, values, size)
    else:
        raise RuntimeError(f"an unknown sparse layout, {layout!r}, or a wrong number of parts.")
    return made.requires_grad_() if grad else made
