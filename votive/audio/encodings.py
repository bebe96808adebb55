"""How samples lie in files: encodings by torchaudio's names and by libsndfile's. Reads no file."""

from __future__ import annotations

import os
from typing import IO

import numpy as np

from ..core.errors import fail

# A name, or an open file.
File = str | os.PathLike[str] | IO[bytes]

_BITS = {
    "PCM_S8": 8,
    "PCM_U8": 8,
    "PCM_16": 16,
    "PCM_24": 24,
    "PCM_32": 32,
    "FLOAT": 32,
    "DOUBLE": 64,
    "ULAW": 8,
    "ALAW": 8,
}
_ENCODINGS = {
    "PCM_S8": "PCM_S",
    "PCM_16": "PCM_S",
    "PCM_24": "PCM_S",
    "PCM_32": "PCM_S",
    "PCM_U8": "PCM_U",
    "FLOAT": "PCM_F",
    "DOUBLE": "PCM_F",
    "ULAW": "ULAW",
    "ALAW": "ALAW",
    "VORBIS": "VORBIS",
    "OPUS": "OPUS",
    "MPEG_LAYER_III": "MP3",
}
# What samples become when they are not scaled to -1..1. 24 bits fill the upper part of 32.
_RAW: dict[str, type[np.generic]] = {
    "PCM_U8": np.uint8,
    "PCM_S8": np.int16,
    "PCM_16": np.int16,
    "PCM_24": np.int32,
    "PCM_32": np.int32,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
}
_WAV_BY_DTYPE = {"uint8": "PCM_U8", "int16": "PCM_16", "int32": "PCM_32", "float32": "FLOAT", "float64": "DOUBLE"}
_WAV_BY_BITS = {
    (None, 8): "PCM_U8",
    (None, 16): "PCM_16",
    (None, 24): "PCM_24",
    (None, 32): "PCM_32",
    (None, 64): "DOUBLE",
    ("PCM_S", None): "PCM_32",
    ("PCM_S", 16): "PCM_16",
    ("PCM_S", 24): "PCM_24",
    ("PCM_S", 32): "PCM_32",
    ("PCM_U", None): "PCM_U8",
    ("PCM_U", 8): "PCM_U8",
    ("PCM_F", None): "FLOAT",
    ("PCM_F", 32): "FLOAT",
    ("PCM_F", 64): "DOUBLE",
    ("ULAW", None): "ULAW",
    ("ULAW", 8): "ULAW",
    ("ALAW", None): "ALAW",
    ("ALAW", 8): "ALAW",
}
_SIGNED_BY_BITS = {None: "PCM_16", 8: "PCM_S8", 16: "PCM_16", 24: "PCM_24", 32: "PCM_32"}
_CONTAINERS = {
    "wav": "WAV",
    "flac": "FLAC",
    "ogg": "OGG",
    "vorbis": "OGG",
    "opus": "OGG",
    "mp3": "MP3",
    "sph": "NIST",
    "nist": "NIST",
    "aiff": "AIFF",
    "aif": "AIFF",
    "au": "AU",
    "caf": "CAF",
    "w64": "W64",
}


def bits_of(subtype: str) -> int:
    """Bits of a sample, 0 where a codec has no such number."""
    return _BITS.get(subtype, 0)


def encoding_of(container: str, subtype: str) -> str:
    """torchaudio's name of how samples are coded."""
    return "FLAC" if container == "FLAC" else _ENCODINGS.get(subtype, "UNKNOWN")


def raw_type(op: str, subtype: str) -> type[np.generic]:
    """The NumPy type of samples as they lie in a WAV file."""
    if subtype not in _RAW:
        fail(ValueError, op, f"samples of type {subtype} have no plain number type; use normalize=True.")
    return _RAW[subtype]


def container_of(op: str, uri: File, format: str | None) -> tuple[str, str]:
    """libsndfile's name of the container, and the name that it was given by."""
    name = format
    if name is None:
        if not isinstance(uri, (str, os.PathLike)):
            fail(ValueError, op, "format must be given when the file is an object.")
        name = os.path.splitext(os.fspath(uri))[1].lstrip(".")
    name = name.lower()
    if name not in _CONTAINERS:
        known = ", ".join(sorted(_CONTAINERS))
        fail(ValueError, op, f"format {name!r} is not known; use one of {known}.")
    return _CONTAINERS[name], name


def subtype_for(op: str, name: str, dtype: str, encoding: str | None, bits: int | None) -> str:
    """libsndfile's name of how samples are to be coded in a container given by `name`."""
    if encoding is not None:
        encoding = encoding.upper()
    if name in ("ogg", "vorbis", "opus", "mp3"):
        return _lossy(op, name, encoding, bits)
    if name in ("wav", "w64", "caf", "au") and (encoding, bits) == (None, None):
        chosen = _WAV_BY_DTYPE[dtype]
        return "PCM_S8" if name in ("au", "caf") and chosen == "PCM_U8" else chosen
    if name in ("wav", "w64", "caf", "au"):
        found = _WAV_BY_BITS.get((encoding, bits))
        if name in ("au", "caf") and (encoding, bits) in ((None, 8), ("PCM_S", 8)):
            found = "PCM_S8"
    else:
        known = encoding in (None, "PCM_S") or (name == "flac" and encoding == "FLAC")
        found = _SIGNED_BY_BITS.get(bits) if known else None
        if name == "flac" and bits == 32:
            found = None
    if found is None:
        fail(ValueError, op, f"a {name} file cannot hold encoding={encoding!r} with bits_per_sample={bits}.")
    return found


def _lossy(op: str, name: str, encoding: str | None, bits: int | None) -> str:
    if bits is not None:
        fail(ValueError, op, f"{name} has no bits_per_sample; leave it out.")
    wanted = {"mp3": ("MP3",), "opus": ("OPUS",)}.get(name, ("VORBIS", "OPUS"))
    if encoding is not None and encoding not in wanted:
        fail(ValueError, op, f"a {name} file cannot hold encoding={encoding!r}.")
    chosen = encoding or wanted[0]
    return "MPEG_LAYER_III" if chosen == "MP3" else chosen
