"""Which values each setting of `generate` may have. Computes nothing and knows no model."""

from __future__ import annotations

import math
from typing import Any

from ..nn.layers.kv_storage import NAMES, pair_of

CACHES = ("auto", "dynamic", "static", "sliding", "quantized", "offloaded", "offloaded_static")


def hint(name: str) -> str:
    """What to do where a value of this setting was wrong."""
    return " For greedy search, set do_sample=False." if name == "temperature" else ""


def _number(value: Any) -> bool:
    real = isinstance(value, (int, float)) and not isinstance(value, bool)
    return real and not math.isnan(value)


def _count(least: int) -> tuple[str, Any]:
    return (f"an integer of at least {least}", lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least)


def _within(low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> Any:
    rule = f"in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"

    def holds(v: Any) -> bool:
        return _number(v) and (low < v if open_low else low <= v) and (v < high if open_high else v <= high)

    return rule, holds


def _keeps(value: Any) -> bool:
    """Whether a cache can keep its rows so."""
    try:
        pair_of(value)
    except ValueError:
        return False
    return True


_POSITIVE = ("a number above 0", lambda v: _number(v) and 0 < v < math.inf)
_FINITE = ("a finite number", lambda v: _number(v) and math.isfinite(v))
_TRUTH = ("True or False", lambda v: isinstance(v, bool))
_TOKENS = (
    "a token id or a list of them, none negative",
    lambda v: all(isinstance(i, int) and i >= 0 for i in ([v] if isinstance(v, int) else v)),
)
RULES: dict[str, tuple[str, Any]] = {
    "max_length": _count(1),
    "max_new_tokens": _count(1),
    "min_length": _count(0),
    "min_new_tokens": _count(0),
    "max_time": _POSITIVE,
    "do_sample": _TRUTH,
    "num_beams": _count(1),
    "num_return_sequences": _count(1),
    "length_penalty": _FINITE,
    "early_stopping": ("True, False or 'never'", lambda v: isinstance(v, bool) or v == "never"),
    "temperature": _POSITIVE,
    "top_k": _count(0),
    "top_p": _within(0, 1, open_low=True),
    "min_p": _within(0, 1),
    "typical_p": _within(0, 1, open_low=True),
    "epsilon_cutoff": _within(0, 1, open_high=True),
    "eta_cutoff": _within(0, 1, open_high=True),
    "top_h": _within(0, 1, open_low=True),
    "repetition_penalty": _POSITIVE,
    "encoder_repetition_penalty": _POSITIVE,
    "guidance_scale": _FINITE,
    "token_healing": _TRUTH,
    "penalty_alpha": _within(0, 1),
    "low_memory": _TRUTH,
    "num_beam_groups": _count(1),
    "diversity_penalty": ("a number of at least 0", lambda v: _number(v) and 0 <= v < math.inf),
    "encoder_no_repeat_ngram_size": _count(0),
    "prompt_lookup_num_tokens": _count(1),
    "max_matching_ngram_size": _count(1),
    "max_cache_len": _count(1),
    "disable_compile": _TRUTH,
    "return_dict_in_generate": _TRUTH,
    "output_scores": _TRUTH,
    "output_logits": _TRUTH,
    "output_attentions": _TRUTH,
    "output_hidden_states": _TRUTH,
    "remove_invalid_values": _TRUTH,
    "renormalize_logits": _TRUTH,
    "regex": ("a regular expression as text", lambda v: isinstance(v, str)),
    "grammar": ("a grammar as text", lambda v: isinstance(v, str) and bool(v.strip())),
    "choices": (
        "a list of texts, none empty",
        lambda v: isinstance(v, list | tuple) and bool(v) and all(isinstance(t, str) and t for t in v),
    ),
    "json_schema": (
        "a JSON schema, as a dict or as text",
        lambda v: isinstance(v, dict | str | bool) or hasattr(v, "model_json_schema"),
    ),
    "dola_layers": (
        "'low', 'high' or a list of layers",
        lambda v: (
            v in ("low", "high") or (isinstance(v, list | tuple) and all(isinstance(i, int) and i >= 0 for i in v))
        ),
    ),
    "presence_penalty": _FINITE,
    "frequency_penalty": _FINITE,
    "no_repeat_ngram_size": _count(0),
    "suppress_tokens": _TOKENS,
    "begin_suppress_tokens": _TOKENS,
    "forced_bos_token_id": _count(0),
    "forced_eos_token_id": _TOKENS,
    "eos_token_id": _TOKENS,
    "pad_token_id": _count(0),
    "bos_token_id": _count(0),
    "decoder_start_token_id": _count(0),
    "use_cache": _TRUTH,
    "cache_implementation": (f"one of {', '.join(CACHES)}", lambda v: v in CACHES),
    "cache_config": ("a dict", lambda v: isinstance(v, dict)),
    "cache_dtype": (f"one of {', '.join(NAMES)}, or a pair of them for keys and values", _keeps),
    "compile": _TRUTH,
    "prefill_chunk_size": _count(1),
    "num_assistant_tokens": _count(1),
    "num_assistant_tokens_schedule": ("'constant' or 'heuristic'", lambda v: v in ("constant", "heuristic")),
    "assistant_confidence_threshold": _within(0, 1),
    "stop_strings": (
        "a string or a list of strings, none empty",
        lambda v: (
            isinstance(v, (str, list, tuple))
            and all(isinstance(s, str) and s for s in ([v] if isinstance(v, str) else v))
        ),
    ),
    "seed": ("an integer", lambda v: isinstance(v, int) and not isinstance(v, bool)),
}
