"""Running a stack of layers: the stream of hidden states, and what is shown of it on request.

Knows layers by how they are called only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from votive import nn
from votive.nn.points import opens, wanted
from votive.nn.residual import add_norm, can_defer_add

from ..tensor import Tensor
from .attention import Weights
from .opened import open_norm


class Trace:
    """Hidden states and attention weights of a run, as far as they are asked for.

    >>> from votive.models.stack import Trace
    >>> trace = Trace(output_attentions=False, output_hidden_states=True)
    >>> trace.add_state(votive.ones(1))
    >>> trace.hidden_states, trace.attentions
    ((tensor([1.]),), None)
    """

    def __init__(self, output_attentions: bool, output_hidden_states: bool) -> None:
        self._states: list[Tensor] | None = [] if output_hidden_states else None
        # Layers append to these.
        self.weights: Weights = [] if output_attentions else None

    @property
    def keeps_states(self) -> bool:
        """Whether hidden states are asked for, each of which must then be a whole sum."""
        return self._states is not None

    def add_state(self, x: Tensor) -> None:
        """Keep a state, if states are asked for."""
        if self._states is not None:
            self._states.append(x)

    @property
    def hidden_states(self) -> tuple[Tensor, ...] | None:
        return None if self._states is None else tuple(self._states)

    @property
    def attentions(self) -> tuple[Tensor, ...] | None:
        return None if self.weights is None else tuple(self.weights)


def run_layers(
    layers: nn.ModuleList,
    kind: type,
    x: Tensor,
    norm: nn.Module | None,
    trace: Trace,
    arguments: Callable[[int, nn.Module], tuple[Any, ...]],
) -> Tensor:
    """The normed stream behind all layers; `arguments` gives those of a layer besides `x`.

    Where nobody sees a layer of class `kind` from outside, its `deferred` leaves the last sum to
    the next norm: it takes and gives the stream and what is still to be added to it.
    """
    change: Tensor | None = None
    for i, layer in enumerate(layers):
        trace.add_state(x)
        if not trace.keeps_states and can_defer_add(layer, kind, x) and not opens(i):
            x, change = layer.deferred(x, change, *arguments(i, layer))
        else:
            x, change = layer(x if change is None else x + change, *arguments(i, layer)), None
    if norm is None:
        x = x if change is None else x + change
    elif wanted("ln_final.scale", "ln_final.normalized"):
        x = open_norm(norm, x if change is None else x + change, "ln_final")
    else:
        _, x = add_norm(x, change, norm, exact=True)
    trace.add_state(x)
    return x
