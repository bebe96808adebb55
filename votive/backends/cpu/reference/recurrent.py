"""Recurrent networks on NumPy, step by step. Half types arrive as float32.

Rows stand longest first, so a step updates the first rows of the state: those that ended keep theirs, and those that
begin later (going backwards in time) still have their initial one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ...common.primitives import FUNCTIONS
from ...common.recurrent import Geometry, geometry
from ..arrays import Array, Ints

sigmoid = FUNCTIONS["sigmoid"]
NOTHING = np.empty(0, np.float32)


def _steps(g: Geometry, backwards: bool) -> list[slice]:
    """The rows of each step, in the order in which they run."""
    ends = np.cumsum(g.sizes).tolist()
    steps = [slice(e - n, e) for e, n in zip(ends, g.sizes, strict=True)]
    return steps[::-1] if backwards else steps


def _grouped(g: Geometry, weights: list[Array], k: int) -> tuple[Any, ...]:
    """(w_ih, w_hh, b_ih, b_hh, w_hr) of the k-th layer and direction."""
    group = weights[k * g.per_group : (k + 1) * g.per_group]
    w_ih, w_hh, *rest = group
    b_ih, b_hh = (rest.pop(0), rest.pop(0)) if g.biases else (0, 0)
    return w_ih, w_hh, b_ih, b_hh, rest[0] if rest else None


def _state(given: Array | None, k: int, shape: tuple[int, int], like: Array) -> Array:
    return np.zeros(shape, like.dtype) if given is None else given[k].copy()


class _Reserve:
    """Views into what the forward pass keeps."""

    def __init__(self, g: Geometry, memory: Array) -> None:
        self.g, self.memory = g, memory

    def _at(self, start: int, *shape: int) -> Array:
        return self.memory[start : start + int(np.prod(shape))].reshape(shape)

    def gates(self, layer: int, d: int) -> Array:
        return self._at(self.g.blocks[layer].gates[d], self.g.rows, self.g.kept, self.g.hidden)

    def cells(self, layer: int, d: int) -> Array:
        return self._at(self.g.blocks[layer].cells[d], self.g.rows, self.g.hidden)

    def output(self, layer: int) -> Array:
        return self._at(self.g.blocks[layer].output, self.g.rows, self.g.directions * self.g.out)


@kernel("_recurrent")
def recurrent(
    x: Array,
    h: Array | None,
    c: Array | None,
    weights: list[Array],
    mode: str,
    sizes: Ints | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
    save: bool,
) -> tuple[Array, ...]:
    g = geometry(x.shape, [w.shape for w in weights], mode, sizes, layers, bidirectional, biases)
    kind = x.dtype
    memory = np.empty(g.reserve_size, kind)
    reserve = _Reserve(g, memory)
    rows = x.reshape(g.rows, g.features)
    last_h, last_c = [], []
    for layer in range(layers):
        out = np.empty((g.rows, g.directions * g.out), kind)
        for d in range(g.directions):
            k = layer * g.directions + d
            w_ih, w_hh, b_ih, b_hh, w_hr = _grouped(g, weights, k)
            from_input = rows @ w_ih.T + b_ih
            state = _state(h, k, (g.batch, g.out), x)
            cell = _state(c, k, (g.batch, g.hidden), x)
            for step in _steps(g, d == 1):
                n = step.stop - step.start
                a, r = from_input[step], state[:n] @ w_hh.T + b_hh
                if mode == "lstm":
                    i, f, m, o = np.split(a + r, 4, -1)
                    i, f, m, o = sigmoid(i), sigmoid(f), np.tanh(m), sigmoid(o)
                    cell[:n] = f * cell[:n] + i * m
                    y = o * np.tanh(cell[:n])
                    state[:n] = y if w_hr is None else y @ w_hr.T
                    reserve.gates(layer, d)[step] = np.stack([i, f, m, o], 1)
                    reserve.cells(layer, d)[step] = cell[:n]
                elif mode == "gru":
                    (ar, az, an), (rr, rz, rn) = np.split(a, 3, -1), np.split(r, 3, -1)
                    reset, z = sigmoid(ar + rr), sigmoid(az + rz)
                    m = np.tanh(an + reset * rn)
                    state[:n] = m + z * (state[:n] - m)
                    reserve.gates(layer, d)[step] = np.stack([reset, z, m, rn], 1)
                else:
                    state[:n] = np.tanh(a + r) if mode == "tanh" else np.maximum(a + r, 0)
                out[step, d * g.out : (d + 1) * g.out] = state[:n]
            last_h.append(state)
            last_c.append(cell)
        if layer < layers - 1:
            reserve.output(layer)[:] = out
        rows = out
    cells = np.stack(last_c) if mode == "lstm" else NOTHING
    return out.reshape(*x.shape[:-1], out.shape[1]), np.stack(last_h), cells, memory if save else memory[:0]


def _step_back(mode: str, by_h: Array, by_c: Array, kept: Any, before: Array, cells: Any, y: Array) -> tuple[Any, ...]:
    """Gradients by what the input gave to the gates, by what the state gave, by the cell before, and by the state
    before where it went past the product.
    """
    if mode == "lstm":
        i, f, m, o = kept
        t = np.tanh(cells[0])
        by_c = by_c + by_h * o * (1 - t * t)
        by = [by_c * m * i * (1 - i), by_c * cells[1] * f * (1 - f), by_c * i * (1 - m * m), by_h * t * o * (1 - o)]
        made = np.concatenate(by, -1)
        return made, made, by_c * f, 0
    if mode == "gru":
        r, z, m, rn = kept
        by_m = by_h * (1 - z) * (1 - m * m)
        by_r, by_z = by_m * rn * r * (1 - r), by_h * (before - m) * z * (1 - z)
        made = np.concatenate([by_r, by_z, by_m], -1)
        return made, np.concatenate([by_r, by_z, by_m * r], -1), by_c, by_h * z
    made = by_h * (1 - y * y) if mode == "tanh" else np.where(y > 0, by_h, 0)
    return made, made, by_c, 0


def _direction_back(
    g: Geometry,
    mode: str,
    layer: int,
    d: int,
    by: Array,
    ends: tuple[Array, Array],
    starts: tuple[Array, Array],
    group: tuple[Any, ...],
    out: Array,
    reserve: _Reserve,
) -> tuple[Any, ...]:
    """Gradients by the gates of all rows, by what the state gave to them, by the states, the states before each step,
    and what the projection of each row got and gave.
    """
    _, w_hh, _, _, w_hr = group
    by_h, by_c = ends
    by_gates = np.empty((g.rows, g.gates * g.hidden), by.dtype)
    by_hidden = np.empty_like(by_gates)
    before = np.empty((g.rows, g.out), by.dtype)
    projected = (np.empty((g.rows, g.out), by.dtype), np.empty((g.rows, g.hidden), by.dtype))
    order = _steps(g, d == 1)
    state, cell = starts[0].copy(), starts[1].copy()
    cells_before = np.empty((g.rows, g.hidden), by.dtype)
    for step in order:
        n = step.stop - step.start
        before[step], cells_before[step] = state[:n], cell[:n]
        state[:n] = out[step]
        if mode == "lstm":
            cell[:n] = reserve.cells(layer, d)[step]
    for step in reversed(order):
        n = step.stop - step.start
        g_h = by[step] + by_h[:n]
        kept: Any = reserve.gates(layer, d)[step].transpose(1, 0, 2) if g.kept else None
        cells: Any = (reserve.cells(layer, d)[step], cells_before[step]) if mode == "lstm" else None
        if w_hr is not None:
            projected[0][step], projected[1][step] = g_h, kept[3] * np.tanh(cells[0])
            g_h = g_h @ w_hr
        made = _step_back(mode, g_h, by_c[:n], kept, before[step], cells, out[step])
        by_gates[step], by_hidden[step], by_c[:n], past = made
        by_h[:n] = by_hidden[step] @ w_hh + past
    return by_gates, by_hidden, by_h, by_c, before, projected


@kernel("_recurrent_backward")
def recurrent_backward(
    by_out: Array | None,
    by_h: Array | None,
    by_c: Array | None,
    x: Array,
    h: Array | None,
    c: Array | None,
    weights: list[Array],
    out: Array,
    memory: Array,
    mode: str,
    sizes: Ints | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
    wants_input: bool,
    wants_states: bool,
    wants_weights: bool,
) -> tuple[Array, ...]:
    g = geometry(x.shape, [w.shape for w in weights], mode, sizes, layers, bidirectional, biases)
    reserve, kind = _Reserve(g, memory), x.dtype
    by = (
        np.zeros((g.rows, g.directions * g.out), kind)
        if by_out is None
        else by_out.reshape(g.rows, g.directions * g.out)
    )
    by_weights: list[Array] = []
    by_first: list[Any] = [None] * (layers * g.directions)
    by_cell = list(by_first)
    for layer in reversed(range(layers)):
        width = g.directions * g.out
        above = out.reshape(g.rows, width) if layer == layers - 1 else reserve.output(layer)
        below = reserve.output(layer - 1) if layer else x.reshape(g.rows, g.features)
        by_below = np.zeros(below.shape, kind)
        groups = []
        for d in range(g.directions):
            k, part = layer * g.directions + d, slice(d * g.out, (d + 1) * g.out)
            group = _grouped(g, weights, k)
            ends = _state(by_h, k, (g.batch, g.out), x), _state(by_c, k, (g.batch, g.hidden), x)
            starts = _state(h, k, (g.batch, g.out), x), _state(c, k, (g.batch, g.hidden), x)
            made = _direction_back(g, mode, layer, d, by[:, part], ends, starts, group, above[:, part], reserve)
            by_gates, by_hidden, by_first[k], by_cell[k], before, projected = made
            by_below += by_gates @ group[0]
            groups += [by_gates.T @ below, by_hidden.T @ before]
            if biases:
                groups += [by_gates.sum(0), by_hidden.sum(0)]
            if g.projected:
                groups.append(projected[0].T @ projected[1])
        by_weights = groups + by_weights
        by = by_below
    nothing = np.empty(0, kind)
    states = (np.stack(by_first), np.stack(by_cell) if mode == "lstm" else nothing)
    if not wants_states:
        states = (nothing, nothing)
    return by.reshape(x.shape) if wants_input else nothing, *states, *(by_weights if wants_weights else [])
