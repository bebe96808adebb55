"""`votive.linalg`: linear algebra, as `torch.linalg`; `surface.py` binds the functions here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .core.errors import LinAlgError

__all__ = ["LinAlgError"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
