"""`votive.linalg`: linear algebra, as `torch.linalg`; `surface.py` binds the functions here."""

from __future__ import annotations

import typing as _typing

from .core.errors import LinAlgError

__all__ = ["LinAlgError"]

if _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> _typing.Any: ...
