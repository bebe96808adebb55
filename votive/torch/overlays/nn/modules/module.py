"""`torch.nn.modules.module`: private names that libraries reach for beside `Module`."""

from __future__ import annotations

from .....nn.loading import IncompatibleKeys as _IncompatibleKeys
from .....nn.state import EXTRA_STATE as _EXTRA_STATE_KEY_SUFFIX

__all__ = ["_EXTRA_STATE_KEY_SUFFIX", "_IncompatibleKeys"]
