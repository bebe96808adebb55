"""The size of a ragged dimension: a name, since it differs from component to component."""

from __future__ import annotations

import itertools

_numbers = itertools.count(1)


class RaggedSize:
    """A size that only equals itself, as `j1` in `(2, j1, 3)`; times a number where strides need it."""

    __slots__ = ("factor", "number")

    def __init__(self, number: int | None = None, factor: int = 1) -> None:
        self.number = next(_numbers) if number is None else number
        self.factor = factor

    def __repr__(self) -> str:
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RaggedSize) and (self.number, self.factor) == (other.number, other.factor)

    def __hash__(self) -> int:
        return hash((self.number, self.factor))

    def __mul__(self, other: int) -> RaggedSize:
        return RaggedSize(self.number, self.factor * other)

    __rmul__ = __mul__
