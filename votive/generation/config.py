"""How to continue a text: the settings, their defaults and their rules. Computes nothing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self

from ..nn.layers.kv_storage import pair_of
from .rules import CACHES, RULES, hint

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
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "token_healing": False,
    "low_memory": False,
    "max_matching_ngram_size": 2,
    "num_return_sequences": 1,
    "remove_invalid_values": False,
    "renormalize_logits": False,
    "num_assistant_tokens": 20,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.4,
}
# How many tokens are added when nothing limits them.
NEW_TOKENS = 20
# Settings of transformers that are not honoured: the values with which they ask for nothing, and what to do instead.
UNSUPPORTED: dict[str, tuple[tuple[Any, ...], str]] = {
    "constraints": ((None,), "use regex=, json_schema=, grammar= or prefix_allowed_tokens_fn="),
    "force_words_ids": ((None,), "use regex=, json_schema=, grammar= or prefix_allowed_tokens_fn="),
    "assistant_early_exit": ((None,), "give a small assistant_model, or prompt_lookup_num_tokens"),
    "assistant_ensemble_weight": ((None,), "leave it out: drafts are checked so that the text stays the model's own"),
    "assistant_lookbehind": ((None, 10), "leave it out: the whole text is encoded anew"),
    "target_lookbehind": ((None, 10), "leave it out: the whole text is encoded anew"),
    "speculation_type": ((None,), "give an assistant_model, or prompt_lookup_num_tokens"),
    "use_mtp": ((None, False), "give an assistant_model, or prompt_lookup_num_tokens"),
    "is_assistant": ((None, False), "give that model as assistant_model="),
    "compile_config": ((None,), "compile=True says all there is to say"),
    "continuous_batching_config": ((None,), "give the prompts as one batch"),
    "custom_generate": ((None,), "call your own function, which may call generate"),
}
# Only sampling reads these.
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff")


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
    top_h: float | None = None
    repetition_penalty: float | None = None
    encoder_repetition_penalty: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    no_repeat_ngram_size: int | None = None
    encoder_no_repeat_ngram_size: int | None = None
    bad_words_ids: list[list[int]] | None = None
    sequence_bias: Any = None
    suppress_tokens: list[int] | None = None
    begin_suppress_tokens: list[int] | None = None
    forced_bos_token_id: int | None = None
    forced_eos_token_id: int | list[int] | None = None
    exponential_decay_length_penalty: tuple[int, float] | None = None
    remove_invalid_values: bool | None = None
    renormalize_logits: bool | None = None
    guidance_scale: float | None = None
    watermarking_config: Any = None  # a `WatermarkingConfig`, or a dict of its fields
    token_healing: bool | None = None
    # What the text must look like; these need the tokenizer.
    regex: str | None = None
    json_schema: Any = None  # a dict, text, True for any JSON, or a pydantic class
    grammar: str | None = None
    choices: list[str] | None = None
    # Other searches.
    penalty_alpha: float | None = None
    low_memory: bool | None = None
    dola_layers: str | list[int] | None = None
    num_beam_groups: int | None = None
    diversity_penalty: float | None = None
    # What is kept between tokens.
    use_cache: bool | None = None
    cache_implementation: str | None = None
    cache_config: dict[str, Any] | None = None
    cache_dtype: Any = None  # as `votive.nn.DynamicCache(dtype=...)` takes it
    max_cache_len: int | None = None
    compile: bool | None = None
    disable_compile: bool | None = None  # run each call as it stands, whatever `compile` says: no graphs either
    prefill_chunk_size: int | None = None
    # Drafts, of a second model or from the text itself.
    prompt_lookup_num_tokens: int | None = None
    max_matching_ngram_size: int | None = None
    num_assistant_tokens: int | None = None
    num_assistant_tokens_schedule: str | None = None
    assistant_confidence_threshold: float | None = None
    # What `generate` gives besides the ids.
    return_dict_in_generate: bool | None = None
    output_scores: bool | None = None
    output_logits: bool | None = None
    output_attentions: bool | None = None
    output_hidden_states: bool | None = None
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
        if hasattr(self.watermarking_config, "to_dict"):
            own["watermarking_config"] = self.watermarking_config.to_dict()
        if hasattr(self.json_schema, "model_json_schema"):
            own["json_schema"] = self.json_schema.model_json_schema()
        return {**self.extra, **{k: v for k, v in own.items() if v is not None}}

    def updated(self, **settings: Any) -> Self:
        """A copy with other settings; a name that is none is an error.

        >>> votive.generation.GenerationConfig(top_k=5).updated(top_p=0.5).top_k
        5
        """
        return replace(self, **checked(settings))

    def over(self, other: GenerationConfig) -> Self:
        """A copy in which what is not set here is as in `other`."""
        filled = {n: v for n in names() if (v := getattr(self, n)) is None and (v := getattr(other, n)) is not None}
        return replace(self, **filled, extra={**other.extra, **self.extra})

    def resolved(self) -> Self:
        """A copy in which every setting that has a default is set, and all are valid."""
        filled = {n: v for n, v in DEFAULTS.items() if getattr(self, n) is None}
        found = replace(self, **filled)
        if found.disable_compile:
            found.compile = False
        found.validate()
        return found

    def validate(self) -> None:
        """Raise ValueError for the first setting that no text can be continued with."""
        for name, (rule, holds) in RULES.items():
            value = getattr(self, name)
            if value is not None and not holds(value):
                raise ValueError(f"generate: {name} must be {rule}, got {value!r}.{hint(name)}")
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

    @property
    def groups(self) -> int:
        """Into how many groups the beams are divided."""
        return self.num_beam_groups or 1

    def eos_ids(self) -> list[int]:
        """The tokens that end a text."""
        return _ids(self.eos_token_id)


def names() -> list[str]:
    """All settings."""
    return [f.name for f in fields(GenerationConfig) if f.name != "extra"]


def checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that there are; ValueError for one that does not exist, with the one that may be meant."""
    known = names()
    found = {}
    for name in settings:
        if name in known:
            found[name] = settings[name]
            continue
        if name in UNSUPPORTED:
            off, instead = UNSUPPORTED[name]
            if settings[name] not in off:
                raise ValueError(f"generate: the setting {name!r} of transformers is not supported; {instead}.")
            continue
        close = difflib.get_close_matches(name, known, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"generate: there is no setting {name!r}.{hint}")
    return found


def _ids(value: int | Iterable[int] | None) -> list[int]:
    if value is None:
        return []
    return [int(value)] if isinstance(value, int) else [int(v) for v in value]
