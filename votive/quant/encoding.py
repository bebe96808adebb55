"""Numbers to blocks, by rounding: in parts, so that the encoder's temporaries stay small. Arrays only."""

from __future__ import annotations

import numpy as np

from ..backends.common.blocks.encode import ENCODABLE as ENCODABLE
from ..backends.common.blocks.encode import FITTED, encode
from ..config import get_num_threads
from ..core.blocks import block_dtype
from .grid import Array

# Elements at a time.
_PART = 1 << 21


def rounded(weight: Array, format: block_dtype, importance: Array | None = None) -> Array:
    """The bytes of the rows of a matrix; `importance` weighs the errors of its columns, for formats that are fitted."""
    weights = importance if format.name in FITTED else None
    rows, columns = weight.shape
    step = max(1, _PART // max(1, columns))
    out = np.empty((rows, format.row_bytes(columns)), np.uint8)
    for i in range(0, rows, step):
        out[i : i + step] = encode(weight[i : i + step], format, importance=weights, threads=get_num_threads())
    return out
