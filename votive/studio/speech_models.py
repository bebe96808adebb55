"""Models that hear, for the studio: how a Whisper is loaded, and sounds that it is given.

A sound comes from a page in parts, as a file of any kind that soundfile reads, or is made here.
Knows no page.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import votive

from ..glass.parts import Parts
from .models import Loaded

if TYPE_CHECKING:
    from ..models.checkpoint import Checkpoint
    from ..tensor import Tensor


# Bytes of a file, seconds of a sound, and samples of a sound before it is resampled.
LARGEST, LONGEST, SAMPLES = 64 << 20, 30 * 60, 1 << 27
RATE = 16000
_TICKS = (250, 500, 1000, 2000, 4000)  # Hz that are written beside the bands


def is_whisper(config: dict[str, Any]) -> bool:
    """Whether a configuration is that of a Whisper."""
    return config.get("model_type") == "whisper"


def whisper_file(place: str) -> Any:
    """What Checkpoint.find finds in OpenAI's .pt file; None where it is another one."""
    from ..models.checkpoint import Checkpoint

    path = Path(place)
    if path.suffix != ".pt" or not path.is_file():
        return None
    try:
        found = Checkpoint.find(place)
    except (OSError, ValueError):
        return None
    return found if is_whisper(found.config) else None


class SpeechModel(Loaded):
    """A Whisper with its tokenizer."""

    def __init__(self, name: str, model: Any, tokenizer: Any) -> None:
        from ..speech import Transcriber
        from ..speech.timing import alignment_heads

        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.transcriber = Transcriber(model, tokenizer)
        self.heads = [(int(a), int(b)) for a, b in alignment_heads(model)]
        kinds = {"encoder": model.model.encoder, "decoder": model.model.decoder}
        layers = {
            f"model.{kind}.layers.{i}": layer for kind, side in kinds.items() for i, layer in enumerate(side.layers)
        }
        # Whoever stops a transcription is heard in each of them.
        self.parts = Parts(model, tuple(layers.values()), tuple(layers))
        self._texts: dict[int, str] = {}
        self._info: dict[str, Any] | None = None

    def lines(self) -> list[str]:
        return [f"hear = votive.speech.Transcriber.from_pretrained({self.name!r})"]

    def info(self) -> dict[str, Any]:
        if self._info is None:
            model, config = self.model, self.model.config
            self._info = {
                "name": self.name,
                "family": "whisper",
                "class": type(model).__name__,
                "layers": config.decoder_layers,
                "heads": config.decoder_attention_heads,
                "hidden": config.d_model,
                "vocab": config.vocab_size,
                "context": config.max_target_positions,
                "dtype": str(model.dtype).removeprefix("votive."),
                "device": str(model.device),
                "parameters": int(model.num_parameters()),
                "parts": {"layers": [], "norm": None, "head": None, "embedding": None},
                "tree": [{"address": n, "class": type(m).__name__} for n, m in model.named_modules()],
                "settings": {},
                "speech": self._speech_info(),
            }
        return self._info

    def _speech_info(self) -> dict[str, Any]:
        from ..speech import LANGUAGES

        words, bands = self.transcriber.vocabulary, self.model.config.num_mel_bins
        codes = list(words.languages) if words.multilingual else []
        named = [[c, LANGUAGES.get(c, c).title().replace("_", " ")] for c in codes]
        known = bool(self.model.generation_config.extra.get("alignment_heads"))
        return {
            "bands": bands,
            "seconds": self.transcriber.frames / 100,
            "ticks": _band_ticks(bands),
            "languages": sorted(named, key=lambda pair: pair[1]),
            "tasks": list(words.tasks) if words.multilingual else [],
            "alignment": [list(h) for h in self.heads],
            "alignment_known": known,
            "examples": [[name, text] for name, (text, _) in EXAMPLES.items()],
            "largest": LARGEST,
            "longest": LONGEST,
        }


def _band_ticks(bands: int) -> list[list[Any]]:
    """Which band has its middle at which Hz."""
    from ..audio.functional.banks import _mel_of

    top = _mel_of(RATE / 2, "slaney")
    names = [f"{hz} Hz" if hz < 1000 else f"{hz // 1000} kHz" for hz in _TICKS]
    at = [(bands + 1) * _mel_of(hz, "slaney") / top - 1 for hz in _TICKS]
    return [list(pair) for pair in zip(at, names, strict=True)]


def load_speech_model(name: str, found: Checkpoint) -> SpeechModel:
    """A Whisper from what Checkpoint.find found."""
    from .. import models
    from ..speech import from_tiktoken
    from ..text import Tokenizer

    try:
        tokenizer: Any = Tokenizer.from_pretrained(found.tokenizer)
    except FileNotFoundError as e:
        size = found.config.get("vocab_size", 51865)
        file = Path(found.tokenizer) / f"{'multilingual' if size > 51864 else 'gpt2'}.tiktoken"
        if not file.is_file():
            raise FileNotFoundError(
                f"{name} has no tokenizer beside it ({e}) Put its tokenizer.json or OpenAI's {file.name} there."
            ) from None
        tokenizer = from_tiktoken(file, 100 if size > 51865 else 99)
    kind: Any = models.AutoModelForSpeechSeq2Seq
    return SpeechModel(name, kind._class_for("whisper").from_checkpoint(found), tokenizer)


