"""`torch.distributions.utils`: private names that libraries reach for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import votive

from ....distributions.parameters import sum_rightmost as _sum_rightmost
from ....tensor import Tensor

__all__ = ["_standard_normal", "_sum_rightmost"]


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Draws from the normal distribution of mean 0 and deviation 1."""
    return votive.randn(*shape, dtype=dtype, device=device)
