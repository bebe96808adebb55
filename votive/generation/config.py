"""How to continue a text: the settings, their defaults and their rules. Computes nothing."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from ..nn.layers.kv_storage import NAMES, pair_of

# What holds where neither the caller nor the model says anything; transformers' values.
DEFAULTS: dict[str, Any] = {
    "min_length": 0,
    "early_stopping": False,
    "do_sample": False,
    "num_beams": 1,
    "use_cache": True,
    "cache_implementation": "auto",
    "compile": False,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "length_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "num_return_sequences": 1,
    "remove_invalid_values": False,
    "renormalize_logits": False,
    "num_assistant_tokens": 20,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.4,
}
# How many tokens are added when nothing limits them.
NEW_TOKENS = 20
CACHES = ("auto", "dynamic", "static", "sliding", "quantized")
# Settings of transformers that would change the text and that are not honoured: value for "off".
UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "guidance_scale": (None, 1, 1.0),
    "penalty_alpha": (None, 0, 0.0),
    "dola_layers": (None,),
    "num_beam_groups": (None, 1),
    "diversity_penalty": (None, 0, 0.0),
    "constraints": (None,),
    "force_words_ids": (None,),
    "token_healing": (None, False),
    "watermarking_config": (None,),
    "encoder_repetition_penalty": (None, 1, 1.0),
    "encoder_no_repeat_ngram_size": (None, 0),
    "top_h": (None,),
}
# Only sampling reads these.
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff")


@dataclass(kw_only=True)
class GenerationConfig:
    """Settings of `generate`, with the names of transformers; None is "not set".

    What is not set comes from the model's generation_config.json, then from the defaults.

    >>> config = votive.generation.GenerationConfig(max_new_tokens=8, do_sample=True, top_p=0.9)
    >>> config.top_p, config.temperature, config.resolved().temperature
    (0.9, None, 1.0)
    """

    # How long.
    max_length: int | None = None
    max_new_tokens: int | None = None
    min_length: int | None = None
    min_new_tokens: int | None = None
    max_time: float | None = None
    stop_strings: str | list[str] | None = None
    # How the next token is chosen.
    do_sample: bool | None = None
    num_beams: int | None = None
    num_return_sequences: int | None = None
    early_stopping: bool | str | None = None
    length_penalty: float | None = None
    seed: int | None = None
    # What changes the scores.
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    epsilon_cutoff: float | None = None
    eta_cutoff: float | None = None
    repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    no_repeat_ngram_size: int | None = None
    bad_words_ids: list[list[int]] | None = None
    sequence_bias: Any = None
    suppress_tokens: list[int] | None = None
    begin_suppress_tokens: list[int] | None = None
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | list[int] | None = None
    exponential_decay_length_penalty: tuple[int, float] | None = None
    remove_invalid_values: bool | None = None
    renormalize_logits: bool | None = None
    # What is kept between tokens.
    use_cache: bool | None = None
    cache_implementation: str | None = None
    cache_config: dict[str, Any] | None = None
    cache_dtype: Any = None  # as `votive.nn.DynamicCache(dtype=...)` takes it
    compile: bool | None = None
    prefill_chunk_size: int | None = None
    # Drafts of a second model.
    num_assistant_tokens: int | None = None
    num_assistant_tokens_schedule: str | None = None
    assistant_confidence_threshold: float | None = None
    # Special tokens.
    pad_token_id: int | None = None
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None
    decoder_start_token_id: int | None = None
    # What a file says besides.
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """From the content of a generation_config.json; unknown keys are kept in `extra`.

        >>> config = votive.generation.GenerationConfig.from_dict({"top_k": 5, "made_by": "me"})
        >>> config.top_k, config.extra
        (5, {'made_by': 'me'})
        """
        known = set(names())
        kept = {k: v for k, v in values.items() if k in known}
        # Files of transformers call it by its older names too.
        if kept.get("cache_implementation") not in (None, *CACHES):
            kept.pop("cache_implementation")
        return cls(**kept, extra={k: v for k, v in values.items() if k not in known})

    def to_dict(self) -> dict[str, Any]:
        """What is set, as generation_config.json holds it.

        >>> votive.generation.GenerationConfig(top_k=5).to_dict()
        {'top_k': 5}
        """
        own = {name: getattr(self, name) for name in names()}
        if self.cache_dtype is not None:
            key, value = pair_of(self.cache_dtype)
            own["cache_dtype"] = key if key == value else [key, value]
        return {**self.extra, **{k: v for k, v in own.items() if v is not None}}

    def updated(self, **settings: Any) -> Self:
        """A copy with other settings; a name that is none is an error.

        >>> votive.generation.GenerationConfig(top_k=5).updated(top_p=0.5).top_k
        5
        """
        check_names(settings)
        return replace(self, **settings)

    def over(self, other: GenerationConfig) -> Self:
        """A copy in which what is not set here is as in `other`."""
        filled = {n: v for n in names() if (v := getattr(self, n)) is None and (v := getattr(other, n)) is not None}
        return replace(self, **filled, extra={**other.extra, **self.extra})

    def resolved(self) -> Self:
        """A copy in which every setting that has a default is set, and all are valid."""
        filled = {n: v for n, v in DEFAULTS.items() if getattr(self, n) is None}
        found = replace(self, **filled)
        found.validate()
        return found

    def validate(self) -> None:
        """Raise ValueError for the first setting that no text can be continued with."""
        for name, (rule, holds) in _RULES.items():
            value = getattr(self, name)
            if value is not None and not holds(value):
                raise ValueError(f"generate: {name} must be {rule}, got {value!r}.{_hint(name)}")
        beams, sequences = self.beams, self.num_return_sequences or 1
        if sequences > 1 and not self.do_sample and sequences > beams:
            raise ValueError(
                f"generate: num_return_sequences={sequences} needs do_sample=True or at least as "
                f"many num_beams, got {beams}: greedy search has one result."
            )
        if beams > 1 and sequences > beams:
            raise ValueError(f"generate: num_return_sequences={sequences} is more than num_beams={beams}.")

    @property
    def beams(self) -> int:
        """How many beginnings of a text are continued side by side."""
        return self.num_beams or 1

    def eos_ids(self) -> list[int]:
        """The tokens that end a text."""
        return _ids(self.eos_token_id)


def names() -> list[str]:
    """All settings."""
    return [f.name for f in fields(GenerationConfig) if f.name != "extra"]


def check_names(settings: Mapping[str, Any]) -> None:
    """Raise ValueError for a setting that does not exist, with the one that may be meant."""
    known = names()
    for name in settings:
        if name in known:
            continue
        if name in UNSUPPORTED:
            raise ValueError(f"generate: the setting {name!r} of transformers is not supported.")
        close = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"generate: there is no setting {name!r}.{hint}")


def _ids(value: int | Iterable[int] | None) -> list[int]:
    if value is None:
        return []
    return [int(value)] if isinstance(value, int) else [int(v) for v in value]


def _hint(name: str) -> str:
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
_RULES: dict[str, tuple[str, Any]] = {
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
    "repetition_penalty": _POSITIVE,
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
