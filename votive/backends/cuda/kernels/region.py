"""Regions on the GPU: result by result where there is no kernel for all."""

from __future__ import annotations

from ...base import add_row
from ...common.region import SeparateRow

add_row(SeparateRow(op="_region", device="cuda", fn=SeparateRow, label="cuda"))
