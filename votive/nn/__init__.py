"""Neural networks. `functional` holds their operators; modules build on it."""

from . import functional

__all__ = ["functional"]
