"""Random contractions of two operands against NumPy: orders, batches, sums alone, empty and broadcast dimensions."""

from __future__ import annotations

import random

import numpy as np
import pytest

import votive

LETTERS = "abcdef"


@pytest.mark.parametrize("seed", range(60))
def test_two_operands_contract_as_in_numpy(seed: int) -> None:
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    sizes = {x: rng.choice([0, 1, 2, 3] if seed % 6 == 0 else [1, 2, 3, 4]) for x in LETTERS}
    for _ in range(10):
        left, right = (rng.sample(LETTERS, rng.randint(1, 4)) for _ in range(2))
        known = list(dict.fromkeys(left + right))
        equation = f"{''.join(left)},{''.join(right)}->{''.join(rng.sample(known, rng.randint(0, len(known))))}"
        a, b = (numbers.normal(size=[sizes[x] if rng.random() > 0.1 else 1 for x in t]) for t in (left, right))
        got = votive.einsum(equation, votive.from_numpy(a), votive.from_numpy(b)).numpy()
        want = np.einsum(equation, a, b)
        assert got.shape == want.shape, equation
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10, err_msg=equation)
