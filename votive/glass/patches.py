"""Where the patches of a picture are among a model's tokens. Knows a convolution and attention, no
model class.

A model that reads patches begins with a convolution that gives a grid of them; its tokens are a few
of its own and then the grid, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from . import values
from .probe import Frame, Probe

# Tokens that may stand before the patches: a class, a teacher, registers.
OWN = 16


@dataclass(frozen=True)
class PatchGrid:
    """How many rows and columns of patches there are, and how many tokens come before them.

    >>> from votive.glass.patches import PatchGrid
    >>> PatchGrid(2, 3, 1).maps(votive.arange(7.0)).tolist()
    [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    """

    height: int
    width: int
    first: int

    @property
    def tokens(self) -> int:
        """How many tokens there are in all."""
        return self.first + self.height * self.width

    def maps(self, x: Tensor, dim: int = -1) -> Tensor:
        """Numbers (…, tokens, …) of the patches as (…, height, width, …)."""
        dim = dim % x.dim()
        x = x.narrow(dim, self.first, self.height * self.width)
        return x.unflatten(dim, (self.height, self.width))


class Patches(Probe):
    """Sees the convolution that makes patches, and which attention is among them."""

    def __init__(self, model: Module) -> None:
        super().__init__(model, ops=True)
        self.grids: list[tuple[int, int]] = []
        self.attention: list[tuple[str, int, int]] = []  # address of the module, queries, keys
        self.last_maps: str | None = None

    def left(self, frame: Frame) -> None:
        if frame.address.op == "attention":
            q, k = frame.args[0], frame.args[1]
            module = str(frame.address._replace(op=None, index=0))
            self.attention.append((module, int(q.shape[2]), int(k.shape[2])))
            return
        if frame.address.op is not None:
            return
        y = values.first(frame.output)
        leaf = not any(True for _ in frame.subject.children())
        if not leaf or y is None or y.dim() != 4 or y.shape[2] * y.shape[3] <= 1:
            return
        if getattr(getattr(frame.subject, "weight", None), "ndim", 0) == 4:
            self.last_maps = str(frame.address)
            self.grids.append((int(y.shape[2]), int(y.shape[3])))

    def grid(self, keys: int | None = None) -> PatchGrid | None:
        """The grid that attention goes over; None where none is."""
        counts = [k for _, q, k in self.attention if q == k] if keys is None else [keys]
        for height, width in reversed(self.grids):
            for count in counts:
                if 0 <= count - height * width <= OWN:
                    return PatchGrid(height, width, count - height * width)
        return None


def patches_of(model: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Patches:
    """Run a model and see its patches."""
    with votive.no_grad(), Patches(model) as seen:
        model(*args, **kwargs)
    return seen
