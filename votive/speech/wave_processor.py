"""Recordings and what is said in them, prepared together for models that say a letter for each moment.

Files and results are those of transformers' Wav2Vec2Processor. Knows no model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from ..text import BatchEncoding
from ..text.inputs import Ids
from .features import Sound
from .letters import Wav2Vec2CTCTokenizer
from .waves import Wav2Vec2FeatureExtractor


class Wav2Vec2Processor:
    """A feature extractor and letters that belong together.

    >>> letters = votive.speech.Wav2Vec2CTCTokenizer({"<pad>": 0, "<unk>": 1, "|": 2, "A": 3, "B": 4})
    >>> processor = votive.speech.Wav2Vec2Processor(votive.speech.Wav2Vec2FeatureExtractor(), letters)
    >>> found = processor([0.0, 1.0, 0.5], text="A B", sampling_rate=16000)
    >>> found.input_values.shape, found.labels
    (votive.Size([1, 3]), [3, 2, 4])
    >>> processor.batch_decode([[3, 3, 0, 3, 2, 4]])
    ['AA B']
    """

    def __init__(self, feature_extractor: Wav2Vec2FeatureExtractor, tokenizer: Wav2Vec2CTCTokenizer) -> None:
        self.feature_extractor, self.tokenizer = feature_extractor, tokenizer

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str], target_lang: str | None = None) -> Self:
        """From a model's folder; of letters for many languages `target_lang` names one."""
        return cls(
            Wav2Vec2FeatureExtractor.from_pretrained(folder), Wav2Vec2CTCTokenizer.from_pretrained(folder, target_lang)
        )

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write both into a folder."""
        self.feature_extractor.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    def __call__(
        self,
        audio: Sound | Sequence[Sound] | None = None,
        text: str | list[str] | None = None,
        padding: bool | str = False,
        return_tensors: str | None = "vt",
        **options: Any,
    ) -> BatchEncoding:
        """What a model takes of recordings, `labels` of what is said in them, or letters alone.

        `options` are the feature extractor's, such as sampling_rate. Rows of labels of one batch are padded with -100,
        which counts in no loss; a text alone gives `input_ids` as the tokenizer does.
        """
        if audio is None and text is None:
            raise ValueError("Wav2Vec2Processor: give audio, text, or both.")
        if audio is None:
            if options:
                raise TypeError(f"Wav2Vec2Processor: {sorted(options)[0]!r} is for recordings; none came.")
            assert text is not None, "one of both is there"
            return self.tokenizer(text, padding=bool(padding), return_tensors=None if not padding else return_tensors)
        found = self.feature_extractor(audio, padding=padding, return_tensors=return_tensors, **options)
        if text is not None:
            found["labels"] = self._labels(text, bool(padding), return_tensors)
        return found

    def _labels(self, text: str | list[str], padding: bool, return_tensors: str | None) -> Any:
        if not padding:
            return self.tokenizer(text).input_ids
        read = self.tokenizer([text] if isinstance(text, str) else text, padding=True)
        rows = [
            [one if real else -100 for one, real in zip(ids, mask, strict=True)]
            for ids, mask in zip(read.input_ids, read.attention_mask, strict=True)
        ]
        if return_tensors is None:
            return rows
        from ..text.encoding import as_arrays

        return as_arrays({"labels": rows}, return_tensors)["labels"]

    def decode(self, token_ids: Ids, **options: Any) -> str:
        """The text that moments say, by the tokenizer."""
        return self.tokenizer.decode(token_ids, **options)

    def batch_decode(self, sequences: Ids, **options: Any) -> list[str]:
        """The text of each row of ids, by the tokenizer."""
        return self.tokenizer.batch_decode(sequences, **options)

    def __repr__(self) -> str:
        return f"Wav2Vec2Processor({self.feature_extractor!r}, {self.tokenizer!r})"
