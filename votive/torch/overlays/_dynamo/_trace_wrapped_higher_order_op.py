"""The mode in which indexing by a tensor without dimensions stays an operation on tensors, which it always is here."""

from __future__ import annotations

from types import TracebackType

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex:
    """`mask[i, j]` with batched `i` and `j` inside vmap; indexing here never turns tensors into numbers."""

    def __enter__(self) -> TransformGetItemToIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None
