"""Automatic mixed precision: `autocast` and `GradScaler`, with torch's names and arguments."""

from . import by_device as _by_device  # noqa: F401 - fills votive.cpu.amp and votive.cuda.amp
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
