"""Actions about what a model hears: a sound, its mels, its text, and where each token was heard."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from ...speech import Token
from ..arguments import Bounds, Index
from ..jobs import Cancelled, Job
from ..speech_models import LARGEST, Sound, SpeechModel, Upload, example, sound_from
from ..transcription import Transcription
from ..workspace import Missing
from . import action

_KEY, _FILE = "speech", "speech-file"
Name = Annotated[str, Bounds(1, 300)]
Seconds = Annotated[float, Bounds(0, 1e6)]
# Characters of one part of a file: in base64, within what a request may have.
Part = Annotated[str, Bounds(1, 900_000)]


def _loaded(job: Job, name: str) -> SpeechModel:
    loaded = job.workspace.loaded
    if not isinstance(loaded, SpeechModel):
        what = "reads pictures" if loaded.info().get("vision") else "reads text"
        raise TypeError(f'"{loaded.name}" {what}, not sound; load a Whisper model.')
    return loaded


def _transcription(job: Job, name: str) -> Transcription:
    _loaded(job, name)
    kept = job.workspace.cache.get(_KEY)
    if kept is None:
        raise Missing("There is no sound yet; open one first.")
    found: Transcription = kept[0]
    return found


@action("speech.begin", computes=False, changes=True)
def begin(job: Job, name: Name, size: Index) -> dict[str, Any]:
    """Announce a sound file, whose bytes come in parts."""
    _loaded(job, "speech.begin")
    upload = Upload(name, size)
    job.workspace.cache[_FILE] = (upload, size)
    return {"most": LARGEST}


@action("speech.part", computes=False, changes=True)
def part(job: Job, data: Part) -> dict[str, Any]:
    """The next part of the file, in base64."""
    kept = job.workspace.cache.get(_FILE)
    if kept is None:
        raise Missing("no file was announced; begin with speech.begin.")
    upload: Upload = kept[0]
    return {"got": upload.add(data), "size": upload.size}


@action("speech.listen", changes=True)
def listen(job: Job, example_: Name | None = None) -> dict[str, Any]:
    """Take the file that has come, or an example, and make its mels."""
    loaded, workspace = _loaded(job, "speech.listen"), job.workspace
    if example_ is not None:
        sound = example(loaded, example_)
    else:
        kept = workspace.cache.pop(_FILE, None)
        if kept is None:
            raise Missing("no file has come; begin with speech.begin, or name an example.")
        sound = sound_from(loaded, kept[0], job.check)
        workspace.log(job, f"sound = votive.speech.load_audio({sound.name!r})")
        bands = loaded.model.config.num_mel_bins
        workspace.log(job, f"glass.mels(sound, n_mels={bands})")
    workspace.cache.pop(_KEY, None)
    workspace.cached(_KEY, lambda: (Transcription(loaded, sound), _bytes(sound)))
    return _transcription(job, "speech.listen").to_json()


def _bytes(sound: Sound) -> int:
    return 4 * int(sound.samples.numel() + sound.mels.numel())


@action("speech.state", computes=False)
def state(job: Job) -> dict[str, Any]:
    """The sound and what was heard in it, but for pictures."""
    return _transcription(job, "speech.state").to_json()


@action("speech.window", computes=False)
def window(job: Job, start: Seconds = 0.0) -> Any:
    """A window's worth of mels, as bytes, and its samples at 16 kHz."""
    found = _transcription(job, "speech.window")
    sound, frames = found.sound, found.loaded.transcriber.frames
    first = min(round(100 * start), max(0, sound.frames - 1))
    blobs = {"mels": sound.picture(first, frames), "samples": sound.pcm(first / 100, (first + frames) / 100)}
    return {"start": first / 100}, blobs


