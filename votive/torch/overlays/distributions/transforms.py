"""`torch.distributions.transforms`: the class of inverses, which libraries test for."""

from __future__ import annotations

from ....distributions.transform import _InverseTransform

__all__ = ["_InverseTransform"]
