"""What a denoiser is told beside the sample: the timestep, a class, sizes and pooled texts, as one vector.

Knows the keys of configurations that say so; knows no stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import votive
from votive import nn

from ...tensor import Tensor
from .embeddings import GaussianFourierProjection, TextTimeEmbedding, TimestepEmbedding, Timesteps
from .settings import Settings


def time_width(config: Settings) -> int:
    """Features of a timestep's vector."""
    first = config.block_out_channels[0]
    return config.time_embedding_dim or first * (2 if config.time_embedding_type == "fourier" else 4)


def build_conditions(unet: Any, name: str) -> None:
    """Give a conditional U-Net the layers that its conditions go through."""
    c, width = unet.config, time_width(unet.config)
    if c.time_embedding_type == "fourier":
        if width % 2:
            raise ValueError(f"{name}: time_embedding_dim={width} must be even for 'fourier'.")
        unet.time_proj = GaussianFourierProjection(width // 2, log=False, flip_sin_to_cos=c.flip_sin_to_cos)
        told = width
    else:
        told = c.block_out_channels[0]
        unet.time_proj = Timesteps(told, c.flip_sin_to_cos, c.freq_shift)
    unet.time_embedding = TimestepEmbedding(told, width, c.act_fn, c.timestep_post_act, c.time_cond_proj_dim)
    unet.encoder_hid_proj = None
    if c.encoder_hid_dim_type is not None and c.encoder_hid_dim is None:
        raise ValueError(f"{name}: encoder_hid_dim_type={c.encoder_hid_dim_type!r} wants encoder_hid_dim.")
    if c.encoder_hid_dim is not None:
        if c.encoder_hid_dim_type is None:
            unet.change_config(encoder_hid_dim_type="text_proj")
        unet.encoder_hid_proj = nn.Linear(c.encoder_hid_dim, _one(name, c.cross_attention_dim))
    unet.class_embedding = _class_embedding(name, c, told, width)
    unet.add_embedding = None
    if c.addition_embed_type == "text":
        read = c.encoder_hid_dim or _one(name, c.cross_attention_dim)
        unet.add_embedding = TextTimeEmbedding(read, width, c.addition_embed_type_num_heads)
    elif c.addition_embed_type == "text_time":
        unet.add_time_proj = Timesteps(c.addition_time_embed_dim, c.flip_sin_to_cos, c.freq_shift)
        unet.add_embedding = TimestepEmbedding(c.projection_class_embeddings_input_dim, width)


def _one(name: str, value: Any) -> int:
    if isinstance(value, int):
        return value
    raise ValueError(f"{name}: cross_attention_dim must be one number here, got {value!r}.")


def _class_embedding(name: str, c: Settings, told: int, width: int) -> nn.Module | None:
    kind: str | None = c.class_embed_type
    given: Any = c.get("projection_class_embeddings_input_dim")
    if kind in ("projection", "simple_projection") and given is None:
        raise ValueError(f"{name}: class_embed_type={kind!r} wants projection_class_embeddings_input_dim.")
    if kind is None:
        return None if c.num_class_embeds is None else nn.Embedding(c.num_class_embeds, width)
    if kind == "timestep":
        return TimestepEmbedding(told, width, c.act_fn)
    if kind == "identity":
        return nn.Identity()
    return TimestepEmbedding(given, width) if kind == "projection" else nn.Linear(given, width)


def condition_vector(
    unet: Any,
    sample: Tensor,
    timesteps: Tensor,
    timestep_cond: Tensor | None,
    class_labels: Tensor | None,
    text: Tensor | None,
    added: Mapping[str, Tensor] | None,
) -> Tensor:
    """All of it as one vector per sample, in the sample's type."""
    c, name, dtype = unet.config, type(unet).__name__, sample.dtype
    emb = unet.time_embedding(unet.time_proj(timesteps).to(dtype), timestep_cond)
    if unet.class_embedding is not None:
        if class_labels is None:
            raise ValueError(f"{name}: the configuration asks for classes; give class_labels.")
        if c.class_embed_type == "timestep":
            class_labels = unet.time_proj(class_labels).to(dtype)
        found = unet.class_embedding(class_labels).to(dtype)
        emb = votive.cat([emb, found], -1) if c.class_embeddings_concat else emb + found
    elif class_labels is not None:
        raise ValueError(f"{name}: class_labels were given, and the configuration has no class_embed_type.")
    if c.addition_embed_type == "text":
        emb = emb + unet.add_embedding(text)
    elif c.addition_embed_type == "text_time":
        missing = [key for key in ("text_embeds", "time_ids") if key not in (added or {})]
        if added is None or missing:
            raise ValueError(
                f"{name}: addition_embed_type is 'text_time'; give added_cond_kwargs with 'text_embeds' (batch, "
                f"features) and 'time_ids' (batch, numbers); {', '.join(missing)} is missing."
            )
        sizes = unet.add_time_proj(added["time_ids"].flatten()).reshape(added["text_embeds"].shape[0], -1)
        emb = emb + unet.add_embedding(votive.cat([added["text_embeds"], sizes.to(emb.dtype)], -1).to(emb.dtype))
    elif added:
        raise ValueError(f"{name}: added_cond_kwargs came, and the configuration has no addition_embed_type.")
    return emb


def timestep_tensor(timestep: Tensor | float, sample: Tensor) -> Tensor:
    """Timesteps (batch,), of one for all or one for each.

    >>> from votive.models.diffusion.conditions import timestep_tensor
    >>> timestep_tensor(7, votive.ones(2, 1, 1, 1))
    tensor([7, 7])
    """
    if not isinstance(timestep, Tensor):
        dtype = votive.float64 if isinstance(timestep, float) else votive.int64
        timestep = votive.tensor([timestep], dtype=dtype, device=sample.device)
    elif timestep.dim() == 0:
        timestep = timestep.unsqueeze(0)
    return timestep.to(sample.device).expand(sample.shape[0])


def mask_as_bias(mask: Tensor | None, dtype: votive.dtype) -> Tensor | None:
    """What is added to scores, (batch, 1, keys): 0 where the mask is 1 and -10000 where it is 0."""
    if mask is None:
        return None
    return ((1 - mask.to(dtype)) * -10000.0).unsqueeze(1)


def check_sample(name: str, sample: Tensor, channels: int) -> None:
    """Raise where the sample is none of this net's."""
    if sample.dim() != 4 or sample.shape[1] != channels:
        raise ValueError(f"{name}: sample must be (batch, {channels}, height, width), got shape {tuple(sample.shape)}.")
