"""The gated delta rule as a mixer, and attention whose heads' results are gated. Knows no layer.

Yang et al. 2024, arXiv:2412.06464; Qiu et al. 2025, arXiv:2505.06708.
"""

from __future__ import annotations

from dataclasses import dataclass

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.points import point, wanted, where

from ...tensor import Tensor
from ..activations import activation
from ..attention import AttentionMask, Weights
from ..config import Config
from ..opened import open_attend, open_heads, open_project, wide
from .attention import DecoderAttention, Rotate
from .design import Design
from .mixer import StateMixer
from .scan import gated_delta_rule
from .short_conv import CausalConv, unpadded
from .state_space import GatedNorm


@dataclass(frozen=True, kw_only=True)
class DeltaNet:
    """The sizes of a gated delta rule; a design has it as `extra["delta_net"]`.

    >>> from votive.models.decoder.delta_net import DeltaNet
    >>> DeltaNet(key_heads=2, value_heads=4, key_dim=8, value_dim=8, conv=4).eps
    1e-06
    """

    key_heads: int
    value_heads: int
    key_dim: int  # of a head
    value_dim: int
    conv: int  # how many positions the convolution sees
    eps: float = 1e-6


def _unit(x: Tensor) -> Tensor:
    return x * votive.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


class GatedDeltaNet(StateMixer):
    """Linear attention whose heads forget and correct what they remember."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        self.net = n = d.extra["delta_net"]
        if n.value_heads % n.key_heads:
            raise ValueError(f"GatedDeltaNet: {n.value_heads} value heads do not share {n.key_heads} key heads evenly.")
        self.layer_idx, self.share = layer_idx, n.value_heads // n.key_heads
        keys, values = n.key_heads * n.key_dim, n.value_heads * n.value_dim
        self.sizes = [keys, keys, values]
        self.conv1d = CausalConv(2 * keys + values, n.conv, bias=False)
        self.in_proj_qkvz = nn.Linear(d.width, 2 * keys + 2 * values, bias=False)
        self.in_proj_ba = nn.Linear(d.width, 2 * n.value_heads, bias=False)
        self.dt_bias = nn.Parameter(votive.ones(n.value_heads))
        self.A_log = nn.Parameter(votive.zeros(n.value_heads))
        self.norm = GatedNorm(n.value_dim, 1, n.eps, norm_first=True)
        self.out_proj = nn.Linear(values, d.width, bias=False)
        self.act = activation(d.act)

    def start_values(self, config: Config) -> None:
        """Heads forget at speeds that are spread evenly."""
        nn.init.ones_(self.dt_bias)
        nn.init.uniform_(self.A_log, 0.01, 16)
        with votive.no_grad():
            self.A_log.copy_(self.A_log.detach().log())

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """What is convolved, gates, and by head the rate and the speed of forgetting before their nonlinearities."""
        n, share = self.net, self.share
        parts = self.in_proj_qkvz(x).unflatten(-1, (n.key_heads, -1))  # (B, T, K, ...)
        q, k, v, z = parts.split([n.key_dim, n.key_dim, share * n.value_dim, share * n.value_dim], -1)
        rate, speed = self.in_proj_ba(x).unflatten(-1, (n.key_heads, -1)).split([share, share], -1)
        mixed = votive.cat([part.flatten(-2) for part in (q, k, v)], -1)
        return mixed, z.reshape(*z.shape[:2], n.value_heads, n.value_dim), rate.flatten(-2), speed.flatten(-2)

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        n, kind = self.net, wide(x.dtype)
        kept = None if cache is None else cache.states(self.layer_idx)
        mixed, gate, rate, speed = self.project(unpadded(x, mask))
        whole = self.conv1d.before(mixed, None if kept is None else kept[0])
        q, k, v = self.act(self.conv1d(whole)).to(kind).split(self.sizes, -1)
        q, k = (_unit(part.unflatten(-1, (-1, n.key_dim))).repeat_interleave(self.share, 2) for part in (q, k))
        log_decay = -votive.exp(self.A_log.to(kind)) * F.softplus(speed.to(kind) + self.dt_bias.to(kind))
        y, state = gated_delta_rule(
            q * n.key_dim**-0.5,
            k,
            v.unflatten(-1, (-1, n.value_dim)),
            log_decay,
            votive.sigmoid(rate).to(kind),
            None if kept is None else kept[1],
        )
        if cache is not None:
            cache.keep(self.layer_idx, [self.conv1d.kept(whole), state.clone()], x.shape[1])
        return self.out_proj(self.norm(y.to(x.dtype), gate).flatten(-2))


class _Product:
    """The last product of what is gated, for each head's share of the result."""

    def __init__(self, inner: nn.Module, gate: Tensor) -> None:
        self.inner, self.gate = inner, gate
        self.bias = getattr(inner, "bias", None)

    def __call__(self, z: Tensor) -> Tensor:
        return self.inner(z * (self.gate if z.dim() == 3 else self.gate.unsqueeze(2)))


