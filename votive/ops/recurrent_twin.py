"""Recurrent networks written with plain operators, and their gradient likewise. Knows no kernels.

They serve devices without a kernel, and wherever a graph is made of the gradient. A padded batch is a packed one whose
steps all have the same number of rows, so one walk serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backends.common.recurrent import GATES
from .registry import F

if TYPE_CHECKING:
    from .types import Tensor

State = tuple["Tensor", ...]


class Weights(NamedTuple):
    """The weights of one layer in one direction."""

    w_ih: Any
    w_hh: Any
    b_ih: Any = None
    b_hh: Any = None
    w_hr: Any = None


def grouped(weights: Sequence[Any], count: int, biases: bool) -> list[Weights]:
    """A flat list of weights by layer and direction, of which there are `count`."""
    per = len(weights) // count
    groups = [weights[k * per : (k + 1) * per] for k in range(count)]
    return [Weights._make((*g, None)[:5] if biases else (*g[:2], None, None, *g[2:], None)[:5]) for g in groups]


def walk(
    step: Callable[[Any, State], tuple[State, Any]],
    inputs: Sequence[Any],
    sizes: Sequence[int],
    state: State,
    backwards: bool,
) -> tuple[list[Any], State]:
    """What each step gives, in the order of time, and the last state of each row.

    Rows stand longest first: forwards, the last rows end early and keep their state; backwards,
    they start late and begin with their initial state.
    """
    initial = state
    rows = sizes[-1] if backwards else sizes[0]
    state = tuple(s[:rows] for s in state)
    ended: list[State] = []
    given = []
    times = range(len(sizes))
    for t in reversed(times) if backwards else times:
        now = sizes[t]
        if now < rows:
            ended.append(tuple(s[now:] for s in state))
            state = tuple(s[:now] for s in state)
        elif now > rows:
            state = tuple(F.cat([s, i[rows:now]]) for s, i in zip(state, initial, strict=True))
        rows = now
        state, result = step(inputs[t], state)
        given.append(result)
    if ended:
        state = tuple(F.cat(parts) for parts in zip(state, *reversed(ended), strict=True))
    return (given[::-1] if backwards else given), state


# --- one step: the state after it, and what its gradient needs -------------------------------------


def _plain_step(x: Tensor, state: State, w: Weights, act: Callable[[Tensor], Tensor]) -> tuple[State, State]:
    h = act(x + F.linear(state[0], w.w_hh, w.b_hh))
    return (h,), (*state, h)


def _tanh_step(x: Tensor, state: State, w: Weights) -> tuple[State, State]:
    """`h' = tanh(x + W h + b)`."""
    return _plain_step(x, state, w, F.tanh)


def _relu_step(x: Tensor, state: State, w: Weights) -> tuple[State, State]:
    """`h' = relu(x + W h + b)`."""
    return _plain_step(x, state, w, F.relu)


def _lstm_step(x: Tensor, state: State, w: Weights) -> tuple[State, State]:
    """`c' = f c + i g`, `h' = o tanh(c')`; the gates stand in the order i, f, g, o."""
    h, before = state
    a, b, d, e = (x + F.linear(h, w.w_hh, w.b_hh)).chunk(4, -1)
    i, f, g, o = a.sigmoid(), b.sigmoid(), d.tanh(), e.sigmoid()
    c = f * before + i * g
    y = c.tanh()
    after = o * y
    return (after if w.w_hr is None else F.linear(after, w.w_hr), c), (h, before, i, f, g, o, y)


def _gru_step(x: Tensor, state: State, w: Weights) -> tuple[State, State]:
    """`n = tanh(x_n + r h_n)`, `h' = (1 - z) n + z h`; the gates stand in the order r, z, n."""
    (h,) = state
    xr, xz, xn = x.chunk(3, -1)
    hr, hz, hn = F.linear(h, w.w_hh, w.b_hh).chunk(3, -1)
    r, z = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    n = (xn + r * hn).tanh()
    return (z * (h - n) + n,), (h, r, z, n, hn)


STEPS: dict[str, Callable[[Tensor, State, Weights], tuple[State, State]]] = {
    "tanh": _tanh_step,
    "relu": _relu_step,
    "lstm": _lstm_step,
    "gru": _gru_step,
}


# --- the gradient of one step: by the state before it, then by what the product with the state and the input gave ---


def _tanh_back(g: State, kept: State, w: Weights) -> tuple[State, State]:
    h, y = kept
    by = g[0] * (1 - y * y)
    return (F.matmul(by, w.w_hh),), (h, by, by)


def _relu_back(g: State, kept: State, w: Weights) -> tuple[State, State]:
    h, y = kept
    by = F.where(y > 0, g[0], 0.0)
    return (F.matmul(by, w.w_hh),), (h, by, by)


def _lstm_back(g: State, kept: State, w: Weights) -> tuple[State, State]:
    h, before, i, f, n, o, y = kept
    by_h, by_c = g
    by_after = by_h if w.w_hr is None else F.matmul(by_h, w.w_hr)
    by_c = by_c + by_after * o * (1 - y * y)
    parts = (by_c * n * i * (1 - i), by_c * before * f * (1 - f), by_c * i * (1 - n * n), by_after * y * o * (1 - o))
    by = F.cat(parts, -1)
    projected = () if w.w_hr is None else (by_h, o * y)
    return (F.matmul(by, w.w_hh), by_c * f), (h, by, by, *projected)


def _gru_back(g: State, kept: State, w: Weights) -> tuple[State, State]:
    h, r, z, n, hn = kept
    by_n = g[0] * (1 - z) * (1 - n * n)
    by_z = g[0] * (h - n) * z * (1 - z)
    by_r = by_n * hn * r * (1 - r)
    by_hidden = F.cat((by_r, by_z, by_n * r), -1)
    return (F.matmul(by_hidden, w.w_hh) + g[0] * z,), (h, by_hidden, F.cat((by_r, by_z, by_n), -1))


BACK: dict[str, Callable[[State, State, Weights], tuple[State, State]]] = {
    "tanh": _tanh_back,
    "relu": _relu_back,
    "lstm": _lstm_back,
    "gru": _gru_back,
}


# --- a network ---------------------------------------------------------------------------------------


class _Run(NamedTuple):
    """A network's run: the inputs of its layers, its result, the last states, and what steps kept for each layer
    and direction.
    """

    inputs: list[Tensor]
    output: Tensor
    ends: list[State]
    kept: list[list[State]]


def _run(
    x: Tensor, states: list[State], weights: list[Weights], mode: str, sizes: Sequence[int] | None, directions: int
) -> _Run:
    step = STEPS[mode]
    steps = [x.shape[1]] * x.shape[0] if sizes is None else list(sizes)
    run = _Run([], x, [], [])
    for layer in range(len(weights) // directions):
        run.inputs.append(x)
        outputs = []
        for k in range(layer * directions, (layer + 1) * directions):
            w = weights[k]
            # One product for all steps: only the recurrent part must wait for its step.
            gates = F.linear(x, w.w_ih, w.b_ih)
            parts = gates.unbind(0) if sizes is None else gates.split(steps)

            def run_step(part: Tensor, state: State, w: Weights = w) -> tuple[State, tuple[Tensor, State]]:
                after, kept = step(part, state, w)
                return after, (after[0], kept)

            given, end = walk(run_step, parts, steps, states[k], k % directions == 1)
            out = [h for h, _ in given]
            outputs.append(F.stack(out) if sizes is None else F.cat(out))
            run.ends.append(end)
            run.kept.append([kept for _, kept in given])
        x = outputs[0] if directions == 1 else F.cat(outputs, -1)
    return run._replace(output=x)


def initial_states(
    x: Tensor, h: Tensor | None, c: Tensor | None, weights: list[Weights], mode: str, sizes: Sequence[int] | None
) -> list[State]:
    """The state of each layer and direction to begin with."""
    rows = x.shape[1] if sizes is None else sizes[0]
    widths = [weights[0].w_hh.shape[1]]
    if mode == "lstm":
        widths.append(weights[0].w_ih.shape[0] // GATES[mode])
    given = [h, c][: len(widths)]
    blank = [F.zeros((rows, n), dtype=x.dtype, device=x.device) for n in widths] if None in given else []
    return [tuple(blank[i] if s is None else s[k] for i, s in enumerate(given)) for k in range(len(weights))]


def network(
    x: Tensor,
    h: Tensor | None,
    c: Tensor | None,
    flat: Sequence[Any],
    mode: str,
    sizes: Sequence[int] | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
) -> tuple[Tensor, ...]:
    """Output and last states, as the operator `_recurrent` gives them."""
    directions = 2 if bidirectional else 1
    weights = grouped(flat, layers * directions, biases)
    states = initial_states(x, h, c, weights, mode, sizes)
    run = _run(x, states, weights, mode, sizes, directions)
    return run.output, *[F.stack(parts) for parts in zip(*run.ends, strict=True)]


def network_backward(
    by_out: Tensor | None,
    by_h: Tensor | None,
    by_c: Tensor | None,
    x: Tensor,
    h: Tensor | None,
    c: Tensor | None,
    flat: Sequence[Any],
    mode: str,
    sizes: Sequence[int] | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
) -> tuple[Any, ...]:
    """Gradients by input, states and weights of what `network` gives."""
    directions = 2 if bidirectional else 1
    weights = grouped(flat, layers * directions, biases)
    states = initial_states(x, h, c, weights, mode, sizes)
    run = _run(x, states, weights, mode, sizes, directions)
    steps = [x.shape[1]] * x.shape[0] if sizes is None else list(sizes)
    by_states: list[Any] = [None] * len(weights)
    by_weights: list[Any] = [None] * len(weights)
    by = F.zeros_like(run.output) if by_out is None else by_out
    for layer in reversed(range(layers)):
        by_input = None
        parts_by_direction = by.chunk(directions, -1)
        for d in range(directions):
            k = layer * directions + d
            ends = [None if g is None else g[k] for g in (by_h, by_c)]
            carried = tuple(F.zeros_like(s) if g is None else g for s, g in zip(states[k], ends, strict=False))
            g = parts_by_direction[d]
            parts = g.unbind(0) if sizes is None else g.split(steps)
            items = list(zip(parts, run.kept[k], strict=True))
            w = weights[k]

            def back(item: Any, carry: State, w: Weights = w) -> tuple[State, State]:
                g, kept = item
                return BACK[mode]((g + carry[0], *carry[1:]), kept, w)

            # The walk of the gradient goes the other way: what rows end with there, they begin with here.
            given, by_states[k] = walk(back, items, steps, carried, d == 0)
            joined = [F.cat(column) for column in zip(*given, strict=True)]
            before, by_hidden, by_gates, *projected = joined
            rows = run.inputs[layer].reshape(-1, run.inputs[layer].shape[-1])
            by_weights[k] = [F.matmul(by_gates.mT, rows), F.matmul(by_hidden.mT, before)]
            if biases:
                by_weights[k] += [by_gates.sum(0), by_hidden.sum(0)]
            if projected:
                by_weights[k].append(F.matmul(projected[0].mT, projected[1]))
            term = F.matmul(by_gates, w.w_ih).reshape(run.inputs[layer].shape)
            by_input = term if by_input is None else by_input + term
        by = by_input
    stacked = [F.stack(column) for column in zip(*by_states, strict=True)]
    return by, stacked[0], stacked[1] if len(stacked) > 1 else None, [g for group in by_weights for g in group]
