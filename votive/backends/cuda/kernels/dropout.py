"""Dropout: a value is kept where its word of the draw says so."""

from __future__ import annotations

import numpy as np

from ....core import dtype as dt
from ...common.slot import Slot
from ..programs.types import Run, floats
from ..rows import cuda
from .random.distributions import threshold
from .random.draws import DROPOUT, sampler


@cuda("_dropout", accepts=floats)
def dropout(x: Slot, key: Slot, counter: Slot, p: float) -> Run:
    launch = sampler(DROPOUT, x.spec.dense_like(), False, x.spec)
    scale = 1 / (1 - p) if p < 1 else 0.0
    if x.dtype is not dt.float64:
        scale = float(np.float32(scale))
    least = threshold(1 - p)
    return lambda outs, x, key, counter: launch(outs[0], key, counter, scale, 0.0, least, 0.0, x.ptr)
