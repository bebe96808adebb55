"""The names torch keeps under `torch.utils`."""

from . import checkpoint

__all__ = ["checkpoint"]
