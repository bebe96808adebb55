"""Quantizing models: weights in blocks by recipes and methods, calibration, and int8 layers with torch's names."""

from __future__ import annotations

from ..surface.block_text import Block, open_block
from .awq import ScaledLinear
from .calibration import importance
from .imatrix import ImportanceMatrix
from .imatrix_file import load_imatrix, save_imatrix
from .importance_file import read_importance, save_importance
from .measure import Divergence, divergence
from .quantize import METHODS, quantize_
from .recipes import gguf_name, recipe
from .report import Entry, Report

__all__ = [
    "METHODS",
    "Block",
    "Divergence",
    "Entry",
    "ImportanceMatrix",
    "Report",
    "ScaledLinear",
    "divergence",
    "gguf_name",
    "importance",
    "load_imatrix",
    "open_block",
    "quantize_",
    "read_importance",
    "recipe",
    "save_imatrix",
    "save_importance",
]
