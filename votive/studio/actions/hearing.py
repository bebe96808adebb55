"""Actions about what a model hears: a sound, its mels, its text, and where each token was heard."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from ...speech import Token
from ..arguments import Index, Within
from ..heard import Heard
from ..hearing import LARGEST, Hearing, Sound, Upload, example, sound_from
from ..jobs import Cancelled, Job
from ..room import Missing
from . import action

_KEY, _FILE = "hearing", "hearing-file"
Name = Annotated[str, Within(1, 300)]
Seconds = Annotated[float, Within(0, 1e6)]
# Characters of one part of a file: in base64, within what a request may have.
Part = Annotated[str, Within(1, 900_000)]


def _loaded(job: Job, name: str) -> Hearing:
    loaded = job.room.loaded
    if not isinstance(loaded, Hearing):
        what = "looks at pictures" if loaded.info().get("sight") else "reads texts"
        raise TypeError(f"{name}: {loaded.name} {what}, and hears nothing; load a Whisper.")
    return loaded


def _heard(job: Job, name: str) -> Heard:
    _loaded(job, name)
    kept = job.room.runs.get(_KEY)
    if kept is None:
        raise Missing("there is no sound yet; give one with hearing.listen.")
    found: Heard = kept[0]
    return found


@action("hearing.begin", computes=False, changes=True)
def begin(job: Job, name: Name, size: Index) -> dict[str, Any]:
    """Announce a sound file, whose bytes come in parts."""
    _loaded(job, "hearing.begin")
    upload = Upload(name, size)
    job.room.runs[_FILE] = (upload, size)
    return {"most": LARGEST}


@action("hearing.part", computes=False, changes=True)
def part(job: Job, data: Part) -> dict[str, Any]:
    """The next part of the file, in base64."""
    kept = job.room.runs.get(_FILE)
    if kept is None:
        raise Missing("no file was announced; begin with hearing.begin.")
    upload: Upload = kept[0]
    return {"got": upload.add(data), "size": upload.size}


@action("hearing.listen", changes=True)
def listen(job: Job, example_: Name | None = None) -> dict[str, Any]:
    """Take the file that has come, or an example, and make its mels."""
    loaded, room = _loaded(job, "hearing.listen"), job.room
    if example_ is not None:
        sound = example(loaded, example_)
    else:
        kept = room.runs.pop(_FILE, None)
        if kept is None:
            raise Missing("no file has come; begin with hearing.begin, or name an example.")
        sound = sound_from(loaded, kept[0], job.check)
        room.log(job, f"sound = votive.speech.load_audio({sound.name!r})")
        bands = loaded.model.config.num_mel_bins
        room.log(job, f"glass.mels(sound, n_mels={bands})")
    room.runs.pop(_KEY, None)
    room.kept(_KEY, lambda: (Heard(loaded, sound), _bytes(sound)))
    return _heard(job, "hearing.listen").told()


def _bytes(sound: Sound) -> int:
    return 4 * int(sound.samples.numel() + sound.mels.numel())


@action("hearing.state", computes=False)
def state(job: Job) -> dict[str, Any]:
    """The sound and what was heard in it, but for pictures."""
    return _heard(job, "hearing.state").told()


@action("hearing.window", computes=False)
def window(job: Job, start: Seconds = 0.0) -> Any:
    """A window's worth of mels, as bytes, and its samples at 16 kHz."""
    found = _heard(job, "hearing.window")
    sound, frames = found.sound, found.loaded.hears.frames
    first = min(round(100 * start), max(0, sound.frames - 1))
    blobs = {"mels": sound.picture(first, frames), "samples": sound.heard(first / 100, (first + frames) / 100)}
    return {"start": first / 100}, blobs


@action("hearing.transcribe", changes=True)
def transcribe(
    job: Job,
    language: Annotated[str, Within(1, 40)] | None = None,
    task: Literal["transcribe", "translate"] = "transcribe",
    seed: Index = 0,
) -> dict[str, Any]:
    """Write what is said; each token is told by an event.

    When it is stopped, the windows that were whole stay.
    """
    found = _heard(job, "hearing.transcribe")
    hearer, total = found.loaded.hears, found.sound.seconds
    end, first_time = hearer.vocabulary.end, hearer.vocabulary.first_time
    found.begin(task)

    def chosen(token: Token) -> None:
        found.chosen(token)
        at = (token.id - first_time) * 0.02
        job.tell(
            "heard",
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
        job.breathe()

    def progress(done: float, _: float) -> None:
        # Of one window it is not known how far it is.
        if total > hearer.frames / 100:
            job.progress(done, total, "listening")
        job.check()

    # Where a text is bad others are drawn, and the same sound should give the same ones.
    options: dict[str, Any] = {"seed": seed, **({"language": language} if language else {})}
    if task == "translate":
        options["task"] = task
    try:
        made = hearer(
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
    told = "".join(f", {k}={v!r}" for k, v in options.items())
    job.room.log(job, f"found = hear(sound, word_timestamps=True{told})")
    return found.told()


@action("hearing.alignment")
def alignment(job: Job, window: Index = 0, layer: Index | None = None, head: Index | None = None) -> Any:
    """Where each token of a window was heard, (tokens, steps of 0.02 s), and when each begins.

    Of the alignment heads together, or of a layer's mean or one of its heads.
    """
    found = _heard(job, "hearing.alignment")
    _check(found, layer, head)
    aligned = found.alignment(window)
    if layer is None:
        values = aligned.matrix()
    else:
        values = aligned.weights(layer, head)[aligned.start - 1 : len(aligned.tokens) - 1]
    length = found.loaded.hears.frames
    task = "" if found.task == "transcribe" else f", {found.task!r}"
    which = "" if layer is None else f"{layer}" if head is None else f"{layer}, {head}"
    first = found.window(window).seek
    job.room.log(
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


@action("hearing.heads")
def heads(job: Job, first: Index, last: Index, start: Seconds, end: Seconds, window: Index = 0) -> Any:
    """How much of each head's attention for some tokens of a window lies in a span of seconds."""
    found = _heard(job, "hearing.heads")
    mine = found.window(window)
    if not first < last <= len(mine.tokens):
        raise IndexError(
            f"hearing.heads: tokens {first} to {last} are none of the {len(mine.tokens)} in window {window}."
        )
    offset = mine.seek / 100
    shares = found.shares(window, first, last, max(0.0, start - offset), max(0.0, end - offset))
    return {"low": 0.0, "high": 1.0}, {"shares": shares}


def _check(found: Heard, layer: int | None, head: int | None) -> None:
    config = found.loaded.model.config
    if layer is None and head is not None:
        raise ValueError("hearing.alignment: a head needs its layer.")
    if layer is not None and layer >= config.decoder_layers:
        raise IndexError(f"hearing.alignment: there is no layer {layer} of {config.decoder_layers}.")
    if head is not None and head >= config.decoder_attention_heads:
        raise IndexError(f"hearing.alignment: there is no head {head} of {config.decoder_attention_heads}.")
