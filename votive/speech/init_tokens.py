"""The tokens a text begins with: the start, its language, its task, and whether timestamps are written.

Knows tokens and asks a model for the language; writes no text.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import votive

from ..models.whisper_vocabulary import Vocabulary
from ..tensor import Tensor
from .window import Window

if TYPE_CHECKING:
    from ..generation import GenerationConfig
    from ..models.whisper import WhisperForConditionalGeneration as Whisper
    from .window import Encoded


def language_scores(window: Window, tokens: Vocabulary) -> Tensor:
    """Logits of the languages for each sound, (batch, languages), in the vocabulary's order."""
    if not tokens.languages:
        raise ValueError("the language cannot be detected: this model's generation configuration has no lang_to_id.")
    logits = window.logits([[tokens.start]] * len(window))
    index = votive.tensor(list(tokens.languages.values()), device=logits.device)
    return logits.index_select(1, index)


def detect_language_ids(
    model: Whisper,
    input_features: Tensor | None = None,
    encoder_outputs: Encoded | None = None,
    generation_config: GenerationConfig | None = None,
) -> Tensor:
    """The token of the likeliest language of each sound, (batch,), as transformers' method.

    >>> from votive.speech import detect_language_ids
    >>> config = votive.models.WhisperConfig(vocab_size=60, d_model=8, encoder_layers=1,
    ...     decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
    ...     max_source_positions=4, pad_token_id=50, eos_token_id=50, decoder_start_token_id=51)
    >>> model = votive.models.WhisperForConditionalGeneration(config)
    >>> model.generation_config.extra["lang_to_id"] = {"<|en|>": 52}
    >>> detect_language_ids(model, votive.zeros(2, 80, 8))
    tensor([52, 52])
    """
    if (input_features is None) == (encoder_outputs is None):
        raise ValueError("detect_language: give either input_features or encoder_outputs.")
    tokens = Vocabulary.of(model, generation_config)
    if input_features is not None:
        frames = 2 * model.config.max_source_positions
        input_features = input_features[:, :, :frames]
    window = Window(model, input_features, encoder_outputs)
    best = language_scores(window, tokens).argmax(-1)
    index = votive.tensor(list(tokens.languages.values()), device=best.device)
    return index.index_select(0, best)


def init_tokens(
    tokens: Vocabulary,
    rows: int,
    *,
    language: str | Sequence[str] | None,
    task: str | None,
    timestamps: bool,
    forced: Sequence[tuple[int, int]] | None = None,
    detected: Callable[[], list[int]] | None = None,
) -> list[list[int]]:
    """The first tokens of each of `rows` texts.

    `language` is one for all or a list; None asks `detected`, a function that gives tokens.
    `forced` are pairs of position and token, as older files have them.
    """
    prefix: list[int | None] = [tokens.start]
    if task is None and language is None:
        for at, (position, token) in enumerate(forced or []):
            if position != at + 1:
                raise ValueError(f"forced_decoder_ids must name positions 1, 2, … in order, got {forced}.")
            prefix.append(token)
        forced_times = prefix[-1] == tokens.no_timestamps
        prefix = prefix[:-1] if forced_times else prefix
    if not tokens.multilingual and (task is not None or language is not None):
        raise ValueError(
            "task and language cannot be chosen: the model is English-only; pass is_multilingual=True if it is not."
        )
    languages = _languages(tokens, rows, language)
    if languages is None and detected is not None and tokens.languages:
        if len(prefix) == 1 or prefix[1] is None:
            languages = detected()
    out = []
    for i in range(rows):
        row = list(prefix)
        if languages is not None:
            row[1:2] = [languages[i]]
        if task is not None:
            row.append(tokens.task(task))
        elif tokens.tasks and tokens.multilingual and not set(tokens.tasks.values()) & set(row):
            row.append(tokens.task("transcribe"))
        if not timestamps and tokens.no_timestamps is not None:
            row.append(tokens.no_timestamps)
        out.append([t for t in row if t is not None])
    return out


def _languages(tokens: Vocabulary, rows: int, language: str | Sequence[str] | None) -> list[int] | None:
    if language is None:
        return None
    if isinstance(language, str):
        return [tokens.language(language)] * rows
    if len(language) != rows or any(not isinstance(one, str) for one in language):
        raise ValueError(f"language must be None, one for all or one for each of the {rows} sounds, got {language!r}.")
    return [tokens.language(one) for one in language]


def warn_translated_timestamps() -> None:
    """Words of a translation are not spoken: their times are a guess."""
    warnings.warn("timestamps of words and tokens may not be reliable for task='translate'.", stacklevel=3)
