"""What a model hears: its mels over time, and which sound it looks at for each token.

Cross attention of alignment heads, made comparable, shows where in time each token was said; the
way of least cost through it gives seconds. Knows no model class.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from .attention_maps import AttentionMap, attention_maps
from .heatmap import Heatmap
from .labels import TokenNames, token_labels
from .plots import Plottable

# Names on a time axis, and steps of time across a picture, at most.
_TICKS, _ACROSS = 24, 150
# Of mels, cells across and down: as many as a picture has, most of them for time.
_FRAMES, _BANDS = 250, 40


@dataclass(frozen=True)
class Mels(Plottable):
    """Log-mels (samples, bands, frames) of sounds; `seconds` is how long a frame lasts."""

    values: Any
    seconds: float = 0.01

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return {"values": self.values.tolist(), "seconds": self.seconds}

    def figure(self, sample: int = 0) -> Heatmap:
        """Bands up and time across, as spectrograms are drawn."""
        found, long = max_pooled(self.values[sample], _FRAMES)
        found, high = max_pooled(found.T, _BANDS)
        bands = found.shape[1]
        first = [i * high for i in reversed(range(bands))]
        step = long * self.seconds
        return Heatmap(
            found.T.flip(0).tolist(),
            [f"band {i}" for i in first],
            timestamps(found.shape[0], step),
            title="log-mel energies",
            x_name="seconds",
            y_name="band",
            legend="energy",
            note=cell_note(step, high),
            row_marks=["" if i % 8 else str(i) for i in first],
            column_marks=time_labels(found.shape[0], step),
        )


def mels(sound: Tensor | Sequence[float] | str | os.PathLike[str], *, n_mels: int = 80, seconds: float = 0.01) -> Mels:
    """Pictures of log-mels: of `input_features` (samples, bands, frames), or of sound at 16 kHz.

    Sound is (samples,) or a file. What it becomes for Whisper is what is shown.

    >>> found = votive.glass.mels(votive.sin(votive.arange(8000.0) / 5))
    >>> found.values.shape, found.figure().x_name
    (votive.Size([1, 80, 50]), 'seconds')
    """
    from ..speech import load_audio, log_mel_spectrogram

    if isinstance(sound, votive.Tensor) and sound.dim() == 3:
        return Mels(sound.detach(), seconds)
    with votive.no_grad():
        return Mels(log_mel_spectrogram(load_audio(sound), n_mels).unsqueeze(0), seconds)


def max_pooled(values: Tensor, most: int) -> tuple[Any, int]:
    """Numbers (..., N) with neighbours max_pooled, the largest kept, so that at most `most` are left.

    >>> from votive.glass.speech import max_pooled
    >>> max_pooled(votive.tensor([[1.0, 3.0, 2.0, 0.0, 5.0]]), 3)
    (tensor([[3., 2., 5.]]), 2)
    """
    size = values.shape[-1]
    count = -(-size // most)
    if count <= 1:
        return values, 1
    rest = -size % count
    values = votive.nn.functional.pad(values, (0, rest), value=-votive.inf)
    return values.unflatten(-1, (-1, count)).amax(-1), count


def cell_note(seconds: float, bands: int = 1) -> str:
    """What a cell of a picture stands for."""
    more = f" and {bands} bands" if bands > 1 else ""
    return f"each cell: the most of {seconds:g} s{more}"


def timestamps(count: int, seconds: float) -> list[str]:
    """The beginning of each step of time.

    >>> from votive.glass.speech import timestamps
    >>> timestamps(3, 0.02)
    ['0.00 s', '0.02 s', '0.04 s']
    """
    return [f"{i * seconds:.2f} s" for i in range(count)]


def time_labels(count: int, seconds: float) -> list[str]:
    """Names of so many steps of time; only some are written out, or they would not be readable.

    >>> from votive.glass.speech import time_labels
    >>> time_labels(5, 0.5)
    ['0', '0.5', '1', '1.5', '2']
    """
    whole = count * seconds
    step = next(s for s in (0.1, 0.5, 1, 2, 5, 10, 60, 600, 6000, 1e9) if whole / s <= _TICKS)
    # A round number names the step it lies in.
    marks = [math.ceil(i * seconds / step - 1e-9) * step for i in range(count)]
    return [f"{mark:g}" if mark < (i + 1) * seconds - 1e-9 else "" for i, mark in enumerate(marks)]


@dataclass(frozen=True)
class Alignment(Plottable):
    """Cross attention of one sample to its sound: maps of all layers, and where tokens were said.

    `heads` are the (layer, head) that follow the speech; `seconds` is how long a key lasts. `start`
    is the first token that counts, at least 1: those before say how to write, and are not spoken.
    """

    maps: list[AttentionMap]
    tokens: list[int]
    heads: list[tuple[int, int]]
    seconds: float
    keys: int
    start: int = 0
    tokenizer: Any = None
    sample: int = 0
    width: int = 7

    def weights(self, layer: int, head: int | None = None) -> Tensor:
        """The weights (tokens, keys) of one head of a layer, or the mean of its heads."""
        if not -len(self.maps) <= layer < len(self.maps):
            raise IndexError(f"Alignment: there is no layer {layer} of {len(self.maps)}.")
        found = self.maps[layer].weights(head, None, self.sample)[0]
        return found.mean(0)[:, : self.keys]

    def matrix(self) -> Tensor:
        """How well each token fits each moment, (tokens from `start` on, keys).

        A token is chosen where the one before it is read, so that one's weights are its own.
        """
        from ..speech.timing import alignment_matrix

        chosen = votive.stack([self.weights(layer, head) for layer, head in self.heads])
        # As words are timed: what lies in the silence behind the sound does not count.
        found = alignment_matrix(chosen / chosen.sum(-1, keepdim=True), self.width)
        return found[self.start - 1 : len(self.tokens) - 1]

    def times(self) -> list[float]:
        """Seconds at which each token from `start` on begins; they never fall."""
        from ..speech.timing import jumps

        return (jumps(self.matrix()) * self.seconds).tolist()

    def labels(self) -> list[str]:
        """Each token as a text."""
        return token_labels(self.tokens, self.tokenizer)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return {
            "tokens": self.tokens,
            "labels": self.labels(),
            "start": self.start,
            "times": self.times(),
            "matrix": self.matrix().tolist(),
            "seconds": self.seconds,
            "heads": [list(h) for h in self.heads],
        }

    def figure(self, layer: int | None = None, head: int | None = None) -> Heatmap:
        """Tokens down and seconds across: one head, a layer's mean, or the alignment heads."""
        values = self.matrix() if layer is None else self.weights(layer, head)
        values, long = max_pooled(values, _ACROSS)
        step = self.seconds * long
        columns, note = timestamps(values.shape[1], step), cell_note(step)
        marks = time_labels(values.shape[1], step)
        if layer is not None:
            which = "mean of heads" if head is None else f"head {head}"
            address = self.maps[layer].address.partition("/")[0]
            return Heatmap(
                values.tolist(),
                self.labels(),
                columns,
                note=note,
                title=f"{address} {which}",
                x_name="seconds",
                y_name="token",
                legend="weight",
                low=0.0,
                column_marks=marks,
            )
        times = self.times()
        rows = [f"{label} {t:.2f} s" for label, t in zip(self.labels()[self.start :], times, strict=True)]
        return Heatmap(
            values.tolist(),
            rows,
            columns,
            title="alignment of tokens and sound",
            x_name="seconds",
            y_name="token",
            legend="fit",
            low=0.0,
            column_marks=marks,
            note=f"mean of {len(self.heads)} heads, standardised over tokens; {note}",
        )

    def __repr__(self) -> str:
        return f"<alignment of {len(self.tokens)} tokens with {self.keys * self.seconds:g} s>"


