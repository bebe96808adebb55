"""Rotary position embedding on native kernels agrees with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.ops.registry import OPS

from .compare import agree, layouts, needs_native, served_by_native

pytestmark = needs_native


def values(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    return votive.tensor(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.float16, dt.bfloat16], ids=str)
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(
    ("shape", "table", "offset"),
    [
        ((3, 4), (3, 2), 0),
        ((2, 5, 9, 32), (20, 16), 7),
        ((2, 3, 4, 71), (2, 1, 4, 33), 0),
        ((2, 1, 6, 40), (1, 1, 8, 20), 2),
        ((0, 3, 4), (3, 2), 0),
        ((4, 8, 128, 64), (128, 32), 0),
    ],
    ids=str,
)
def test_rope_agrees_in_every_layout(dtype: Any, interleaved: bool, shape: Any, table: Any, offset: int) -> None:
    x = values(shape, dtype)
    tables = [dt.float32, dtype] if dtype in dt.HALF else [dtype]
    for kind in tables:
        cos, sin = values(table, kind, 1), values(table, kind, 2)
        for form in [*layouts(x), x.transpose(0, 1).contiguous().transpose(0, 1)]:
            for c, s in zip(layouts(cos), layouts(sin), strict=True):
                agree(
                    lambda t, c=c, s=s: OPS["_rope"](t, c, s, offset, interleaved),
                    form,
                    atol=1e-6 if dtype is dt.float32 else None,
                )


def test_the_row_is_native() -> None:
    x, table = votive.rand(3, 4), votive.rand(3, 2)
    assert served_by_native("_rope", lambda: votive.nn.functional.rope(x, table, table))
