"""Sound as wav2vec 2.0 and its likes hear it: samples of mean zero and variance one.

Results are those of transformers' Wav2Vec2FeatureExtractor. Knows no model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..text import BatchEncoding
from ..text.encoding import check_tensors
from .features import NAME, SAMPLE_RATE, Sound, sounds_of

_PADDINGS = {True: "longest", False: "do_not_pad"}


class Wav2Vec2FeatureExtractor:
    """Makes `input_values` of sound at 16 kHz, and `attention_mask` where a model was trained with one.

    >>> extract = votive.speech.Wav2Vec2FeatureExtractor()
    >>> found = extract([[0.0, 1.0], [0.5, 0.0, 0.0]], padding=True, sampling_rate=16000, return_attention_mask=True)
    >>> found.input_values.shape, found.attention_mask.tolist()
    (votive.Size([2, 3]), [[1, 1, 0], [1, 1, 1]])
    """

    def __init__(
        self,
        feature_size: int = 1,
        sampling_rate: int = SAMPLE_RATE,
        padding_value: float = 0.0,
        return_attention_mask: bool = False,
        do_normalize: bool = True,
        padding_side: str = "right",
    ) -> None:
        if feature_size != 1:
            raise ValueError(f"Wav2Vec2FeatureExtractor: samples are one number each, got feature_size={feature_size}.")
        if padding_side != "right":
            raise ValueError(f"Wav2Vec2FeatureExtractor: sounds are padded on the right, got {padding_side!r}.")
        self.feature_size, self.sampling_rate, self.padding_value = feature_size, sampling_rate, padding_value
        self.return_attention_mask, self.do_normalize = return_attention_mask, do_normalize
        self.padding_side = padding_side

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str]) -> Self:
        """As preprocessor_config.json in a model's folder says."""
        from ..models.config import read_json

        path = Path(folder)
        found = read_json(path / NAME if path.is_dir() else path)
        return cls(**{name: found[name] for name in vars(cls()) if found.get(name) is not None})

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write preprocessor_config.json into a folder."""
        from ..models.checkpoint import write_json

        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        write_json(path / NAME, {**vars(self), "feature_extractor_type": type(self).__name__})

    def __call__(
        self,
        raw_speech: Sound | Sequence[Sound],
        padding: bool | str = False,
        max_length: int | None = None,
        truncation: bool = False,
        pad_to_multiple_of: int | None = None,
        return_attention_mask: bool | None = None,
        return_tensors: str | None = "vt",
        sampling_rate: int | None = None,
    ) -> BatchEncoding:
        """`raw_speech` is one sound or several, of one channel; `padding` is "longest", "max_length", "do_not_pad"."""
        name = type(self).__name__
        check_tensors(return_tensors)
        if sampling_rate is not None and sampling_rate != self.sampling_rate:
            raise ValueError(
                f"{name}: the sound must have {self.sampling_rate} samples a second, got "
                f"sampling_rate={sampling_rate}; resample it first."
            )
        kind = _PADDINGS.get(padding, padding) if isinstance(padding, bool) else padding
        if kind not in ("longest", "max_length", "do_not_pad"):
            raise ValueError(f"{name}: padding must be 'longest', 'max_length' or 'do_not_pad', got {padding!r}.")
        if max_length is None and (truncation or kind == "max_length"):
            raise ValueError(f"{name}: truncation and padding='max_length' need max_length.")
        sounds = sounds_of(raw_speech, name)
        if truncation:
            sounds = [sound[:max_length] for sound in sounds]
        lengths = [len(sound) for sound in sounds]
        if not all(lengths):
            raise ValueError(f"{name}: a sound has no samples.")
        masked = self.return_attention_mask if return_attention_mask is None else return_attention_mask
        if kind == "do_not_pad" and return_tensors is not None and len(set(lengths)) > 1:
            raise ValueError(f"{name}: sounds of lengths {sorted(set(lengths))} make no batch; use padding=True.")
        rows, masks = [], []
        for sound in sounds:
            length = self._length(kind, len(sound), lengths, max_length, pad_to_multiple_of)
            row = np.full(length, self.padding_value, np.float32)
            row[: len(sound)] = sound
            if self.do_normalize:
                # A model that takes no mask was trained on recordings that were padded first.
                real = row[: len(sound)] if masked else row
                row = (row - real.mean()) / np.sqrt(real.var() + 1e-7)
                if masked:
                    row[len(sound) :] = self.padding_value
            rows.append(row.astype(np.float32))
            masks.append(np.arange(length) < len(sound))
        columns: dict[str, Any] = {"input_values": rows}
        if masked:
            columns["attention_mask"] = [mask.astype(np.int64) for mask in masks]
        if return_tensors is None:
            return BatchEncoding({key: [row.tolist() for row in found] for key, found in columns.items()})
        return BatchEncoding(_stacked(columns, return_tensors))

    def _length(self, kind: str, own: int, lengths: list[int], most: int | None, multiple: int | None) -> int:
        if kind == "do_not_pad":
            return own
        length = max(lengths) if kind == "longest" else max(own, most or 0)
        return math.ceil(length / multiple) * multiple if multiple else length

    def __repr__(self) -> str:
        return f"Wav2Vec2FeatureExtractor({self.sampling_rate} Hz)"


def _stacked(columns: dict[str, Any], kind: str) -> dict[str, Any]:
    import votive

    arrays = {name: np.stack(rows) for name, rows in columns.items()}
    return arrays if kind == "np" else {name: votive.tensor(array) for name, array in arrays.items()}
