"""Quantizing models: weights in blocks by recipes and methods, calibration, and int8 layers with torch's names."""

from __future__ import annotations

from .awq import ScaledLinear
from .calibration import importance
from .measure import Divergence, divergence
from .quantize import METHODS, quantize_
from .recipes import gguf_name, recipe
from .report import Entry, Report

__all__ = [
    "METHODS",
    "Divergence",
    "Entry",
    "Report",
    "ScaledLinear",
    "divergence",
    "gguf_name",
    "importance",
    "quantize_",
    "recipe",
]
