"""Recurrent networks: rows of the kernel table. A layer is products over all steps and one walk along them."""

from __future__ import annotations

from typing import Any

from .....core.layout import Spec
from ....common.recurrent import geometry
from ....common.slot import Slot
from ...programs.layouts import contiguous, row_stride
from ...programs.types import FLOATS, Run
from ...rows import cuda
from ...runtime.views import View, zero
from .gradients import Given, LayerBackward, Wanted
from .layers import LayerForward, Weights, grouped
from .walk import Sizes


def _zeros(outs: list[View], *given: Any) -> None:
    """No rows: nothing is computed, and sums are of nothing."""
    for v in outs:
        if v.spec.numel:
            zero(v)


def _takes(x: Slot, weights: tuple[Slot, ...]) -> bool:
    return x.dtype in FLOATS and all(w.dtype is x.dtype for w in weights)


def _sizes(x: Slot, weights: Any, mode: str, sizes: Any, layers: int, bidirectional: bool, biases: bool) -> Sizes:
    made = geometry(x.shape, [w.shape for w in weights], mode, sizes, layers, bidirectional, biases)
    even = all(n == made.batch for n in made.sizes)
    return Sizes(made, x.spec, not even)


def _rows(x: Spec, features: int) -> int | None:
    """The distance between rows of the input, where all lie alike."""
    stride = row_stride(x)
    return stride if stride is not None and stride >= features else None


@cuda("_recurrent")
def recurrent(
    x: Slot,
    h: Slot | None,
    c: Slot | None,
    weights: tuple[Slot, ...],
    mode: str,
    sizes: Any,
    layers: int,
    bidirectional: bool,
    biases: bool,
    save: bool,
) -> Run:
    if not _takes(x, weights):
        return None
    s = _sizes(x, weights, mode, sizes, layers, bidirectional, biases)
    g, states = s.g, h is not None
    if not g.batch:
        return _zeros
    row, offsets = _rows(x.spec, g.features), s.offsets()
    width = g.directions * g.out
    steps = [LayerForward(s, k, width if k else row or g.features, offsets, states, save) for k in range(layers)]
    item, wide = s.dtype.itemsize, s.wide.itemsize

    def run(outs: list[View], x: View, h: View | None, c: View | None, weights: list[View]) -> None:
        out, hn, cn, reserve = outs
        source = x if row is not None else contiguous(x)
        first = contiguous(h) if h is not None else None
        cell = contiguous(c) if c is not None else None
        at = source.ptr
        between: list[View] = []  # lives until all layers are launched
        for k, layer in enumerate(steps):
            block = g.blocks[k]
            gates = reserve.ptr + block.gates[0] * wide if save and g.kept else 0
            cells = reserve.ptr + block.cells[0] * wide if save and mode == "lstm" else 0
            if k == layers - 1:
                to = out.ptr
            elif save:
                to = reserve.ptr + block.output * wide
            else:
                between.append(s.scratch(g.rows * width, s.dtype))
                to = between[-1].ptr
            state = k * g.directions * g.batch
            layer(
                at,
                first.ptr + state * g.out * item if first is not None else 0,
                cell.ptr + state * g.hidden * item if cell is not None else 0,
                grouped(s, k, weights),
                gates,
                cells,
                to,
                hn.ptr + state * g.out * item,
                cn.ptr + state * g.hidden * item if mode == "lstm" else 0,
            )
            at = to

    return run


@cuda("_recurrent_backward")
def recurrent_backward(
    by_out: Slot | None,
    by_h: Slot | None,
    by_c: Slot | None,
    x: Slot,
    h: Slot | None,
    c: Slot | None,
    weights: tuple[Slot, ...],
    out: Slot,
    reserve: Slot,
    mode: str,
    sizes: Any,
    layers: int,
    bidirectional: bool,
    biases: bool,
    wants_input: bool,
    wants_states: bool,
    wants_weights: bool,
) -> Run:
    if not _takes(x, weights):
        return None
    s = _sizes(x, weights, mode, sizes, layers, bidirectional, biases)
    g, states = s.g, h is not None
    if not g.batch:
        return _zeros
    row, offsets = _rows(x.spec, g.features), s.offsets()
    width = g.directions * g.out
    steps = []
    for k in range(layers):
        by = (by_out is not None or k < layers - 1, by_h is not None, by_c is not None and mode == "lstm")
        wants = (wants_input or k > 0, wants_states, wants_weights)
        steps.append(LayerBackward(s, k, width if k else row or g.features, offsets, states, by, wants))
    item, wide = s.dtype.itemsize, s.wide.itemsize

    def run(outs: list[View], *given: Any) -> None:
        by_out, by_h, by_c, x, h, c, weights, out, reserve = given
        by_input, to_h, to_c, *to_weights = outs
        source = x if row is not None else contiguous(x)
        by_out, by_h, by_c, h, c = (None if v is None else contiguous(v) for v in (by_out, by_h, by_c, h, c))
        out = contiguous(out)
        above = by_out.ptr if by_out is not None else 0
        between: list[View] = []
        for k in reversed(range(layers)):
            block = g.blocks[k]
            state = k * g.directions * g.batch * item

            def of(v: View | None, n: int, state: int = state) -> int:
                return v.ptr + state * n if v is not None else 0

            given_ = Given(
                above,
                of(by_h, g.out),
                of(by_c, g.hidden) if mode == "lstm" else 0,
                reserve.ptr + g.blocks[k - 1].output * wide if k else source.ptr,
                of(h, g.out),
                of(c, g.hidden),
                reserve.ptr + block.gates[0] * wide if g.kept else 0,
                reserve.ptr + block.cells[0] * wide if mode == "lstm" else 0,
                out.ptr if k == layers - 1 else reserve.ptr + block.output * wide,
            )
            if k:
                between.append(s.scratch(g.rows * width, s.dtype))
            wanted = Wanted(
                between[-1].ptr if k else by_input.ptr,
                of(to_h, g.out) if wants_states else 0,
                of(to_c, g.hidden) if wants_states and mode == "lstm" else 0,
                grouped(s, k, to_weights, dense=False) if wants_weights else None,
            )
            steps[k](given_, grouped(s, k, weights), wanted)
            above = wanted.by_input

    return run


__all__ = ["Weights", "recurrent", "recurrent_backward"]
