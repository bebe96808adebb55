"""`votive.linalg`: linear algebra, as `torch.linalg`; `surface.py` binds the functions here."""

from __future__ import annotations

from .core.errors import LinAlgError

__all__ = ["LinAlgError"]
