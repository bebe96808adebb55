"""Layers with weights of 8 bits and ReLU, from numbers to numbers."""

from __future__ import annotations

from . import DynamicLinearReLU as LinearReLU

__all__ = ["LinearReLU"]
