"""The part of `numpy.lib` that programs use: windows and strides."""

from __future__ import annotations

from . import stride_tricks as stride_tricks
