"""Records for random tensors: shapes, dtypes, errors; test_random.py tests what is drawn."""

from __future__ import annotations

from typing import Any

import votive as vt
from tests.ops.catalog import Record, S, op


def drawn(name: str, samples: list[Any], **options: Any) -> Record:
    """A record of an operator whose values cannot be compared."""
    options.setdefault("grad", False)
    return op(name, samples, random=True, **options)


SIZES: list[Any] = [
    (2, 3),
    ((2, 3),),
    ([0, 2],),
    ((),),
    (2, {"dtype": vt.float64}),
    (2, {"dtype": vt.bfloat16}),
    (2, {"dtype": vt.complex64}),
    ({"size": (2, 3)},),
]
LIKE: list[Any] = [(S(2, 3),), (S(),), (S(0, 2),), (S(2, dtype="int64"), {"dtype": vt.float32})]
WRONG_SIZE: list[Any] = [
    ((), TypeError),
    ((-1,), RuntimeError),
    ((2.5,), TypeError),
    ((2, {"dtype": vt.int64}), NotImplementedError),
]
FILLED: list[Any] = [(S(2, 3),), (S(),), (S(0, 2),)]
NEGATIVE = {"values": [-1.0, 1.0]}

RECORDS = [
    drawn("rand", SIZES, errors=WRONG_SIZE),
    drawn("randn", SIZES, errors=WRONG_SIZE),
    drawn(
        "randint",
        [
            (5, (2, 3)),
            (2, 5, (2, 3)),
            (5, (0,)),
            (5, (2,), {"dtype": vt.float32}),
            (256, (2,), {"dtype": vt.uint8}),
            (2, (2,), {"dtype": vt.bool}),
            ({"low": 1, "high": 3, "size": (2,)},),
            ({"high": 3, "size": [2]},),
            (1, 3, {"size": (2,)}),
        ],
        errors=[
            ((5, 2, (2,)), RuntimeError),
            ((0, (2,)), RuntimeError),
            ((5.5, (2,)), TypeError),
            ((5,), TypeError),
            ((5, 2), TypeError),
            (({"low": 3, "size": (2,)},), TypeError),
            ((257, (2,), {"dtype": vt.uint8}), RuntimeError),
            ((5, (2,), {"dtype": vt.complex64}), RuntimeError),
            ((5, (2,), {"requires_grad": True}), RuntimeError),
        ],
    ),
    drawn(
        "randperm",
        [(4,), (0,), (4, {"dtype": vt.float32}), (4, {"dtype": vt.uint8})],
        errors=[
            ((-1,), RuntimeError),
            ((2.0,), TypeError),
            ((300, {"dtype": vt.uint8}), RuntimeError),
            ((4, {"dtype": vt.bool}), NotImplementedError),
        ],
    ),
    drawn("rand_like", LIKE, dtypes="fc", errors=[((S(2, dtype="int64"),), NotImplementedError)]),
    drawn("randn_like", LIKE, dtypes="fc", errors=[((S(2, dtype="int64"),), NotImplementedError)]),
    drawn(
        "randint_like",
        [
            (S(2, 3), 5),
            (S(2, 3), 1, 5),
            (S(2), {"low": 1, "high": 5}),
            (S(2), {"high": 5}),
            (S(2), S(dtype="int64", values=5)),
            (S(2), 5, {"dtype": vt.int64}),
        ],
        dtypes="fi",
        errors=[((S(2), 5, 5), RuntimeError), ((S(2),), TypeError), ((S(2), 0.5), TypeError)],
    ),
    drawn(
        "bernoulli",
        [(S(2, 3),), (S(),), (S(0),), (S(2, 3), 0.5), (S(2, dtype="int64"), {"p": 0.5})],
        domain=(0.0, 1.0),
        errors=[
            ((S(3, low=2, high=3),), RuntimeError),
            ((S(3), 1.5), RuntimeError),
            ((S(3, dtype="int64"),), NotImplementedError),
            ((S(3, dtype="bool"),), NotImplementedError),
        ],
    ),
    drawn(
        "multinomial",
        [(S(3), 2), (S(2, 3), 3), (S(3), 7, True), (S(2, 3), 7, {"replacement": True}), (S(0, 3), 1)],
        domain=(0.1, 2.0),
        errors=[
            ((S(3), 4), RuntimeError),
            ((S(3), 0), RuntimeError),
            ((S(2, 2, 3), 1), RuntimeError),
            ((S(), 1), RuntimeError),
            ((S(3, dtype="int64"), 1), RuntimeError),
            ((S(values=[0.0, 0.0]), 1), RuntimeError),
            ((S(**NEGATIVE), 1), RuntimeError),
            ((S(3), 1.5), TypeError),
        ],
    ),
    drawn(
        "normal",
        [
            (S(2), S(2)),
            (S(2, 1), S(3)),
            (S(2), S(2, dtype="float64")),
            (S(2), 1.5),
            (S(2),),
            (1.0, S(2)),
            (1.0, 2.0, (2, 3)),
            (1, 2, (2, 3), {"dtype": vt.float64}),
            (0.0, 1.0, {"size": [2]}),
            (S(2, dtype="complex64"), 1.0),
        ],
        domain=(0.0, 2.0),
        errors=[
            ((S(2), S(3)), RuntimeError),
            ((S(2), S(**NEGATIVE)), RuntimeError),
            ((S(2), -1.0), RuntimeError),
            ((0.0, -1.0, (2,)), RuntimeError),
            ((0.0, 1.0), TypeError),
            ((0.0, 1.0, 3), TypeError),
            ((S(2), S(2, dtype="complex64")), RuntimeError),
            ((S(2, dtype="int64"), 1.0), NotImplementedError),
        ],
    ),
    drawn(
        "poisson",
        [(S(2, 3),), (S(),), (S(0),)],
        domain=(0.0, 20.0),
        errors=[((S(**NEGATIVE),), RuntimeError), ((S(2, dtype="int64"),), NotImplementedError)],
    ),
    drawn(
        "binomial",
        [(S(2, 3, high=9), S(2, 3)), (S(2, 1, high=9), S(3)), (S(2, high=9), S())],
        domain=(0.0, 1.0),
        errors=[((S(2), S(2, dtype="float32")), RuntimeError), ((S(2, dtype="int64"), S(2)), ValueError)],
    ),
    drawn(
        "Tensor.uniform_",
        [*FILLED, (S(2), 1, 2), (S(2), {"to": 3.0})],
        dtypes="fc",
        errors=[
            ((S(2), 3, 2), RuntimeError),
            ((S(2, dtype="int64"),), NotImplementedError),
            ((S(2), {"from_": 1}), TypeError),
        ],
    ),
    drawn(
        "Tensor.normal_",
        [*FILLED, (S(2), 1, 2), (S(2), {"mean": 1.0, "std": 0.5})],
        dtypes="fc",
        errors=[((S(2), 0, -1), RuntimeError), ((S(2, dtype="int64"),), NotImplementedError)],
    ),
    drawn(
        "Tensor.log_normal_",
        [*FILLED, (S(2), 0, 0.5)],
        errors=[((S(2), 0, 0), RuntimeError), ((S(2, dtype="int64"),), NotImplementedError)],
    ),
    drawn(
        "Tensor.exponential_",
        [*FILLED, (S(2), 2.0)],
        errors=[((S(2), 0), RuntimeError), ((S(2, dtype="int64"),), RuntimeError)],
    ),
    drawn(
        "Tensor.cauchy_",
        [*FILLED, (S(2), 1, 2)],
        errors=[((S(2), 0, 0), RuntimeError), ((S(2, dtype="int64"),), RuntimeError)],
    ),
    drawn(
        "Tensor.geometric_",
        [(S(2, 3), 0.5), (S(), 0.1), (S(0), 0.5)],
        dtypes="fi",
        errors=[((S(2), 1.0), RuntimeError), ((S(2),), TypeError), ((S(2, dtype="bool"), 0.5), NotImplementedError)],
    ),
    drawn(
        "Tensor.bernoulli_",
        [(S(2, 3),), (S(2, 3), 0.3), (S(2, 3), S(3, dtype="float32", low=0, high=1))],
        dtypes="fib",
        errors=[
            ((S(2), 2), RuntimeError),
            ((S(3), S(2, 3, low=0, high=1)), RuntimeError),
            ((S(2, dtype="complex64"), 0.5), NotImplementedError),
        ],
    ),
    drawn(
        "Tensor.random_",
        [(S(2, 3),), (S(2), 2), (S(2), 0, 2), (S(2), 1, None), (S(2), {"to": 2}), (S(0), 2)],
        dtypes="fib",
        errors=[
            ((S(2), 5, 2), RuntimeError),
            ((S(2), 2.5), TypeError),
            ((S(2), 1, 2, 3), TypeError),
            ((S(2, dtype="complex64"),), NotImplementedError),
        ],
    ),
]
