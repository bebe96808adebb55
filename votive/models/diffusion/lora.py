"""Adaptations of a denoiser for a while: their scale. Knows LoRA layers, not the model around them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from votive import nn
from votive.nn.layers.adaptation import Lora
from votive.nn.layers.adapted import AdaptedLayer
from votive.nn.layers.lora import LoRALinear


@contextmanager
def lora_scaled(model: nn.Module, scale: float) -> Iterator[None]:
    """While the block runs, what LoRA layers add counts `scale` times.

    >>> from votive.models.diffusion.lora import lora_scaled
    >>> net = votive.nn.Sequential(votive.nn.Linear(2, 2))
    >>> _ = votive.nn.apply_lora(net, "0", r=1, alpha=1)
    >>> with lora_scaled(net, 0.5):
    ...     net[0].scaling
    0.5
    """
    layers: list[Any] = [m for m in model.modules() if isinstance(m, LoRALinear | Lora)]
    merged = [m for m in model.modules() if isinstance(m, LoRALinear | AdaptedLayer) and m.merged]
    if merged and scale != 1:
        raise ValueError("cross_attention_kwargs: the LoRA layers are merged, and their scale is fixed; unmerge them.")
    before = [m.scaling for m in layers]
    try:
        for m in layers:
            m.scaling = m.scaling * scale
        yield
    finally:
        for m, old in zip(layers, before, strict=True):
            m.scaling = old
