"""`votive.utils.checkpoint`, where torch users look for it."""

from __future__ import annotations

from typing import Any

from ..autograd.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, noop_context_fn

_SELECTIVE = frozenset(
    (
        "CheckpointPolicy",
        "SelectiveCheckpointContext",
        "check_backward_validity",
        "create_selective_checkpoint_contexts",
        "detach_variable",
        "set_checkpoint_debug_enabled",
        "set_checkpoint_early_stop",
    )
)
__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn", *sorted(_SELECTIVE)]


def __getattr__(name: str) -> Any:
    if name in _SELECTIVE:
        from importlib import import_module

        return getattr(import_module("votive.utils.selective_checkpoint"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
