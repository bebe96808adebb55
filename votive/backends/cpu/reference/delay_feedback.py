"""Echoes that come back, sample by sample. Knows arrays only."""

from __future__ import annotations

import numpy as np

from ....core.errors import fail
from ...base import kernel
from ..arrays import Array


@kernel("_delay_feedback")
def delay_feedback(x: Array, gain: Array, lag: Array, transposed: bool) -> Array:
    if lag.size and lag.min() < 1:
        fail(ValueError, "delay_feedback", f"lags must be at least 1, got {lag.min()}.")
    y = x.astype(np.float64)
    echoes, channels, time = gain.shape
    every = range(time - 1, -1, -1) if transposed else range(time)
    for n in every:
        for j in range(echoes):
            for c in range(channels):
                m = n - lag[j, c, n]
                if m < 0:
                    continue
                if transposed:
                    y[:, c, m] += gain[j, c, n] * y[:, c, n]
                else:
                    y[:, c, n] += gain[j, c, n] * y[:, c, m]
    return y
