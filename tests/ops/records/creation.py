"""Records for making and filling tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

import votive as vt
from tests.ops.catalog import S, op


def sized(fill: Any) -> Any:
    """A reference that fills the shape given as numbers or as one tuple."""
    return lambda *size, **_: fill(size[0] if size and isinstance(size[0], tuple) else size)


def new(fill: Any) -> Any:
    return lambda x, *size, **_: fill(size[0] if size and isinstance(size[0], tuple) else size)


SIZES = [(2, 3), ((2, 3),), ((),), ((0, 3),), (2, {"dtype": vt.int64})]
BAD_SIZES = [((-1,), RuntimeError), ((2.5,), TypeError), ((), TypeError), (("a",), TypeError)]
NEW = [(S(2), 2, 3), (S(2), (0, 3)), (S(2), 2, {"dtype": vt.int64})]

RECORDS = [
    op("zeros", samples=SIZES, reference=sized(np.zeros), grad=False, errors=BAD_SIZES),
    op("ones", samples=SIZES, reference=sized(np.ones), grad=False, errors=BAD_SIZES),
    op("empty", samples=SIZES, random=True, grad=False, errors=BAD_SIZES),
    op(
        "full",
        samples=[
            ((2, 3), 7),
            ((2,), 1.5),
            ((), True),
            ((2,), 1.5, {"dtype": vt.int64}),
            ((2,), -1, {"dtype": vt.uint8}),
        ],
        grad=False,
        errors=[
            ((2, 7), TypeError),
            (((2,), 300, {"dtype": vt.uint8}), RuntimeError),
            (((2,), 1j, {"dtype": vt.float32}), RuntimeError),
        ],
    ),
    op(
        "empty_strided",
        samples=[((2, 3), (1, 2)), ((2, 3), (7, 2))],
        random=True,
        grad=False,
        errors=[(((2, 3), (1,)), RuntimeError), (((2,), (-1,)), RuntimeError)],
    ),
    op(
        "empty_permuted",
        samples=[((2, 3, 4), (0, 2, 1))],
        random=True,
        grad=False,
        errors=[(((2, 3), (0,)), RuntimeError), (((2, 3), (0, 0)), RuntimeError)],
    ),
    op(
        "eye",
        samples=[(3,), (3, 2), (2, {"m": 4}), (0,), (2, {"dtype": vt.bool})],
        reference=lambda n, m=None, **_: np.eye(n, m),
        grad=False,
        errors=[((-1,), RuntimeError), ((2.0,), TypeError)],
    ),
    op(
        "scalar_tensor",
        samples=[(3,), (2.5,), (3, {"dtype": vt.int64})],
        reference=lambda s, **_: np.array(s),
        grad=False,
        errors=[((1j,), RuntimeError)],
    ),
    op("empty_like", samples=[(S(2, 3),), (S(2), {"dtype": vt.int64})], dtypes="bifc", random=True, grad=False),
    op(
        "zeros_like",
        samples=[(S(2, 3),), (S(2), {"dtype": vt.int64})],
        dtypes="bifc",
        grad=False,
        reference=lambda x, **_: np.zeros(x.shape),
    ),
    op(
        "ones_like",
        samples=[(S(2, 3),), (S(2), {"dtype": vt.int64})],
        dtypes="bifc",
        grad=False,
        reference=lambda x, **_: np.ones(x.shape),
    ),
    op(
        "full_like",
        samples=[(S(2, 3), 1), (S(2), 1.5, {"dtype": vt.int64})],
        dtypes="bifc",
        grad=False,
        reference=lambda x, value, **_: np.full(x.shape, int(value)),
        errors=[((S(2, dtype="float64"), 1j), RuntimeError)],
    ),
    op("Tensor.new_zeros", samples=NEW, dtypes="bifc", grad=False, reference=new(np.zeros)),
    op("Tensor.new_ones", samples=NEW, dtypes="bifc", grad=False, reference=new(np.ones)),
    op("Tensor.new_empty", samples=NEW, dtypes="bifc", grad=False, random=True),
    op("Tensor.new_empty_strided", samples=[(S(2), (2, 3), (7, 2))], grad=False, random=True),
    op(
        "Tensor.new_full",
        samples=[(S(2), (2, 3), 1), (S(2), (2,), 1.5, {"dtype": vt.int64})],
        dtypes="bifc",
        grad=False,
        reference=lambda x, size, value, **_: np.full(size, int(value)),
    ),
    op(
        "Tensor.new_tensor",
        samples=[(S(2), [[1, 0], [0, 1]]), (S(2), 1, {"dtype": vt.int64})],
        dtypes="bifc",
        grad=False,
        reference=lambda x, data, **_: np.array(data),
    ),
    op(
        "tensor",
        samples=[([[1, 2], [3, 4]],), ([1.5, 2],), (True,), ([],), ([1, 2], {"dtype": vt.complex64})],
        reference=lambda data, **_: np.array(data),
        grad=False,
        errors=[
            (([[1, 2], [3]],), ValueError),
            (("a",), TypeError),
            ((None,), RuntimeError),
            (([1j], {"dtype": vt.float32}), TypeError),
            ((2**63,), ValueError),
        ],
    ),
    op(
        "fill",
        samples=[(S(2, 3), 1), (S(2, 3), S()), (S(), 1), (S(0), 1)],
        dtypes="bifc",
        reference=lambda x, value: np.full(x.shape, value),
        errors=[((S(2), S(2)), RuntimeError), ((S(2, dtype="float64"), 1j), RuntimeError)],
    ),
    op(
        "Tensor.fill_",
        samples=[(S(2, 3), 1), (S(2, 3), S()), (S(0), 1)],
        dtypes="bifc",
        reference=lambda x, value: np.full(x.shape, value),
        grad=False,  # writes its argument
        errors=[((S(2), S(2)), RuntimeError), ((S(2, dtype="float64"), 1j), RuntimeError)],
    ),
    op(
        "Tensor.zero_",
        samples=[(S(2, 3),), (S(),)],
        dtypes="bifc",
        reference=np.zeros_like,
        grad=False,  # writes its argument
    ),
]
