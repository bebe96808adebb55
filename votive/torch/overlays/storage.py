"""`torch.storage`."""

from __future__ import annotations

from ..storage import UntypedStorage
from ..typed_storage import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
