"""What is said in recordings, by Whisper. Names of arguments and of results are transformers'."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from io import BytesIO
from typing import Any, ClassVar

from ..tensor import Tensor
from .base import Pipeline, Row


class AutomaticSpeechRecognitionPipeline(Pipeline):
    """`pipe(recording)` gives `{"text": …}`, with `return_timestamps` also `chunks` with their times.

    A recording is a path, the bytes of a file, samples at 16 kHz, or a dict of `raw` or `array` with its
    `sampling_rate`. Whisper goes through long recordings window by window. `generate_kwargs`, such as language and
    task, and further options go to `generate`.

    >>> votive.pipelines.AutomaticSpeechRecognitionPipeline.needs
    ('tokenizer', 'feature_extractor')
    """

    task, uses = "automatic-speech-recognition", ("speech",)
    needs = ("tokenizer", "feature_extractor")
    generation: ClassVar[dict[str, Any]] = {"max_new_tokens": 256, "num_beams": 5}

    def ready(self) -> None:
        """Which tokens are words."""
        from ..models.whisper_vocabulary import Vocabulary

        if self.model.config.model_type != "whisper":
            raise ValueError(
                f"{type(self).__name__}: a {self.model.config.model_type} is no Whisper; others are not here."
            )
        self._vocabulary = Vocabulary.of(self.model)

    def sorted_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options that some method takes, checked before anything runs."""
        name = type(self).__name__
        for key in ("chunk_length_s", "stride_length_s"):
            if options.get(key):
                raise ValueError(f"{name}: Whisper goes through long recordings by itself; leave {key} out.")
        if options.get("return_timestamps") not in (None, False, True):
            raise ValueError(
                f"{name}: return_timestamps may be True, for segments; votive.speech.transcribe gives times of words."
            )
        kept = {k: v for k, v in options.items() if k not in ("chunk_length_s", "stride_length_s", "ignore_warning")}
        return super().sorted_options(kept)

    def prepare(self, item: Any) -> Iterable[Row]:
        """One row: the recording's mels, and all of them where it is longer than a window."""
        from ..speech import load_audio

        rate = None
        if isinstance(item, Mapping):
            samples = item.get("raw", item.get("array"))
            if samples is None or "sampling_rate" not in item:
                raise ValueError(
                    f"{type(self).__name__}: a dict has samples as 'raw' or 'array' and their 'sampling_rate'; got "
                    f"{sorted(item)}."
                )
            item, rate = samples, int(item["sampling_rate"])
        elif isinstance(item, str) and item.startswith(("http://", "https://")):
            raise ValueError(f"recordings are not fetched from the web; download {item} and give its path.")
        elif isinstance(item, bytes | bytearray):
            item = BytesIO(item)
        sound = load_audio(os.fspath(item) if isinstance(item, os.PathLike) else item, rate)
        extract = self.feature_extractor
        long = sound.shape[0] > extract.chunk_length * extract.sampling_rate
        options: dict[str, Any] = {"truncation": False, "padding": "longest"} if long else {}
        found = extract(
            sound, sampling_rate=extract.sampling_rate, return_tensors="vt", return_attention_mask=True, **options
        )
        return [Row({k: found[k] for k in ("input_features", "attention_mask")})]

    def run(
        self,
        tensors: dict[str, Tensor],
        return_timestamps: bool | None = None,
        generate_kwargs: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> dict[str, Any]:
        """What is said, and its parts where times are asked for."""
        settings = self.generated({**(generate_kwargs or {}), **settings})
        if return_timestamps:
            settings["return_timestamps"] = True
        found = self.model.generate(
            tensors["input_features"],
            attention_mask=tensors["attention_mask"],
            return_segments=bool(return_timestamps),
            **settings,
        )
        if not return_timestamps:
            return {"sequences": found if isinstance(found, Tensor) else found.sequences}
        return {"sequences": found["sequences"], "segments": found["segments"]}

    def finish(
        self, rows: list[Row], return_timestamps: bool | None = None, return_language: bool | None = None
    ) -> dict[str, Any]:
        """The text, and its parts."""
        if return_language:
            raise ValueError(
                f"{type(self).__name__}: return_language is not here; votive.speech.Transcriber tells the language."
            )
        found = rows[0].found
        text = self._text(found["sequences"][0].tolist())
        if not return_timestamps:
            return {"text": text}
        return {"text": text, "chunks": [self._chunk(part) for part in found["segments"]]}

    def _chunk(self, part: dict[str, Any]) -> dict[str, Any]:
        times = round(float(part["start"]), 2), round(float(part["end"]), 2)
        return {"timestamp": times, "text": self._text(list(part["tokens"]))}

    def _text(self, ids: list[int]) -> str:
        """What was spoken: words come before all signs and times."""
        end = self._vocabulary.end
        text: str = self.tokenizer.decode([int(t) for t in ids if t < end])
        return text
