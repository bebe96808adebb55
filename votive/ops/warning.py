"""Warnings that point at the line of the user's program, however deep in votive they arise."""

from __future__ import annotations

import os
import sys
import warnings

_PACKAGE = os.path.dirname(os.path.dirname(__file__))


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warn at the innermost frame outside this package."""
    level, frame = 1, sys._getframe()
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
        level += 1
    warnings.warn(text, kind, stacklevel=level)
