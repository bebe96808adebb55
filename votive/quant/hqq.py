"""HQQ: minima of blocks chosen so that most errors are small, without any data. Arrays only.

Badri and Shaji, "Half-Quadratic Quantization of Large Machine Learning Models" (2023): the error's p-norm with p < 1
forgives outliers; an auxiliary error E takes them out by shrinkage, and the zero point follows in closed form.
"""

from __future__ import annotations

import numpy as np

from ..backends.common.blocks.bits import pack_k_scales, unpack_k_scales
from ..core.blocks import block_dtype
from .encoding import rounded
from .grid import ASYMMETRIC, Array, Grid, decoded, grid_of, put_codes, records_of

# The norm, the weight of the coupling at the start and its growth, and how often: the paper's values.
_P, _BETA, _GROWTH, _ROUNDS = 0.7, 10.0, 1.01, 20


def _shrunk(x: Array, beta: float) -> Array:
    """The generalised soft threshold: argmin over e of |e|^p + beta/2 (e - x)^2, approximately."""
    size = np.abs(x)
    with np.errstate(divide="ignore"):
        cut = np.where(size > 0, np.power(np.maximum(size, 1e-12), _P - 1), 0) / beta
    out: Array = np.sign(x) * np.maximum(size - cut, 0)
    return out


def hqq(weight: Array, format: block_dtype, importance: Array | None = None) -> Array:
    """The bytes of a matrix in a format with minima; a block keeps its rounded form where that has less p-norm."""
    if format.name not in ASYMMETRIC:
        raise ValueError(
            f"hqq: chooses the minima of {', '.join(ASYMMETRIC)}; {format.name} has none. Use method='rtn' or 'gptq'."
        )
    raw = rounded(weight, format, importance)
    start = records_of(raw, format)
    grid = grid_of(start, format)
    x = weight.reshape(len(start), format.block_size)
    group = (len(start), -1, ASYMMETRIC[format.name])
    offset = grid.offset
    beta = _BETA
    # Errors are measured in the block's own size: the coupling's weight means nothing otherwise.
    size = np.maximum(np.abs(x).max(axis=1, keepdims=True), np.float32(1e-30))
    for _ in range(_ROUNDS):
        moved = Grid(format, grid.scale, offset)
        steps = moved.values(moved.codes(x)) - offset
        outliers = _shrunk((x - steps - offset) / size, beta) * size
        means = (x - outliers - steps).reshape(group).mean(axis=2, keepdims=True)
        offset = np.broadcast_to(means, (*means.shape[:2], group[2])).reshape(x.shape).astype(np.float32)
        beta *= _GROWTH
    records = start.copy()
    _put_offsets(records, offset, format)
    final = grid_of(records, format)
    put_codes(records, final.codes(x), format)
    before, after = (np.power(np.abs(decoded(r, format) - x), _P).sum(axis=1) for r in (start, records))
    better = after < before
    made = np.where(
        better[:, None], records.view(np.uint8).reshape(len(x), -1), start.view(np.uint8).reshape(len(x), -1)
    )
    return made.reshape(raw.shape)


def _put_offsets(records: Array, offset: Array, format: block_dtype) -> None:
    """Store one offset for each group, as exactly as the format can."""
    each = offset[:, :: ASYMMETRIC[format.name]]  # (records, groups)
    if "m" in (format.np.names or ()):
        records["m"] = each[:, 0]
        return
    # Super-blocks subtract dmin times small whole numbers.
    top = 15 if format.name == "q2_k" else 63
    subtracted = np.maximum(-each, 0)
    dmin = (subtracted.max(axis=1) / top).astype(np.float16)
    wide = dmin.astype(np.float32)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        m = np.where(wide > 0, np.rint(subtracted / wide), 0)
    m = np.clip(m, 0, top).astype(np.uint8)
    records["dmin"] = dmin
    if format.name == "q2_k":
        records["scales"] = (records["scales"] & 15) | (m << 4)
    else:
        records["scales"] = pack_k_scales(unpack_k_scales(records["scales"])[0], m)
