"""`load`, `save` and `info`: sound files as tensors, through the package soundfile."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np

import votive

from ..core.errors import UnsupportedError, fail
from ..serialization.container import FileFormatError
from ..tensor import Tensor
from .encodings import File, bits_of, container_of, encoding_of, raw_type, subtype_for
from .packages import soundfile

_BUFFER = 4096  # torchaudio's default; soundfile reads as it likes
_PORTION = 1 << 16  # frames written at once


class SoundFile(Protocol):
    """What is used of the class of this name in the package soundfile."""

    name: str
    format: str
    subtype: str
    samplerate: int
    channels: int
    frames: int
    closed: bool

    def read(self, frames: int, *, dtype: str, always_2d: bool) -> np.ndarray: ...
    def write(self, data: np.ndarray) -> None: ...
    def seek(self, frames: int) -> int: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...


@dataclass(frozen=True)
class AudioMetaData:
    """What a file says of itself, as torchaudio's class of this name.

    >>> votive.audio.AudioMetaData(16000, 32000, 1, 16, "PCM_S").num_frames
    32000
    """

    sample_rate: int
    num_frames: int
    num_channels: int
    bits_per_sample: int
    encoding: str


def _check_options(op: str, backend: str | None, buffer_size: int) -> None:
    if backend not in (None, "soundfile"):
        fail(UnsupportedError, op, f"backend must be None or 'soundfile', got {backend!r}.")
    if buffer_size != _BUFFER:
        fail(UnsupportedError, op, "buffer_size cannot be chosen; leave it out.")


def opened(op: str, uri: File, **how: Any) -> SoundFile:
    """A soundfile for reading or writing, with errors that name the file."""
    package = soundfile(op)
    if isinstance(uri, (str, os.PathLike)):
        uri = os.fspath(uri)
        if "mode" not in how and not os.path.exists(uri):
            fail(FileNotFoundError, op, f"there is no file {uri!r}.")
    try:
        return package.SoundFile(uri, **how)
    except (package.SoundFileError, ValueError) as error:
        fail(RuntimeError if "mode" in how else FileFormatError, op, f"cannot open {uri!r}: {error}")


def reading(op: str, uri: File, format: str | None) -> SoundFile:
    """A soundfile to read. `format` may contradict what is found inside, which is an error."""
    file = opened(op, uri)
    if format is not None:
        wanted = container_of(op, uri, format)[0]
        if file.format not in (wanted, f"{wanted}EX"):
            file.close()
            fail(RuntimeError, op, f"{uri!r} holds {file.format}, not format={format!r}.")
    return file


def info(uri: File, format: str | None = None, buffer_size: int = _BUFFER, backend: str | None = None) -> AudioMetaData:
    """Sample rate, length, channels and encoding of a sound file.

    >>> import io
    >>> file = io.BytesIO()
    >>> votive.audio.save(file, votive.zeros(2, 100), 8000, format="wav")
    >>> _ = file.seek(0)
    >>> votive.audio.info(file)
    AudioMetaData(sample_rate=8000, num_frames=100, num_channels=2, bits_per_sample=32,
                  encoding='PCM_F')
    """
    _check_options("info", backend, buffer_size)
    with reading("info", uri, format) as file:
        return AudioMetaData(
            file.samplerate, file.frames, file.channels, bits_of(file.subtype), encoding_of(file.format, file.subtype)
        )


@contextlib.contextmanager
def damage(op: str, uri: File) -> Iterator[None]:
    """What the package says of a file it could open but not read becomes our error."""
    package = soundfile(op)
    try:
        yield
    except (package.SoundFileError, ValueError, MemoryError) as error:
        fail(FileFormatError, op, f"{uri!r} is damaged: {error}")


def read(op: str, file: SoundFile, frames: int, dtype: type[np.generic]) -> np.ndarray:
    """The next frames of a soundfile, all that are left if -1: (frame, channel)."""
    # libsndfile gives no bytes; as int16 they are centered and shifted.
    name = "int16" if dtype == np.uint8 else np.dtype(dtype).name
    with damage(op, file.name):
        found = file.read(frames, dtype=name, always_2d=True)
    return ((found >> 8) + 128).astype(np.uint8) if dtype == np.uint8 else found


def load(
    uri: File,
    frame_offset: int = 0,
    num_frames: int = -1,
    normalize: bool = True,
    channels_first: bool = True,
    format: str | None = None,
    buffer_size: int = _BUFFER,
    backend: str | None = None,
) -> tuple[Tensor, int]:
    """The samples of a sound file, (channel, time), and its sample rate.

    Samples are float32 in -1..1. With `normalize=False` those of a WAV file keep their type.

    >>> import io
    >>> file = io.BytesIO()
    >>> votive.audio.save(file, votive.tensor([[0.0, 0.5, -0.5]]), 8000, format="wav")
    >>> _ = file.seek(0)
    >>> votive.audio.load(file)
    (tensor([[ 0.0000,  0.5000, -0.5000]]), 8000)
    """
    op = "load"
    _check_options(op, backend, buffer_size)
    if frame_offset < 0:
        fail(ValueError, op, f"frame_offset must not be negative, got {frame_offset}.")
    if num_frames < -1 or num_frames == 0:
        fail(ValueError, op, f"num_frames must be -1 or positive, got {num_frames}.")
    with reading(op, uri, format) as file:
        kept = not normalize and file.format in ("WAV", "WAVEX")
        dtype = raw_type(op, file.subtype) if kept else np.float32
        with damage(op, uri):
            file.seek(min(frame_offset, file.frames))
        samples = read(op, file, num_frames, dtype)
        rate = file.samplerate
    waveform = votive.from_numpy(np.ascontiguousarray(samples.T if channels_first else samples))
    return waveform, rate


def write(file: SoundFile, samples: np.ndarray) -> None:
    """Append samples (frame, channel) to a soundfile."""
    # In portions: libsndfile's Vorbis encoder keeps all it is given on the stack.
    for first in range(0, len(samples), _PORTION):
        file.write(samples[first : first + _PORTION])


def samples_of(op: str, src: Tensor, channels_first: bool) -> np.ndarray:
    """A tensor as the array (frame, channel) that soundfile writes."""
    if src.ndim != 2:
        fail(ValueError, op, f"takes a tensor (channel, time), got shape {tuple(src.shape)}; use unsqueeze(0).")
    array = src.detach().cpu().numpy()
    if array.dtype.name not in ("uint8", "int16", "int32", "float32", "float64"):
        fail(ValueError, op, f"takes uint8, int16, int32, float32 and float64, got {src.dtype}.")
    if array.dtype == np.uint8:  # libsndfile takes no bytes
        array = (array.astype(np.int16) - 128) << 8
    return np.ascontiguousarray(array.T if channels_first else array)


def save(
    uri: File,
    src: Tensor,
    sample_rate: int,
    channels_first: bool = True,
    format: str | None = None,
    encoding: str | None = None,
    bits_per_sample: int | None = None,
    buffer_size: int = _BUFFER,
    backend: str | None = None,
    compression: float | None = None,
) -> None:
    """Write samples (channel, time) to a sound file; its name, or `format`, says of which kind.

    `encoding` is `PCM_S`, `PCM_U`, `PCM_F`, `ULAW` or `ALAW`, and by default keeps the type of the
    samples where the format can. `compression`, 0 to 1, goes to FLAC, MP3 and Ogg.

    >>> import io
    >>> file = io.BytesIO()
    >>> votive.audio.save(file, votive.zeros(1, 10), 16000, format="flac", bits_per_sample=24)
    >>> _ = file.seek(0)
    >>> votive.audio.info(file).encoding
    'FLAC'
    """
    op = "save"
    _check_options(op, backend, buffer_size)
    container, name = container_of(op, uri, format)
    samples = samples_of(op, src, channels_first)
    subtype = subtype_for(op, name, src.dtype.name, encoding, bits_per_sample)
    how = {} if compression is None else {"compression_level": compression}
    with opened(
        op,
        uri,
        mode="w",
        samplerate=int(sample_rate),
        channels=samples.shape[1],
        format=container,
        subtype=subtype,
        **how,
    ) as file:
        write(file, samples)
