"""Embeddings of positions: learned ones, sines, and sines of counted positions. Knows no stack."""

from __future__ import annotations

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from ..sine_tables import paired_sines
from ..trocr import sinusoids
from .design import Seq2SeqDesign, Side


class Places(nn.Module):
    """Embeddings (batch or 1, positions, features) of positions that follow `past` others, or of those given."""

    def forward(self, x: Tensor, input_ids: Tensor | None, past: int, position_ids: Tensor | None = None) -> Tensor:
        raise NotImplementedError


class Learned(Places):
    """A row of a table for each position."""

    def __init__(self, d: Seq2SeqDesign, side: Side) -> None:
        super().__init__()
        self.offset, self.count = d.places_offset, side.positions
        self.weight = nn.Parameter(votive.zeros(side.positions + self.offset, d.width))

    def forward(self, x: Tensor, input_ids: Tensor | None, past: int, position_ids: Tensor | None = None) -> Tensor:
        if position_ids is not None:
            return F.embedding(position_ids + self.offset, self.weight)
        end = past + x.shape[1]
        if end > self.count:
            raise IndexError(
                f"{end} positions are asked for; the model has learned max_position_embeddings={self.count}."
            )
        return self.weight[past + self.offset : end + self.offset].unsqueeze(0)


class Sines(Places):
    """Computed positions, of any number."""

    def __init__(self, d: Seq2SeqDesign, side: Side) -> None:
        super().__init__()
        self.width = d.width
        self.table(side.positions)

    def table(self, count: int) -> None:
        """Make room for so many positions."""
        self.register_buffer("weight", votive.from_numpy(paired_sines(count, self.width)), persistent=False)

    def forward(self, x: Tensor, input_ids: Tensor | None, past: int, position_ids: Tensor | None = None) -> Tensor:
        end = past + x.shape[1] if position_ids is None else int(position_ids.max()) + 1
        if end > self.weight.shape[0]:
            self.table(2 * end)
        if position_ids is not None:
            return self.weight.to(x.device, x.dtype)[position_ids]
        return self.weight[past:end].to(x.device, x.dtype).unsqueeze(0)


class Counted(Places):
    """Computed positions, counted from the token of padding on and without it, which has zeros."""

    def __init__(self, d: Seq2SeqDesign, side: Side) -> None:
        super().__init__()
        assert d.padding is not None, "the configuration asks for it"
        self.padding, self.width = d.padding, d.width
        self.table(side.positions)

    def table(self, count: int) -> None:
        """Make room for so many positions."""
        made = sinusoids(count + self.padding + 1, self.width, self.padding)
        self.register_buffer("weights", votive.from_numpy(made), persistent=False)

    def forward(self, x: Tensor, input_ids: Tensor | None, past: int, position_ids: Tensor | None = None) -> Tensor:
        end = past + x.shape[1] if position_ids is None else int(position_ids.max()) + 1
        if end + self.padding + 1 > self.weights.shape[0]:
            self.table(2 * end)
        if position_ids is not None:
            at = position_ids + self.padding + 1
        elif input_ids is None:
            at = votive.arange(past, end, device=x.device).unsqueeze(0) + self.padding + 1
        else:
            real = (input_ids != self.padding).long()
            at = (real.cumsum(1) + past) * real + self.padding
        return self.weights.to(x.device, x.dtype)[at]


PLACES: dict[str, type[Learned | Sines | Counted]] = {"learned": Learned, "sines": Sines, "counted": Counted}
