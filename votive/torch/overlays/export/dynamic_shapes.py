"""`torch.export.dynamic_shapes`."""

from __future__ import annotations

from ...export.shapes import AdditionalInputs, Dim, ShapesCollection, dims

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]
