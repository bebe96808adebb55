"""Comparisons that are no formula."""

from __future__ import annotations

import numpy as np

from ...base import kernel
from ..arrays import Array


@kernel("_isin")
def isin(elements: Array, tests: Array, assume_unique: bool, invert: bool) -> Array:
    # assume_unique is a promise that saves work; whoever breaks it still gets the right answer.
    return np.isin(elements, tests, invert=invert)
