"""The native module, which serves all devices: set when the CPU's backend has loaded it, None where there is none."""

from __future__ import annotations

from typing import Any

module: Any = None
