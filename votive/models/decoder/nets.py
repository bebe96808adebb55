"""The nets behind attention, dense ones: gated or plain, with separate products or one. Knows no layer."""

from __future__ import annotations

from votive import nn
from votive.nn.fused_linear import feed_forward, linear_activation
from votive.nn.points import point, wanted, where

from ...tensor import Tensor
from ..activations import activation
from .design import Design
from .products import Conv1D

Names = tuple[str, str, str]


class GatedMLP(nn.Module):
    """`down(act(gate(x)) * up(x))`: Shazeer 2020, arXiv:2002.05202."""

    gate_first = False  # whether the product of neurons is that of gates, too, which come first

    def __init__(
        self, d: Design, inner: int | None = None, names: Names | None = None, bias: bool | None = None
    ) -> None:
        super().__init__()
        inner, bias = inner or d.inner, d.net_bias if bias is None else bias
        self.names = gate, up, down = names or d.net_names
        setattr(self, gate, nn.Linear(d.width, inner, bias=bias))
        setattr(self, up, nn.Linear(d.width, inner, bias=bias))
        setattr(self, down, nn.Linear(inner, d.width, bias=bias))
        self.act_fn = activation(d.act)

    def forward(self, x: Tensor) -> Tensor:
        gate, up, down = (getattr(self, name) for name in self.names)
        at = where()
        if at is not None and wanted(f"{at}.mlp.pre", f"{at}.mlp.pre_linear", f"{at}.mlp.post"):
            pre, linear = point(f"{at}.mlp.pre", gate(x)), point(f"{at}.mlp.pre_linear", up(x))
            return down(point(f"{at}.mlp.post", self.act_fn(pre) * linear))
        return down(linear_activation(gate, self.act_fn, x) * up(x))

    def halves(self) -> list[nn.Module | None]:
        """The products: of neurons, of their gates, and the one that writes."""
        gate, up, down = (getattr(self, name) for name in self.names)
        return [up, gate, down]


class FusedMLP(nn.Module):
    """`down(act(gate) * up)`, with both halves from one product."""

    gate_first = True

    def __init__(self, d: Design, inner: int | None = None) -> None:
        super().__init__()
        inner = inner or d.inner
        self.names = d.net_names[0], d.net_names[2]
        setattr(self, self.names[0], nn.Linear(d.width, 2 * inner, bias=d.net_bias))
        setattr(self, self.names[1], nn.Linear(inner, d.width, bias=d.net_bias))
        self.act_fn = activation(d.act)

    def forward(self, x: Tensor) -> Tensor:
        first, down = (getattr(self, name) for name in self.names)
        gate, up = first(x).chunk(2, -1)
        at = where()
        if at is not None and wanted(f"{at}.mlp.pre", f"{at}.mlp.pre_linear", f"{at}.mlp.post"):
            gate, up = point(f"{at}.mlp.pre", gate), point(f"{at}.mlp.pre_linear", up)
            return down(point(f"{at}.mlp.post", self.act_fn(gate) * up))
        return down(self.act_fn(gate) * up)

    def halves(self) -> list[nn.Module | None]:
        """The product of gates and neurons, None, and the one that writes."""
        first, down = (getattr(self, name) for name in self.names)
        return [first, None, down]


class PlainMLP(nn.Module):
    """`down(act(up(x)))`."""

    gate_first = False

    def __init__(self, d: Design, inner: int | None = None) -> None:
        super().__init__()
        inner = inner or d.inner
        self.names = d.net_names[1:]
        up, down = self.names
        if d.transposed:
            # Each layer adds to the stream twice: smaller steps keep its size.
            setattr(self, up, Conv1D(inner, d.width))
            setattr(self, down, Conv1D(d.width, inner, (2 * d.layers) ** -0.5))
        else:
            setattr(self, up, nn.Linear(d.width, inner, bias=d.net_bias))
            setattr(self, down, nn.Linear(inner, d.width, bias=d.net_bias))
        self.act_fn = activation(d.act)

    def forward(self, x: Tensor) -> Tensor:
        up, down = (getattr(self, name) for name in self.names)
        at = where()
        if at is not None and wanted(f"{at}.mlp.pre", f"{at}.mlp.post"):
            return down(point(f"{at}.mlp.post", self.act_fn(point(f"{at}.mlp.pre", up(x)))))
        return feed_forward(up, self.act_fn, down, x)

    def halves(self) -> list[nn.Module | None]:
        """The product of neurons, None, and the one that writes."""
        up, down = (getattr(self, name) for name in self.names)
        return [up, None, down]


NETS: dict[str, type[GatedMLP | FusedMLP | PlainMLP]] = {"gated": GatedMLP, "fused": FusedMLP, "plain": PlainMLP}
