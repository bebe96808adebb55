"""Tests of the GPU run on one where there is one, or on the emulated one:
`VOTIVE_CUDA=emulated TRITON_INTERPRET=1 pytest tests/cuda`. Else they are skipped and say why.

`VOTIVE_CUDA_SHARD=2/8` runs the second of eight shares: several processes may share a GPU.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from .device import REASON

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Skip what needs a GPU without one, and keep only this process's share."""
    share = os.environ.get("VOTIVE_CUDA_SHARD")
    ours = [item for item in items if _HERE in Path(item.path).parents]
    for item in ours:
        if REASON and not item.get_closest_marker("anywhere"):
            item.add_marker(pytest.mark.skip(reason=f"no GPU: {REASON}"))
    if share and len(ours) == len(items):
        k, n = map(int, share.split("/"))
        items[:] = items[k - 1 :: n]
