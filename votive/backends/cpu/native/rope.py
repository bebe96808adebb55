"""Rotary position embedding: a row of the kernel table."""

from __future__ import annotations

from typing import Any

from ....core import dtype as dt
from .rows import OUT, native
from .softmax import floats


def _accepts(x: Any, cos: Any, sin: Any) -> bool:
    """Tables may be narrower than what is computed in, not wider."""
    narrow = dt.float64 not in (cos.dtype, sin.dtype)
    return floats(x, cos, sin) and (x.dtype is dt.float64 or narrow)


@native("_rope", "rope", accepts=_accepts)
def rope(x: Any, cos: Any, sin: Any, offset: Any, interleaved: bool) -> Any:
    return (x, cos, sin, OUT, offset, int(interleaved)) if type(offset.spec) is int else None
