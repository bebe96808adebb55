"""Records for data from outside; sharing of memory is tested in tests/test_interchange.py."""

from __future__ import annotations

import numpy as np

import votive as vt
from tests.ops.catalog import S, op

RECORDS = [
    op(
        "asarray",
        samples=[([1, 2],), (2.5,), (S(2, 3),), (S(2), {"dtype": vt.complex128})],
        reference=lambda data, **_: np.asarray(data),
        dtypes="bifc",
        grad=False,  # the result is detached unless requires_grad=True
        errors=[(([1], {"copy": False}), ValueError)],
    ),
    op(
        "frombuffer",
        samples=[
            (bytearray(range(8)), {"dtype": vt.uint8}),
            (bytearray(range(8)), {"dtype": vt.int16, "count": 2, "offset": 2}),
        ],
        grad=False,
        errors=[((bytearray(3), {"dtype": vt.int16}), ValueError), (([1], {"dtype": vt.int16}), ValueError)],
    ),
]
