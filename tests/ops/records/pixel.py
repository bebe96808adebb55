"""Records for exchanges of channels and pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def shuffle(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c // r**2, h * r, w * r), x.dtype)
    for k, i, j in np.ndindex(c // r**2, r, r):
        out[..., k, i::r, j::r] = x[..., k * r * r + i * r + j, :, :]
    return out


def unshuffle(x: Any, r: int) -> Any:
    *lead, c, h, w = x.shape
    out = np.zeros((*lead, c * r**2, h // r, w // r), x.dtype)
    for k, i, j in np.ndindex(c, r, r):
        out[..., k * r * r + i * r + j, :, :] = x[..., k, i::r, j::r]
    return out


def channels(x: Any, groups: int) -> Any:
    per = x.shape[1] // groups
    return x[:, [g * per + k for k in range(per) for g in range(groups)]]


RECORDS = [
    op(
        "nn.functional.pixel_shuffle",
        samples=[(S(2, 8, 3, 2), 2), (S(9, 1, 2), 3), (S(2, 1, 4, 2, 2), 2), (S(2, 3, 2, 2), 1)],
        reference=shuffle,
        dtypes="bifc",
        errors=[
            ((S(2, 6, 3, 2), 2), RuntimeError),
            ((S(3, 2), 1), RuntimeError),
            ((S(2, 8, 3, 2), 0), RuntimeError),
            ((S(2, 8, 3, 2), 2.0), TypeError),
        ],
    ),
    op(
        "nn.functional.pixel_unshuffle",
        samples=[(S(2, 2, 6, 4), 2), (S(1, 3, 6), 3), (S(2, 1, 1, 4, 2), 2)],
        reference=unshuffle,
        dtypes="bifc",
        errors=[((S(2, 2, 5, 4), 2), RuntimeError), ((S(2, 2, 6, 4), -1), RuntimeError), ((S(4, 4), 2), RuntimeError)],
    ),
    op(
        "nn.functional.channel_shuffle",
        samples=[(S(2, 6, 3), 3), (S(2, 6, 2, 3), 2), (S(1, 4, 2, 1, 2), 4), (S(0, 4, 2), 2)],
        reference=channels,
        dtypes="bifc",
        errors=[((S(2, 6, 3), 4), RuntimeError), ((S(2, 6, 3), 0), RuntimeError), ((S(2, 6), 2), RuntimeError)],
    ),
]
