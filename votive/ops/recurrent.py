"""Recurrent networks as one operator: all layers and directions over a batch of sequences. Knows shapes and gradients.

Nothing between the layers leaves the operator, so a kernel may run directions or layers side by side, and a step costs
no call. With dropout between layers there is a call per layer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..backends.base import has_own
from ..backends.common.recurrent import Geometry, geometry
from ..core import dtype as dt
from ..core.errors import DtypeError, ShapeError, fail
from ..core.layout import Spec
from ..core.mode import mode as switches
from . import recurrent_twin
from .autocast_policy import LOWER
from .registry import F, structured

if TYPE_CHECKING:
    from .types import Context, Sequence, Tensor


# Layers in one call: a kernel gives a gradient for each weight, and has a bound on its results.
MOST_LAYERS = 6


def _fits(op: str, what: str, got: Spec, want: tuple[int, ...], kind: dt.dtype) -> None:
    if got.shape != want:
        fail(ShapeError, op, f"{what} must have shape {want}, got {got.shape}.")
    if got.dtype is not kind:
        fail(DtypeError, op, f"{what} must be {kind} like the input, got {got.dtype}.")


def _geometry(
    x: Spec,
    h: Spec | None,
    c: Spec | None,
    weights: tuple[Spec, ...],
    mode: str,
    sizes: tuple[int, ...] | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
) -> Geometry:
    op = {"tanh": "rnn_tanh", "relu": "rnn_relu"}.get(mode, mode)
    if not x.dtype.is_floating_point:
        fail(DtypeError, op, f"takes floating-point numbers, got {x.dtype}.")
    if x.ndim != (3 if sizes is None else 2):
        fail(ShapeError, op, f"input must have {3 if sizes is None else 2} dimensions, got {x.ndim}.")
    if (c is None) != (mode != "lstm" or h is None):
        fail(ShapeError, op, "an LSTM takes both h and c or neither, other networks no c.")
    count = layers * (2 if bidirectional else 1)
    allowed = {2 + 2 * biases, 3 + 2 * biases} if mode == "lstm" else {2 + 2 * biases}
    if len(weights) not in {count * n for n in allowed}:
        fail(ShapeError, op, f"{count} layers and directions cannot share {len(weights)} weights.")
    if any(weights[k].ndim != 2 for k in (0, 1)):
        fail(ShapeError, op, f"weights must be matrices, got {weights[0].shape} and {weights[1].shape}.")
    made = geometry(x.shape, [w.shape for w in weights], mode, sizes, layers, bidirectional, biases)
    if not made.sizes:
        fail(ShapeError, op, "Expected sequence length to be larger than 0 in RNN")
    if any(b > a for a, b in pairwise(made.sizes)) or made.sizes[-1] < 0:
        fail(ShapeError, op, f"the rows of packed steps never grow, got {made.sizes}.")
    if sizes is not None and made.rows != x.shape[0]:
        fail(ShapeError, op, f"steps of {sizes} rows need {made.rows} rows of input, got {x.shape[0]}.")
    flat = iter(weights)
    for layer in range(layers):
        for _ in range(made.directions):
            for want in made.weight_shapes(layer):
                _fits(op, f"a weight of layer {layer}", next(flat), want, x.dtype)
    for name, state, width in (("h", h, made.out), ("c", c, made.hidden)):
        if state is not None:
            _fits(op, name, state, (count, made.batch, width), x.dtype)
    return made


def _states(x: Spec, made: Geometry) -> tuple[Spec, Spec]:
    count = made.layers * made.directions
    cells = (count, made.batch, made.hidden) if made.mode == "lstm" else (0,)
    return x.like((count, made.batch, made.out)), x.like(cells)


def _infer(
    x: Spec,
    h: Spec | None,
    c: Spec | None,
    weights: tuple[Spec, ...],
    mode: str,
    sizes: tuple[int, ...] | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
    save: bool,
) -> tuple[Spec, ...]:
    made = _geometry(x, h, c, weights, mode, sizes, layers, bidirectional, biases)
    out = x.like((*x.shape[:-1], made.directions * made.out))
    return out, *_states(x, made), x.like((made.reserve_size if save else 0,), dtype=dt.compute_type(x.dtype))


def _grad(c: Context, by_out: Any, by_h: Any, by_c: Any, _: Any) -> tuple[Any, ...]:
    how = (c.mode, c.sizes, c.layers, c.bidirectional, c.biases)
    given = (by_out, by_h, by_c if c.mode == "lstm" else None, c.input, c.h, c.c, c.weights)
    if switches.grad or not c.save:
        return recurrent_twin.network_backward(*given, *how)
    states = c.h is not None and (c.needs("h") or c.needs("c"))
    by_input, by_first, by_cell, *by_weights = F._recurrent_backward(
        *given, c.out0, c.out3, *how, c.needs("input"), states, c.needs("weights")
    )
    return by_input, by_first, by_cell, by_weights or None


structured(
    "_recurrent(Tensor input, Tensor? h, Tensor? c, Tensor[] weights, str mode, int[]? sizes, int layers, "
    "bool bidirectional, bool biases, bool save)",
    infer=_infer,
    grad=_grad,
    n_out=4,
    partial=True,
    autocast=LOWER,
    doc="All steps of a network over (T, B, features), or over packed rows whose steps have `sizes` rows: outputs, "
    "last states, and with `save` what the gradient needs (`backends.common.recurrent.Geometry` says where).",
)


def _infer_backward(
    by_out: Any,
    by_h: Any,
    by_c: Any,
    x: Spec,
    h: Any,
    c: Any,
    weights: tuple[Spec, ...],
    out: Spec,
    reserve: Spec,
    mode: str,
    sizes: tuple[int, ...] | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
    wants_input: bool,
    wants_states: bool,
    wants_weights: bool,
) -> tuple[Spec, ...]:
    made = geometry(x.shape, [w.shape for w in weights], mode, sizes, layers, bidirectional, biases)
    nothing = x.like((0,))
    by_states = _states(x, made) if wants_states else (nothing, nothing)
    by_weights = [w.like(w.shape) for w in weights] if wants_weights else []
    return x.like(x.shape) if wants_input else nothing, *by_states, *by_weights


structured(
    "_recurrent_backward(Tensor? by_out, Tensor? by_h, Tensor? by_c, Tensor input, Tensor? h, Tensor? c, "
    "Tensor[] weights, Tensor out, Tensor reserve, str mode, int[]? sizes, int layers, bool bidirectional, "
    "bool biases, bool wants_input, bool wants_states, bool wants_weights)",
    infer=_infer_backward,
    differentiable=False,  # with a graph being made, the twin runs instead
    n_out=3,
    doc="The gradients of `_recurrent` by input, states and each weight; of no elements where they are not wanted.",
)


def _has_kernel(mode: str, device: str) -> bool:
    if device != "cpu":
        return has_own("_recurrent", device)
    # Under autocast a GRU keeps its results in float32 on the CPU, as in torch: only its products are narrow.
    return mode != "gru" or "cpu" not in switches.autocast


def run_network(
    x: Tensor,
    h: Tensor | None,
    c: Tensor | None,
    weights: Sequence[Tensor],
    mode: str,
    sizes: tuple[int, ...] | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
    dropout: float = 0.0,
    plain: bool = False,
) -> tuple[Any, ...]:
    """Outputs of the last layer, and the last states; `dropout` acts between layers. `plain`: by plain operators, for
    someone who looks at them.
    """
    if layers > 1 and (dropout or layers > MOST_LAYERS):
        return _layer_by_layer(x, h, c, weights, mode, sizes, layers, bidirectional, biases, dropout, plain)
    if plain or not _has_kernel(mode, x.device.type):
        return recurrent_twin.network(x, h, c, weights, mode, sizes, layers, bidirectional, biases)
    save = switches.grad and (
        x.requires_grad
        or any(w.requires_grad for w in weights)
        or (h is not None and h.requires_grad)
        or (c is not None and c.requires_grad)
    )
    found: tuple[Any, ...] = F._recurrent(x, h, c, weights, mode, sizes, layers, bidirectional, biases, save)
    return found[:3] if mode == "lstm" else found[:2]


def _layer_by_layer(
    x: Tensor,
    h: Tensor | None,
    c: Tensor | None,
    weights: Sequence[Tensor],
    mode: str,
    sizes: tuple[int, ...] | None,
    layers: int,
    bidirectional: bool,
    biases: bool,
    dropout: float,
    plain: bool,
) -> tuple[Any, ...]:
    per, n = len(weights) // layers, 2 if bidirectional else 1
    ends = []
    for k in range(layers):
        first, cell = (None if s is None else s[k * n : (k + 1) * n] for s in (h, c))
        part = weights[k * per : (k + 1) * per]
        x, *end = run_network(x, first, cell, part, mode, sizes, 1, bidirectional, biases, 0.0, plain)
        ends.append(end)
        if k < layers - 1:
            x = F.dropout(x, dropout, True) if dropout else x
    return x, *[F.cat(parts) for parts in zip(*ends, strict=True)]


def run_cell(
    mode: str, x: Tensor, state: Sequence[Tensor] | None, weights: Sequence[Tensor], plain: bool = False
) -> tuple[Any, ...]:
    """The state after one step on the rows of `x`; `state` is (h,) or (h, c), None for zeros."""
    # An LSTM's cell is not narrow under autocast on the CPU, other than the whole network; as in torch.
    plain = plain or (mode == "lstm" and "cpu" in switches.autocast and x.device.type == "cpu")
    h, c = (None, None) if state is None else (*[s.unsqueeze(0) for s in state], None)[:2]
    out, *ends = run_network(x, h, c, weights, mode, (x.shape[0],), 1, False, len(weights) > 2, 0.0, plain)
    return (out, ends[1][0]) if mode == "lstm" else (out,)
