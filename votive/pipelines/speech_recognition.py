"""What is said in recordings, and of what kind they are. Names of arguments and of results are transformers'."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

from ..tensor import Tensor
from .base import Pipeline, Row
from .scores import applied, array, best, function_of, named


def sound_of(item: Any, name: str) -> Tensor:
    """Samples at 16 kHz of a path, the bytes of a file, samples, or a dict of them with their rate."""
    from ..speech import load_audio

    rate = None
    if isinstance(item, Mapping):
        samples = item.get("raw", item.get("array"))
        if samples is None or "sampling_rate" not in item:
            raise ValueError(
                f"{name}: a dict has samples as 'raw' or 'array' and their 'sampling_rate'; got {sorted(item)}."
            )
        item, rate = samples, int(item["sampling_rate"])
    elif isinstance(item, str) and item.startswith(("http://", "https://")):
        raise ValueError(f"recordings are not fetched from the web; download {item} and give its path.")
    elif isinstance(item, bytes | bytearray):
        item = BytesIO(item)
    return load_audio(os.fspath(item) if isinstance(item, os.PathLike) else item, rate)


class AutomaticSpeechRecognitionPipeline(Pipeline):
    """`pipe(recording)` gives `{"text": …}`, with `return_timestamps` also `chunks` with their times.

    A recording is a path, the bytes of a file, samples at 16 kHz, or a dict of `raw` or `array` with its
    `sampling_rate`. Whisper goes through long recordings window by window. `generate_kwargs`, such as language and
    task, and further options go to `generate`.

    >>> votive.pipelines.AutomaticSpeechRecognitionPipeline.needs
    ('tokenizer', 'feature_extractor')
    """

    task, uses = "automatic-speech-recognition", ("speech", "ctc")
    needs = ("tokenizer", "feature_extractor")
    # A window's text ends with its window: there is no need for a number of tokens.
    generation: ClassVar[dict[str, Any]] = {"num_beams": 5}

    @classmethod
    def fitting(cls, model: Any) -> type[Pipeline]:
        """For a model that says a letter for each moment there is another class."""
        return CtcSpeechRecognitionPipeline if type(model).__name__.endswith("ForCTC") else cls

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
        sound = sound_of(item, type(self).__name__)
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


class CtcSpeechRecognitionPipeline(Pipeline):
    """`pipe(recording)` gives `{"text": …}` by a model that says a letter for each moment, such as wav2vec 2.0.

    `return_timestamps` may be "char" or "word". With `chunk_length_s` long recordings are heard in parts, which overlap
    by `stride_length_s` (a number, or those of both sides; by default a sixth of a part).

    >>> votive.pipelines.speech_recognition.CtcSpeechRecognitionPipeline.uses
    ('ctc',)
    """

    task, uses, apart = "automatic-speech-recognition", ("ctc",), True
    needs = ("tokenizer", "feature_extractor")

    @classmethod
    def read_part(cls, part: str, folder: Path, model: Any) -> Any:
        """Letters stand for a tokenizer."""
        from ..speech import Wav2Vec2CTCTokenizer

        if part == "tokenizer":
            return Wav2Vec2CTCTokenizer.from_pretrained(folder)
        return super().read_part(part, folder, model)

    def ready(self) -> None:
        """The tokenizer knows letters."""
        from ..speech import Wav2Vec2CTCTokenizer

        if not isinstance(self.tokenizer, Wav2Vec2CTCTokenizer):
            raise ValueError(
                f"{type(self).__name__}: tokenizer must be a votive.speech.Wav2Vec2CTCTokenizer, got "
                f"{type(self.tokenizer).__name__}."
            )

    def sorted_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options that some method takes, checked before anything runs."""
        if options.get("return_timestamps") not in (None, False, "char", "word"):
            raise ValueError(f"{type(self).__name__}: return_timestamps may be 'char' or 'word'.")
        return super().sorted_options(options)

    def prepare(
        self, item: Any, chunk_length_s: float = 0, stride_length_s: float | Sequence[float] | None = None
    ) -> Iterable[Row]:
        """A row, or one for each part."""
        name, extract = type(self).__name__, self.feature_extractor
        sound = sound_of(item, name)
        if not chunk_length_s:
            yield Row(self._heard(sound))
            return
        given = chunk_length_s / 6 if stride_length_s is None else stride_length_s
        sides = (given, given) if isinstance(given, int | float) else tuple(given)
        align = self.model.config.inputs_to_logits_ratio
        length, left, right = (round(s * extract.sampling_rate / align) * align for s in (chunk_length_s, *sides))
        if length <= left + right:
            raise ValueError(f"{name}: parts of {chunk_length_s} s must be longer than what they overlap by, {sides}.")
        for start in range(0, sound.shape[0], length - left - right):
            part, last = sound[start : start + length], start + length >= sound.shape[0]
            before, after = 0 if start == 0 else left, 0 if last else right
            if part.shape[0] > before:
                yield Row(self._heard(part), {"stride": (part.shape[0], before, after), "align": align})
            if last:
                return

    def _heard(self, sound: Tensor) -> dict[str, Tensor]:
        extract = self.feature_extractor
        found = extract(sound, sampling_rate=extract.sampling_rate, return_tensors="vt", return_attention_mask=True)
        return {k: found[k] for k in ("input_values", "attention_mask") if k in found}

    def run(self, tensors: dict[str, Tensor]) -> dict[str, Any]:
        """The letter of each moment."""
        return {"letters": self.model(**self.accepted(tensors)).logits.argmax(-1)}

    def finish(self, rows: list[Row], return_timestamps: str | None = None) -> dict[str, Any]:
        """The text, and its letters or words with their times."""
        ids: list[int] = []
        for row in rows:
            own = row.found["letters"][0].tolist()
            if "stride" in row.told:
                heard, before, after = row.told["stride"]
                count = round(heard / row.told["align"])
                left, right = round(before / heard * count), round(after / heard * count)
                own = own[left : count - right]
            ids += own
        found: dict[str, Any] = {"text": self.tokenizer.decode(ids)}
        if return_timestamps:
            parts = self.tokenizer.words(ids) if return_timestamps == "word" else self.tokenizer.spans(ids)
            second = self.model.config.inputs_to_logits_ratio / self.feature_extractor.sampling_rate
            found["chunks"] = [
                {"text": part.text, "timestamp": (part.start * second, part.end * second)} for part in parts
            ]
        return found


class AudioClassificationPipeline(Pipeline):
    """`pipe(recording)` gives its classes, best first, or `top_k` of them; recordings are those of speech recognition.

    >>> votive.pipelines.AudioClassificationPipeline.needs
    ('feature_extractor',)
    """

    task, uses, apart = "audio-classification", ("audio",), True
    needs = ("feature_extractor",)

    def prepare(self, item: Any) -> Iterable[Row]:
        """One row."""
        extract = self.feature_extractor
        sound = sound_of(item, type(self).__name__)
        found = extract(sound, sampling_rate=extract.sampling_rate, return_tensors="vt")
        return [Row({k: v for k, v in found.items() if isinstance(v, Tensor)})]

    def finish(
        self, rows: list[Row], top_k: int | None = None, function_to_apply: str | None = None
    ) -> list[dict[str, Any]]:
        """Classes, best first."""
        config, logits = self.model.config, array(rows[0].found["logits"])[0]
        kind = function_to_apply
        if kind is None and config.problem_type not in ("regression", "multi_label_classification"):
            kind = "softmax"
        scores = applied(logits, function_of(config, kind, type(self).__name__))
        found = best(named(scores, config.id2label), top_k)
        return [{"score": one["score"], "label": one["label"]} for one in found]
