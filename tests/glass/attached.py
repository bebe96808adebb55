"""What is attached to all modules and operators at this moment, by whomever."""

from __future__ import annotations

from votive import nn
from votive.dispatch.state import state
from votive.nn.global_hooks import GLOBAL


def attached() -> set[int]:
    """Hooks of all modules and observers, by identity. Other threads may have theirs."""
    return {id(h) for h in GLOBAL.values()} | {id(o) for o in state.observers}


def free(model: nn.Module) -> bool:
    """Whether no module of the model has a hook."""
    return not any(m._forward_hooks for m in model.modules())
