"""Recurrent networks on native kernels."""

from __future__ import annotations

from typing import Any

from ...common.recurrent import geometry
from ...common.slot import Slot
from ..arrays import Args, Ints
from .dtypes import floats
from .rows import OUT, OUT1, OUT2, OUT3, Out, native

MODES = ("tanh", "relu", "gru", "lstm")


def _numbers(x: Slot, weights: Slot, how: tuple[Any, ...], *wanted: bool) -> tuple[int, ...]:
    """What the kernels are told of the network: its kind, what is wanted, and the rows of each packed step."""
    mode, sizes, layers, bidirectional, biases = how
    g = geometry(x.shape, [w.shape for w in weights.spec], mode, sizes, layers, bidirectional, biases)
    steps = (0,) if sizes is None else (len(sizes), *sizes)
    return MODES.index(mode), layers, g.directions, int(biases), int(g.projected), *map(int, wanted), *steps


@native("_recurrent", "recurrent", accepts=floats, optional=True)
def recurrent(
    x: Slot,
    h: Slot | None,
    c: Slot | None,
    weights: Slot,
    mode: str,
    sizes: Ints | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
    save: bool,
) -> Args:
    how = (mode, sizes, layers, bidirectional, biases)
    return OUT, OUT1, OUT2, OUT3, x, h, c, weights, *_numbers(x, weights, how, save)


@native("_recurrent_backward", "recurrent_backward", accepts=floats, optional=True)
def recurrent_backward(
    by_out: Slot | None,
    by_h: Slot | None,
    by_c: Slot | None,
    x: Slot,
    h: Slot | None,
    c: Slot | None,
    weights: Slot,
    out: Slot,
    reserve: Slot,
    mode: str,
    sizes: Ints | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
    wants_input: bool,
    wants_states: bool,
    wants_weights: bool,
) -> Args:
    how = (mode, sizes, layers, bidirectional, biases)
    numbers = _numbers(x, weights, how, wants_input, wants_states, wants_weights)
    by_weights = [Out(3 + k) for k in range(len(weights.spec))] if wants_weights else []
    results = OUT, OUT1, OUT2, *by_weights
    return *results, by_out, by_h, by_c, x, h, c, out, reserve, weights, *numbers
