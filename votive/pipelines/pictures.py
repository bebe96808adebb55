"""Pictures as pipelines take them: paths, addresses, pillow's, arrays and tensors. Knows no task."""

from __future__ import annotations

import os
from typing import Any

from ..models.pixels import channels_first, opened
from ..tensor import Tensor


def picture(item: Any) -> Any:
    """A picture that a processor reads: a path is opened; an address on the web is refused.

    >>> from votive.pipelines.pictures import picture
    >>> picture("https://example.org/cat.png")
    Traceback (most recent call last):
    ValueError: pictures are not fetched from the web; download https://example.org/cat.png and give its path.
    """
    if isinstance(item, str) and item.startswith(("http://", "https://")):
        raise ValueError(f"pictures are not fetched from the web; download {item} and give its path.")
    if isinstance(item, str | os.PathLike):
        return opened(item).convert("RGB")
    return item.convert("RGB") if hasattr(item, "getbands") else item


def pixels(processor: Any, item: Any, **changes: Any) -> dict[str, Tensor]:
    """A picture as a batch of one."""
    found = processor([picture(item)], return_tensors="vt", **changes)
    return {name: value for name, value in found.items() if isinstance(value, Tensor)}


def size(item: Any) -> tuple[int, int]:
    """Height and width of a picture."""
    shape = channels_first(picture(item), None).shape
    return int(shape[1]), int(shape[2])
