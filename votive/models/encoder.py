"""Parts of encoders that hold others: they are called like any module, so that whoever hooks one or
gives it another forward is heard. Knows layers by how they are called only.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from votive import nn
from votive.nn.fast_path import can_bypass
from votive.nn.fused_linear import feed_forward, linear_activation

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask
from .output import EncoderOutput
from .stack import Trace


def run_encoder(layers: Iterable[nn.Module], x: Tensor, mask: AttentionMask, trace: Trace, *more: Any) -> EncoderOutput:
    """All layers, one after the other; `more` is given to each."""
    trace.add_state(x)
    for layer in layers:
        x = layer(x, mask, trace.weights, *more)
        trace.add_state(x)
    return EncoderOutput(last_hidden_state=x, hidden_states=trace.hidden_states, attentions=trace.attentions)


class Encoder(nn.ModuleDict):
    """Layers, one after the other; what else it holds is for the model.

    >>> from votive.models.attention import AttentionMask
    >>> from votive.models.encoder import Encoder
    >>> class Layer(votive.nn.Module):
    ...     def forward(self, x, mask, weights):
    ...         return x + 1
    >>> Encoder([Layer(), Layer()])(votive.zeros(1), AttentionMask()).last_hidden_state
    tensor([2.])
    """

    def __init__(self, layers: Iterable[nn.Module]) -> None:
        super().__init__({"layer": nn.ModuleList(layers)})

    def forward(
        self,
        x: Tensor,
        mask: AttentionMask,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        *more: Any,
    ) -> EncoderOutput:
        """`more` is given to each layer."""
        return run_encoder(self["layer"], x, mask, Trace(output_attentions, output_hidden_states), *more)


class Intermediate(nn.ModuleDict):
    """The first half of an MLP: `act(dense(x))`.

    >>> from votive.models.encoder import Intermediate
    >>> Intermediate(2, 8, "relu")(votive.ones(1, 2)).shape
    votive.Size([1, 8])
    """

    def __init__(self, width: int, hidden: int, act: str) -> None:
        super().__init__({"dense": nn.Linear(width, hidden)})
        self.act_fn = activation(act)

    def forward(self, x: Tensor) -> Tensor:
        return linear_activation(self["dense"], self.act_fn, x)


class DenseOutput(nn.ModuleDict):
    """What attention or an MLP ends with: a product, of which dropout leaves a part.

    >>> from votive.models.encoder import DenseOutput
    >>> DenseOutput(8, 2, 0.0)(votive.ones(1, 8)).shape
    votive.Size([1, 2])
    """

    def __init__(self, hidden: int, width: int, dropout: float) -> None:
        super().__init__({"dense": nn.Linear(hidden, width), "dropout": nn.Dropout(dropout)})

    def forward(self, x: Tensor) -> Tensor:
        return self["dropout"](self["dense"](x))


def intermediate_output(up: Any, down: Any, x: Tensor) -> Any:
    """`down(up(x))`, as one step of training where nobody looks at the two.

    >>> from votive.models.encoder import DenseOutput, Intermediate, intermediate_output
    >>> intermediate_output(Intermediate(2, 8, "relu"), DenseOutput(8, 2, 0.0), votive.ones(1, 2)).shape
    votive.Size([1, 2])
    """
    if can_bypass(up, Intermediate) and can_bypass(down, DenseOutput):
        return down["dropout"](feed_forward(up["dense"], up.act_fn, down["dense"], x))
    return down(up(x))
