"""Sizes of a recurrent network, and where its forward pass keeps what the gradient needs. Knows no kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

GATES = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}


@dataclass(frozen=True)
class Block:
    """Where one layer's values lie in the reserve, in elements; -1 where there are none."""

    gates: tuple[int, ...]  # per direction: gates after activation, (rows, 4, hidden)
    cells: tuple[int, ...]  # per direction: cells after each step, (rows, hidden)
    output: int  # the layer's output, (rows, directions * out); that of the last layer is the result


@dataclass(frozen=True)
class Geometry:
    """The sizes of a network over a batch. `sizes`: how many rows each step has; they never grow."""

    mode: str
    sizes: tuple[int, ...]
    features: int  # of the input
    hidden: int  # units of a layer
    out: int  # numbers per unit row that a direction gives: `hidden`, or fewer with a projection
    layers: int
    directions: int
    biases: bool
    projected: bool

    @property
    def gates(self) -> int:
        return GATES[self.mode]

    @property
    def batch(self) -> int:
        return self.sizes[0]

    @property
    def rows(self) -> int:
        return sum(self.sizes)

    @property
    def kept(self) -> int:
        """Gates kept per unit: i, f, g, o of an LSTM; r, z, n and what r multiplies of a GRU."""
        return 4 if self.mode in ("lstm", "gru") else 0

    @property
    def per_group(self) -> int:
        """Weights of one layer and direction."""
        return 2 + 2 * self.biases + self.projected

    def weight_shapes(self, layer: int) -> list[tuple[int, ...]]:
        """Shapes of the weights of one direction of a layer."""
        g, width = self.gates * self.hidden, self.directions * self.out if layer else self.features
        shapes: list[tuple[int, ...]] = [(g, width), (g, self.out)]
        if self.biases:
            shapes += [(g,), (g,)]
        return [*shapes, (self.out, self.hidden)] if self.projected else shapes

    @cached_property
    def _reserve(self) -> tuple[tuple[Block, ...], int]:
        rows, at, blocks = self.rows, 0, []
        for layer in range(self.layers):
            gates, cells, output = [], [], -1
            for _ in range(self.directions):
                gates.append(at if self.kept else -1)
                at += rows * self.kept * self.hidden
            for _ in range(self.directions):
                cells.append(at if self.mode == "lstm" else -1)
                at += rows * self.hidden if self.mode == "lstm" else 0
            if layer < self.layers - 1:
                output, at = at, at + rows * self.directions * self.out
            blocks.append(Block(tuple(gates), tuple(cells), output))
        return tuple(blocks), at

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The places in the reserve, per layer."""
        return self._reserve[0]

    @property
    def reserve_size(self) -> int:
        return self._reserve[1]


def geometry(
    input_shape: Sequence[int],
    weight_shapes: Sequence[Sequence[int]],
    mode: str,
    sizes: Sequence[int] | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
) -> Geometry:
    """The sizes that shapes of input and weights amount to."""
    directions = 2 if bidirectional else 1
    per = len(weight_shapes) // (layers * directions)
    return Geometry(
        mode,
        (input_shape[1],) * input_shape[0] if sizes is None else tuple(sizes),
        input_shape[-1],
        weight_shapes[0][0] // GATES[mode],
        weight_shapes[1][1],
        layers,
        directions,
        biases,
        per > 2 + 2 * biases,
    )
