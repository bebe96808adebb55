"""Linear attention whose heads forget at fixed speeds: MiniMax 2025, arXiv:2501.08313. Knows no layer."""

from __future__ import annotations

import votive
from votive import nn

from ...tensor import Tensor
from ..activations import activation
from ..attention import AttentionMask, Weights
from ..opened import wide
from .attention import Rotate
from .design import Design
from .mixer import StateMixer
from .scan import BLOCK, decayed_attention
from .short_conv import unpadded


class LightningAttention(StateMixer):
    """Heads whose scores fall with the distance and have no softmax, normed and gated."""

    def __init__(self, d: Design, layer_idx: int) -> None:
        super().__init__()
        self.layer_idx, self.heads, self.block = layer_idx, d.heads, min(d.extra["block_size"], BLOCK)
        inner = d.heads * d.head_dim
        self.norm = nn.RMSNorm(inner, 1e-6)
        self.qkv_proj = nn.Linear(d.width, 3 * inner, bias=False)
        self.out_proj = nn.Linear(inner, d.width, bias=False)
        self.output_gate = nn.Linear(d.width, inner, bias=False)
        self.act_fn = activation(d.act)
        fall = 1 - layer_idx / (d.layers - 1 + 1e-5) + 1e-5
        self.slopes = [fall * 2.0 ** (-8.0 / d.heads * (i + 1)) for i in range(d.heads)]

    def tables(self, block: int) -> dict[str, Tensor]:
        """How heads forget, and how much is left within a block of so many positions, as files have it."""
        slope = votive.tensor(self.slopes)[:, None, None]  # (H, 1, 1)
        at = votive.arange(1, block + 1)
        apart = (at[:, None] - at)[None, None]
        return {
            "slope_rate": slope,
            "query_decay": votive.exp(-slope * at[:, None]),
            "key_decay": votive.exp(-slope * (block - at[:, None])),
            "diagonal_decay": votive.exp(votive.where(apart >= 0, -slope * apart, -votive.inf)),
        }

    def forward(
        self, x: Tensor, rope: Rotate, mask: AttentionMask, cache: nn.KVCache | None = None, weights: Weights = None
    ) -> Tensor:
        kind = wide(x.dtype)
        parts = unpadded(self.act_fn(self.qkv_proj(x)), mask).unflatten(-1, (self.heads, -1)).chunk(3, -1)
        q, k, v = (part.to(kind) for part in parts)  # (B, T, H, D)
        kept = None if cache is None else cache.states(self.layer_idx)
        speed = -votive.tensor(self.slopes, dtype=kind, device=x.device).expand(q.shape[:3])
        y, state = decayed_attention(q, k, v, speed, None if kept is None else kept[0], block=self.block)
        if cache is not None:
            cache.keep(self.layer_idx, [state.clone()], x.shape[1])
        return self.out_proj(votive.sigmoid(self.output_gate(x)) * self.norm(y.flatten(-2).to(x.dtype)))
