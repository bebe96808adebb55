"""A case as a line of text, `softmax.log_softmax bfloat16 grad x=12x345:t dim=1`, and layouts. Knows no framework."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Param = int | float | str | tuple[int, ...]


@dataclass(frozen=True)
class Spec:
    """What is computed: a kind of work, an operator of it, a dtype, with or without gradients, and parameters.

    >>> Spec.parse("softmax.log_softmax bfloat16 grad x=12x345:t dim=1")["dim"]
    1
    >>> str(Spec.parse("reduce.sum float32 forward x=3x4x5:p201 dim=0,2"))
    'reduce.sum float32 forward x=3x4x5:p201 dim=0,2'
    """

    kind: str
    op: str
    dtype: str
    grad: bool
    params: tuple[tuple[str, Param], ...] = field(default=())

    def __getitem__(self, name: str) -> Any:
        return dict(self.params)[name]

    def get(self, name: str, otherwise: Any = None) -> Any:
        """A parameter, or `otherwise` where the case has none of that name."""
        return dict(self.params).get(name, otherwise)

    def __str__(self) -> str:
        words = [f"{self.kind}.{self.op}", self.dtype, "grad" if self.grad else "forward"]
        return " ".join(words + [f"{k}={_written(v)}" for k, v in self.params])

    @staticmethod
    def parse(text: str) -> Spec:
        """The case that `str` wrote."""
        name, dtype, grad, *params = text.split()
        kind, op = name.split(".", 1)
        pairs = (p.split("=", 1) for p in params)
        return Spec(kind, op, dtype, grad == "grad", tuple((k, _read(v)) for k, v in pairs))


def _written(value: Param) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value)) + ("," if len(value) == 1 else "")
    return str(value)


def _read(text: str) -> Param:
    if "," in text:
        return tuple(int(part) for part in text.split(",") if part)
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text


@dataclass(frozen=True)
class Layout:
    """A shape and how it lies in memory: "" dense, `p201` dimensions stored in that order, `s` every second element
    of the last dimension, `w` a window of wider rows, `e` one row expanded, `cl` channels last.

    >>> Layout.parse("4x5x6:p201").order
    (2, 0, 1)
    """

    shape: tuple[int, ...]
    memory: str = ""

    @staticmethod
    def parse(text: str) -> Layout:
        """The layout that `str` wrote."""
        sizes, _, memory = text.partition(":")
        return Layout(tuple(int(n) for n in sizes.split("x") if n) if sizes != "scalar" else (), memory)

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.shape)) or "scalar"
        sizes += "x" if len(self.shape) == 1 else ""  # one size alone would be read as a number
        return f"{sizes}:{self.memory}" if self.memory else sizes

    @property
    def order(self) -> tuple[int, ...]:
        """Dimensions from the outermost in memory to the innermost."""
        n = len(self.shape)
        if self.memory == "cl":
            return (0, *range(2, n), 1)
        return tuple(map(int, self.memory[1:])) if self.memory.startswith("p") else tuple(range(n))
