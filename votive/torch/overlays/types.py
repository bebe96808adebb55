"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, TypeAlias

from ...core.device import device as _Device
from ...core.dtype import dtype as _Dtype
from ...core.layout import Size as _Size
from ..storage import UntypedStorage

__all__ = [
    "Device",
    "FileLike",
    "IntLikeType",
    "Number",
    "Storage",
    "_bool",
    "_device",
    "_dtype",
    "_float",
    "_int",
    "_size",
]

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_device: TypeAlias = _Device
_dtype: TypeAlias = _Dtype
_size: TypeAlias = _Size | Sequence[builtins.int]
IntLikeType: TypeAlias = builtins.int
Number: TypeAlias = builtins.int | builtins.float | builtins.bool
Device: TypeAlias = _Device | str | builtins.int | None
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Storage: TypeAlias = UntypedStorage
