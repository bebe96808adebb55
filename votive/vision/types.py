"""Names for what several signatures take: pictures, sizes, fills, layers, weights. Nothing here runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from PIL.Image import Image

    from ..io import WeightSource
    from ..nn import Module
    from ..tensor import Tensor

PILImage: TypeAlias = "Image"
Picture: TypeAlias = "Tensor | Image"
Path: TypeAlias = str | os.PathLike[str]
Size: TypeAlias = int | Sequence[int]
Fill: TypeAlias = float | Sequence[float] | None
# One for all kinds of input, or one for each: a dict from types, and "others", to fills.
FillByKind: TypeAlias = Fill | dict[type | str, Fill]
# A part of a sample after a user's function.
Function: TypeAlias = Callable[[Any], Any]
Layer: TypeAlias = "Callable[..., Module]"
Weights: TypeAlias = "str | os.PathLike[str] | Mapping[str, Tensor] | WeightSource"
