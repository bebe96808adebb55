"""`votive.fft`: discrete Fourier transforms, as `torch.fft`; `surface.py` binds the functions here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
