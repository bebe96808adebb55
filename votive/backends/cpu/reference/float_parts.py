"""Taking floats apart, and the neighbours of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array


@kernel("_frexp")
def frexp(x: Array) -> tuple[Any, Any]:
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent


# The neighbours of a half are not those of the same number in float32: no widening here.
@kernel("nextafter", widen=False, into=True)
def nextafter(a: Array, b: Array, out: Array) -> None:
    np.nextafter(a.astype(out.dtype, copy=False), b.astype(out.dtype, copy=False), out=out)
