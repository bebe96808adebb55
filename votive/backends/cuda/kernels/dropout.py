"""Dropout: a value is kept where its word of the draw says so."""

from __future__ import annotations

import numpy as np

from ....core import dtype as dt
from ...common.slot import Slot
from ..programs.layouts import contiguous
from ..programs.types import Run
from ..rows import cuda
from ..runtime.views import View
from .random.distributions import DROPOUT, sampler, threshold


@cuda("_dropout", accepts=lambda x: x.dtype in (dt.float32, *dt.HALF))
def dropout(x: Slot, key: Slot, counter: Slot, p: float) -> Run:
    spec = x.spec.dense_like()
    launch = sampler(DROPOUT, spec, False)
    scale = float(np.float32(1 / (1 - p))) if p < 1 else 0.0
    least = threshold(1 - p)

    def run(outs: list[View], x: View, key: int, counter: int) -> None:
        x = contiguous(x)
        launch(outs[0], key, counter, scale, 0.0, least, 0.0, x.ptr)

    return run