def alignment(
    model: Module,
    input_features: Tensor,
    tokens: object,
    *,
    heads: Iterable[tuple[int, int]] | None = None,
    tokenizer: TokenNames | None = None,
    at: str = "**.encoder_attn",
    start: int | None = None,
    duration: float | None = None,
    seconds: float = 0.02,
    sample: int = 0,
) -> Alignment:
    """Run a text through a model that hears, and give its attention to the sound.

    `tokens` (positions,) or (batch, positions) are the whole text with its beginning. `heads` are
    (layer, head) that follow the speech; the default is what the model's `alignment_heads` say,
    else all of the later half of layers. `start` is the first token that is spoken, by default that
    after the special ones at the beginning, as far as they are known; `duration` cuts silence off.

    >>> config = votive.models.WhisperConfig(vocab_size=60, d_model=8, encoder_layers=1,
    ...     decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
    ...     max_source_positions=10, pad_token_id=50)
    >>> model = votive.models.WhisperForConditionalGeneration(config).eval()
    >>> found = votive.glass.alignment(model, votive.randn(1, 80, 20), [51, 3, 4])
    >>> found.weights(1, head=0).shape, len(found.times())
    (votive.Size([3, 10]), 2)
    """
    ids = votive.as_tensor(tokens)
    ids = ids.unsqueeze(0) if ids.dim() == 1 else ids
    if ids.shape[0] != input_features.shape[0]:
        raise ValueError(f"alignment: {input_features.shape[0]} sounds need as many texts, got {ids.shape[0]}.")
    found = attention_maps(model, input_features, decoder_input_ids=ids, at=at, tokenizer=tokenizer)
    maps = list(found)
    count, keys = maps[0].shape[1], maps[0].shape[3]
    if duration is not None:
        keys = max(1, min(keys, round(duration / seconds)))
    settings = getattr(model, "generation_config", None)
    if heads is None:
        known = getattr(settings, "extra", {})
        later = [(layer, head) for layer in range(len(maps) // 2, len(maps)) for head in range(count)]
        heads = [(a, b) for a, b in known.get("alignment_heads") or later]
    row = ids[sample].tolist()
    if len(row) < 2:
        raise ValueError("alignment: give a text of at least two tokens, its beginning included.")
    start = _spoken(row, model) if start is None else start
    if not 1 <= start < len(row):
        raise ValueError(f"alignment: start must be from 1 to {len(row) - 1}, got {start}.")
    width = int(getattr(model.config, "median_filter_width", 7))
    return Alignment(maps, row, [(int(a), int(b)) for a, b in heads], seconds, keys, start, tokenizer, sample, width)


def _spoken(ids: list[int], model: Any) -> int:
    """The first token after those that say how to write, as far as they are known."""
    from ..speech import Vocabulary

    try:
        known = Vocabulary.of(model)
    except (AttributeError, IndexError):  # a model that tells neither a start nor an end
        return 1
    special = {known.start, known.previous, known.no_timestamps, *known.languages.values(), *known.tasks.values()}
    last = len(ids) - 1
    return min(max(next((i for i, t in enumerate(ids) if t not in special), last), 1), last)