class GatedAttention(DecoderAttention):
    """Attention whose heads' results are multiplied by sigmoids, which come from the product of queries."""

    def add_projections(self, d: Design) -> None:
        """The products before and behind attention; behind each head's query stands its gate."""
        for name, size in zip(self.names, [2 * self.sizes[0], *self.sizes[1:]], strict=True):
            setattr(self, name, nn.Linear(d.width, size, bias=d.qkv_bias))
        setattr(self, d.o, nn.Linear(self.sizes[0], d.width, bias=d.out_bias))

    def gated(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys, values and gates, (batch, positions, heads * features) each."""
        both, k, v = (getattr(self, name)(x) for name in self.names)
        q, gate = both.unflatten(-1, (-1, 2 * self.head_dim)).chunk(2, -1)
        return q.flatten(-2), k, v, votive.sigmoid(gate.flatten(-2))

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.gated(x)[:3]

    def apart(self, qkv: Tensor) -> tuple[Tensor, ...]:
        raise LookupError("gated attention has no one product for queries, keys and values.")

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        at = where()
        if at is not None:
            return self.opened(at, x, rope, mask, cache, weights)
        B, T, _ = x.shape
        *parts, gate = self.gated(x)
        q, k, v = (part.view(B, T, -1, self.head_dim) for part in parts)
        v = v.transpose(1, 2)
        q, k = self.turned(q, k, rope)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        y = self.look(q, k, v, mask, weights)
        return self.product(y.transpose(1, 2).reshape(B, T, -1) * gate)

    def opened(
        self, at: str, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None, weights: Weights
    ) -> Tensor:
        gates: list[Tensor] = []

        def project(y: Tensor) -> tuple[Tensor, ...]:
            *parts, gate = self.gated(y)
            gates.append(gate)
            return tuple(parts)

        q, k, v = open_project(project, x, self.head_dim)
        q, k = self.normed(q, k)
        q, k, v = point(f"{at}.attn.q", q), point(f"{at}.attn.k", k), point(f"{at}.attn.v", v).transpose(1, 2)
        q, k = (rope(part.transpose(1, 2)).transpose(1, 2) for part in (q, k))
        q, k = point(f"{at}.attn.rot_q", q), point(f"{at}.attn.rot_k", k)
        q, k = q.transpose(1, 2), k.transpose(1, 2)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        if wanted(f"{at}.attn.scores", f"{at}.attn.pattern"):
            dropout = self.dropout if self.training else 0.0
            y = open_attend(at, q, k, v, mask, scale=self.scale, dropout=dropout, weights=weights)
        else:
            y = self.look(q, k, v, mask, weights)
        # The first is of what all heads read: gates are no part of what a head's query, key or value reads.
        return open_heads(at, y.transpose(1, 2), _Product(self.product, gates[0]))  # type: ignore[arg-type]
