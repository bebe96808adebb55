"""Records for recurrent networks and cells. The references are written from the formulas, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ops.catalog import S, op


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_cell(x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0, b_hh: Any = 0) -> Any:
    i, f, g, o = np.split(x @ w_ih.T + b_ih + hx[0] @ w_hh.T + b_hh, 4, -1)
    c = sigmoid(f) * hx[1] + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_cell(x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0, b_hh: Any = 0) -> Any:
    (xr, xz, xn), (hr, hz, hn) = np.split(x @ w_ih.T + b_ih, 3, -1), np.split(hx @ w_hh.T + b_hh, 3, -1)
    z = sigmoid(xz + hz)
    return (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * hx


def rnn_tanh_cell(x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0, b_hh: Any = 0) -> Any:
    return np.tanh(x @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)


def rnn_relu_cell(x: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = 0, b_hh: Any = 0) -> Any:
    return np.maximum(x @ w_ih.T + b_ih + hx @ w_hh.T + b_hh, 0)


def network(cell: Callable[..., Any]) -> Callable[..., Any]:
    """A padded network as steps of its cell, each direction by itself."""

    def run(
        x: Any, hx: Any, params: Any, biases: bool, layers: int, dropout: float, train: bool, both: bool, first: bool
    ) -> Any:
        x = x.swapaxes(0, 1) if first else x
        states = hx if isinstance(hx, (list, tuple)) else [hx]
        per, ends = 4 if biases else 2, []
        for layer in range(layers):
            outputs = []
            for d in range(1 + both):
                k = layer * (1 + both) + d
                state: Any = [s[k] for s in states]
                given = []
                for row in x[::-1] if d else x:
                    made = cell(row, state if len(state) > 1 else state[0], *params[k * per : (k + 1) * per])
                    state = list(made) if isinstance(made, tuple) else [made]
                    given.append(state[0])
                outputs.append(np.stack(given[::-1] if d else given))
                ends.append(state)
            x = np.concatenate(outputs, -1)
        out = x.swapaxes(0, 1) if first else x
        return out, *(np.stack(part) for part in zip(*ends, strict=True))

    return run


def weights(gates: int, features: int, units: int, layers: int, both: bool, biases: bool) -> list[S]:
    made = []
    for layer in range(layers):
        for _ in range(1 + both):
            made += [S(gates * units, units * (1 + both) if layer else features), S(gates * units, units)]
            made += [S(gates * units), S(gates * units)] if biases else []
    return made


def networks(gates: int) -> list[tuple[Any, ...]]:
    def state(count: int) -> Any:
        h = S(count, 2, 3)
        return [h, h] if gates == 4 else h

    return [
        (S(3, 2, 4), state(1), weights(gates, 4, 3, 1, False, True), True, 1, 0.0, False, False, False),
        (S(2, 3, 2), state(4), weights(gates, 2, 3, 2, True, False), False, 2, 0.0, False, True, True),
    ]


def cells(gates: int) -> list[tuple[Any, ...]]:
    h: Any = [S(2, 3), S(2, 3)] if gates == 4 else S(2, 3)
    n = gates * 3
    return [(S(2, 4), h, S(n, 4), S(n, 3)), (S(2, 4), h, S(n, 4), S(n, 3), S(n), S(n))]


CELLS = {
    "lstm_cell": (lstm_cell, 4),
    "gru_cell": (gru_cell, 3),
    "rnn_tanh_cell": (rnn_tanh_cell, 1),
    "rnn_relu_cell": (rnn_relu_cell, 1),
}
NARROW = {"domain": (-0.9, 0.9), "dtypes": "f"}

RECORDS = [
    *[op(name, samples=cells(gates), reference=cell, **NARROW) for name, (cell, gates) in CELLS.items()],
    *[
        op(name.removesuffix("_cell"), samples=networks(gates), reference=network(cell), **NARROW)
        for name, (cell, gates) in CELLS.items()
    ],
]
