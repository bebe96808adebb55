"""A cache that rounds rows by itself and keeps numbers: what caches of few bits must agree with."""

from __future__ import annotations

from typing import Any

import numpy as np

import votive
from votive import nn
from votive.backends.common.blocks import decode_into
from votive.backends.cpu.reference.row_blocks import block_encode
from votive.nn.layers.kv_storage import NAMES, pair_of, row_format

FORMATS = list(NAMES)


def rounded(x: Any, name: str) -> Any:
    """The numbers that are left of rows when each is rounded once, by NumPy."""
    kind = row_format(name, x.shape[-1])
    raw = block_encode(x.detach().float().numpy(), kind)
    out = np.empty(x.shape, np.float32)
    decode_into(out.reshape(-1), raw.reshape(-1), kind)
    return votive.from_numpy(out).to(x.dtype)


class Rounding(nn.DynamicCache):
    """The ordinary cache, given rows that were rounded before."""

    def __init__(self, dtype: Any) -> None:
        super().__init__(overwrite=True)
        self.names = pair_of(dtype)

    def update(self, key: Any, value: Any, layer_idx: int = 0) -> Any:
        return super().update(*self.of(key, value), layer_idx)

    def of(self, key: Any, value: Any) -> Any:
        """A pair as it is after rounding."""
        parts = zip((key, value), self.names, strict=True)
        return tuple(x if name is None else rounded(x, name) for x, name in parts)

    def stored(self, pair: Any) -> Any:
        return self.of(*pair)
