"""How numbers of several ranks become one. Knows arrays, not who sends them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np


class ReduceOp(Enum):
    """The reductions of collectives. `AVG` is the sum divided by the number of ranks.

    >>> votive.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


UFUNCS: dict[ReduceOp, np.ufunc] = {
    ReduceOp.SUM: np.add,
    ReduceOp.AVG: np.add,
    ReduceOp.PRODUCT: np.multiply,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
    ReduceOp.BAND: np.bitwise_and,
    ReduceOp.BOR: np.bitwise_or,
    ReduceOp.BXOR: np.bitwise_xor,
}
BITWISE = (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def check_reducible(what: str, dtype: np.dtype[Any], op: ReduceOp) -> None:
    """Raise for types of which a reduction makes no sense.

    >>> import numpy as np
    >>> votive.distributed.reduce_op.check_reducible("all_reduce", np.dtype("f4"), votive.distributed.ReduceOp.BAND)
    Traceback (most recent call last):
    ...
    ValueError: all_reduce: BAND is for integers and truth values, got float32.
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{what}: op must be one of ReduceOp, such as ReduceOp.SUM, got {op!r}.")
    if op is ReduceOp.PREMUL_SUM:
        raise ValueError(f"{what}: PREMUL_SUM is of NCCL alone; multiply the tensor before and use SUM.")
    if op in BITWISE and dtype.kind not in "iub":
        raise ValueError(f"{what}: {op.name} is for integers and truth values, got {dtype.name}.")
    if dtype.kind == "b" and op is ReduceOp.AVG:
        raise ValueError(f"{what}: truth values have no AVG; convert them to numbers.")
    if dtype.kind == "c" and op in (ReduceOp.MIN, ReduceOp.MAX):
        raise ValueError(f"{what}: complex numbers have no {op.name}.")


def reduced(parts: Sequence[np.ndarray[Any, Any]], op: ReduceOp) -> np.ndarray[Any, Any]:
    """Arrays of all ranks reduced in the order of ranks, so that every run rounds alike.

    >>> import numpy as np
    >>> from votive.distributed.reduce_op import ReduceOp, reduced
    >>> reduced([np.array([1, 2]), np.array([3, 4])], ReduceOp.SUM).tolist()
    [4, 6]
    """
    wide = widened(parts[0])
    total = wide.copy() if wide is parts[0] else wide
    for part in parts[1:]:
        UFUNCS[op](total, widened(part), out=total)
    if op is ReduceOp.AVG:
        averaged(total, len(parts))
    return total if total.dtype == parts[0].dtype else total.astype(parts[0].dtype)


def widened(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers as they are added: half types as float32, which rounds once instead of once per rank.

    >>> import numpy as np
    >>> votive.distributed.reduce_op.widened(np.ones(1, np.float16)).dtype
    dtype('float32')
    """
    return x if x.dtype.kind in "iub" or x.dtype.itemsize >= 4 else x.astype(np.float32)


def averaged(total: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """A sum divided by how many were added, in place; integers lose their fraction.

    >>> import numpy as np
    >>> votive.distributed.reduce_op.averaged(np.array([5.0]), 2).tolist()
    [2.5]
    """
    if total.dtype.kind in "iub":
        total[...] = np.trunc(total / count).astype(total.dtype)
    else:
        total /= total.dtype.type(count)
    return total
