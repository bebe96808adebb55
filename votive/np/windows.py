"""Windows of signal processing, computed as NumPy does in float64."""

from __future__ import annotations

from typing import Any

import numpy

from .array import ndarray, wrap
from .convert import to_tensor


def bartlett(M: Any) -> ndarray:
    """A triangle."""
    return wrap(to_tensor(numpy.bartlett(M)))


def blackman(M: Any) -> ndarray:
    """Blackman's window: three cosine terms."""
    return wrap(to_tensor(numpy.blackman(M)))


def hamming(M: Any) -> ndarray:
    """Hamming's window: a raised cosine that does not reach zero."""
    return wrap(to_tensor(numpy.hamming(M)))


def hanning(M: Any) -> ndarray:
    """Hann's window: a raised cosine."""
    return wrap(to_tensor(numpy.hanning(M)))


def kaiser(M: Any, beta: float) -> ndarray:
    """Kaiser's window, by a Bessel function."""
    return wrap(to_tensor(numpy.kaiser(M, beta)))
