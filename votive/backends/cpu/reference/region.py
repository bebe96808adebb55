"""Regions on the CPU: result by result."""

from __future__ import annotations

from ...base import add_row
from ...region import SeparateRow, separate

add_row(SeparateRow(op="_region", device="cpu", fn=separate))
