"""Selective state spaces as mixers: Mamba, whose channels have a state each, and Mamba 2, whose heads have.

Gu and Dao 2023, arXiv:2312.00752; Dao and Gu 2024, arXiv:2405.21060. Knows no layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
from .mixer import StateMixer
from .scan import BLOCK, decayed_attention, selective_scan
from .short_conv import CausalConv, unpadded


@dataclass(frozen=True, kw_only=True)
class StateSpace:
    """The sizes and choices of a state space; a design has it as `extra["state_space"]`.

    >>> from votive.models.decoder.state_space import StateSpace
    >>> StateSpace(inner=8, state=4, conv=4).groups
    1
    """

    inner: int  # channels
    state: int  # numbers of a channel's state
    conv: int  # how many positions the convolution sees
    conv_bias: bool = True
    bias: bool = False
    out_bias: bool | None = None  # where that of the last product differs
    act: str = "silu"
    eps: float = 1e-5

    rank: int = 1  # Mamba: features of which step sizes are made
    norms: str = ""  # of these and of what goes into and out of the state: "plain", "rms" or none

    heads: int = 1  # Mamba 2
    groups: int = 1
    limit: tuple[float, float] = (0.0, math.inf)  # of step sizes
    block: int = BLOCK
    normed: bool = True
    norm_first: bool = False  # before the gate, not behind it
    scales: tuple[float, ...] = ()  # of the input, and of the five parts of the first product


class StepSizes(nn.Linear):
    """The product that makes step sizes, which start between two bounds."""

    def start_values(self, config: Config) -> None:
        """Weights and biases such that step sizes are spread evenly on a logarithmic scale."""
        if not getattr(config, "starts_wide", False):
            return
        std = self.in_features**-0.5 * getattr(config, "time_step_scale", 1.0)
        if getattr(config, "time_step_init_scheme", "random") == "constant":
            nn.init.constant_(self.weight, std)
        else:
            nn.init.uniform_(self.weight, -std, std)
        if self.bias is not None:
            _start_steps(self.bias, config)


class LastProduct(nn.Linear):
    """The product that writes to the stream, which may start smaller where there are many layers."""

    def start_values(self, config: Config) -> None:
        """As a `Linear` starts by itself, where the configuration starts wide or scales what is added."""
        scaled = getattr(config, "rescale_prenorm_residual", False)
        if scaled or getattr(config, "starts_wide", False):
            nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if scaled:
            with votive.no_grad():
                self.weight.div_(math.sqrt(config.num_hidden_layers))


def _start_steps(bias: Tensor, config: Config) -> None:
    low, high = (math.log(getattr(config, f"time_step_{end}", d)) for end, d in (("min", 1e-3), ("max", 0.1)))
    nn.init.uniform_(bias, low, high)
    with votive.no_grad():
        step = bias.detach().exp().clamp(min=getattr(config, "time_step_floor", 1e-4))
        bias.copy_(step + votive.log(-votive.expm1(-step)))  # the inverse of softplus


def _start_decay(decay: Tensor, d: Tensor) -> None:
    with votive.no_grad():
        count = votive.arange(1, decay.shape[-1] + 1, dtype=decay.dtype, device=decay.device)
        decay.copy_(count.log().expand(decay.shape))
    nn.init.ones_(d)


class Mamba(StateMixer):
    """A state space whose step sizes, inputs and outputs depend on the text."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        s: StateSpace = d.extra["state_space"]
        self.layer_idx, self.sizes = layer_idx, [s.rank, s.state, s.state]
        self.in_proj = nn.Linear(d.width, 2 * s.inner, bias=s.bias)
        self.conv1d = CausalConv(s.inner, s.conv, s.conv_bias)
        self.x_proj = nn.Linear(s.inner, s.rank + 2 * s.state, bias=False)
        self.dt_proj = StepSizes(s.rank, s.inner)
        self.A_log = nn.Parameter(votive.zeros(s.inner, s.state))
        self.D = nn.Parameter(votive.ones(s.inner))
        self.out_proj = LastProduct(s.inner, d.width, bias=s.bias)
        self.act, self.normed = activation(s.act), bool(s.norms)
        if s.norms:
            for name, size in zip(("dt", "b", "c"), self.sizes, strict=True):
                setattr(self, f"{name}_layernorm", nn.RMSNorm(size, s.eps, elementwise_affine=s.norms == "rms"))

    def start_values(self, config: Config) -> None:
        """The state's channels forget 1, 2, 3 … times as fast as the first."""
        _start_decay(self.A_log, self.D)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        kept = None if cache is None else cache.states(self.layer_idx)
        h, gate = self.in_proj(unpadded(x, mask)).chunk(2, -1)  # (B, T, D)
        whole = self.conv1d.before(h, None if kept is None else kept[0])
        h = unpadded(self.act(self.conv1d(whole)), mask)
        step, b, c = self.x_proj(h).split(self.sizes, -1)  # (B, T, R), (B, T, N), (B, T, N)
        if self.normed:
            step, b, c = self.dt_layernorm(step), self.b_layernorm(b), self.c_layernorm(c)
        kind = wide(x.dtype)
        step = F.softplus(self.dt_proj(step).to(kind))
        y, state = selective_scan(
            h.to(kind),
            step,
            -votive.exp(self.A_log.to(kind)),
            b.to(kind),
            c.to(kind),
            None if kept is None else kept[1],
        )
        if cache is not None:
            cache.keep(self.layer_idx, [self.conv1d.kept(whole), state.clone()], x.shape[1])
        y = (y + h * self.D.to(kind)) * F.silu(gate)
        return self.out_proj(y.to(x.dtype))


