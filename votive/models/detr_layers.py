"""DETR's parts: positions on a grid, attention that adds them to queries and keys, both stacks. Knows no pictures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import votive
from votive import nn
from votive.nn import functional as F

from ..tensor import Tensor
from .activations import activation
from .attention import AttentionMask, Weights, attend
from .cross_attention import split_heads
from .stack import Trace

if TYPE_CHECKING:
    from .detr import DetrConfig


class FrozenBatchNorm(nn.Module):
    """A norm by numbers that training leaves as they are."""

    def __init__(self, width: int) -> None:
        super().__init__()
        starts = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
        for name, start in starts.items():
            self.register_buffer(name, votive.full((width,), start))

    def forward(self, x: Tensor) -> Tensor:  # (B, features, H, W)
        scale = self.weight * (self.running_var + 1e-5).rsqrt()
        shift = self.bias - self.running_mean * scale
        return x * scale.view(1, -1, 1, 1) + shift.view(1, -1, 1, 1)


def freeze_norms(net: nn.Module) -> None:
    """Put norms that nothing changes in the place of a network's batch norms."""
    for module in list(net.modules()):
        for name, part in list(module._modules.items()):
            if isinstance(part, nn.BatchNorm2d):
                module._modules[name] = FrozenBatchNorm(part.num_features)


class SinePositions(nn.Module):
    """Sines of rows, then of columns, counted among the pixels that are no padding, as shares of a whole turn."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.share = width // 2

    def forward(self, mask: Tensor, dtype: votive.dtype) -> Tensor:  # (B, H, W) → (B, H W, width)
        real, angles = mask.to(dtype), []
        slow = 10000 ** (2 * (votive.arange(self.share, device=mask.device) // 2).to(dtype) / self.share)
        for dim, last in ((1, real.cumsum(1)[:, -1:, :]), (2, real.cumsum(2)[:, :, -1:])):
            at = real.cumsum(dim) / (last + 1e-6) * (2 * math.pi)
            angle = at.unsqueeze(-1) / slow
            angles.append(votive.stack([angle[..., 0::2].sin(), angle[..., 1::2].cos()], -1).flatten(-2))
        return votive.cat(angles, -1).flatten(1, 2)


class LearnedPositions(nn.Module):
    """Rows of two tables, of columns and of rows of the grid."""

    count = 50

    def __init__(self, width: int) -> None:
        super().__init__()
        self.row_embeddings = nn.Embedding(self.count, width // 2)
        self.column_embeddings = nn.Embedding(self.count, width // 2)

    def forward(self, mask: Tensor, dtype: votive.dtype) -> Tensor:
        B, H, W = mask.shape
        if max(H, W) > self.count:
            raise IndexError(f"DETR: learned positions are of {self.count} rows and columns; the grid has {H} and {W}.")
        columns, rows = self.column_embeddings.weight[:W], self.row_embeddings.weight[:H]
        parts = (columns.unsqueeze(0).expand(H, -1, -1), rows.unsqueeze(1).expand(-1, W, -1))
        return votive.cat(parts, -1).to(dtype).flatten(0, 1).unsqueeze(0).expand(B, -1, -1)


class DetrAttention(nn.Module):
    """Attention whose queries and keys have positions added, and values none."""

    def __init__(self, config: DetrConfig, heads: int) -> None:
        super().__init__()
        self.heads, self.dropout = heads, config.attention_dropout
        for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
            setattr(self, name, nn.Linear(config.d_model, config.d_model))

    def forward(
        self, x: Tensor, at: Tensor, other: Tensor, other_at: Tensor, mask: AttentionMask, weights: Weights
    ) -> Tensor:
        q, k, v = self.q_proj(x + at), self.k_proj(other + other_at), self.v_proj(other)
        q, k, v = (split_heads(part, self.heads) for part in (q, k, v))
        y = attend(q, k, v, mask, dropout=self.dropout if self.training else 0.0, weights=weights)
        return self.out_proj(y.transpose(1, 2).flatten(2))


class DetrLayer(nn.Module):
    """Attention to the own states, in a decoder also to the encoder's, and a net; each is added and normed."""

    def __init__(self, config: DetrConfig, *, decoder: bool) -> None:
        super().__init__()
        width = config.d_model
        heads = config.decoder_attention_heads if decoder else config.encoder_attention_heads
        inner = config.decoder_ffn_dim if decoder else config.encoder_ffn_dim
        self.self_attn, self.self_attn_layer_norm = DetrAttention(config, heads), nn.LayerNorm(width)
        if decoder:
            self.encoder_attn, self.encoder_attn_layer_norm = DetrAttention(config, heads), nn.LayerNorm(width)
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.final_layer_norm = nn.LayerNorm(width)
        self.act_fn = activation(config.activation_function)
        self.dropout, self.inner_dropout = nn.Dropout(config.dropout), nn.Dropout(config.activation_dropout)

    def forward(
        self,
        x: Tensor,
        at: Tensor,
        mask: AttentionMask,
        weights: Weights,
        other: Tensor | None = None,
        other_at: Tensor | None = None,
        across: AttentionMask | None = None,
        crossed: Weights = None,
    ) -> Tensor:
        x = self.self_attn_layer_norm(x + self.dropout(self.self_attn(x, at, x, at, mask, weights)))
        if other is not None and other_at is not None:
            y = self.encoder_attn(x, at, other, other_at, across or AttentionMask(), crossed)
            x = self.encoder_attn_layer_norm(x + self.dropout(y))
        y = self.fc2(self.inner_dropout(self.act_fn(self.fc1(x))))
        return self.final_layer_norm(x + self.dropout(y))


class DetrEncoder(nn.Module):
    """Layers on the grid."""

    def __init__(self, config: DetrConfig) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(DetrLayer(config, decoder=False) for _ in range(config.encoder_layers))

    def forward(self, x: Tensor, at: Tensor, mask: AttentionMask, trace: Trace) -> Tensor:
        x = self.dropout(x)
        trace.add_state(x)
        for layer in self.layers:
            x = layer(x, at, mask, trace.weights)
            trace.add_state(x)
        return x


class DetrDecoder(nn.Module):
    """Layers on queries, each of which is to find one thing, and a norm."""

    def __init__(self, config: DetrConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DetrLayer(config, decoder=True) for _ in range(config.decoder_layers))
        self.layernorm = nn.LayerNorm(config.d_model)
        self.norms_each = config.auxiliary_loss

    def forward(
        self,
        x: Tensor,
        at: Tensor,
        mask: AttentionMask,
        other: Tensor,
        other_at: Tensor,
        across: AttentionMask,
        trace: Trace,
        crossed: Weights,
    ) -> tuple[Tensor, Tensor | None]:
        """The last state, and with losses of all layers that of each (layers, batch, queries, features)."""
        trace.add_state(x)
        each = []
        for i, layer in enumerate(self.layers):
            x = layer(x, at, mask, trace.weights, other, other_at, across, crossed)
            if i < len(self.layers) - 1:
                trace.add_state(x)
            if self.norms_each:
                x = self.layernorm(x)
                each.append(x)
        x = self.layernorm(x)
        trace.add_state(x)
        return x, votive.stack(each) if each else None


class BoxPredictor(nn.Module):
    """Three products with ReLU between: where a box lies."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, n) for n in (width, width, 4))

    def forward(self, x: Tensor) -> Tensor:
        first, second, last = self.layers
        return last(F.relu(second(F.relu(first(x))))).sigmoid()
