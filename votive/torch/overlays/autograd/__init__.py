"""`torch.autograd`: the names of the time when tensors and variables were two things, and its switch for threads."""

from __future__ import annotations

from ...variable import Variable
from .grad_mode import set_multithreading_enabled

__all__ = ["Variable", "set_multithreading_enabled"]
