"""Records for dropout: where nothing is left to chance; test_dropout.py tests what is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import Record, S, op

P_ERRORS: list[Any] = [
    ((S(2, 3, 4), -0.1), ValueError),
    ((S(2, 3, 4), 1.1, False), ValueError),
    ((S(2, 3, 4), float("nan"), True), RuntimeError),
    ((S(2, 3, 4, dtype="int64"), 0.5, True), RuntimeError),
    ((S(2, 3, 4, dtype="complex64"), 0.5, True), NotImplementedError),
]


def certain(x: Any, p: float, training: bool, inplace: bool = False) -> Any:
    """p is 0 or 1, or nothing is dropped at all."""
    return x * 0 if training and p == 1 else x


def family(name: str, shape: tuple[int, ...], errors: list[Any]) -> list[Record]:
    path = f"nn.functional.{name}"
    return [
        op(
            path,
            samples=[
                (S(*shape), 0, True),
                (S(*shape), 1.0, True),
                (S(*shape), 0.5, False),
                (S(0, *shape[1:]), 0.5, True),
            ],
            reference=certain,
            errors=errors,
        ),
        op(path, samples=[(S(*shape), 0.5, True), (S(*shape), 0.25, True)], random=True),
    ]


def top_level(name: str) -> Record:
    return op(
        name,
        samples=[(S(2, 3, 4), 0.0, True), (S(2, 3, 4), 1.0, True), (S(2, 3, 4), 0.5, False)],
        reference=lambda x, p, train: certain(x, p, train),
        errors=[((S(2, 3), -0.1, True), RuntimeError), ((S(2, 3), 2.0, False), RuntimeError)],
    )


RECORDS = [
    *family("dropout", (2, 3, 4), P_ERRORS),
    *family("alpha_dropout", (2, 3, 4), P_ERRORS),
    *family("feature_alpha_dropout", (2, 3, 4), [*P_ERRORS, ((S(3), 0.5, True), RuntimeError)]),
    *family("dropout1d", (2, 3, 4), [*P_ERRORS, ((S(2, 3, 4, 5),), RuntimeError)]),
    *family("dropout2d", (2, 3, 4, 5), P_ERRORS[:2]),
    *family("dropout3d", (2, 3, 4, 5), P_ERRORS[:2]),
    *map(top_level, ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")),
    op(
        # A product with zero keeps what is not a number.
        "nn.functional.dropout",
        samples=[(S(values=[np.nan, np.inf, 1.0], grad=False), 1.0, True)],
        reference=certain,
        grad=False,
    ),
]
