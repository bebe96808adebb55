"""The words of Philox4x32-10 by their definition, one counter at a time, and the dtypes that are drawn from them."""

from __future__ import annotations

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(t) for t in (np.float16, BF16, np.float32, np.float64)]
INTS = [np.dtype(t) for t in "bhilqBHILQ"]
MASK32 = 2**32 - 1
KEY, FIRST = 0x0123456789ABCDEF, 41


def scalar_philox(key: int, counter: int) -> list[int]:
    """The definition in the paper, one counter at a time, in Python's integers."""
    c = [(counter >> (32 * i)) & MASK32 for i in range(4)]
    k = [key & MASK32, key >> 32]
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK32, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK32]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


def words(n: int, key: int = KEY, first: int = FIRST) -> list[int]:
    return [scalar_philox(key, first + i // 4)[i % 4] for i in range(n)]


def longs(n: int, key: int = KEY, first: int = FIRST) -> list[int]:
    w = words(2 * n, key, first)
    return [w[2 * i] | w[2 * i + 1] << 32 for i in range(n)]
