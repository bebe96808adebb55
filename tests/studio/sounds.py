"""Sounds for the tests of models that hear: samples and files of them."""

from __future__ import annotations

import io
from typing import Any

import pytest

import votive
from tests.speech import small

pytest.importorskip("soundfile", reason="reads sounds with soundfile")


def written(samples: Any, rate: int = 16000, format: str = "flac") -> bytes:
    file = io.BytesIO()
    votive.audio.save(file, samples, rate, format=format)
    return file.getvalue()


SOUND = small.sound(1.2)
FILE = written(SOUND.unsqueeze(0), format="wav")
