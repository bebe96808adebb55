"""`votive.utils.dlpack`: tensors from and for other libraries, at the path torch has them."""

from __future__ import annotations

from typing import Any

from ..surface.interchange import from_dlpack as from_dlpack
from ..tensor import Tensor


def to_dlpack(tensor: Tensor) -> Any:
    """The DLPack capsule of a tensor, which shares its memory.

    >>> type(votive.utils.dlpack.to_dlpack(votive.ones(2))).__name__
    'PyCapsule'
    """
    return tensor.__dlpack__()
