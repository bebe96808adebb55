"""Whisper's special tokens: where a text begins, its language, its task, and points in time.

Knows numbers of tokens; knows no model and no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .whisper_languages import LANGUAGES, language_code

if TYPE_CHECKING:
    from ..generation import GenerationConfig
    from .whisper import WhisperForConditionalGeneration as Whisper

# Of the vocabulary's size, what is neither a language nor the token that English alone lacks:
# words and their end, the tasks and other signs, and the points in time.
_REST = 51765
TASKS = ("transcribe", "translate")


@dataclass(frozen=True)
class Vocabulary:
    """The special tokens of one model.

    >>> from votive.speech import Vocabulary
    >>> tokens = Vocabulary.of_size(51865)
    >>> tokens.multilingual, tokens.start, tokens.languages["de"], tokens.time(1.0)
    (True, 50258, 50261, 50414)
    """

    start: int  # <|startoftranscript|>
    end: int  # <|endoftext|>
    no_timestamps: int | None = None
    previous: int | None = None  # <|startofprev|>
    languages: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[str, int] = field(default_factory=dict)
    multilingual: bool = True

    @classmethod
    def of_size(cls, size: int) -> Vocabulary:
        """The tokens of a published model, which its vocabulary's size tells."""
        multilingual = size >= 51865
        count = size - _REST - int(multilingual)
        if not 0 < count <= len(LANGUAGES):
            raise ValueError(f"Vocabulary.of_size: no known Whisper has {size} tokens.")
        end = 50257 if multilingual else 50256
        codes = list(LANGUAGES)[:count]
        after = end + 2 + count
        return cls(
            start=end + 1,
            end=end,
            no_timestamps=after + 5,
            previous=after + 3,
            languages={code: end + 2 + i for i, code in enumerate(codes)},
            tasks={"translate": after, "transcribe": after + 1},
            multilingual=multilingual,
        )

    @classmethod
    def of(cls, model: Whisper, settings: GenerationConfig | None = None) -> Vocabulary:
        """The tokens of a model: as its generation configuration has them, else by its size."""
        settings = model.generation_config if settings is None else settings
        extra, config = settings.extra, model.config
        ends = settings.eos_ids() or _listed(config.eos_token_id)
        start = settings.decoder_start_token_id
        start = config.decoder_start_token_id if start is None else start
        known = cls(start, ends[0], multilingual=bool(extra.get("lang_to_id")))
        try:
            published = cls.of_size(config.vocab_size)
        except ValueError:
            pass  # a model of one's own, with no more tokens than it tells
        else:
            if (published.start, published.end) == (start, ends[0]):
                known = published
        given: dict[str, Any] = {
            "no_timestamps": extra.get("no_timestamps_token_id"),
            "previous": extra.get("prev_sot_token_id"),
            "tasks": extra.get("task_to_id"),
            "multilingual": extra.get("is_multilingual"),
        }
        if extra.get("lang_to_id"):
            given["languages"] = {k.removeprefix("<|").removesuffix("|>"): v for k, v in extra["lang_to_id"].items()}
        return replace(known, **{k: v for k, v in given.items() if v is not None})

    @property
    def no_speech(self) -> int:
        """The token that says that nothing is spoken."""
        return self.first_time - 2

    @property
    def first_time(self) -> int:
        """The token of 0.0 seconds; those of each further 20 ms follow."""
        if self.no_timestamps is None:
            raise ValueError(
                "this model's generation configuration has no no_timestamps_token_id, so its "
                "timestamp tokens are not known."
            )
        return self.no_timestamps + 1

    @cached_property
    def codes(self) -> dict[int, str]:
        """The language of each token of a language."""
        return {token: code for code, token in self.languages.items()}

    def time(self, seconds: float) -> int:
        """The token of a point in time."""
        return self.first_time + round(seconds / 0.02)

    def language(self, language: str) -> int:
        """The token of a language, given by code, name or as its token."""
        code = language_code(language)
        if code not in self.languages:
            known = ", ".join(self.languages) or "none but English"
            raise ValueError(f"language {language!r} is not one of this model's: {known}.")
        return self.languages[code]

    def task(self, task: str) -> int:
        """The token of a task, "transcribe" or "translate"."""
        if task not in TASKS:
            raise ValueError(f"task must be 'transcribe' or 'translate', got {task!r}.")
        if task not in self.tasks:
            raise ValueError(f"this model has no task {task!r}; it is English-only.")
        return self.tasks[task]

    def settings(self) -> dict[str, Any]:
        """What a generation_config.json says of these tokens."""
        found: dict[str, Any] = {
            "decoder_start_token_id": self.start,
            "eos_token_id": self.end,
            "bos_token_id": self.end,
            "pad_token_id": self.end,
            "is_multilingual": self.multilingual,
            "no_timestamps_token_id": self.no_timestamps,
            "prev_sot_token_id": self.previous,
        }
        if self.multilingual:
            found["lang_to_id"] = {f"<|{code}|>": i for code, i in self.languages.items()}
            found["task_to_id"] = dict(self.tasks)
        return found


def _listed(value: int | Sequence[int] | None) -> list[int]:
    return [value] if isinstance(value, int) else list(value or ())
