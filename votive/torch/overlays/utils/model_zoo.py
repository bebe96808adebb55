"""`torch.utils.model_zoo`: the older name of what `torch.hub` loads."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["load_url"]


def load_url(*args: Any, **options: Any) -> Any:
    """`torch.hub.load_state_dict_from_url`."""
    return importlib.import_module("torch.hub").load_state_dict_from_url(*args, **options)
