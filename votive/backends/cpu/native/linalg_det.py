"""Determinants and cofactors of small matrices, natively; large ones are left to LAPACK."""

from __future__ import annotations

import numpy as np

from ....core.layout import Spec
from ...base import kernel
from ...common.slot import Slot
from ..arrays import Args, Array
from ..reference.linalg_det import by_singular_values
from .linalg_lu import filled
from .linalg_solve import LARGEST
from .loader import module
from .rows import OUT, OUT1, native


@native("_det", "det", accepts=filled, optional=True)
def det(a: Slot) -> Args:
    return (a, OUT) if a.shape[-1] <= LARGEST else None


@native("_slogdet", "slogdet", accepts=filled, optional=True)
def slogdet(a: Slot) -> Args:
    return (a, OUT, OUT1) if a.shape[-1] <= LARGEST else None


def _small(a: Spec) -> bool:
    return filled(a) and a.shape[-1] <= LARGEST


if module is not None and module.has_kernel("cofactor"):
    _cofactor = module.Kernel("cofactor")

    @kernel("_cofactor", priority=10, widen=False, into=True, label="native", accepts=_small)
    def cofactor(a: Array, out: Array) -> None:
        poor = np.zeros(a.shape[:-2], bool)
        _cofactor(a, out, poor)
        if poor.any():
            out[poor] = by_singular_values(a[poor])
