"""Linear algebra: a place for `votive.linalg`, where surface.py hangs the operators of `ops/linalg_*.py`."""

from __future__ import annotations

from .core.errors import LinAlgError

__all__ = ["LinAlgError"]
