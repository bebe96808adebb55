"""One comparison: a function of a framework and tensors, and the arrays both frameworks get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class Case:
    """`setup(m)` makes what is needed in the framework `m` and returns what is to be timed."""

    name: str
    setup: Callable[[Any], Callable[[], object]]
    seconds: float = 0.5
    least: int = 3
    memory: bool = False  # measure the peak of each side in a process of its own


@lru_cache(maxsize=1)
def _noise() -> np.ndarray[Any, Any]:
    return np.random.default_rng(0).standard_normal((1 << 20) + 7).astype(np.float32)


def randn(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray[Any, Any]:
    """Normal numbers; large arrays repeat a million of them, which is quick to make."""
    n = int(np.prod(shape))
    base = _noise()
    flat = np.resize(np.roll(base, seed * 7919), n) if seed else np.resize(base, n)
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return flat.astype(kind, copy=False).reshape(shape)


def uniform(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray[Any, Any]:
    """Positive numbers between 0.1 and 1.1, for functions such as log."""
    values = randn(*shape, seed=seed)
    return (np.abs(values) % 1 + 0.1).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype))


def ints(*shape: int, high: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Whole numbers below `high`."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, high, shape, dtype=np.int64)


def tensor(m: Any, array: np.ndarray[Any, Any]) -> Any:
    """The array as a tensor of the framework, sharing memory."""
    if array.dtype == ml_dtypes.bfloat16 and m.__name__ == "torch":
        return m.from_numpy(array.view(np.uint16)).view(m.bfloat16)
    return m.from_numpy(array)


def leaf(m: Any, array: np.ndarray[Any, Any]) -> Any:
    """A copy of the array that gradients are computed for."""
    return tensor(m, array.copy()).requires_grad_()
