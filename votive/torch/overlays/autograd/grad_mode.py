"""`torch.autograd.grad_mode`: what torch has beside votive's own switches."""

from __future__ import annotations

from contextlib import ContextDecorator

__all__ = ["set_multithreading_enabled"]


class set_multithreading_enabled(ContextDecorator):
    """Whether backward may run on threads of its own. It always runs on the caller's here, which both allow."""

    prev = True

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None

    def clone(self) -> set_multithreading_enabled:
        """Another switch of the same position."""
        return set_multithreading_enabled(self.mode)
