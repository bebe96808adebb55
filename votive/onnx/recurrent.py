"""ONNX's recurrent networks: by votive's fused operator where they agree, step by step where they do not."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .errors import OnnxLoadError
from .read import Attributes

# Where votive finds its gates in ONNX's order.
ORDER = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
ACTIVATIONS = {"Sigmoid": "sigmoid", "Tanh": "tanh", "Relu": "relu", "Softsign": "softsign", "Softplus": "softplus"}


def network(a: Attributes, x: Tensor, w: Tensor, r: Tensor, bias: Any, lengths: Any, h: Any, c: Any, peep: Any) -> Any:
    """(Y, Y_h, Y_c) of all steps, Y as (T, directions, B, hidden)."""
    if a("layout", 0):
        x = x.transpose(0, 1)
        h, c = (None if s is None else s.transpose(0, 1) for s in (h, c))
    directions, hidden = w.shape[0], r.shape[2]
    outs, ends, cells = [], [], []
    for d in range(directions):
        back = a("direction", "forward") == "reverse" or d == 1
        first = F.zeros((x.shape[1], hidden), dtype=x.dtype) if h is None else h[d]
        cell = F.zeros((x.shape[1], hidden), dtype=x.dtype) if c is None else c[d]
        part = None if bias is None else bias[d]
        run = _fused if _plain(a, d, peep) else _stepped
        y, end, last = run(
            a, _turned(x, lengths, back), w[d], r[d], part, lengths, first, cell, None if peep is None else peep[d], d
        )
        outs.append(_turned(y, lengths, back))
        ends.append(end)
        cells.append(last)
    found = [F.stack(outs, 1), F.stack(ends, 0)] + ([F.stack(cells, 0)] if a.op == "LSTM" else [])
    if a("layout", 0):
        found[0] = found[0].permute(2, 0, 1, 3)
        found[1:] = [s.transpose(0, 1) for s in found[1:]]
    return tuple(found)


def _turned(x: Tensor, lengths: Any, back: bool) -> Tensor:
    """Time backwards, for each row from its own end."""
    if not back:
        return x
    if lengths is None:
        return F.flip(x, (0,))
    t = F.arange(x.shape[0]).unsqueeze(1)
    places = F.where(t < lengths, lengths - 1 - t, t)
    return F.gather(x, 0, F.broadcast_to(places.unsqueeze(2), x.shape))


def _activations(a: Attributes, d: int) -> list[str]:
    names = a("activations") or DEFAULTS[a.op] * (d + 1)
    per = len(DEFAULTS[a.op])
    return list(names[d * per : (d + 1) * per])


def _plain(a: Attributes, d: int, peep: Any) -> bool:
    """Whether it is the network that votive has a kernel for."""
    usual = _activations(a, d) == DEFAULTS[a.op] or (a.op == "RNN" and _activations(a, d) == ["Relu"])
    rest = peep is None and a("clip") is None and not a("input_forget", 0)
    return usual and rest and (a.op != "GRU" or bool(a("linear_before_reset", 0)))


def _gates(a: Attributes, m: Tensor) -> Tensor:
    parts = F.chunk(m, len(ORDER[a.op]), 0)
    return F.cat([parts[i] for i in ORDER[a.op]], 0) if len(parts) > 1 else m


def _masked(y: Tensor, lengths: Any) -> Tensor:
    if lengths is None:
        return y
    t = F.arange(y.shape[0]).unsqueeze(1)
    return F.where((t < lengths).unsqueeze(2), y, F.zeros_like(y))


def _ends(y: Tensor, first: Tensor, lengths: Any) -> Tensor:
    """The state of each row behind its last step."""
    if lengths is None:
        return y[-1]
    last = F.clamp(lengths - 1, min=0).long().reshape(1, -1, 1)
    found = F.gather(y, 0, F.broadcast_to(last, (1, *y.shape[1:])))[0]
    return F.where((lengths > 0).unsqueeze(1), found, first)


def _fused(
    a: Attributes,
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Any,
    lengths: Any,
    first: Tensor,
    cell: Tensor,
    peep: Any,
    d: int,
) -> Any:
    if lengths is not None and a.op == "LSTM":
        return _stepped(a, x, w, r, bias, lengths, first, cell, peep, d)
    weights = [_gates(a, w), _gates(a, r)]
    if bias is not None:
        weights += [_gates(a, part) for part in F.chunk(bias, 2, 0)]
    options = (bias is not None, 1, 0.0, False, False, False)
    state = first.unsqueeze(0)
    if a.op == "LSTM":
        y, end, last = F.lstm(x, (state, cell.unsqueeze(0)), weights, *options)
        return y, end[0], last[0]
    kind = "gru" if a.op == "GRU" else "rnn_relu" if _activations(a, d) == ["Relu"] else "rnn_tanh"
    y, _ = getattr(F, kind)(x, state, weights, *options)
    return _masked(y, lengths), _ends(y, first, lengths), cell


def _function(name: str) -> Any:
    if name not in ACTIVATIONS:
        raise OnnxLoadError(f"recurrent networks with the activation {name} are not supported.")
    return getattr(F, ACTIVATIONS[name])


def _stepped(
    a: Attributes, x: Tensor, w: Tensor, r: Tensor, bias: Any, lengths: Any, h: Tensor, c: Tensor, peep: Any, d: int
) -> Any:
    functions = [_function(n) for n in _activations(a, d)]
    input_bias, state_bias = F.chunk(bias, 2, 0) if bias is not None else (0, 0)
    limit = a("clip")
    bound = (lambda v: v) if limit is None else lambda v: F.clamp(v, -limit, limit)
    step = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN": _rnn_step}[a.op]
    outs = []
    for t in range(x.shape[0]):
        new, cell = step(a, x[t] @ w.t() + input_bias, r, state_bias, h, c, peep, functions, bound)
        if lengths is not None:
            alive = (t < lengths).unsqueeze(1)
            outs.append(F.where(alive, new, F.zeros_like(new)))
            h, c = F.where(alive, new, h), F.where(alive, cell, c)
        else:
            outs.append(new)
            h, c = new, cell
    return F.stack(outs, 0), h, c


def _lstm_step(a: Attributes, given: Any, r: Any, bias: Any, h: Any, c: Any, peep: Any, fs: Any, bound: Any) -> Any:
    i, o, f, g = F.chunk(given + h @ r.t() + bias, 4, 1)
    pi, po, pf = F.chunk(peep, 3, 0) if peep is not None else (0, 0, 0)
    i = fs[0](bound(i + pi * c))
    f = 1 - i if a("input_forget", 0) else fs[0](bound(f + pf * c))
    c = f * c + i * fs[1](bound(g))
    return fs[0](bound(o + po * c)) * fs[2](c), c


def _gru_step(a: Attributes, given: Any, r: Any, bias: Any, h: Any, c: Any, peep: Any, fs: Any, bound: Any) -> Any:
    xz, xr, xh = F.chunk(given, 3, 1)
    rz, rr, rh = F.chunk(r, 3, 0)
    bz, br, bh = F.chunk(bias, 3, 0) if not isinstance(bias, int) else (0, 0, 0)
    z, reset = fs[0](bound(xz + h @ rz.t() + bz)), fs[0](bound(xr + h @ rr.t() + br))
    inner = reset * (h @ rh.t() + bh) if a("linear_before_reset", 0) else (reset * h) @ rh.t() + bh
    return (1 - z) * fs[1](bound(xh + inner)) + z * h, c


def _rnn_step(a: Attributes, given: Any, r: Any, bias: Any, h: Any, c: Any, peep: Any, fs: Any, bound: Any) -> Any:
    return fs[0](bound(given + h @ r.t() + bias)), c
