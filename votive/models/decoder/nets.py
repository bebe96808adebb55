"""The nets behind attention, dense ones: gated or plain, with separate products or one. Knows no layer."""

from __future__ import annotations

import math

import votive
from votive import nn
from votive.nn import functional as F
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


class ClampedMLP(GatedMLP):
    """`down((up + 1) gate sigmoid(alpha gate))`, with gates and neurons within a limit."""

    def __init__(self, d: Design, inner: int, names: Names, bias: bool, limit: float, alpha: float) -> None:
        super().__init__(d, inner, names, bias)
        self.limit, self.alpha = limit, alpha

    def forward(self, x: Tensor) -> Tensor:
        gate, up, down = (getattr(self, name) for name in self.names)
        opened = gate(x).clamp(max=self.limit)
        return down((up(x).clamp(-self.limit, self.limit) + 1) * (opened * votive.sigmoid(self.alpha * opened)))


class FusedMLP(nn.Module):
    """`down(act(gate) * up)`, with both halves from one product."""

    gate_first = True

    def __init__(self, d: Design, inner: int | None = None, names: Names | None = None) -> None:
        super().__init__()
        inner, names = inner or d.inner, names or d.net_names
        self.names = names[0], names[2]
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


class XIELU(nn.Module):
    """`x` times what rises with it on both sides of zero, by two learned numbers: arXiv:2411.13010."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha_p = nn.Parameter(votive.tensor([math.log(math.expm1(0.8))]))
        self.alpha_n = nn.Parameter(votive.tensor([math.log(math.expm1(0.8 - 0.5))]))
        self.register_buffer("beta", votive.tensor(0.5))
        self.register_buffer("eps", votive.tensor(-1e-6))

    def forward(self, x: Tensor) -> Tensor:
        rise, fall = F.softplus(self.alpha_p), self.beta + F.softplus(self.alpha_n)
        below = (votive.expm1(votive.minimum(x, self.eps)) - x) * fall
        return votive.where(x > 0, rise * x * x, below) + self.beta * x


class PlainMLP(nn.Module):
    """`down(act(up(x)))`."""

    gate_first = False

    def __init__(self, d: Design, inner: int | None = None, names: Names | None = None) -> None:
        super().__init__()
        inner = inner or d.inner
        self.names = (names or d.net_names)[1:]
        up, down = self.names
        if d.transposed:
            # Each layer adds to the stream twice: smaller steps keep its size.
            setattr(self, up, Conv1D(inner, d.width))
            setattr(self, down, Conv1D(d.width, inner, (2 * d.layers) ** -0.5))
        else:
            setattr(self, up, nn.Linear(d.width, inner, bias=d.net_bias))
            setattr(self, down, nn.Linear(inner, d.width, bias=d.net_bias))
        self.act_fn = XIELU() if d.act == "xielu" else activation(d.act)
        self.dropout = d.net_dropout

    def forward(self, x: Tensor) -> Tensor:
        up, down = (getattr(self, name) for name in self.names)
        if self.dropout and self.training:
            return self.dropped(x)
        at = where()
        if at is not None and wanted(f"{at}.mlp.pre", f"{at}.mlp.post"):
            return down(point(f"{at}.mlp.post", self.act_fn(point(f"{at}.mlp.pre", up(x)))))
        return feed_forward(up, self.act_fn, down, x)

    def dropped(self, x: Tensor) -> Tensor:
        """`forward`, with some neurons left out at random."""
        up, down = (getattr(self, name) for name in self.names)
        at = where()
        y = up(x)
        y = self.act_fn(y if at is None else point(f"{at}.mlp.pre", y))
        return down(F.dropout(y if at is None else point(f"{at}.mlp.post", y), self.dropout))

    def halves(self) -> list[nn.Module | None]:
        """The product of neurons, None, and the one that writes."""
        up, down = (getattr(self, name) for name in self.names)
        return [up, None, down]


NETS: dict[str, type[GatedMLP | FusedMLP | PlainMLP]] = {"gated": GatedMLP, "fused": FusedMLP, "plain": PlainMLP}
