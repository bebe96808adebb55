"""Samples to features, features to states: convolutions, positions by a convolution, layers. Knows no head."""

from __future__ import annotations

import votive
from votive import nn
from votive.nn import functional as F
from votive.nn.fused_linear import feed_forward

from ...tensor import Tensor
from ..activations import activation
from ..attention import AttentionMask, Weights, padding_mask, self_attention
from ..stack import Trace
from .config import WaveConfig


class Convolution(nn.Module):
    """A convolution over time, normed over time (`group`, the first alone) or over features, and an activation."""

    def __init__(self, config: WaveConfig, i: int) -> None:
        super().__init__()
        before, width = config.conv_dim[i - 1] if i else 1, config.conv_dim[i]
        self.conv = nn.Conv1d(before, width, config.conv_kernel[i], stride=config.conv_stride[i], bias=config.conv_bias)
        self.over_features = config.feat_extract_norm == "layer"
        if self.over_features:
            self.layer_norm: nn.Module = nn.LayerNorm(width)
        elif i == 0:
            self.layer_norm = nn.GroupNorm(width, width)
        self.act_fn = activation(config.feat_extract_activation)

    def forward(self, x: Tensor) -> Tensor:  # (B, features, time)
        x = self.conv(x)
        if self.over_features:
            x = self.layer_norm(x.transpose(1, 2)).transpose(1, 2)
        elif "layer_norm" in self._modules:
            x = self.layer_norm(x)
        return self.act_fn(x)


class FeatureExtractor(nn.Module):
    """Features (batch, features, time) of samples (batch, samples)."""

    def __init__(self, config: WaveConfig) -> None:
        super().__init__()
        self.conv_layers = nn.ModuleList(Convolution(config, i) for i in range(len(config.conv_dim)))

    def forward(self, samples: Tensor) -> Tensor:
        x = samples.unsqueeze(1)
        for layer in self.conv_layers:
            x = layer(x)
        return x


class FeatureProjection(nn.Module):
    """States of features, and the features as they were projected."""

    def __init__(self, config: WaveConfig) -> None:
        super().__init__()
        if config.projected_norm:
            self.layer_norm = nn.LayerNorm(config.conv_dim[-1], eps=config.layer_norm_eps)
        self.projection = nn.Linear(config.conv_dim[-1], config.hidden_size)
        self.dropout = nn.Dropout(config.feat_proj_dropout)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        norm = self._modules.get("layer_norm")
        x = x if norm is None else norm(x)
        return self.dropout(self.projection(x)), x


