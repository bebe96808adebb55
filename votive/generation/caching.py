"""Which cache a call of `generate` works with: the caller's, or one of the kind and the type that its settings name."""

from __future__ import annotations

from typing import Any

from votive import nn

from ..nn.layers.kv_storage import CacheDtype, format_of_bits, pair_of
from ..tensor import Tensor
from .config import GenerationConfig
from .stepping import Model, cache_for


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


def cache_of(
    model: Model, given: Any, config: GenerationConfig, kind: str, length: int, ids: Tensor
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
    if seen >= ids.shape[1]:
        raise ValueError(
            f"generate: past_key_values hold {seen} positions and input_ids {ids.shape[1]}; give "
            "the whole text so far, with at least one token that is new."
        )
    return given
