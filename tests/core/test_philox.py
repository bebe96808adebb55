"""Philox gives the published words, and word i is a function of key and counter alone."""

from __future__ import annotations

import math

import numpy as np
import pytest

from votive.backends.common import philox

from .philox_words import FIRST, KEY, scalar_philox, words

# Lines "philox4x32 10" of kat_vectors in Random123: counter, key, result; word 0 first.
KNOWN_ANSWERS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize("counter, key, result", KNOWN_ANSWERS)
def test_philox_gives_the_published_answers(counter, key, result):
    def number(text: str) -> int:
        return sum(int(word, 16) << (32 * i) for i, word in enumerate(text.split()))

    got = philox.random_uint32(number(key), number(counter), 4)
    assert " ".join(f"{w:08x}" for w in got) == result
    assert scalar_philox(number(key), number(counter)) == got.tolist()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 17])
def test_word_i_is_word_i_mod_4_of_counter_i_div_4(n):
    got = philox.random_uint32(KEY, FIRST, n)
    assert got.dtype == np.uint32
    assert got.tolist() == words(n)
    assert philox.counters_for(n) == math.ceil(n / 4)


def test_block_borders_do_not_show():
    n = 4 * philox.BLOCK + 6
    got = philox.random_uint32(KEY, FIRST, n)
    tail = philox.random_uint32(KEY, FIRST + philox.BLOCK - 1, 10)
    assert got[-10:].tolist() == tail.tolist()


@pytest.mark.parametrize("first", [2**64 - 2, 2**128 - 2])
def test_the_counter_carries_through_all_128_bits(first):
    want = [w for i in range(4) for w in scalar_philox(KEY, (first + i) % 2**128)]
    assert philox.random_uint32(KEY, first, 16).tolist() == want
