"""The real-gated linear recurrent unit as a mixer: De et al. 2024, Griffin, arXiv:2402.19427. Knows no layer."""

from __future__ import annotations

import math

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor
from ..activations import activation
from ..attention import AttentionMask, Weights
from ..config import Config
from ..opened import wide
from .attention import Rotate
from .design import Design
from .mixer import Started, StateMixer
from .scan import recurrence
from .short_conv import CausalConv, unpadded

# How steep the square root may be: at zero it has no slope to learn by.
_STEEPEST = 1000.0


def _root(x: Tensor) -> Tensor:
    """The square root, with a slope that stays finite."""
    slope = (4.0 * x.detach()).clamp(min=_STEEPEST**-2).rsqrt()
    return x.detach().sqrt() + (x - x.detach()) * slope


class RGLRU(nn.Module):
    """A state for each channel, whose decay and input are gated by blocks of channels."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"RGLRU: {width} channels do not split into {heads} blocks.")
        each = width // heads
        self.recurrent_param = nn.Parameter(votive.zeros(width))
        self.input_gate_weight = nn.Parameter(votive.zeros(heads, each, each))
        self.input_gate_bias = nn.Parameter(votive.zeros(heads, each))
        self.recurrent_gate_weight = nn.Parameter(votive.zeros(heads, each, each))
        self.recurrent_gate_bias = nn.Parameter(votive.zeros(heads, each))

    def start_values(self, config: Config) -> None:
        """Decays spread between 0.9 and 0.999."""
        std = math.sqrt(getattr(config, "w_init_variance_scale", 0.01) / self.input_gate_weight.shape[-1])
        nn.init.normal_(self.input_gate_weight, std=std)
        nn.init.normal_(self.recurrent_gate_weight, std=std)
        nn.init.uniform_(self.recurrent_param, 0.9**2 + 1e-8, 0.999**2 + 1e-8)
        with votive.no_grad():
            share = self.recurrent_param.detach()
            self.recurrent_param.copy_(votive.log(votive.expm1(-0.5 * votive.log(share))))

    def gate(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """A sigmoid of a product of each block's channels (batch, positions, channels)."""
        blocks = x.unflatten(-1, (weight.shape[0], -1)).transpose(1, 2)  # (B, H, T, w)
        return votive.sigmoid((blocks @ weight + bias.unsqueeze(1)).transpose(1, 2).flatten(-2))

    def forward(self, x: Tensor, first: Tensor, start: Tensor | None) -> tuple[Tensor, Tensor]:
        """All states, and the last one in full; `first` (batch or 1, positions) is where texts begin."""
        entry = self.gate(x, self.input_gate_weight, self.input_gate_bias)
        speed = self.gate(x, self.recurrent_gate_weight, self.recurrent_gate_bias)
        log_decay = -8.0 * speed * F.softplus(self.recurrent_param)
        begins = first.unsqueeze(-1).to(x.dtype)  # (B or 1, T, 1)
        size = begins + (1 - begins) * _root(1 - votive.exp(2 * log_decay))
        added = x * entry * size.to(x.dtype)
        decay = votive.exp(log_decay) * (1 - begins)
        kind = wide(x.dtype)
        states = recurrence(decay.to(kind), added.to(kind), start)
        return states.to(x.dtype), states[:, -1]


class SpreadLinear(nn.Linear, Started):
    """A product whose weights start with a variance of `spread` divided by its inputs.

    >>> from votive.models.decoder.rg_lru import SpreadLinear
    >>> SpreadLinear(2, 3).spread
    1.0
    """

    spread = 1.0

    def start_values(self, config: Config) -> None:
        """Normal weights."""
        nn.init.normal_(self.weight, std=math.sqrt(self.spread / self.in_features))


class RecurrentBlock(StateMixer):
    """`linear_out(rg_lru(conv(linear_x(x))) * act(linear_y(x)))`."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx = layer_idx
        width: int = d.extra["lru_width"]
        self.linear_y = SpreadLinear(d.width, width)
        self.linear_x = SpreadLinear(d.width, width)
        self.linear_out = SpreadLinear(width, d.width)
        self.linear_out.spread = 2.0 / d.layers
        self.conv_1d = CausalConv(width, d.extra["conv_width"], bias=True)
        self.rg_lru = RGLRU(width, d.heads)
        self.act_fn = activation(d.act)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        kept = None if cache is None else cache.states(self.layer_idx)
        gate = self.act_fn(self.linear_y(x))
        whole = self.conv_1d.before(unpadded(self.linear_x(x), mask), None if kept is None else kept[0])
        first: Tensor = rope.first  # type: ignore[attr-defined]
        y, state = self.rg_lru(unpadded(self.conv_1d(whole), mask), first, None if kept is None else kept[1])
        if cache is not None:
            cache.keep(self.layer_idx, [self.conv_1d.kept(whole), state.clone()], x.shape[1])
        return self.linear_out(y * gate)
