"""What runs outside of any graph: in-place changes to statistics and tables. Knows no operator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..core.mode import mode


@contextmanager
def untracked() -> Iterator[None]:
    """Record nothing for autograd inside this block."""
    saved, mode.grad = mode.grad, False
    try:
        yield
    finally:
        mode.grad = saved


@contextmanager
def unobserved() -> Iterator[None]:
    """Record nothing, and let no probe see it: for a change that gradients are to know nothing of.

    An edit of it could not reach them either.
    """
    mode.unobserved += 1
    try:
        with untracked():
            yield
    finally:
        mode.unobserved -= 1
