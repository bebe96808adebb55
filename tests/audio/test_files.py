"""Sound files: what is saved is loaded again, whole or in blocks, and errors say what is wrong."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive import audio

soundfile = pytest.importorskip("soundfile", reason="files need the package soundfile")


def tone(channels: int = 2, frames: int = 1000) -> Any:
    t = votive.arange(frames, dtype=votive.float32) / 50
    return votive.stack([votive.sin(t * (c + 1)) * 0.8 for c in range(channels)])


@pytest.mark.parametrize(
    ("dtype", "encoding", "bits"),
    [
        ("uint8", "PCM_U", 8),
        ("int16", "PCM_S", 16),
        ("int32", "PCM_S", 32),
        ("float32", "PCM_F", 32),
        ("float64", "PCM_F", 64),
    ],
)
def test_a_wav_file_keeps_the_type_of_the_samples(tmp_path: Path, dtype: str, encoding: str, bits: int) -> None:
    x = np.random.RandomState(0).uniform(-1, 1, (2, 300))
    if "int" in dtype:
        limits = np.iinfo(dtype)
        x = np.where(x < 0, -x * limits.min, x * limits.max) if limits.min else (x + 1) * 127
    sent = votive.from_numpy(x.astype(dtype))
    audio.save(tmp_path / "a.wav", sent, 8000)
    got, rate = audio.load(tmp_path / "a.wav", normalize=False)
    assert rate == 8000
    assert got.dtype is sent.dtype
    assert np.array_equal(got.numpy(), sent.numpy())
    meta = audio.info(str(tmp_path / "a.wav"))
    assert meta == audio.AudioMetaData(8000, 300, 2, bits, encoding)


@pytest.mark.parametrize(
    ("name", "how", "encoding", "error"),
    [
        ("a.wav", {"encoding": "ULAW"}, "ULAW", 0.03),
        ("a.wav", {"encoding": "ALAW"}, "ALAW", 0.03),
        ("a.wav", {"bits_per_sample": 24}, "PCM_S", 2e-7),
        ("a.flac", {}, "FLAC", 4e-5),
        ("a.flac", {"bits_per_sample": 24}, "FLAC", 2e-7),
        ("a.ogg", {}, "VORBIS", 0.1),
        ("a.aiff", {"bits_per_sample": 24}, "PCM_S", 2e-7),
        ("a.sph", {}, "PCM_S", 4e-5),
    ],
)
def test_what_is_saved_is_loaded_again(
    tmp_path: Path, name: str, how: dict[str, Any], encoding: str, error: float
) -> None:
    x = tone(frames=4000)
    audio.save(tmp_path / name, x, 16000, **how)
    y, rate = audio.load(tmp_path / name)
    assert (rate, y.shape, y.dtype) == (16000, x.shape, votive.float32)
    assert float((x - y).abs().max()) <= error
    assert audio.info(tmp_path / name).encoding == encoding


def test_part_of_a_file_is_loaded_by_frames(tmp_path: Path) -> None:
    x = tone()
    audio.save(tmp_path / "a.wav", x, 8000)
    part, _ = audio.load(tmp_path / "a.wav", frame_offset=100, num_frames=50)
    assert votive.equal(part, x[:, 100:150])
    rest, _ = audio.load(tmp_path / "a.wav", frame_offset=990, num_frames=50)
    assert votive.equal(rest, x[:, 990:])
    none, _ = audio.load(tmp_path / "a.wav", frame_offset=5000)
    assert none.shape == (2, 0)
    last, _ = audio.load(tmp_path / "a.wav", channels_first=False)
    assert votive.equal(last, x.t())


@pytest.mark.parametrize("overlap", [0, 1, 37, 99])
@pytest.mark.parametrize("frames", [1, 99, 100, 101, 1000])
def test_blocks_put_together_are_the_file(tmp_path: Path, frames: int, overlap: int) -> None:
    x = tone(frames=frames)
    audio.save(tmp_path / "a.wav", x, 8000)
    with audio.blocks(tmp_path / "a.wav", 100, overlap=overlap) as stream:
        assert (stream.sample_rate, stream.num_channels, stream.num_frames) == (8000, 2, frames)
        got = list(stream)
    assert all(block.shape == (2, 100) for block in got[:-1])
    for before, after in pairwise(got):
        assert votive.equal(before[:, 100 - overlap :], after[:, :overlap])
    joined = votive.cat([got[0], *(block[:, overlap:] for block in got[1:])], 1)
    assert votive.equal(joined, x)


def test_the_last_block_can_be_filled_up(tmp_path: Path) -> None:
    audio.save(tmp_path / "a.wav", tone(frames=150), 8000)
    *_, last = audio.blocks(tmp_path / "a.wav", 100, fill_value=0.25, channels_first=False)
    assert last.shape == (100, 2)
    assert bool((last[50:] == 0.25).all())


def test_writing_into_a_block_leaves_the_next_one_alone(tmp_path: Path) -> None:
    x = tone(frames=300)
    audio.save(tmp_path / "a.wav", x, 8000)
    got = []
    for block in audio.blocks(tmp_path / "a.wav", 100, overlap=50):
        got.append(block.clone())
        block.zero_()
    assert votive.equal(got[1], x[:, 50:150])


def test_blocks_at_another_rate_equal_the_whole_resampled(tmp_path: Path) -> None:
    pytest.importorskip("soxr", reason="resampling in blocks needs the package soxr")
    x = tone(frames=200_000)
    audio.save(tmp_path / "a.wav", x, 44100)
    got = votive.cat(list(audio.blocks(tmp_path / "a.wav", 4000, sample_rate=16000)), 1)
    want = audio.functional.resample(x, 44100, 16000, resampling_method="soxr_hq")
    assert abs(got.shape[1] - want.shape[1]) <= 1
    n = min(got.shape[1], want.shape[1])
    assert float((got[:, :n] - want[:, :n]).abs().max()) < 1e-5


def test_a_writer_appends_blocks(tmp_path: Path) -> None:
    x = tone(frames=300)
    with audio.Writer(tmp_path / "a.wav", 8000, num_channels=2) as writer:
        for block in x.split(128, 1):
            writer.write(block)
        with pytest.raises(ValueError, match="2 channels"):
            writer.write(x[:1])
    assert votive.equal(audio.load(tmp_path / "a.wav")[0], x)


def test_a_long_sound_is_encoded_without_overflowing_the_stack(tmp_path: Path) -> None:
    long = votive.zeros(1, 4_000_000)
    audio.save(tmp_path / "a.ogg", long, 8000)
    assert audio.info(tmp_path / "a.ogg").num_frames == 4_000_000
    with audio.Writer(tmp_path / "b.ogg", 8000) as writer:
        writer.write(long)
    assert audio.info(tmp_path / "b.ogg").num_frames == 4_000_000


def test_objects_work_as_files() -> None:
    file = io.BytesIO()
    with pytest.raises(ValueError, match="format must be given"):
        audio.save(file, tone(), 8000)
    audio.save(file, tone(), 8000, format="flac", bits_per_sample=24)
    file.seek(0)
    assert audio.info(file).bits_per_sample == 24
    file.seek(0)
    assert float((audio.load(file)[0] - tone()).abs().max()) < 2e-7


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda f: audio.load(f / "none.wav"), FileNotFoundError, "there is no file"),
        (lambda f: audio.load(f / "text.wav"), RuntimeError, "cannot open"),
        (lambda f: audio.load(f / "a.wav", frame_offset=-1), ValueError, "frame_offset"),
        (lambda f: audio.load(f / "a.wav", num_frames=0), ValueError, "num_frames"),
        (lambda f: audio.load(f / "a.wav", format="flac"), RuntimeError, "holds WAV"),
        (lambda f: audio.load(f / "a.wav", backend="sox"), NotImplementedError, "backend"),
        (lambda f: audio.load(f / "a.wav", buffer_size=1), NotImplementedError, "buffer_size"),
        (lambda f: audio.save(f / "b.wav", votive.zeros(3), 8000), ValueError, "channel, time"),
        (lambda f: audio.save(f / "b.xyz", tone(), 8000), ValueError, "format 'xyz'"),
        (lambda f: audio.save(f / "b.wav", tone().half(), 8000), ValueError, "float16"),
        (lambda f: audio.save(f / "b.flac", tone(), 8000, bits_per_sample=32), ValueError, "cannot hold"),
        (
            lambda f: audio.save(f / "b.wav", tone(), 8000, encoding="PCM_S", bits_per_sample=8),
            ValueError,
            "cannot hold",
        ),
        (lambda f: audio.save(f / "b.mp3", tone(), 8000, bits_per_sample=8), ValueError, "leave"),
        (lambda f: audio.blocks(f / "a.wav", 0), ValueError, "block_size"),
        (lambda f: audio.blocks(f / "a.wav", 4, overlap=4), ValueError, "overlap"),
    ],
)
def test_errors_say_what_is_wrong(tmp_path: Path, call: Any, kind: type[Exception], message: str) -> None:
    audio.save(tmp_path / "a.wav", tone(), 8000)
    (tmp_path / "text.wav").write_text("no sound")
    with pytest.raises(kind, match=message):
        call(tmp_path)