@action("speech.transcribe", changes=True)
def transcribe(
    job: Job,
    language: Annotated[str, Bounds(1, 40)] | None = None,
    task: Literal["transcribe", "translate"] = "transcribe",
    seed: Index = 0,
) -> dict[str, Any]:
    """Write what is said; each token is told by an event.

    When it is stopped, the windows that were whole stay.
    """
    found = _transcription(job, "speech.transcribe")
    transcriber, total = found.loaded.transcriber, found.sound.seconds
    end, first_time = transcriber.vocabulary.end, transcriber.vocabulary.first_time
    found.begin(task)

    def chosen(token: Token) -> None:
        found.chosen(token)
        at = (token.id - first_time) * 0.02
        job.tell(
            "transcript",
            {
                "job": job.id,
                "start": token.start,
                "index": token.index,
                "id": token.id,
                "p": token.probability,
                "temperature": token.temperature,
                "text": found.loaded.text(token.id) if token.id < end else "",
                "time": token.start + at if at >= 0 else None,
            },
        )
        job.yield_turn()

    def progress(done: float, _: float) -> None:
        # Of one window it is not known how far it is.
        if total > transcriber.frames / 100:
            job.progress(done, total, "listening")
        job.check()

    # Where a text is bad others are drawn, and the same sound should give the same ones.
    options: dict[str, Any] = {"seed": seed, **({"language": language} if language else {})}
    if task == "translate":
        options["task"] = task
    try:
        made = transcriber(
            found.sound.samples,
            word_timestamps=True,
            on_token=chosen,
            on_segment=found.segment,
            progress=progress,
            **options,
        )
        found.end(made.language, made.language_probability)
    except Cancelled:
        found.end(language, None, stopped=True)
    except BaseException:
        found.begin(task)
        raise
    arguments = "".join(f", {k}={v!r}" for k, v in options.items())
    job.workspace.log(job, f"found = hear(sound, word_timestamps=True{arguments})")
    return found.to_json()


@action("speech.alignment")
def alignment(job: Job, window: Index = 0, layer: Index | None = None, head: Index | None = None) -> Any:
    """Where each token of a window was heard, (tokens, steps of 0.02 s), and when each begins.

    Of the alignment heads together, or of a layer's mean or one of its heads.
    """
    found = _transcription(job, "speech.alignment")
    _check(found, layer, head)
    aligned = found.alignment(window)
    if layer is None:
        values = aligned.matrix()
    else:
        values = aligned.weights(layer, head)[aligned.start - 1 : len(aligned.tokens) - 1]
    length = found.loaded.transcriber.frames
    task = "" if found.task == "transcribe" else f", {found.task!r}"
    which = "" if layer is None else f"{layer}" if head is None else f"{layer}, {head}"
    first = found.window(window).seek
    job.workspace.log(
        job,
        f"glass.alignment(hear.model, hear.mels(sound)[:, :, {first} : {first + length}], "
        f"hear.text_ids([t for s in found.segments if s.seek == {first} for t in s.tokens], "
        f"found.language{task}), tokenizer=hear.tokenizer).figure({which})",
    )
    rows = np.asarray(values.float().numpy()[:-1], np.float32)  # the last is the end of the text
    low = min(0.0, float(rows.min(initial=0.0)))
    high = max(float(rows.max(initial=0.0)), low + 1e-9)
    start = first / 100
    data = {
        "times": [start + t for t in aligned.times()],
        "seconds": aligned.seconds,
        "low": low,
        "high": high,
        "start": start,
    }
    return data, {"map": np.rint(255 * (rows - low) / (high - low)).astype(np.uint8)}


@action("speech.heads")
def heads(job: Job, first: Index, last: Index, start: Seconds, end: Seconds, window: Index = 0) -> Any:
    """How much of each head's attention for some tokens of a window lies in a span of seconds."""
    found = _transcription(job, "speech.heads")
    mine = found.window(window)
    if not first < last <= len(mine.tokens):
        raise IndexError(
            f"speech.heads: tokens {first} to {last} are none of the {len(mine.tokens)} in window {window}."
        )
    offset = mine.seek / 100
    shares = found.shares(window, first, last, max(0.0, start - offset), max(0.0, end - offset))
    return {"low": 0.0, "high": 1.0}, {"shares": shares}


def _check(found: Transcription, layer: int | None, head: int | None) -> None:
    config = found.loaded.model.config
    if layer is None and head is not None:
        raise ValueError("speech.alignment: a head needs its layer.")
    if layer is not None and layer >= config.decoder_layers:
        raise IndexError(f"speech.alignment: there is no layer {layer} of {config.decoder_layers}.")
    if head is not None and head >= config.decoder_attention_heads:
        raise IndexError(f"speech.alignment: there is no head {head} of {config.decoder_attention_heads}.")
