"""Records for what changes a tensor's own window on memory; see also tests/test_views.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.catalog import S, op

from .shape import squeeze
from .strided import window

# Each writes its argument, which the loops over gradients would differentiate.
WRITES: dict[str, Any] = {"dtypes": "bifc", "grad": False}

RECORDS = [
    op(
        "Tensor.transpose_",
        samples=[(S(2, 3), 0, 1)],
        reference=np.swapaxes,
        **WRITES,
        errors=[((S(2, 3), 0, 2), IndexError)],
    ),
    op(
        "Tensor.swapaxes_",
        samples=[(S(2, 3), 0, 1)],
        reference=np.swapaxes,
        **WRITES,
        errors=[((S(2, 3), 0, 2), IndexError)],
    ),
    op(
        "Tensor.swapdims_",
        samples=[(S(2, 3), 0, 1)],
        reference=np.swapaxes,
        **WRITES,
        errors=[((S(2, 3), 0, 2), IndexError)],
    ),
    op(
        "Tensor.t_",
        samples=[(S(2, 3),), (S(3),)],
        reference=np.transpose,
        **WRITES,
        errors=[((S(2, 3, 4),), RuntimeError)],
    ),
    op(
        "Tensor.squeeze_",
        samples=[(S(1, 3, 1),), (S(1, 3), 0)],
        reference=squeeze,
        **WRITES,
        errors=[((S(2, 3), 2), IndexError)],
    ),
    op(
        "Tensor.unsqueeze_",
        samples=[(S(2, 3), 1)],
        reference=np.expand_dims,
        **WRITES,
        errors=[((S(2, 3), 3), IndexError)],
    ),
    op(
        "as_strided_",
        samples=[(S(9), (4, 4), (1, 1))],
        reference=window,
        **WRITES,
        layouts=False,  # defined by the storage, not by the values
        errors=[((S(2), (2,), (1, 1)), RuntimeError)],
    ),
    op(
        "Tensor.resize_",
        samples=[(S(2, 3), 3), (S(2, 3), (3, 2))],
        **WRITES,
        reference=lambda x, size: x.reshape(-1)[: int(np.prod(size))].reshape(size),
        layouts=False,  # defined by the storage, not by the values
        errors=[((S(2), -1), RuntimeError)],
    ),
    op(
        "resize_as_",
        samples=[(S(2, 3), S(3, 2))],
        **WRITES,
        reference=lambda x, template: x.reshape(template.shape),
        layouts=False,
    ),  # defined by the storage, not by the values
]
