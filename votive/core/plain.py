"""Values in what JSON knows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def plain(value: object, *, null: bool = False) -> Any:
    """The value in what JSON knows. Numbers that are not finite become their text, or null.

    >>> from votive.core.plain import plain
    >>> plain({"x": float("inf"), "shape": (2, 3)})
    {'x': 'inf', 'shape': [2, 3]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None if null else str(value)
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, Mapping):
        return {str(k): plain(v, null=null) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v, null=null) for v in value]
    if hasattr(value, "tolist"):  # tensors, arrays and their scalars
        return plain(value.tolist(), null=null)
    return str(value)
