"""Vectors of timesteps and of what else a denoiser is told: sinusoids, random frequencies, pooled texts."""

from __future__ import annotations

import math

import votive
from votive import nn
from votive.nn import functional as F

from ...tensor import Tensor

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "swish": nn.SiLU,
    "silu": nn.SiLU,
    "mish": nn.Mish,
    "gelu": nn.GELU,
    "relu": nn.ReLU,
}


def activation(name: str) -> nn.Module:
    """The activation that a configuration calls `name`, as a module.

    >>> from votive.models.diffusion.embeddings import activation
    >>> activation("silu")
    SiLU()
    """
    found = ACTIVATIONS.get(name.lower())
    if found is None:
        raise ValueError(f"act_fn={name!r} is not known; it may be {' or '.join(map(repr, ACTIVATIONS))}.")
    return found()


def timestep_embedding(
    timesteps: Tensor,
    embedding_dim: int,
    flip_sin_to_cos: bool = False,
    downscale_freq_shift: float = 1,
    scale: float = 1,
    max_period: int = 10000,
) -> Tensor:
    """Sinusoids of timesteps (batch,), which may be fractions: (batch, embedding_dim), in float32.

    Ho et al. 2020, arXiv:2006.11239, after Vaswani et al. 2017.

    >>> from votive.models.diffusion.embeddings import timestep_embedding
    >>> timestep_embedding(votive.tensor([0, 10]), 4).shape
    votive.Size([2, 4])
    """
    if timesteps.dim() != 1:
        raise ValueError(f"timestep_embedding: timesteps must be (batch,), got shape {tuple(timesteps.shape)}.")
    half = embedding_dim // 2
    exponent = votive.arange(half, dtype=votive.float32, device=timesteps.device) * -math.log(max_period)
    angles = timesteps.float().unsqueeze(1) * (exponent / (half - downscale_freq_shift)).exp() * scale  # (batch, half)
    parts = [angles.cos(), angles.sin()] if flip_sin_to_cos else [angles.sin(), angles.cos()]
    if embedding_dim % 2:
        parts.append(votive.zeros(timesteps.shape[0], 1, device=timesteps.device))
    return votive.cat(parts, -1)


class Timesteps(nn.Module):
    """`timestep_embedding` as a module, without parameters."""

    def __init__(self, channels: int, flip_sin_to_cos: bool, downscale_freq_shift: float, scale: float = 1) -> None:
        super().__init__()
        self.channels, self.flip, self.shift, self.scale = channels, flip_sin_to_cos, downscale_freq_shift, scale

    def forward(self, timesteps: Tensor) -> Tensor:
        return timestep_embedding(timesteps, self.channels, self.flip, self.shift, self.scale)


class GaussianFourierProjection(nn.Module):
    """Sinusoids of noise levels at random frequencies: Song et al. 2021, arXiv:2011.13456."""

    def __init__(self, size: int, scale: float = 1.0, log: bool = True, flip_sin_to_cos: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(votive.randn(size) * scale, requires_grad=False)
        self.log, self.flip = log, flip_sin_to_cos

    def forward(self, x: Tensor) -> Tensor:
        if self.log:
            x = x.log()
        angles = x.unsqueeze(1) * self.weight.unsqueeze(0) * 2 * math.pi
        return votive.cat([angles.cos(), angles.sin()] if self.flip else [angles.sin(), angles.cos()], -1)


class TimestepEmbedding(nn.Module):
    """Two linear layers over a timestep's sinusoids, with a further condition where there is one."""

    def __init__(
        self,
        in_channels: int,
        time_embed_dim: int,
        act_fn: str = "silu",
        post_act_fn: str | None = None,
        cond_proj_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.linear_1 = nn.Linear(in_channels, time_embed_dim)
        self.cond_proj = None if cond_proj_dim is None else nn.Linear(cond_proj_dim, in_channels, bias=False)
        self.act = activation(act_fn)
        self.linear_2 = nn.Linear(time_embed_dim, time_embed_dim)
        self.post_act = None if post_act_fn is None else activation(post_act_fn)

    def forward(self, sample: Tensor, condition: Tensor | None = None) -> Tensor:
        if condition is not None:
            if self.cond_proj is None:
                raise ValueError("timestep_cond was given, but the configuration has no time_cond_proj_dim.")
            sample = sample + self.cond_proj(condition)
        sample = self.linear_2(self.act(self.linear_1(sample)))
        return sample if self.post_act is None else self.post_act(sample)


class AttentionPooling(nn.Module):
    """One vector of a text: its mean looks at all of it."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.positional_embedding = nn.Parameter(votive.randn(1, width) / width**0.5)
        self.k_proj, self.q_proj, self.v_proj = (
            nn.Linear(width, width),
            nn.Linear(width, width),
            nn.Linear(width, width),
        )
        self.heads = heads

    def forward(self, x: Tensor) -> Tensor:
        B, _, C = x.shape
        mean = x.mean(1, keepdim=True) + self.positional_embedding.to(x.dtype)
        x = votive.cat([mean, x], 1)  # (B, length + 1, C)
        q, k, v = (
            part(y).view(B, -1, self.heads, C // self.heads).transpose(1, 2)
            for part, y in ((self.q_proj, mean), (self.k_proj, x), (self.v_proj, x))
        )
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, C)


class TextTimeEmbedding(nn.Module):
    """What a text adds to the timestep's vector."""

    def __init__(self, encoder_dim: int, time_embed_dim: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(encoder_dim)
        self.pool = AttentionPooling(heads, encoder_dim)
        self.proj = nn.Linear(encoder_dim, time_embed_dim)
        self.norm2 = nn.LayerNorm(time_embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm2(self.proj(self.pool(self.norm1(x))))
