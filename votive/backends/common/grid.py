"""Names of the ways to sample at positions, in the order in which kernels number them."""

from __future__ import annotations

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
