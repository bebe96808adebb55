"""Draws sizes, layouts and choices from one seed. Pure functions of a random generator; no framework."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

from .spec import Layout

T = TypeVar("T")
# The most elements of one tensor, and multiply-adds of one product, that keep a case within tens of milliseconds.
ELEMENTS = {"cpu": 1 << 21, "cuda": 1 << 25, "tiny": 1 << 9}
WORK = {"cpu": 1 << 29, "cuda": 1 << 37, "tiny": 1 << 12}


class Draw:
    """Random choices of one case."""

    def __init__(self, seed: str, scale: str):
        self.random = random.Random(seed)
        self.elements = ELEMENTS[scale]
        self.work = WORK[scale]

    def size(self, low: int, high: int) -> int:
        """A log-uniform whole number between both, which are included."""
        high = max(low, high)
        return min(high, max(low, round(math.exp(self.random.uniform(math.log(low), math.log(high + 0.49))))))

    def shape(self, dims: int, elements: int = 0, least: int = 1) -> tuple[int, ...]:
        """A shape whose number of elements is log-uniform, cut into sizes at random places."""
        if dims == 0:
            return ()
        total = self.random.uniform(math.log(max(2, least)), math.log(elements or self.elements))
        cuts = sorted(self.random.uniform(0, total) for _ in range(dims - 1))
        sizes = [b - a for a, b in zip([0.0, *cuts], [*cuts, total], strict=True)]
        found = [max(1, round(math.exp(s))) for s in sizes]
        self.random.shuffle(found)
        return tuple(found)

    def dims(self, low: int = 1, high: int = 4) -> int:
        return self.random.choice([d for d in (1, 2, 2, 2, 3, 3, 4, 5) if low <= d <= high])

    def pick(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def some_dims(self, n: int) -> tuple[int, ...]:
        """One to `n` of `n` dimensions, one or all most of the time."""
        count = self.pick((1, 1, 1, n, max(1, n - 1)))
        return tuple(sorted(self.random.sample(range(n), count)))

    def layout(self, shape: tuple[int, ...], dense: float = 0.55) -> str:
        """The shape with a memory order: dense, or transposed, permuted, strided or a window."""
        n = len(shape)
        if not n or self.chance(dense):
            return str(Layout(shape))
        kinds = ["s", "w"]
        if n > 1:
            order = list(range(n - 2)) + [n - 1, n - 2]
            kinds += ["p" + "".join(map(str, order))] * 2
        if n > 2:
            order = list(range(n))
            self.random.shuffle(order)
            kinds.append("p" + "".join(map(str, order)))
        if n == 4:
            kinds.append("cl")
        memory = self.pick(kinds)
        return str(Layout(shape, "" if memory == "p" + "".join(map(str, range(n))) else memory))

    def array(self, low: int = 1, high: int = 4, elements: int = 0, dense: float = 0.55, least: int = 1) -> str:
        """A shape of `low` to `high` dimensions, with a layout."""
        return self.layout(self.shape(self.dims(low, high), elements, least), dense)

    def against(self, text: str) -> str:
        """An operand that broadcasts against a shape: the same, fewer dimensions, or some of size 1."""
        shape = Layout.parse(text).shape
        way = self.pick(("same", "same", "ones", "suffix", "scalar"))
        if way == "same":
            return self.layout(shape)
        if way == "scalar":
            return "scalar"
        if way == "suffix":
            return self.layout(shape[self.random.randrange(len(shape)) :] if shape else ())
        return self.layout(tuple(1 if self.chance(0.5) else s for s in shape))
