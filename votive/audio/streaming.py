"""Sound files in blocks: `blocks` reads and `Writer` writes with memory for one block only."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import votive

from ..core import dtype as dt
from ..core.errors import fail
from ..tensor import Tensor
from .encodings import File, container_of, subtype_for
from .io import SoundFile, opened, read, reading, samples_of, write
from .packages import soxr

_PORTION = 65536  # frames read at once while resampling


class Blocks:
    """The blocks of a file, one after the other; made by `votive.audio.blocks`.

    Knows `sample_rate`, `num_channels` and, in frames of the file, `num_frames`. Closed at the end
    of its blocks, by `close`, and by leaving a `with`.

    >>> votive.audio.Blocks.__name__
    'Blocks'
    """

    def __init__(self, file: SoundFile, read: Iterator[np.ndarray], sample_rate: int) -> None:
        self._file, self._read = file, read
        self.sample_rate = sample_rate
        self.num_channels: int = file.channels
        self.num_frames: int = file.frames

    def __iter__(self) -> Blocks:
        return self

    def __next__(self) -> Tensor:
        return votive.from_numpy(next(self._read))

    def close(self) -> None:
        """Close the file; there are no more blocks."""
        self._file.close()
        self._read = iter(())

    def __enter__(self) -> Blocks:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _portions(file: SoundFile, frames: int, size: int) -> Iterator[np.ndarray]:
    """Pieces (frame, channel) of at most `size` frames, `frames` altogether."""
    while frames > 0 and not file.closed:
        piece = read("blocks", file, min(size, frames), np.float32)
        if not len(piece):
            return
        frames -= len(piece)
        yield piece


def _resampled(pieces: Iterator[np.ndarray], new: int, file: SoundFile) -> Iterator[np.ndarray]:
    stream = soxr("blocks").ResampleStream(file.samplerate, new, file.channels, dtype="float32")
    for piece in pieces:
        yield stream.resample_chunk(piece)
    yield stream.resample_chunk(np.zeros((0, file.channels), np.float32), last=True)


def _cut(pieces: Iterator[np.ndarray], size: int, overlap: int, fill: float | None) -> Iterator[np.ndarray]:
    """The pieces as blocks of `size` frames that begin `size - overlap` frames apart."""
    rest: np.ndarray | None = None
    fresh = 0  # frames in `rest` that no block has shown
    for piece in pieces:
        rest = piece if rest is None else np.concatenate([rest, piece])
        fresh += len(piece)
        while len(rest) >= size:
            yield rest[:size]
            rest = rest[size - overlap :]
            fresh = len(rest) - overlap
    if rest is None or fresh <= 0:
        return
    if fill is not None:
        rest = np.concatenate([rest, np.full((size - len(rest), rest.shape[1]), fill, rest.dtype)])
    yield rest


def blocks(
    uri: File,
    block_size: int,
    *,
    overlap: int = 0,
    sample_rate: int | None = None,
    frame_offset: int = 0,
    num_frames: int = -1,
    channels_first: bool = True,
    fill_value: float | None = None,
    format: str | None = None,
) -> Blocks:
    """The samples of a file as float32 tensors (channel, block_size), one block at a time.

    `overlap` frames of a block are repeated in the next. With `sample_rate` the sound is resampled
    on the way (by soxr), and blocks are counted in the new rate. The last block is shorter, or
    filled up with `fill_value`.

    >>> import io
    >>> file = io.BytesIO()
    >>> votive.audio.save(file, votive.arange(5.0).unsqueeze(0) / 8, 8000, format="wav")
    >>> _ = file.seek(0)
    >>> [block.shape[1] for block in votive.audio.blocks(file, 2)]
    [2, 2, 1]
    """
    op = "blocks"
    if block_size <= 0:
        fail(ValueError, op, f"block_size must be positive, got {block_size}.")
    if not 0 <= overlap < block_size:
        fail(ValueError, op, f"overlap must lie in 0..{block_size - 1}, got {overlap}.")
    if frame_offset < 0:
        fail(ValueError, op, f"frame_offset must not be negative, got {frame_offset}.")
    if num_frames < -1 or num_frames == 0:
        fail(ValueError, op, f"num_frames must be -1 or positive, got {num_frames}.")
    if sample_rate is not None and sample_rate <= 0:
        fail(ValueError, op, f"sample_rate must be positive, got {sample_rate}.")
    file = reading(op, uri, format)
    start = min(frame_offset, file.frames)
    file.seek(start)
    left = file.frames - start
    frames = left if num_frames == -1 else min(num_frames, left)
    rate = file.samplerate if sample_rate is None else int(sample_rate)
    resampling = rate != file.samplerate
    pieces = _portions(file, frames, _PORTION if resampling else block_size)
    if resampling:
        pieces = _resampled(pieces, rate, file)

    def arranged() -> Iterator[np.ndarray]:
        with file:
            for block in _cut(pieces, block_size, overlap, fill_value):
                # A copy: what is kept for the overlap must not change with the user's tensor.
                yield np.array(block.T if channels_first else block, order="C")

    return Blocks(file, arranged(), rate)


class Writer:
    """A sound file that grows block by block.

    >>> import io
    >>> file = io.BytesIO()
    >>> with votive.audio.Writer(file, 8000, num_channels=1, format="wav") as writer:
    ...     for _ in range(3):
    ...         writer.write(votive.zeros(1, 10))
    >>> _ = file.seek(0)
    >>> votive.audio.info(file).num_frames
    30
    """

    def __init__(
        self,
        uri: File,
        sample_rate: int,
        *,
        num_channels: int = 1,
        channels_first: bool = True,
        format: str | None = None,
        encoding: str | None = None,
        bits_per_sample: int | None = None,
        dtype: dt.dtype | None = None,
    ) -> None:
        container, name = container_of("Writer", uri, format)
        kind = "float32" if dtype is None else dtype.name
        subtype = subtype_for("Writer", name, kind, encoding, bits_per_sample)
        self.channels_first = channels_first
        self._file = opened(
            "Writer",
            uri,
            mode="w",
            samplerate=int(sample_rate),
            channels=num_channels,
            format=container,
            subtype=subtype,
        )

    def write(self, block: Tensor) -> None:
        """Append samples (channel, time)."""
        samples = samples_of("Writer", block, self.channels_first)
        if samples.shape[1] != self._file.channels:
            fail(ValueError, "Writer", f"the file has {self._file.channels} channels, the block {samples.shape[1]}.")
        write(self._file, samples)

    def close(self) -> None:
        """Finish the file."""
        self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
