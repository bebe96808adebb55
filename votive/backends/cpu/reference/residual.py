"""A sum and its norm on NumPy, one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtype import dtype, from_numpy
from ....core.promotion import promote_types
from ...base import kernel
from ..arrays import Array
from .normalization import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from .standardise import NOTHING


def _wide(x: Any) -> Any:
    if x is None or x.dtype == np.float64:
        return x
    return x.astype(np.float32)


@kernel("_add_norm", widen=False)
def add_norm(
    x: Array,
    delta: Array,
    weight: Array | None,
    bias: Array | None,
    dims: int,
    eps: float,
    centre: bool,
    dtype: dtype | None,
) -> tuple[Array, ...]:
    kind = promote_types(from_numpy(x.dtype), from_numpy(delta.dtype)).np  # NumPy's know no bfloat16
    total = (_wide(x) + _wide(delta)).astype(kind)
    s, w, b = _wide(total), _wide(weight), _wide(bias)
    if centre:
        y, mean, rstd = layer_norm(s, w, b, dims, eps)
    else:
        y, rstd = rms_norm(s, w, dims, eps)
        mean = NOTHING
    return y if dtype is None else y.astype(dtype.np), total, mean, rstd


@kernel("_add_norm_backward", widen=False)
def add_norm_backward(
    g: Array,
    by_sum: Array | None,
    total: Array,
    mean: Array | None,
    rstd: Array,
    weight: Array | None,
    dims: int,
    delta: dtype,
    by_affine: bool,
) -> tuple[Array, ...]:
    g, s, w = _wide(g), _wide(total), _wide(weight)
    if mean is None:
        by, by_weight = rms_norm_backward(g, s, rstd, w, dims, True, by_affine)
        by_bias = NOTHING
    else:
        by, by_weight, by_bias = layer_norm_backward(g, s, mean, rstd, w, dims, True, by_affine)
    if by_sum is not None:
        by = by + _wide(by_sum)
    narrow = delta.np
    same = narrow == total.dtype
    return by.astype(total.dtype), NOTHING if same else by.astype(narrow), by_weight, by_bias
