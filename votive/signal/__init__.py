"""`votive.signal`: signal processing; the window functions are in `votive.signal.windows`."""

from . import windows

__all__ = ["windows"]
