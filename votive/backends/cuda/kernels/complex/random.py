"""Random complex numbers: those of the real sampler for both parts, as on the CPU."""

from __future__ import annotations

import math
from typing import Any

from .....core import dtype as dt
from .....core.device import device
from .....core.layout import Layout, Spec
from .....formula import var
from ....common import sampling_bounds as bounds
from ....common.slot import Slot
from ...programs.complex_pointwise import pairs_of
from ...programs.types import Run
from ...rows import cuda
from ...runtime.views import View
from ..random import distributions as random
from ..random.draws import NORMAL
from .products import elementwise

_X, _M = var("x"), var("m")


def _complex(x: Spec, *rest: Spec) -> bool:
    return x.dtype.is_complex and not rest


def _seen(v: View) -> View:
    return View(v.ptr, pairs_of(v.spec), v.storage)


def _normal(spec: Spec) -> Any:
    draw = random._normal(pairs_of(spec), NORMAL)
    moved = elementwise(_X + _M, "xm", [spec, None], spec)

    def run(to: View, key: int, counter: int, mean: View | None, std: Any) -> None:
        bounds.check_normal(std)
        whole = isinstance(mean, complex)
        # The variance of a complex number is shared by its parts.
        draw(_seen(to), key, counter, 0.0 if whole else mean, std * math.sqrt(0.5))
        if whole and mean:
            moved([to, mean], to)

    return run


@cuda("_normal", accepts=_complex, priority=20)
def normal(x: Slot, key: Slot, counter: Slot, mean: Slot, std: Slot) -> Run:
    if isinstance(std.spec, Spec) or isinstance(mean.spec, Spec):
        return None
    draw = _normal(x.spec.dense_like())
    return lambda outs, x, key, counter, mean, std: draw(outs[0], key, counter, mean, std)


@cuda("_new_normal", priority=20)
def new_normal(
    size: tuple[int, ...], dtype: dt.dtype, device: device, key: Slot, counter: Slot, mean: Slot, std: Slot
) -> Run:
    if not dtype.is_complex:
        return None
    draw = _normal(Spec(Layout(tuple(size)), dtype, device))
    return lambda outs, key, counter, mean, std: draw(outs[0], key, counter, mean, std)


@cuda("_uniform", accepts=_complex, priority=20)
def uniform(x: Slot, key: Slot, counter: Slot, low: Slot, high: Slot) -> Run:
    draw = random._uniform(pairs_of(x.spec.dense_like()))
    return lambda outs, x, key, counter, low, high: draw(_seen(outs[0]), key, counter, low, high)


@cuda("_new_uniform", priority=20)
def new_uniform(
    size: tuple[int, ...], dtype: dt.dtype, device: device, key: Slot, counter: Slot, low: Slot, high: Slot
) -> Run:
    if not dtype.is_complex:
        return None
    draw = random._uniform(pairs_of(Spec(Layout(tuple(size)), dtype, device)))
    return lambda outs, key, counter, low, high: draw(_seen(outs[0]), key, counter, low, high)
