"""Records for rotary position embedding, which torch does not have."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def rope(x: Any, cos: Any, sin: Any, interleaved: bool = False, offset: int = 0) -> Any:
    """As in the paper: pairs are complex numbers, turned by a product."""
    rows = slice(offset, offset + x.shape[-2])
    turn = (cos + 1j * sin)[..., rows, :]
    n = turn.shape[-1]
    first = np.arange(0, 2 * n, 2) if interleaved else np.arange(n)
    second = first + (1 if interleaved else n)
    z = (x[..., first] + 1j * x[..., second]) * turn
    out = np.array(x)
    out[..., first], out[..., second] = z.real, z.imag
    return out


RECORDS = [
    op(
        "nn.functional.rope",
        samples=[
            (S(3, 4), S(3, 2), S(3, 2)),
            (S(3, 4), S(3, 2), S(3, 2), {"interleaved": True}),
            (S(2, 2, 3, 6), S(8, 3), S(8, 3), {"offset": 4}),
            (S(2, 2, 3, 6), S(8, 3), S(8, 3), {"offset": 5, "interleaved": True}),
            (S(2, 2, 3, 7), S(2, 1, 3, 2), S(2, 1, 3, 2)),
            (S(2, 2, 3, 7), S(2, 1, 4, 2), S(2, 1, 4, 2), {"interleaved": True, "offset": 1}),
            (S(1, 4), S(1, 2, dtype="float32", grad=False), S(1, 2, dtype="float32", grad=False)),
            (S(0, 3, 4), S(3, 2), S(3, 2)),
            (S(2, 0, 4), S(3, 2), S(3, 2), {"offset": 3}),
        ],
        reference=rope,
        torch=False,
        errors=[
            ((S(3, 4), S(3, 3), S(3, 3)), RuntimeError),
            ((S(3, 4), S(3, 2), S(3, 1)), RuntimeError),
            ((S(3, 4), S(2, 3, 2), S(2, 3, 2)), RuntimeError),
            ((S(4), S(3, 2), S(3, 2)), RuntimeError),
            ((S(3, 4), S(3, 2), S(3, 2), {"offset": 1}), IndexError),
            ((S(3, 4), S(3, 2), S(3, 2), {"offset": -1}), IndexError),
            ((S(3, 4, dtype="int64"), S(3, 2), S(3, 2)), NotImplementedError),
            ((S(3, 4), S(3, 2, dtype="int64"), S(3, 2)), RuntimeError),
        ],
    )
]
