"""`torch.distributed._tensor.experimental`: `implicit_replication`, for programs whose tensors are each whole."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["implicit_replication"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Let plain tensors stand beside those that are spread over processes, as they do here anyway."""
    yield
