"""Tests of WebGPU run where there is an adapter (Mesa's lavapipe is one on the CPU), else are skipped and say why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .device import REASON

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Skip what needs an adapter where there is none."""
    for item in items:
        if REASON and _HERE in Path(item.path).parents and not item.get_closest_marker("anywhere"):
            item.add_marker(pytest.mark.skip(reason=f"no WebGPU: {REASON}"))
