"""Moving elements."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ...common.assign import assign
from ..arrays import Array, Ints


@kernel("_flip", into=True, widen=False)
def flip(x: Array, dims: Ints, out: Array) -> None:
    out[...] = np.flip(x, dims) if x.ndim else x


@kernel("roll", widen=False)
def roll(x: Array, shifts: Ints, dims: Ints) -> Array:
    return np.roll(x, shifts, dims) if dims else np.roll(x, shifts[0])


@kernel("constant_pad_nd", into=True, widen=False)
def constant_pad_nd(x: Array, pad: Ints, value: float, out: Array) -> None:
    assign(out, np.asarray(value))
    source, target = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        d = x.ndim - 1 - i
        source[d] = slice(max(-before, 0), x.shape[d] - max(-after, 0))
        target[d] = slice(max(before, 0), out.shape[d] - max(after, 0))
    out[tuple(target)] = x[tuple(source)]
