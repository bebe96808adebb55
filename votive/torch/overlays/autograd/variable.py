"""`torch.autograd.variable`."""

from __future__ import annotations

from ...variable import Variable, VariableMeta

__all__ = ["Variable", "VariableMeta"]
