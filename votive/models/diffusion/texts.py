"""Texts as a denoiser looks at them: tokens of CLIP's vocabulary, read by its text model. Knows no denoiser."""

from __future__ import annotations

import warnings
from typing import Any

import votive

from ...tensor import Tensor

Texts = str | list[str] | None


def count_of(prompt: Texts, embeds: Tensor | None, name: str) -> int:
    """How many texts there are; exactly one of the two tells it."""
    if (prompt is None) == (embeds is None):
        both = "both came" if prompt is not None else "neither came"
        raise ValueError(f"{name}: give prompt or prompt_embeds; {both}.")
    if prompt is not None and not isinstance(prompt, str | list):
        raise ValueError(f"{name}: prompt is a string or a list of them, got {type(prompt).__name__}.")
    if embeds is not None:
        return int(embeds.shape[0])
    return 1 if isinstance(prompt, str) else len(prompt or ())


def tokens(tokenizer: Any, texts: list[str], length: int, name: str) -> Any:
    """Ids (batch, length), cut and padded; a warning says what was cut."""
    found = tokenizer(texts, padding="max_length", max_length=length, truncation=True, return_tensors="vt")
    whole = tokenizer(texts).input_ids
    cut = [tokenizer.decode(ids[length - 1 : -1]) for ids in whole if len(ids) > length]
    if cut:
        warnings.warn(f"{name}: texts are cut after {length} tokens; left out: {cut}.", stacklevel=4)
    return found


def read_texts(
    encoder: Any, tokenizer: Any, texts: list[str], length: int | None, clip_skip: int | None, name: str
) -> Tensor:
    """The text model's vectors (batch, tokens, width); with `clip_skip`, those of an earlier layer, normed."""
    limit = tokenizer.model_max_length or encoder.config.max_position_embeddings
    found = tokens(tokenizer, texts, length or limit, name)
    device = next(encoder.parameters()).device
    mask = found.attention_mask.to(device) if getattr(encoder.config, "use_attention_mask", False) else None
    ids = found.input_ids.to(device)
    if clip_skip is None:
        return encoder(ids, attention_mask=mask)[0]
    states = encoder(ids, attention_mask=mask, output_hidden_states=True).hidden_states
    if not 0 <= clip_skip < len(states):
        raise ValueError(f"{name}: clip_skip must be 0 to {len(states) - 1}, got {clip_skip}.")
    return encoder.final_layer_norm(states[-(clip_skip + 1)])


def read_states(
    encoder: Any, tokenizer: Any, texts: list[str], length: int | None, clip_skip: int | None, name: str
) -> tuple[Tensor, Tensor | None]:
    """A text model's vectors before its last layer, or `clip_skip` layers before these, and its pooled ones if any."""
    limit = tokenizer.model_max_length or encoder.config.max_position_embeddings
    ids = tokens(tokenizer, texts, length or limit, name).input_ids.to(next(encoder.parameters()).device)
    found = encoder(ids, output_hidden_states=True)
    states = found.hidden_states
    back = 2 + (clip_skip or 0)
    if not 2 <= back <= len(states):
        raise ValueError(f"{name}: clip_skip must be 0 to {len(states) - 2}, got {clip_skip}.")
    return states[-back], getattr(found, "text_embeds", None)


def repeated(embeds: Tensor, times: int) -> Tensor:
    """Each text's vectors so many times in a row."""
    return embeds.repeat_interleave(times, 0) if times != 1 else embeds


def negative_texts(prompt: Texts, negative: Texts, count: int, name: str) -> list[str]:
    """What is to be avoided, a text for each; nothing is the empty text."""
    if negative is None:
        return [""] * count
    if prompt is not None and type(prompt) is not type(negative):
        raise TypeError(
            f"{name}: negative_prompt is of the kind of prompt, got {type(negative).__name__} beside "
            f"{type(prompt).__name__}."
        )
    found = [negative] if isinstance(negative, str) else list(negative)
    if isinstance(negative, str):
        found = found * count
    if len(found) != count:
        raise ValueError(f"{name}: {len(found)} texts of negative_prompt came for {count} of prompt.")
    return found


def guidance_embedding(scale: float, width: int, count: int, like: Tensor) -> Tensor:
    """The strength of guidance as sines and cosines, for denoisers that were distilled with it."""
    half = width // 2
    rates = votive.exp(votive.arange(half, dtype=votive.float32) * -(votive.tensor(10000.0).log() / (half - 1)))
    angles = votive.full((count, 1), (scale - 1) * 1000.0) * rates
    found = votive.cat([angles.sin(), angles.cos()], dim=1)
    if width % 2:
        found = votive.nn.functional.pad(found, (0, 1))
    return found.to(device=like.device, dtype=like.dtype)


def rescaled(guided: Tensor, with_text: Tensor, share: float) -> Tensor:
    """A guided prediction with the spread of the one with the text: Lin et al. 2023, arXiv:2305.08891, section 3.4."""
    dims = list(range(1, guided.dim()))
    spread = with_text.std(dim=dims, keepdim=True) / guided.std(dim=dims, keepdim=True)
    return share * (guided * spread) + (1 - share) * guided