class GatedNorm(nn.Module):
    """An RMS norm of groups of channels and a gate, `silu(gate)`, before it or behind it.

    >>> from votive.models.decoder.state_space import GatedNorm
    >>> GatedNorm(4, 2, 1e-5)(votive.ones(1, 4), votive.zeros(1, 4)).detach()
    tensor([[0., 0., 0., 0.]])
    """

    def __init__(self, width: int, groups: int, eps: float, norm_first: bool = False) -> None:
        super().__init__()
        self.groups, self.eps, self.norm_first = groups, eps, norm_first
        self.weight = nn.Parameter(votive.ones(width))

    def forward(self, x: Tensor, gate: Tensor) -> Tensor:
        kind = wide(x.dtype)
        by, h = F.silu(gate.to(kind)), x.to(kind)
        h = (h if self.norm_first else h * by).unflatten(-1, (self.groups, -1))
        h = F.rms_norm(h, (h.shape[-1],), None, self.eps).flatten(-2) * self.weight.to(kind)
        return (h * by if self.norm_first else h).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, groups={self.groups}, eps={self.eps}"


class Mamba2(StateMixer):
    """A state space whose heads forget at one speed each, as linear attention that fades."""

    counts_positions = True  # whether no other part of the layer tells a cache how long the text is

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        self.space = s = _space(d)
        self.layer_idx, shared = layer_idx, s.groups * s.state
        self.sizes = [s.inner, s.inner + 2 * shared, s.heads]
        self.inner_sizes = [s.inner, shared, shared]
        self.in_proj = nn.Linear(d.width, sum(self.sizes), bias=s.bias)
        self.conv1d = CausalConv(self.sizes[1], s.conv, s.conv_bias)
        self.dt_bias = nn.Parameter(votive.ones(s.heads))
        self.A_log = nn.Parameter(votive.zeros(s.heads))
        self.D = nn.Parameter(votive.ones(s.heads))
        self.norm = GatedNorm(s.inner, s.groups, s.eps, s.norm_first) if s.normed else None
        self.out_proj = LastProduct(s.inner, d.width, bias=s.bias if s.out_bias is None else s.out_bias)
        self.act = activation(s.act)

    def start_values(self, config: Config) -> None:
        """Heads forget 1, 2, 3 … times as fast as the first."""
        _start_decay(self.A_log, self.D)
        if hasattr(config, "time_step_floor"):
            _start_steps(self.dt_bias, config)

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Gates, what is convolved, and step sizes before their bias."""
        scales = self.space.scales
        if not scales:
            return tuple(self.in_proj(x).split(self.sizes, -1))
        by = [
            votive.full((n,), v, dtype=x.dtype, device=x.device)
            for n, v in zip([self.sizes[0], *self.inner_sizes, self.sizes[2]], scales[1:], strict=True)
        ]
        return tuple((self.in_proj(x * scales[0]) * votive.cat(by)).split(self.sizes, -1))

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        s, kind = self.space, wide(x.dtype)
        kept = None if cache is None else cache.states(self.layer_idx)
        gate, h, step = self.project(unpadded(x, mask))
        whole = self.conv1d.before(h, None if kept is None else kept[0])
        h = unpadded(self.act(self.conv1d(whole)), mask)
        h, b, c = (part.to(kind) for part in h.split(self.inner_sizes, -1))
        h = h.unflatten(-1, (s.heads, -1))  # (B, T, H, P)
        b, c = (part.unflatten(-1, (s.groups, -1)) for part in (b, c))  # (B, T, G, N)
        step = F.softplus(step.to(kind) + self.dt_bias.to(kind)).clamp(*s.limit)  # (B, T, H)
        y, state = decayed_attention(
            c,
            b,
            step.unsqueeze(-1) * h,
            -votive.exp(self.A_log.to(kind)) * step,
            None if kept is None else kept[1],
            block=s.block,
        )
        if cache is not None:
            more = x.shape[1] if self.counts_positions else 0
            cache.keep(self.layer_idx, [self.conv1d.kept(whole), state.clone()], more)
        y = (y + self.D.to(kind).unsqueeze(-1) * h).flatten(-2)
        y = y * F.silu(gate) if self.norm is None else self.norm(y, gate)
        return self.out_proj(y.to(x.dtype))


def _space(d: Design) -> StateSpace:
    found: StateSpace = d.extra["state_space"]
    for name, count in (("heads", found.heads), ("groups", found.groups)):
        if found.inner % count:
            raise ValueError(f"Mamba2: {found.inner} channels do not split into {count} {name}.")
    if found.heads % found.groups:
        raise ValueError(f"Mamba2: {found.heads} heads do not share {found.groups} groups evenly.")
    return found
