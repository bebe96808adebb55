"""`votive env`: what is installed and what it can do."""

from __future__ import annotations

import ml_dtypes

from .. import config
from ..backends.base import TABLE
from ..ops.registry import COMPOSITES, OPS


def show() -> None:
    """Print versions, kernels, threads, devices and how many operators there are."""
    public = [n for n in [*OPS, *COMPOSITES] if not n.startswith("_")]
    devices = sorted({device for _, device in TABLE})
    print(config.show())
    print()
    print(f"ml_dtypes  {ml_dtypes.__version__}")
    print(f"devices    {', '.join(devices)}")
    print(f"operators  {len(public)} public")
