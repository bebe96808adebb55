"""The text of one window: searched greedily, by beams or drawn, and again, warmer, where it is bad.

The checks are those of OpenAI's program: text that zlib makes much smaller repeats itself, and
tokens that were unlikely on average are a guess. Knows one window; where the next begins is decided by
`transcribing.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..models.whisper_vocabulary import Vocabulary
from .processors import logits_processors, no_speech_probability
from .segments import PRECISION
from .token_stream import Token, TokenStreamer
from .window import Hypothesis, Window, hypotheses

if TYPE_CHECKING:
    from ..models.whisper import WhisperForConditionalGeneration as Whisper
    from ..text import Tokenizer

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class DecodingOptions:
    """How windows are decoded; names and defaults are those of OpenAI's `transcribe`."""

    temperature: float | tuple[float, ...] = TEMPERATURES
    compression_ratio_threshold: float | None = 2.4
    logprob_threshold: float | None = -1.0
    no_speech_threshold: float | None = 0.6
    beam_size: int | None = None
    best_of: int | None = None
    length_penalty: float = 1.0
    without_timestamps: bool = False
    max_initial_timestamp: float | None = 1.0
    suppress_tokens: tuple[int, ...] | None = None
    suppress_blank: bool = True
    sample_len: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("beam_size", "best_of", "sample_len"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise ValueError(f"transcribe: {name} must be a positive integer, got {value!r}.")
        if not self.temperatures or any(t < 0 for t in self.temperatures):
            raise ValueError(
                f"transcribe: temperature must be one or several numbers of at least 0, got {self.temperature!r}."
            )
        if self.best_of is not None and max(self.temperatures) == 0:
            raise ValueError("transcribe: best_of needs a temperature above 0 to draw with.")

    @property
    def temperatures(self) -> tuple[float, ...]:
        """All that are tried, one after the other."""
        given = self.temperature
        return tuple(given) if isinstance(given, (tuple, list)) else (float(given),)


@dataclass(frozen=True)
class DecodingResult:
    """The text of a window and how good it is."""

    tokens: list[int]  # without the end
    text: str
    temperature: float
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float


def compression_ratio(text: str) -> float:
    """How many times smaller zlib makes a text: what repeats itself is high.

    >>> from votive.speech.decoding import compression_ratio
    >>> compression_ratio("ha " * 100) > 10 > compression_ratio("How are you today?")
    True
    """
    return byte_compression(text.encode())


def byte_compression(raw: bytes) -> float:
    """How many times smaller zlib makes some bytes."""
    return len(raw) / len(zlib.compress(raw))


def non_speech_tokens(tokenizer: Tokenizer) -> list[int]:
    """Tokens of signs that are not spoken: brackets, notes, marks of speakers."""
    encode = _encoder(tokenizer)
    marks = [*'"#()*+/:;<=>@[\\]^_`{|}~「」『』']
    marks += ["<<", ">>", "<<<", ">>>", "--", "---", "-(", "-[", "('", '("', "((", "))", "(((", ")))"]
    marks += ["[[", "]]", "{{", "}}", "♪♪", "♪♪♪"]
    # Of musical signs the first token will do: those beside them in Unicode are not spoken either.
    music = [*"♩♪♫♬♭♮♯"]
    # A hyphen or quote may stand within a word, and begins none.
    found = {encode(" -")[0], encode(" '")[0]}
    for mark in marks + music:
        for ids in (encode(mark), encode(" " + mark)):
            if len(ids) == 1 or mark in music:
                found.add(ids[0])
    return sorted(found)


def _encoder(tokenizer: Tokenizer) -> Callable[[str], list[int]]:
    return lambda text: tokenizer.encode(text, add_special_tokens=False)


class Decoder:
    """Decodes windows of one model with the same options."""

    def __init__(
        self,
        model: Whisper,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        options: DecodingOptions,
        on_token: Callable[[Token], None] | None = None,
    ) -> None:
        if on_token is not None and max(options.beam_size or 1, options.best_of or 1) > 1:
            raise ValueError(
                "transcribe: with beam_size or best_of it is known only at the end which tokens "
                "are chosen; on_token needs them to be 1."
            )
        self.model, self.tokenizer, self.vocabulary = model, tokenizer, vocabulary
        self.on_token = on_token
        self.options, self.length = options, model.config.max_target_positions
        settings = model.generation_config
        tokens = vocabulary
        if options.suppress_tokens is not None:
            self.never = [*options.suppress_tokens]
        elif settings.suppress_tokens:
            self.never = [*settings.suppress_tokens]
        else:
            self.never = non_speech_tokens(tokenizer)
        signs = [tokens.start, tokens.previous, *tokens.tasks.values(), tokens.no_speech]
        self.never = sorted({*self.never, *(t for t in signs if t is not None)})
        blank = settings.begin_suppress_tokens
        self.first_never = blank or [*_encoder(tokenizer)(" "), tokens.end]
        self.settings = settings.updated(
            suppress_tokens=[],
            begin_suppress_tokens=[],
            eos_token_id=tokens.end,
            pad_token_id=tokens.end,
            max_length=None,
        )
        self.settings.extra = {"no_timestamps_token_id": tokens.no_timestamps}

    def text(self, tokens: list[int]) -> str:
        """What tokens say; points in time and signs say nothing."""
        return self.tokenizer.decode([t for t in tokens if t < self.vocabulary.end])

    def processors(self, begin: int) -> list[Any]:
        """What changes scores; `begin` is where new tokens begin."""
        options, latest = self.options, self.options.max_initial_timestamp
        return logits_processors(
            self.settings,
            begin,
            begin_suppress=self.first_never if options.suppress_blank else None,
            suppress=self.never,
            timestamps=not options.without_timestamps,
            latest_start=None if latest is None else round(latest / PRECISION),
        )

    def decode(self, window: Window, before: list[int], prefix: list[int], start_at: float = 0.0) -> DecodingResult:
        """The text of a window after `before`, what was said until then, and its beginning.

        `start_at` are the window's first seconds, which `on_token` is given.
        """
        tokens, options = self.vocabulary, self.options
        prompt = [*prefix]
        if before and tokens.previous is not None:
            prompt = [tokens.previous, *before[-(self.length // 2 - 1) :], *prefix]
        start = prompt.index(tokens.start) + 1
        silent = no_speech_probability(window.logits([prompt[:start]]), tokens.no_speech)[0]
        for temperature in options.temperatures:
            found = self._decoded(self._best(window, prompt, temperature, start_at), temperature, silent)
            if not self._needs_fallback(found):
                break
        return found

    def _best(self, window: Window, prompt: list[int], temperature: float, start_at: float) -> Hypothesis:
        """The best text of a search at a temperature."""
        options, begin = self.options, len(prompt)
        room = self.length - begin
        how: dict[str, Any] = {"do_sample": temperature > 0}
        if temperature > 0:
            # All tokens may be drawn; the best of several draws counts.
            how |= {"temperature": float(temperature), "top_k": 0, "seed": options.seed}
            how |= {"num_return_sequences": options.best_of or 1, "num_beams": 1}
        elif options.beam_size is not None and options.beam_size > 1:
            how |= {"num_beams": options.beam_size, "length_penalty": options.length_penalty}
        rules = self.processors(begin)
        if self.on_token is not None:
            how["streamer"] = streamer = TokenStreamer(self.on_token, temperature, start_at)
            rules.append(streamer)
        found = window.search(
            [prompt],
            generation_config=self.settings,
            output_scores=True,
            logits_processor=rules,
            max_new_tokens=max(1, min(options.sample_len or self.length // 2, room)),
            **how,
        )
        end = self.vocabulary.end
        return max(hypotheses(found, begin, end, end, temperature), key=lambda text: text.mean)

    def _decoded(self, text: Hypothesis, temperature: float, silent: float) -> DecodingResult:
        tokens = text.tokens[:-1] if text.tokens[-1:] == [self.vocabulary.end] else text.tokens
        said = self.text(tokens)
        ratio, mean = compression_ratio(said.strip()), text.total / (len(tokens) + 1)
        return DecodingResult(tokens, said, temperature, mean, ratio, silent)

    def _needs_fallback(self, found: DecodingResult) -> bool:
        """Whether a warmer search may do better."""
        options = self.options
        ratio, least = options.compression_ratio_threshold, options.logprob_threshold
        repeats = ratio is not None and found.compression_ratio > ratio
        unlikely = least is not None and found.avg_logprob < least
        if unlikely and self.silent(found):
            return False
        return repeats or unlikely

    def silent(self, found: DecodingResult) -> bool:
        """Whether nothing was said in a window."""
        odds, least = self.options.no_speech_threshold, self.options.logprob_threshold
        if odds is None or found.no_speech_prob <= odds:
            return False
        return least is None or found.avg_logprob <= least
