"""Comparisons that are no formula."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel


@kernel("_isin")
def isin(elements: Any, tests: Any, assume_unique: bool, invert: bool) -> Any:
    # assume_unique is a promise that saves work; whoever breaks it still gets the right answer.
    return np.isin(elements, tests, invert=invert)
