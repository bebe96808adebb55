"""Which taps of sliding windows lie inside, and how many windows there are. Pure functions."""

from __future__ import annotations

from typing import Any

import numpy as np


def taps_within(start: Any, size: int, kernel: int, dilation: int) -> tuple[Any, Any]:
    """The first and last tap within 0..size-1 of windows that begin at `start`."""
    return np.maximum(-(start // dilation), 0), np.minimum((size - 1 - start) // dilation, kernel - 1)


def places_of(size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[int]:
    """How many windows fit into each dimension."""
    return [(i + 2 * p - d * (k - 1) - 1) // s + 1 for i, k, s, p, d in zip(size, kernel, stride, padding, dilation)]
