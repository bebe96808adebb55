"""Which cache a call of `generate` works with: the caller's, or one of the kind and the type that its settings name."""

from __future__ import annotations

from typing import Any

import votive
from votive import nn

from ..nn.layers.kv_storage import CacheDtype, format_of_bits, pair_of
from .config import GenerationConfig
from .graphs import pays, recordable
from .stepping import Model, Wanted, cache_for


def type_of(config: GenerationConfig) -> CacheDtype:
    """In what keys and values are to be kept; None for the model's own numbers.

    >>> from votive.generation.caching import type_of
    >>> type_of(votive.generation.GenerationConfig(cache_implementation="quantized", cache_config={"nbits": 8}))
    'q8_0'
    """
    dtype: CacheDtype = config.cache_dtype
    described = config.cache_config
    if config.cache_implementation != "quantized":
        if described is not None:
            raise ValueError("generate: cache_config describes cache_implementation='quantized'; set that too.")
        return dtype
    if dtype is not None:
        if described is not None:
            raise ValueError("generate: cache_dtype and cache_config both say what a cache keeps; give one of them.")
        return dtype
    given = {"backend": "votive", "nbits": 4, "residual_length": 0, **(described or {})}
    if len(given) > 3:
        others = ", ".join(sorted(set(given) - {"backend", "nbits", "residual_length"}))
        raise ValueError(f"generate: cache_config takes backend, nbits and residual_length, not {others}.")
    return format_of_bits(**given)


def kind_of(
    model: Model,
    config: GenerationConfig,
    device: votive.device | None,
    rows: int,
    length: int,
    new: int,
    seq2seq: bool,
    wanted: Wanted | None,
) -> str:
    """The kind of cache for a text of `length`, of which `new` are to come."""
    kind = config.cache_implementation or "auto"
    if kind == "quantized" or (kind == "auto" and type_of(config) is not None):
        kind = "dynamic"
    if config.max_cache_len is not None and kind not in ("static", "offloaded_static"):
        raise ValueError("generate: max_cache_len is the room of a static cache; set cache_implementation='static'.")
    if kind != "auto":
        return kind
    alone = not seq2seq and config.beams == 1 and not config.penalty_alpha and pays(rows, length, new)
    if config.compile and alone and device is not None and device.type in ("cuda", "webgpu"):
        return "static"  # memory that stays is what a device can replay
    recorded = alone and not config.compile and not config.disable_compile and recordable(model, wanted)
    return "static" if recorded else "dynamic"


def cache_of(
    model: Model, given: Any, config: GenerationConfig, kind: str, length: int, prompt: int
) -> nn.KVCache | None:
    """The cache of a call, None without one."""
    dtype = type_of(config)
    if not config.use_cache:
        if given is not None:
            raise ValueError("generate: past_key_values were given, but use_cache is False.")
        if dtype is not None:
            raise ValueError("generate: cache_dtype was given, but use_cache is False.")
        return None
    if given is None:
        return cache_for(model, kind, length, dtype)
    if not hasattr(given, "get_seq_length"):
        raise TypeError(
            "generate: past_key_values must be a cache such as votive.nn.DynamicCache or a "
            f"PrefixCache, got {type(given).__name__}."
        )
    kept = getattr(given, "dtype", None)
    if dtype is not None and pair_of(dtype) != pair_of(kept):
        raise ValueError(
            f"generate: past_key_values keep {kept or 'numbers'}, and cache_dtype is {dtype!r}; leave it out."
        )
    seen = given.get_seq_length()
    if seen >= prompt:
        raise ValueError(
            f"generate: past_key_values hold {seen} positions and input_ids {prompt}; give "
            "the whole text so far, with at least one token that is new."
        )
    return given
