"""How attention, rotary positions and recurrent networks are written as ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..compiler.graph import Value
from ..core import dtype as dt
from .sizes import Int, Sym
from .translate import Call, translates


@translates("_attention")
def attention(
    c: Call,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None,
    seed: Any,
    counter: Any,
    offset: Any,
    dropout_p: float,
    is_causal: bool,
    scale: float,
) -> list[str]:
    if dropout_p:
        raise c.refuse("a model in training mode draws random numbers; call model.eval() first")
    dtype = c.dtype(q)
    key, value = (_shared(c, t, c.shape(q)[1]) for t in (k, v))
    turned = c.op("Transpose", key, perm=[0, 1, 3, 2])
    scores = c.op("MatMul", c.op("Mul", c.name(q), c.b.constant(scale, dtype)), turned)
    rows, columns = c.shape(q)[2], c.shape(k)[2]
    if is_causal:
        ones = c.op("Expand", c.b.constant(1, dt.int64), c.b.sizes([rows, columns]))
        seen = c.b.cast(c.op("Trilu", ones, c.b.number(offset, dt.int64), upper=0), dt.bool_)
        scores = c.op("Where", seen, scores, c.b.constant(-np.inf, dtype))
    empty = False
    if mask is not None and c.dtype(mask) is dt.bool_:
        scores = c.op("Where", c.name(mask), scores, c.b.constant(-np.inf, dtype))
        empty = True
    elif mask is not None:
        added = c.name(mask) if c.dtype(mask) is dtype else c.b.cast(c.name(mask), dtype)
        scores = c.op("Add", scores, added)
        empty = True
    weights = c.op("Softmax", scores, axis=-1)
    if empty:  # a row that sees nothing gives zeros
        weights = c.op("Where", c.op("IsNaN", weights), c.b.constant(0, dtype), weights)
    return [c.op("MatMul", weights, value)]


def _shared(c: Call, x: Value, heads: Int) -> str:
    """Heads that several queries share, once for each."""
    batch, have, length, width = c.shape(x)
    if have == heads:
        return c.name(x)
    times = c.fixed([heads], "heads")[0] // c.fixed([have], "heads")[0]
    apart = c.op("Unsqueeze", c.name(x), c.b.constant([2]))
    return c.b.reshape(
        c.op("Expand", apart, c.b.sizes([batch, have, times, length, width])), [batch, heads, length, width]
    )


@translates("_rope")
def rope(c: Call, x: Value, cos: Value, sin: Value, offset: Any, interleaved: bool) -> str:
    from .rules_shapes import INT64_MAX, sliced

    width, angles = c.shape(x)[-1], c.shape(cos)[-1]
    n, axis = len(c.shape(x)), len(c.shape(cos)) - 2
    rows = c.shape(x)[-2]
    if isinstance(width, Sym) or isinstance(angles, Sym) or interleaved:
        raise c.refuse("interleaved rotation is not supported; write it with plain operators")
    wide = dt.float64 if c.dtype(x) is dt.float64 else dt.float32
    tables = []
    for t in (cos, sin):
        name = (
            c.name(t)
            if c.shape(t)[-2] == rows and offset == 0
            else sliced(c, c.name(t), [(axis, offset, offset + rows, 1)])
        )
        tables.append(name if c.dtype(t) is wide else c.b.cast(name, wide))
    name = c.name(x) if c.dtype(x) is wide else c.b.cast(c.name(x), wide)
    a = sliced(c, name, [(n - 1, 0, angles, 1)])
    b = sliced(c, name, [(n - 1, angles, 2 * angles, 1)])
    parts = [
        c.op("Sub", c.op("Mul", a, tables[0]), c.op("Mul", b, tables[1])),
        c.op("Add", c.op("Mul", b, tables[0]), c.op("Mul", a, tables[1])),
    ]
    if 2 * angles < width:
        parts.append(sliced(c, name, [(n - 1, 2 * angles, INT64_MAX, 1)]))
    made = c.op("Concat", *parts, axis=-1)
    return made if c.dtype(x) is wide else c.b.cast(made, c.dtype(x))


# The order of gates in a matrix of weights: which of votive's come first, second ... in ONNX.
GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "tanh": (0,), "relu": (0,)}
KINDS = {"lstm": "LSTM", "gru": "GRU", "tanh": "RNN", "relu": "RNN"}


@translates("_recurrent")
def recurrent(
    c: Call,
    x: Value,
    h: Value | None,
    cell: Value | None,
    weights: Sequence[Value],
    mode: str,
    sizes: Any,
    layers: int,
    bidirectional: bool,
    biases: bool,
    save: bool,
) -> list[str]:
    if sizes is not None:
        raise c.refuse("packed sequences have no counterpart in ONNX")
    directions = 2 if bidirectional else 1
    per = len(weights) // (layers * directions)
    if per != 2 + 2 * biases:
        raise c.refuse("projections have no counterpart in ONNX")
    hidden = int(weights[1].spec.shape[1])
    name, ends, cells = c.name(x), [], []
    for layer in range(layers):
        parts = [
            weights[(layer * directions + d) * per : (layer * directions + d + 1) * per] for d in range(directions)
        ]
        w, r = (_stacked(c, [p[i] for p in parts], mode) for i in (0, 1))
        bias = None
        if biases:
            bias = c.op(
                "Concat", _stacked(c, [p[2] for p in parts], mode), _stacked(c, [p[3] for p in parts], mode), axis=1
            )
        first = None if h is None else _states(c, h, layer, directions)
        given: list[str | None] = [name, w, r, bias, None, first]
        options: dict[str, Any] = {"hidden_size": hidden, "direction": "bidirectional" if bidirectional else "forward"}
        if mode == "lstm":
            given.append(None if cell is None else _states(c, cell, layer, directions))
        elif mode == "gru":
            options["linear_before_reset"] = 1
        else:
            options["activations"] = [mode.capitalize()] * directions
        outs = c.b.ops(KINDS[mode], given, 3 if mode == "lstm" else 2, **options)
        turned = c.op("Transpose", outs[0], perm=[0, 2, 1, 3])  # (T, B, directions, hidden)
        name = c.op("Reshape", turned, c.b.constant([0, 0, -1]))
        ends.append(outs[1])
        cells += outs[2:]
    joined = ends[0] if layers == 1 else c.op("Concat", *ends, axis=0)
    kept = (
        c.b.constant(np.zeros(0), c.dtype(x))
        if not cells
        else cells[0]
        if layers == 1
        else c.op("Concat", *cells, axis=0)
    )
    return [name, joined, kept, c.b.constant(np.zeros(0), c.dtype(x))]


def _states(c: Call, states: Value, layer: int, directions: int) -> str:
    from .rules_shapes import sliced

    return sliced(c, c.name(states), [(0, layer * directions, (layer + 1) * directions, 1)])


def _stacked(c: Call, parts: Sequence[Value], mode: str) -> str:
    """Weights of both directions with their gates in ONNX's order: (directions, gates * hidden, ...)."""
    made = []
    for part in parts:
        gates = len(GATES[mode])
        pieces = c.b.ops("Split", [c.name(part)], gates, axis=0, num_outputs=gates) if gates > 1 else [c.name(part)]
        ordered = c.op("Concat", *[pieces[g] for g in GATES[mode]], axis=0) if gates > 1 else pieces[0]
        made.append(c.op("Unsqueeze", ordered, c.b.constant([0])))
    return made[0] if len(made) == 1 else c.op("Concat", *made, axis=0)
