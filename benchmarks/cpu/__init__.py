"""The suites that `python -m benchmarks.compare cpu` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

from .case import Case

SUITES = {
    "a": ("calls", "what one call costs, 16 floats"),
    "b": ("operators", "operators by size and layout"),
    "c": ("matmul", "matrix products"),
    "d": ("layers", "convolution, pooling, norms, attention"),
    "e": ("steps", "whole steps of training and generation"),
}


def cases(suite: str, scale: str) -> Iterator[Case]:
    """The cases of a suite: `full`, `quick`, or `tiny` (only to see that they run)."""
    make: Callable[[str], Iterator[Case]] = import_module(f"{__name__}.{SUITES[suite][0]}").cases
    return make(scale)
