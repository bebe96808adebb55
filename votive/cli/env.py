"""`votive env`: what is installed and what it can do."""

from __future__ import annotations

import platform

import ml_dtypes
import numpy as np

from .. import __version__
from ..backends.base import TABLE
from ..ops.registry import COMPOSITES, OPS


def show() -> None:
    """Print versions, devices and how many operators there are."""
    public = [n for n in [*OPS, *COMPOSITES] if not n.startswith("_")]
    devices = sorted({device for _, device in TABLE})
    print(f"votive     {__version__}")
    print(f"python     {platform.python_version()} on {platform.system()} {platform.machine()}")
    print(f"numpy      {np.__version__}, ml_dtypes {ml_dtypes.__version__}")
    print(f"devices    {', '.join(devices)} (NumPy reference kernels)")
    print(f"operators  {len(public)} public")
