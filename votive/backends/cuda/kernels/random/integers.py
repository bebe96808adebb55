"""Random integers, also stored as floats, by the rule of `common/sampling.py`."""

from __future__ import annotations

import math
from typing import Any

from .....core import dtype as dt
from .....core.device import device
from .....core.layout import Spec
from ....common import sampling_bounds as bounds
from ....common.sampling_bounds import nearest_inside
from ....common.slot import Slot
from ...programs.program import TYPE
from ...programs.types import FLOATS, Run
from ...rows import cuda
from ...runtime.views import View
from .distributions import _row_major
from .draws import GEOMETRIC, INTEGERS, _word, sampler


def _integers(spec: Spec) -> Any:
    launch = sampler(INTEGERS, spec, True)
    kind, floating = spec.dtype.np, spec.dtype in FLOATS

    def run(to: View, key: int, counter: int, low: int, high: int) -> None:
        low, high = int(low), int(high)
        bounds.check_range(low, high, kind)
        first = last = 0.0
        if floating:
            first, last = (float(nearest_inside(v, kind, d)) for v, d in ((low, 1), (high - 1, -1)))
        launch(to, key, counter, first, last, _word(low), _word(high - low))

    return run


def _is_whole(dtype: dt.dtype) -> bool:
    return dtype in TYPE and (dtype in FLOATS or not dtype.is_floating_point)


@cuda("_random", accepts=lambda x: _is_whole(x.dtype), into=True, careful=True)
def random(x: Slot, key: Slot, counter: Slot, low: Slot, high: Slot | None) -> Run:
    draw, kind = _integers(x.spec.dense_like()), x.dtype.np

    def run(outs: list[View], x: View, key: int, counter: int, low: int, high: int | None = None) -> None:
        draw(outs[0], key, counter, *bounds.random_range(low, high, kind))

    return run


@cuda("_new_random")
def new_random(
    size: tuple[int, ...], dtype: dt.dtype, device: device, key: Slot, counter: Slot, low: Slot, high: Slot
) -> Run:
    if not _is_whole(dtype):
        return None
    draw = _integers(_row_major(size, dtype, device))
    return lambda outs, key, counter, low, high: draw(outs[0], key, counter, low, high)


@cuda("_geometric", accepts=lambda x: x.dtype in TYPE and x.dtype is not dt.bool_, into=True, careful=True)
def geometric(x: Slot, key: Slot, counter: Slot, p: Slot) -> Run:
    spec = x.spec.dense_like()
    floating = spec.dtype.is_floating_point
    if floating and spec.dtype not in FLOATS:
        return None
    launch = sampler(GEOMETRIC, spec, spec.dtype is dt.float64 or not floating)
    largest = 0 if floating else min(bounds.integer_limits(spec.dtype.np)[1], 2**63 - 1)

    def run(outs: list[View], x: View, key: int, counter: int, p: float) -> None:
        bounds.check_geometric(p)
        launch(outs[0], key, counter, math.log1p(-p), 0.0, largest, 0.0)

    return run
