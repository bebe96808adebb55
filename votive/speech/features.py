"""Sound as Whisper hears it: the logarithm of its energy in mel bands, 100 times a second.

Results are those of transformers' WhisperFeatureExtractor. Knows no model.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from ..text import BatchEncoding
from ..text.encoding import check_tensors

if TYPE_CHECKING:
    from ..core.rng import Generator
    from ..models.whisper import WhisperForConditionalGeneration as Whisper

Sound = votive.Tensor | np.ndarray | Sequence[float]
SAMPLE_RATE, HOP, N_FFT, SECONDS = 16000, 160, 400, 30
NAME = "preprocessor_config.json"
_BLOCK = 6000  # frames, a minute


@lru_cache(maxsize=8)
def _bank(n_mels: int, n_fft: int, rate: int) -> Tensor:
    """How much of each frequency each band takes, (frequencies, bands), in float64."""
    from ..audio.functional import melscale_fbanks

    bank = melscale_fbanks(n_fft // 2 + 1, 0.0, 8000.0, n_mels, rate, "slaney", "slaney", dtype=votive.float64)
    return bank.detach()


def log_mel_spectrogram(
    audio: Sound,
    n_mels: int = 80,
    padding: int = 0,
    *,
    n_fft: int = N_FFT,
    hop_length: int = HOP,
    sample_rate: int = SAMPLE_RATE,
) -> Tensor:
    """Log-mel energies (..., mels, frames) of sound (..., samples), with `padding` zeros behind it.

    `m = log10(max(mel(|stft|^2), 1e-10))`, then `(max(m, max(m) - 8) + 4) / 4` for each sound.
    Gradients flow back to the sound.

    >>> votive.speech.log_mel_spectrogram(votive.zeros(16000)).shape
    votive.Size([80, 100])
    """
    sound = votive.as_tensor(audio)
    if not sound.is_floating_point():
        raise TypeError(
            f"log_mel_spectrogram: the sound must be floating-point numbers in [-1, 1], got {sound.dtype}; "
            "divide integers by their largest value."
        )
    if sound.dim() == 0:
        raise ValueError("log_mel_spectrogram: the sound must be (..., samples), got one number.")
    given = votive.float64 if sound.dtype == votive.float64 else votive.float32
    if padding:
        sound = F.pad(sound, (0, padding))
    if sound.shape[-1] <= n_fft // 2:
        raise ValueError(
            f"log_mel_spectrogram: {sound.shape[-1]} samples are too few; at least "
            f"{n_fft // 2 + 1} are needed, or padding."
        )
    frames = sound.shape[-1] // hop_length
    # A loud tone leaves its rounding in all bands, and eight decades below it still count.
    flat = _without_silence(sound.reshape(-1, sound.shape[-1]), n_fft).to(votive.float64)
    wide = F.pad(flat, (n_fft // 2, n_fft // 2), mode="reflect")
    bank = _bank(n_mels, n_fft, sample_rate).to(sound.device).T
    count = min(frames, flat.shape[-1] // hop_length + 1)
    # A spectrum is twenty times as large as its sound, so a long one is made in parts.
    mel = (
        votive.cat(
            [
                _energies(wide, first, min(first + _BLOCK, count), n_fft, hop_length, bank)
                for first in range(0, count, _BLOCK)
            ],
            -1,
        )
        .clamp(min=1e-10)
        .log10()
    )
    mel = F.pad(mel, (0, frames - mel.shape[-1]), value=-10.0)
    mel = votive.maximum(mel, mel.amax((-2, -1), keepdim=True) - 8.0)
    return ((mel + 4.0) / 4.0).to(given).reshape(*sound.shape[:-1], *mel.shape[-2:])


def _energies(wide: Tensor, first: int, stop: int, n_fft: int, hop: int, bank: Tensor) -> Tensor:
    """Energies (N, bands, frames) of some frames of sounds with room at both ends."""
    part = wide[:, first * hop : (stop - 1) * hop + n_fft]
    window = votive.hann_window(n_fft, dtype=part.dtype, device=part.device)
    spectrum = votive.stft(part, n_fft, hop, window=window, center=False, return_complex=True)
    return bank @ votive.view_as_real(spectrum).square().sum(-1)


def _without_silence(sounds: Tensor, n_fft: int) -> Tensor:
    """Sounds (N, samples) without most of the zeros that all of them end with."""
    with votive.no_grad():
        loud = (sounds != 0).any(0)
        last = int(loud.nonzero()[-1]) + 1 if bool(loud.any()) else 0
    # A frame beyond what is kept lies in zeros, as does what the end is mirrored from.
    return sounds[:, : last + 2 * n_fft]


class WhisperFeatureExtractor:
    """Makes `input_features` of sound at 16 kHz: padded or cut to 30 seconds, as log-mels.

    >>> extract = votive.speech.WhisperFeatureExtractor(feature_size=128)
    >>> extract([0.0] * 8000, sampling_rate=16000).input_features.shape
    votive.Size([1, 128, 3000])
    """

    def __init__(
        self,
        feature_size: int = 80,
        sampling_rate: int = SAMPLE_RATE,
        hop_length: int = HOP,
        chunk_length: int = SECONDS,
        n_fft: int = N_FFT,
        padding_value: float = 0.0,
        dither: float = 0.0,
        return_attention_mask: bool = False,
    ) -> None:
        self.feature_size, self.sampling_rate = feature_size, sampling_rate
        self.hop_length, self.chunk_length, self.n_fft = hop_length, chunk_length, n_fft
        self.padding_value, self.dither = padding_value, dither
        self.return_attention_mask = return_attention_mask

    @property
    def n_samples(self) -> int:
        """Samples of a whole window."""
        return self.chunk_length * self.sampling_rate

    @property
    def nb_max_frames(self) -> int:
        """Frames of a whole window."""
        return self.n_samples // self.hop_length

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str]) -> Self:
        """As preprocessor_config.json in a model's folder says."""
        from ..models.config import read_json

        path = Path(folder)
        found = read_json(path / NAME if path.is_dir() else path)
        names = vars(cls())
        return cls(**{n: found[n] for n in names if found.get(n) is not None})

    @classmethod
    def for_model(cls, model: Whisper) -> Self:
        """What a model expects: its bands and the length of its window."""
        config = model.config
        seconds = 2 * config.max_source_positions * HOP // SAMPLE_RATE
        return cls(feature_size=config.num_mel_bins, chunk_length=seconds)

    def save_pretrained(self, folder: str | os.PathLike[str]) -> None:
        """Write preprocessor_config.json into a folder."""
        from ..models.checkpoint import write_json

        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        write_json(
            path / NAME,
            {
                **vars(self),
                "feature_extractor_type": type(self).__name__,
                "n_samples": self.n_samples,
                "padding_side": "right",
                "nb_max_frames": self.nb_max_frames,
            },
        )

    def __call__(
        self,
        raw_speech: Sound | Sequence[Sound],
        truncation: bool = True,
        pad_to_multiple_of: int | None = None,
        return_tensors: str | None = "vt",
        return_attention_mask: bool | None = None,
        padding: str | bool = "max_length",
        max_length: int | None = None,
        sampling_rate: int | None = None,
        do_normalize: bool = False,
        generator: Generator | None = None,
    ) -> BatchEncoding:
        """`input_features` (batch, mels, frames), and `attention_mask` (batch, frames) on request.

        `raw_speech` is one sound or several, of one channel. `padding` is "max_length", "longest"
        or "do_not_pad"; the last takes sounds of one length. `generator` draws what `dither` adds.
        """
        check_tensors(return_tensors)
        if sampling_rate is not None and sampling_rate != self.sampling_rate:
            raise ValueError(
                f"WhisperFeatureExtractor: the sound must have {self.sampling_rate} samples a "
                f"second, got sampling_rate={sampling_rate}; resample it first."
            )
        sounds = sounds_of(raw_speech, "WhisperFeatureExtractor")
        wanted = max_length or self.n_samples
        if truncation:
            sounds = [s[:wanted] for s in sounds]
        length = self._length(sounds, padding, wanted, pad_to_multiple_of)
        batch = np.full((len(sounds), length), self.padding_value, np.float32)
        mask = np.zeros((len(sounds), length), np.int32)
        for i, sound in enumerate(sounds):
            if do_normalize:
                sound = (sound - sound.mean()) / np.sqrt(sound.var() + 1e-7)
            batch[i, : len(sound)] = sound
            mask[i, : len(sound)] = 1
        audio = votive.tensor(batch)
        if self.dither:
            audio = audio + self.dither * votive.randn(audio.shape, generator=generator)
        features = log_mel_spectrogram(
            audio, self.feature_size, n_fft=self.n_fft, hop_length=self.hop_length, sample_rate=self.sampling_rate
        )
        columns: dict[str, Any] = {"input_features": features}
        asked = self.return_attention_mask if return_attention_mask is None else return_attention_mask
        if asked:
            # The frame that a last, incomplete hop would begin is left out.
            frames = mask[:, :: self.hop_length][:, : features.shape[-1]]
            columns["attention_mask"] = votive.tensor(frames)
        if return_tensors != "vt":
            columns = {k: v.numpy() for k, v in columns.items()}
        if return_tensors is None:
            columns = {k: v.tolist() for k, v in columns.items()}
        return BatchEncoding(columns)

    def _length(self, sounds: list[Any], padding: str | bool, wanted: int, multiple: int | None) -> int:
        lengths = {len(s) for s in sounds}
        if padding not in ("max_length", "longest", "do_not_pad", True, False):
            raise ValueError(
                f"WhisperFeatureExtractor: padding must be 'max_length', 'longest' or 'do_not_pad', got {padding!r}."
            )
        if padding in ("do_not_pad", False) and len(lengths) > 1:
            raise ValueError(
                f"WhisperFeatureExtractor: sounds of lengths {sorted(lengths)} make no batch "
                "without padding; use padding='longest'."
            )
        length = max(wanted, *lengths) if padding == "max_length" else max(lengths)
        return length if not multiple else math.ceil(length / multiple) * multiple

    def __repr__(self) -> str:
        return f"WhisperFeatureExtractor({self.feature_size} mels, {self.chunk_length} s)"


def sounds_of(raw: Sound | Sequence[Sound], name: str) -> list[np.ndarray]:
    """Each sound as float32 of one dimension; `name` asks for it.

    >>> [sound.shape for sound in votive.speech.features.sounds_of([[0.0, 0.5], [1.0]], "mine")]
    [(2,), (1,)]
    """
    if isinstance(raw, votive.Tensor):
        raw = raw.detach().numpy(force=True)
    several = isinstance(raw, np.ndarray) and raw.ndim > 1
    if isinstance(raw, (list, tuple)):
        several = bool(raw) and isinstance(raw[0], (np.ndarray, list, tuple, votive.Tensor))
    rows = [raw] if not several else list(raw)
    rows = [r.detach().numpy(force=True) if isinstance(r, votive.Tensor) else r for r in rows]
    found = [np.asarray(row, np.float32) for row in rows]
    if not found or any(r.ndim != 1 for r in found):
        shape = found[0].shape if found else ()
        raise ValueError(
            f"{name}: give sounds of one channel, (samples,) each or a batch of "
            f"(batch, samples), got {shape}; the mean over channels makes one of several."
        )
    return found
