"""Arguments and results of what is graphed: tensors at fixed addresses inside any containers, and
all else as it was when the graph was captured. Knows no graphs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..autograd import no_grad
from ..tensor import Tensor


def tensors(value: object) -> list[Tensor]:
    """The tensors in a nest of tuples, lists and dictionaries."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in tensors(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors(v)]
    return []


def rebuilt(like: object, given: Iterator[Tensor]) -> Any:
    """A nest of containers like another, with other tensors in it."""
    if isinstance(like, Tensor):
        return next(given)
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(rebuilt(v, given) for v in like))
    if isinstance(like, (tuple, list)):
        return type(like)(rebuilt(v, given) for v in like)
    if isinstance(like, dict):
        return {k: rebuilt(v, given) for k, v in like.items()}
    return like


def _alike(a: object, b: object) -> bool:
    """Whether two nests differ in their tensors alone."""
    if a is b or (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return True
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(_alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(_alike(a[k], b[k]) for k in a)
    return type(a) is type(b) and bool(a == b)


def checked(op: str, args: object, captured: object) -> list[Tensor]:
    """The tensors of a call, whose other arguments must be those of the capture."""
    given, wanted = tensors(args), tensors(captured)
    if len(given) != len(wanted):
        raise TypeError(f"{op}: takes {len(wanted)} tensors, got {len(given)}.")
    if not _alike(args, captured):
        raise ValueError(
            f"{op}: arguments other than tensors became part of the graph and must stay as they "
            "were, in the same containers; pass tensors for what changes, or graph it again."
        )
    return given


def fill(op: str, mine: Tensor, new: Tensor) -> None:
    """Write new values where the graph reads them."""
    if new is mine or (new.data_ptr() == mine.data_ptr() and new.stride() == mine.stride()):
        return
    if new.shape != mine.shape or new.dtype is not mine.dtype:
        raise ValueError(
            f"{op}: captured for {tuple(mine.shape)} {mine.dtype}, got {tuple(new.shape)} "
            f"{new.dtype}; graph it again for other shapes."
        )
    with no_grad():
        mine.copy_(new)
