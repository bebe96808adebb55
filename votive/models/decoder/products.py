"""Linear layers as files have them: weights (outputs, inputs), or (inputs, outputs). Knows sizes only."""

from __future__ import annotations

import votive
from votive import nn
from votive.nn.fused_linear import PRODUCTS

from ...tensor import Tensor


class Conv1D(nn.Module):
    """`x @ weight + bias`: a linear layer whose weight is (inputs, outputs)."""

    def __init__(self, outputs: int, inputs: int, gain: float = 1.0) -> None:
        super().__init__()
        self.gain = gain  # of the start values
        self.weight = nn.Parameter(votive.empty(inputs, outputs))
        self.bias = nn.Parameter(votive.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight.t(), self.bias)

    def extra_repr(self) -> str:
        inputs, outputs = self.weight.shape
        return f"{outputs}, {inputs}"


PRODUCTS[Conv1D] = lambda m: (m.weight.t(), m.bias)


class Around(nn.Module):
    """A module under a name of its own, inside a module that only holds it: `attn.attention`."""

    def __init__(self, path: str, inner: nn.Module) -> None:
        super().__init__()
        name, _, rest = path.partition(".")
        self.name = name
        setattr(self, name, Around(rest, inner) if rest else inner)

    def forward(self, *args: object) -> Tensor:
        return getattr(self, self.name)(*args)

    @property
    def inner(self) -> nn.Module:
        """The module itself."""
        found = getattr(self, self.name)
        return found.inner if isinstance(found, Around) else found


def place(parent: nn.Module, path: str, child: nn.Module) -> None:
    """Make a module the child of another under a path, whose first parts are modules that only hold it.

    >>> from votive.models.decoder.products import place
    >>> layer = votive.nn.Module()
    >>> place(layer, "attn.attention", votive.nn.Linear(2, 2))
    >>> layer.attn.attention
    Linear(in_features=2, out_features=2, bias=True)
    """
    name, _, rest = path.partition(".")
    setattr(parent, name, Around(rest, child) if rest else child)
