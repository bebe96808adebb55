"""The types that the CPU's kernels are written in."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]
# What a native row gives its C++ kernel: slots, results, numbers, arrays. None refuses.
Args = tuple[object, ...] | None
