"""Philox4x32-10 in NumPy: counters in, 32-bit words out. Knows no distributions and no generators.

The function is that of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
(SC 2011): a 128-bit counter and a 64-bit key give four 32-bit words. Word 0 of counter and key is
the least significant one.

The one rule of a draw: word `i` is output word `i % 4` of counter `first + i // 4`. Sixty-four bits
are two such words, `words[2i] | words[2i+1] << 32`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
Longs = NDArray[np.uint64]

WORDS_PER_COUNTER = 4
# Counters worked on at a time: two rows of state and two of products take 512 KiB, so they stay in
# the second-level cache. Smaller blocks measure slower, because each NumPy call has a fixed price.
BLOCK = 16384

_ROUNDS = 10
_MASK32 = (1 << 32) - 1
_MASK64 = (1 << 64) - 1
_32 = np.uint64(32)
# Multipliers and key increments from the paper, section 4.3; the increments are the golden ratio
# and the square root of three, each less one, as 32-bit fractions.
_MULTIPLIERS = np.array([[0xD2511F53], [0xCD9E8D57]], dtype=np.uint64)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def counters_for(n: int) -> int:
    """How many counters `n` words take.

    >>> counters_for(5)
    2
    """
    return -(-n // WORDS_PER_COUNTER)


def philox4x32(key: int, low: Any, high: Any = 0) -> Words:
    """The four words of each counter `low + high * 2**64`, as an array of shape (n, 4).

    >>> [hex(int(w)) for w in philox4x32(0, np.zeros(1, np.uint64))[0]]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    low = np.asarray(low, dtype=np.uint64)
    state = np.empty((2, low.size), dtype=np.uint64)
    # Row 0 holds words 0 (upper half) and 1 (lower half), row 1 holds words 2 and 3: then the upper
    # half is what a round multiplies, and the product's lower half is already in its place.
    state[0] = (low << _32) | (low >> _32)
    high = np.asarray(high, dtype=np.uint64)
    state[1] = (high << _32) | (high >> _32)
    product = np.empty_like(state)
    round_key = np.empty((2, 1), dtype=np.uint64)
    k0, k1 = key & _MASK32, (key >> 32) & _MASK32
    for _ in range(_ROUNDS):
        round_key[0, 0], round_key[1, 0] = k0 << 32, k1 << 32
        np.right_shift(state, _32, out=product)
        np.multiply(product, _MULTIPLIERS, out=product)
        np.left_shift(state, _32, out=state)
        np.bitwise_xor(state, round_key, out=state)
        np.bitwise_xor(state, product[::-1], out=state)
        k0, k1 = (k0 + _WEYL[0]) & _MASK32, (k1 + _WEYL[1]) & _MASK32
    # Halves swap so that the pairs read as little-endian words in order.
    pairs = np.empty((low.size, 2), dtype="<u8")
    np.right_shift(state, _32, out=product)
    np.left_shift(state, _32, out=state)
    np.bitwise_or(state, product, out=pairs.T)
    return pairs.view("<u4")


def word_blocks(key: int, counter: int, n: int) -> Iterator[tuple[int, Words]]:
    """The words of a draw in cache-sized pieces: (index of the first word, the words).

    Every piece starts at a multiple of four and holds whole counters, so the last one may run past
    `n`; the caller cuts it.
    """
    total = counters_for(n)
    for start in range(0, total, BLOCK):
        size = min(BLOCK, total - start)
        first = counter + start
        low = np.arange(size, dtype=np.uint64)
        low += np.uint64(first & _MASK64)
        high: Any = (first >> 64) & _MASK64
        if (first & _MASK64) + size > _MASK64 + 1:
            carried = low < np.uint64(first & _MASK64)
            high = np.uint64(high) + carried.astype(np.uint64)
        yield start * WORDS_PER_COUNTER, philox4x32(key, low, high).reshape(-1)


def random_uint32(key: int, counter: int, n: int) -> Words:
    """`n` words from 128-bit counter `counter` on.

    >>> [hex(int(w)) for w in random_uint32(0, 0, 2)]
    ['0x6627e8d5', '0xe169c58d']
    """
    out = np.empty(n, dtype=np.uint32)
    for start, words in word_blocks(key, counter, n):
        out[start : start + words.size] = words[: n - start]
    return out


def as_uint64(words: Words) -> Longs:
    """Neighbouring words as 64-bit integers, the first one the less significant half.

    >>> int(as_uint64(np.array([1, 2], np.uint32))[0]) == 1 + 2 * 2**32
    True
    """
    return np.asarray(words, dtype="<u4").view("<u8").astype(np.uint64, copy=False)


def random_uint64(key: int, counter: int, n: int) -> Longs:
    """`n` 64-bit integers from `counter` on.

    >>> hex(int(random_uint64(0, 0, 1)[0]))
    '0xe169c58d6627e8d5'
    """
    return as_uint64(random_uint32(key, counter, 2 * n))