class Upload:
    """A file on its way from a page."""

    def __init__(self, name: str, size: int) -> None:
        if size > LARGEST:
            raise ValueError(f"{name} has {size / 1e6:,.0f} MB; files of up to {LARGEST / 1e6:,.0f} MB are accepted.")
        if size < 1:
            raise ValueError(f"{name} is empty.")
        self.name, self.size, self.data = name, size, bytearray()

    def add(self, text: str) -> int:
        """Take the next part, base64; gives how many bytes have come."""
        try:
            part = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("speech.part: the data must be base64.") from None
        if len(self.data) + len(part) > self.size:
            raise ValueError(f"speech.part: more came than the {self.size:,} bytes that were told.")
        self.data += part
        return len(self.data)


class Sound:
    """A sound as a Whisper takes it, with the mels that it hears."""

    def __init__(self, loaded: SpeechModel, name: str, samples: Tensor, rate: int, channels: int) -> None:
        self.name, self.rate, self.channels = name, rate, channels
        self.samples = samples
        self.mels = loaded.transcriber.mels(samples)
        self.frames = self.mels.shape[2] - loaded.transcriber.frames
        # What lies behind the sound is the quietest there is, and so one end of the colours.
        self.low, self.high = float(self.mels.amin()), float(self.mels.amax())

    @property
    def seconds(self) -> float:
        return float(self.samples.shape[-1] / RATE)

    def picture(self, first: int, count: int) -> np.ndarray:
        """Bytes (bands, frames) of some frames, the lowest band first."""
        part = self.mels[0, :, first : min(first + count, max(self.frames, 1))].float().numpy()
        scaled = (part - self.low) / ((self.high - self.low) or 1.0)
        found: np.ndarray = np.rint(255 * scaled).astype(np.uint8)
        return found

    def pcm(self, start: float, end: float) -> np.ndarray:
        """Samples from a second to another, as files hold them."""
        part = self.samples[round(start * RATE) : round(end * RATE)].float().numpy()
        found: np.ndarray = np.rint(np.clip(part, -1, 1) * 32767).astype(np.int16)
        return found

    def to_json(self) -> dict[str, Any]:
        """What a page wants to know of it."""
        return {
            "name": self.name,
            "seconds": self.seconds,
            "frames": self.frames,
            "rate": self.rate,
            "channels": self.channels,
            "low": self.low,
            "high": self.high,
        }


def sound_from(loaded: SpeechModel, upload: Upload, check: Callable[[], None] = lambda: None) -> Sound:
    """The sound of a file that has come; `check` may end it between two blocks."""
    from .. import audio
    from ..speech import load_audio

    name, file = upload.name, io.BytesIO(bytes(upload.data))
    if len(upload.data) < upload.size:
        raise ValueError(f"{name}: only {len(upload.data):,} of {upload.size:,} bytes have come.")
    try:
        with audio.blocks(file, 1 << 20) as blocks:
            rate, channels = blocks.sample_rate, blocks.num_channels
            if blocks.num_frames > min(LONGEST * rate, SAMPLES):
                raise ValueError(
                    f"{name} lasts {blocks.num_frames / rate / 60:,.0f} minutes; up to "
                    f"{min(LONGEST, SAMPLES / rate) / 60:,.0f} are accepted here. "
                    "`votive transcribe` takes any length."
                )
            # Block by block: of many channels, only their mean is ever held as a whole.
            parts = []
            for block in blocks:
                check()
                parts.append(block.mean(0))
    except RuntimeError as e:
        why = str(e).rpartition(": ")[2]
        raise ValueError(f"{name} is not a sound file that soundfile can read ({why})") from None
    whole = votive.cat(parts) if parts else votive.zeros(0)
    if whole.shape[0] == 0:
        raise ValueError(f"{name} holds no sound.")
    if not bool(whole.isfinite().all()):
        raise ValueError(f"{name} holds samples that are not numbers.")
    return Sound(loaded, name, load_audio(whole, rate), rate, channels)


def _tones(t: np.ndarray) -> np.ndarray:
    """Three notes, one after the other, then together."""
    out = np.zeros_like(t)
    for i, hz in enumerate((440.0, 554.37, 659.25)):
        for start, long in ((0.2 + 0.8 * i, 0.6), (2.8, 1.0)):
            at = (t - start) / long
            out += np.where((at > 0) & (at < 1), np.sin(2 * np.pi * hz * t) * _swell(at), 0.0)
    return 0.2 * out


def _glide(t: np.ndarray) -> np.ndarray:
    """A tone that rises through all bands, from 60 to 7,000 Hz."""
    k = np.log(7000 / 60) / t[-1]
    return 0.4 * np.sin(2 * np.pi * 60 * (np.exp(k * t) - 1) / k)


def _clicks(t: np.ndarray) -> np.ndarray:
    """Clicks that come faster and faster, over quiet noise."""
    out = 0.002 * np.random.default_rng(0).standard_normal(t.shape)
    at, step = 0.2, 0.5
    while at < t[-1]:
        out += 0.8 * np.exp(-np.maximum(t - at, 0) * 300) * (t >= at) * np.sin(9000 * (t - at))
        at, step = at + step, step * 0.9
        if step < 0.05:
            break
    return out


def _swell(at: np.ndarray) -> np.ndarray:
    return np.clip(10 * at, 0, 1) * np.clip(10 * (1 - at), 0, 1)


EXAMPLES: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "tones": ("Three notes", _tones),
    "glide": ("A rising tone", _glide),
    "clicks": ("Clicks", _clicks),
}


def example(loaded: SpeechModel, name: str, seconds: float = 4.0) -> Sound:
    """A sound to begin with."""
    if name not in EXAMPLES:
        raise KeyError(f"there is no example {name!r:.40}; there are {', '.join(EXAMPLES)}.")
    text, make = EXAMPLES[name]
    t = np.arange(round(seconds * RATE)) / RATE
    return Sound(loaded, text, votive.from_numpy(make(t).astype(np.float32)), RATE, 1)
