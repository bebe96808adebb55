"""How exactly a GPU multiplies float32: torch's switch, under torch's names. Starts nothing."""

from __future__ import annotations

from typing import Any

from .. import base

PRECISIONS = ("highest", "high", "medium")


class Matmul:
    """`votive.backends.cuda.matmul`: what matrix products and convolutions in float32 may do.

    >>> votive.backends.cuda.matmul.allow_tf32
    False
    """

    precision = "highest"  # see `votive.set_float32_matmul_precision`

    @property
    def allow_tf32(self) -> bool:
        """Whether operands may be cut to TF32 (10 bits behind the point), which is several times
        faster."""
        return self.precision != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if value.__class__ is not bool:
            raise TypeError(f"allow_tf32: expected a bool, got {type(value).__name__}.")
        self.choose("high" if value else "highest")

    def choose(self, precision: str) -> None:
        before = self.allow_tf32
        type(self).precision = precision
        if before != self.allow_tf32:
            for tell in base.listeners:  # plans that chose a kernel are made anew
                tell("")

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "allow_tf32":
            raise AttributeError(f"votive.backends.cuda.matmul has no switch {name!r}.")
        super().__setattr__(name, value)


matmul = Matmul()
