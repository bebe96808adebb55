"""What was said in a sound, for /v1/audio/transcriptions and /v1/audio/translations."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .body import Fields
from .errors import wrong
from .form import Part
from .keys import Permissions
from .registry import Hearer, Registry

if TYPE_CHECKING:
    from ..tensor import Tensor

LONGEST = 4 * 3600  # seconds
_SAMPLES = 1 << 28
_FORMATS = ("json", "text", "srt", "vtt", "verbose_json")
_SPANS = ("segment", "word")


@dataclass
class AskedTranscription:
    """A request that is understood; `run` answers it, in the thread that runs models."""

    hearer: Hearer
    sound: Tensor
    options: dict[str, Any]
    form: str
    spans: tuple[str, ...]

    def run(self, between: Callable[[], None]) -> Any:
        """The answer; `between` is called after each token, so that other work goes on."""
        transcriber: Any = self.hearer.model
        found = transcriber(self.sound, on_token=lambda _: between(), progress=lambda _, __: between(), **self.options)
        if self.form in ("srt", "vtt"):
            return found.format(self.form)
        if self.form == "text":
            return f"{found.text.strip()}\n"
        if self.form == "json":
            return {"text": found.text.strip()}
        told = {"task": self.options["task"], "language": found.language, "duration": found.duration}
        answer: dict[str, Any] = {**told, "text": found.text.strip()}
        if "segment" in self.spans:
            answer["segments"] = [{k: v for k, v in s.to_dict().items() if k != "words"} for s in found.segments]
        if "word" in self.spans:
            answer["words"] = [{"word": w.word.strip(), "start": w.start, "end": w.end} for w in found.words]
        return answer


def asked_transcription(
    parts: Sequence[Part], registry: Registry, allowed: Permissions, task: str
) -> AskedTranscription:
    """A request for the text of a sound; `task` is "transcribe", or "translate" for English."""
    values, files = _sorted(parts)
    fields = Fields(values)
    hearer = registry.hearer(fields.any("model"), allowed)
    form = fields.one_of("response_format", _FORMATS) or "json"
    spans = tuple(fields.listed("timestamp_granularities[]") or (["segment"] if form == "verbose_json" else []))
    if not set(spans) <= set(_SPANS) or (spans and form != "verbose_json"):
        raise fields.wrong("timestamp_granularities[]", "segment or word, with a response_format of verbose_json")
    options: dict[str, Any] = {"task": task, "word_timestamps": "word" in spans}
    language, prompt = fields.text("language", longest=32), fields.text("prompt", longest=4096)
    if language is not None and task == "translate":
        raise fields.wrong("language", "left out: translations are English")
    if language is not None:
        options["language"] = _language(hearer, language)
    if prompt:
        options["initial_prompt"] = prompt
    temperature = _temperature(fields)
    if temperature:  # without one, several are tried while a text is poor
        options["temperature"] = (temperature,)
    fields.only("stream", None, "false", instead="the text comes as a whole")
    fields.only("chunking_strategy", None, "auto", instead="leave it out")
    fields.end()
    if set(files) != {"file"}:
        raise wrong("the form must have one file, named file.", "file")
    return AskedTranscription(hearer, _sound(files["file"]), options, form, spans)


def _sorted(parts: Sequence[Part]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Texts by name, those whose names end in [] as lists, and files."""
    values: dict[str, Any] = {}
    files: dict[str, bytes] = {}
    for part in parts:
        if part.name in (files if part.is_file else values) and not part.name.endswith("[]"):
            raise wrong(f"the form has {part.name!r:.100} twice.", part.name[:100])
        if part.is_file:
            files[part.name] = part.data
            continue
        try:
            text = part.data.decode("utf-8")
        except UnicodeDecodeError:
            raise wrong(f"{part.name:.100} is not UTF-8.", part.name[:100]) from None
        if part.name.endswith("[]"):
            values.setdefault(part.name, []).append(text)
        else:
            values[part.name] = text
    return values, files


def _language(hearer: Hearer, name: str) -> str:
    from ..speech import language_code

    try:
        code = language_code(name)
    except ValueError as error:
        raise wrong(f"language: {error}", "language") from None
    words: Any = hearer.model.vocabulary
    if code not in (words.languages if words.multilingual else ["en"]):
        raise wrong(f"language: this model does not hear {name!r}.", "language", "unsupported")
    return code


def _temperature(fields: Fields) -> float | None:
    given = fields.text("temperature", longest=32)
    try:
        value = None if given is None else float(given)
    except ValueError:
        value = -1.0
    if value is not None and not 0 <= value <= 1:
        raise fields.wrong("temperature", "a number between 0 and 1")
    return value


def _sound(data: bytes) -> Tensor:
    """Samples of a file, which is read from memory."""
    from .. import audio
    from ..speech import load_audio

    try:
        told = audio.info(io.BytesIO(data))
        seconds = told.num_frames / max(told.sample_rate, 1)
        # A small file may hold hours of silence in many channels.
        if not 0 < seconds <= LONGEST or told.num_frames * told.num_channels > _SAMPLES:
            raise wrong(f"file: a sound has at most {LONGEST:,} seconds and {_SAMPLES:,} samples, and some.", "file")
        return load_audio(io.BytesIO(data))
    except (RuntimeError, OSError, ValueError) as error:
        raise wrong(f"file: it cannot be read as a sound ({error}).", "file") from None
