"""`torch._C._nn`: how modules read the arguments of `to`."""

from __future__ import annotations

from ....nn.convert import parse_to as _parse_to

__all__ = ["_parse_to"]
