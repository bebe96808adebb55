"""Arrays to test layers with, and how closely results must agree."""

from __future__ import annotations

from typing import Any

import numpy as np

import votive


def normal(*shape: int, seed: int = 0) -> Any:
    return votive.from_numpy(np.random.default_rng(seed).normal(size=shape))


def close(got: Any, want: Any, rtol: float = 1e-10) -> None:
    want = want.detach().numpy() if isinstance(want, votive.Tensor) else np.asarray(want)
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=rtol, atol=1e-12)