class NormedConv1d(nn.Module):
    """A convolution whose weight is `g v / |v|` for each place of its kernel. arXiv:1602.07868."""

    def __init__(self, width: int, kernel: int, groups: int) -> None:
        super().__init__()
        self.groups, self.padding = groups, kernel // 2
        self.weight_g = nn.Parameter(votive.ones(1, 1, kernel))
        self.weight_v = nn.Parameter(votive.zeros(width, width // groups, kernel))
        self.bias = nn.Parameter(votive.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        v = self.weight_v
        weight = v * (self.weight_g / votive.linalg.vector_norm(v, dim=(0, 1), keepdim=True))
        return F.conv1d(x, weight, self.bias, padding=self.padding, groups=self.groups)


class Positions(nn.Module):
    """What is added to states for where they stand: a wide convolution of the states around."""

    def __init__(self, config: WaveConfig) -> None:
        super().__init__()
        width, kernel, groups = (
            config.hidden_size,
            config.num_conv_pos_embeddings,
            config.num_conv_pos_embedding_groups,
        )
        if config.position_norm:
            self.batch_norm = nn.BatchNorm1d(width)
            self.conv: nn.Module = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=groups)
        else:
            self.conv = NormedConv1d(width, kernel, groups)
        self.surplus = 1 - kernel % 2
        self.act_fn = activation(config.feat_extract_activation)

    def forward(self, x: Tensor) -> Tensor:  # (B, time, features)
        x = x.transpose(1, 2)
        if "batch_norm" in self._modules:
            x = self.batch_norm(x)
        x = self.conv(x)
        return self.act_fn(x[:, :, : x.shape[2] - self.surplus]).transpose(1, 2)


class Attention(nn.Module):
    """Attention of each state to all others."""

    def __init__(self, config: WaveConfig) -> None:
        super().__init__()
        self.heads, self.dropout = config.num_attention_heads, config.attention_dropout
        for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
            setattr(self, name, nn.Linear(config.hidden_size, config.hidden_size))

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        parts = (self.q_proj, self.k_proj, self.v_proj)
        return self.out_proj(self_attention(x, parts, self.heads, mask, dropout, weights))


class FeedForward(nn.Module):
    """The net of a layer."""

    def __init__(self, config: WaveConfig) -> None:
        super().__init__()
        self.intermediate_dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.output_dense = nn.Linear(config.intermediate_size, config.hidden_size)
        self.act_fn = activation(config.hidden_act)
        self.inner, self.outer = config.activation_dropout, config.hidden_dropout

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return feed_forward(self.intermediate_dense, self.act_fn, self.output_dense, x)
        x = F.dropout(self.act_fn(self.intermediate_dense(x)), self.inner, True)
        return F.dropout(self.output_dense(x), self.outer, True)


class Between(nn.Module):
    """A small net behind a layer, of its own for each language. arXiv:2305.13516."""

    def __init__(self, config: WaveConfig, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden_size)
        self.linear_1 = nn.Linear(config.hidden_size, width)
        self.linear_2 = nn.Linear(width, config.hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_2(F.relu(self.linear_1(self.norm(x))))


class Layer(nn.Module):
    """Attention and a net; norms are of the stream, or (`do_stable_layer_norm`) of what each part reads."""

    def __init__(self, config: WaveConfig) -> None:
        super().__init__()
        self.first = config.do_stable_layer_norm
        self.attention = Attention(config)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.feed_forward = FeedForward(config)
        self.final_layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        if self.first and config.between is not None:
            self.adapter_layer = Between(config, config.between)

    def forward(self, x: Tensor, mask: AttentionMask, weights: Weights = None) -> Tensor:
        if not self.first:
            x = self.layer_norm(x + self.dropout(self.attention(x, mask, weights)))
            return self.final_layer_norm(x + self.feed_forward(x))
        x = x + self.dropout(self.attention(self.layer_norm(x), mask, weights))
        x = x + self.feed_forward(self.final_layer_norm(x))
        return x + self.adapter_layer(x) if "adapter_layer" in self._modules else x


class WaveEncoder(nn.Module):
    """Positions, then layers."""

    def __init__(self, config: WaveConfig) -> None:
        super().__init__()
        self.first, self.layer_drop = config.do_stable_layer_norm, config.layerdrop
        self.pos_conv_embed = Positions(config)
        self.layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, x: Tensor, real: Tensor | None, trace: Trace) -> Tensor:
        """States of (batch, time, features), of which those where `real` is False are padding."""
        if real is not None:
            x = x.masked_fill(~real.unsqueeze(-1), 0.0)
        x = x + self.pos_conv_embed(x)
        x = self.dropout(x if self.first else self.layer_norm(x))
        mask = padding_mask(real)
        trace.add_state(x)
        for layer in self.layers:
            # Some layers are left out while training, arXiv:1909.11556.
            if not (self.training and self.layer_drop and float(votive.rand(())) < self.layer_drop):
                x = layer(x, mask, trace.weights)
            trace.add_state(x)
        return self.layer_norm(x) if self.first else x


class Shortening(nn.Module):
    """A convolution with a gate that leaves out some states."""

    def __init__(self, width: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, 2 * width, kernel, stride=stride, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.glu(self.conv(x), 1)


class Adapter(nn.Module):
    """Convolutions behind the encoder, each of which shortens what it gives; before them, maybe another width."""

    def __init__(self, width: int, out: int, count: int, kernel: int, stride: int, layer_drop: float) -> None:
        super().__init__()
        if out != width:
            self.proj, self.proj_layer_norm = nn.Linear(width, out), nn.LayerNorm(out)
        self.layers = nn.ModuleList(Shortening(out, kernel, stride) for _ in range(count))
        self.layer_drop = layer_drop

    def forward(self, x: Tensor) -> Tensor:
        if "proj" in self._modules:
            x = self.proj_layer_norm(self.proj(x))
        x = x.transpose(1, 2)
        for layer in self.layers:
            if not (self.training and self.layer_drop and float(votive.rand(())) < self.layer_drop):
                x = layer(x)
        return x.transpose(1, 2)
