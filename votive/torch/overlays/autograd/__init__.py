"""`torch.autograd`: the names of the time when tensors and variables were two things, and its switch for threads."""

from __future__ import annotations

from ....dispatch import state
from ...variable import Variable
from .grad_mode import set_multithreading_enabled

__all__ = ["Variable", "_profiler_enabled", "set_multithreading_enabled"]


def _profiler_enabled() -> bool:
    """Whether a profiler watches."""
    return any(type(o).__module__.startswith("votive.profiler") for o in state.observers)
