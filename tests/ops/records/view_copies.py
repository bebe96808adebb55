"""Records for the copying twins of views."""

from __future__ import annotations

import numpy as np

from tests.ops.catalog import S, op

from .repeat import expand
from .shape import squeeze
from .split import split
from .strided import unfold, window

RECORDS = [
    op(
        "narrow_copy",
        samples=[(S(4, 3), 0, 1, 2), (S(4, 3), 1, 0, 1)],
        reference=lambda x, dim, start, n: np.take(x, range(start, start + n), dim),
        dtypes="bifc",
        errors=[((S(4), 0, 2, 3), RuntimeError)],
    ),
    op(
        "view_copy",
        samples=[(S(2, 6), (3, 4)), (S(), (1,))],
        reference=lambda x, size: x.reshape(size),
        dtypes="bifc",
        layouts=False,  # whether a view exists is what the layout decides
        errors=[((S(2, 3), (4,)), RuntimeError)],
    ),
    op("expand_copy", samples=[(S(3, 1), (2, 3, 4))], reference=expand, dtypes="bifc"),
    op("permute_copy", samples=[(S(2, 3, 4), (2, 0, 1))], reference=np.transpose, dtypes="bifc"),
    op("transpose_copy", samples=[(S(2, 3, 4), 0, 2)], reference=np.swapaxes, dtypes="bifc"),
    op("t_copy", samples=[(S(2, 3),), (S(3),)], reference=np.transpose, dtypes="bifc"),
    op("squeeze_copy", samples=[(S(1, 3, 1),), (S(1, 3), 0)], reference=squeeze, dtypes="bifc"),
    op("unsqueeze_copy", samples=[(S(2, 3), 1)], reference=np.expand_dims, dtypes="bifc"),
    op("select_copy", samples=[(S(2, 3), 0, 1)], reference=lambda x, dim, index: np.take(x, index, dim), dtypes="bifc"),
    op(
        "slice_copy",
        samples=[(S(5, 2), 0, 1, 4, 2), (S(5),)],
        reference=lambda x, dim=0, start=None, end=None, step=1: x[start:end:step],
        dtypes="bifc",
    ),
    op("diagonal_copy", samples=[(S(3, 4),), (S(3, 4), 1)], reference=np.diagonal, dtypes="bifc"),
    op(
        "as_strided_copy",
        samples=[(S(9), (4, 4), (1, 1))],
        reference=window,
        dtypes="bifc",
        layouts=False,  # defined by the storage, not by the values
    ),
    op("unfold_copy", samples=[(S(7), 0, 3, 2)], reference=unfold, dtypes="bifc"),
    op("alias_copy", samples=[(S(2, 3),)], reference=np.copy, dtypes="bifc"),
    op("detach_copy", samples=[(S(2, 3),)], reference=np.copy, dtypes="bifc", grad=False),
    op("split_copy", samples=[(S(5, 2), 2)], reference=split, dtypes="bifc"),
    op("split_with_sizes_copy", samples=[(S(6), [1, 5])], reference=split, dtypes="bifc"),
    op("unbind_copy", samples=[(S(3, 2),)], reference=list, dtypes="bifc"),
]
