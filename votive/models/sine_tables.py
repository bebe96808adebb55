"""Tables of sines for positions, which are computed and not learned. Pure functions of numbers."""

from __future__ import annotations

import numpy as np


def paired_sines(count: int, width: int) -> np.ndarray:
    """Sines of positions, then cosines, where a sine and a cosine have one frequency. Vaswani et al. 2017, 3.5.

    >>> from votive.models.sine_tables import paired_sines
    >>> paired_sines(2, 4).round(2).tolist()
    [[0.0, 0.0, 1.0, 1.0], [0.8399999737739563, 0.009999999776482582, 0.5400000214576721, 1.0]]
    """
    feature = np.arange(width)
    angles = np.arange(count)[:, None] / np.power(10000, 2 * (feature // 2) / width)
    return np.concatenate([np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])], 1).astype(np.float32)
