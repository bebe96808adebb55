"""Features over time: deltas, sliding mean normalisation, pitch."""

from __future__ import annotations

import math

import votive

from ...core.errors import fail
from ...tensor import Tensor


def compute_deltas(specgram: Tensor, win_length: int = 5, mode: str = "replicate") -> Tensor:
    """The slope of each feature of (..., frequency, time) over `win_length` frames.

    `d[t] = sum_(n = 1..N) n (c[t + n] - c[t - n]) / (2 sum n^2)` with `N = (win_length - 1) / 2`;
    `mode` says how the ends are padded.

    >>> votive.audio.functional.compute_deltas(votive.arange(6.0).unsqueeze(0))
    tensor([[0.5000, 0.8000, 1.0000, 1.0000, 0.8000, 0.5000]])
    """
    if win_length < 3:
        fail(ValueError, "compute_deltas", f"win_length must be at least 3, got {win_length}.")
    n = (win_length - 1) // 2
    shape, size = specgram.shape, specgram.shape[-1]
    padded = votive.nn.functional.pad(specgram.reshape(1, -1, size), (n, n), mode=mode)
    rise = sum(k * (padded.narrow(-1, n + k, size) - padded.narrow(-1, n - k, size)) for k in range(1, n + 1))
    return (rise / (n * (n + 1) * (2 * n + 1) / 3)).reshape(shape)


def _windows(frames: int, cmn_window: int, min_cmn_window: int, center: bool) -> tuple[list[int], list[int]]:
    """Where the window of each frame begins and ends, as in Kaldi."""
    starts, ends = [], []
    for t in range(frames):
        start = t - cmn_window // 2 if center else t - cmn_window
        end = start + cmn_window if center else t + 1
        if start < 0:
            start, end = 0, end - start
        if not center and end > t:
            end = max(t + 1, min_cmn_window)
        if end > frames:
            start, end = max(start - (end - frames), 0), frames
        starts.append(start)
        ends.append(end)
    return starts, ends


def sliding_window_cmn(
    specgram: Tensor, cmn_window: int = 600, min_cmn_window: int = 100, center: bool = False, norm_vars: bool = False
) -> Tensor:
    """Features (..., time, frequency) less their mean over a window that slides along.

    The window holds the `cmn_window` frames before, at the beginning `min_cmn_window` frames, or
    lies around the frame if `center`. `norm_vars` divides by the standard deviation too.

    >>> x = votive.tensor([[1.0], [2.0], [6.0]])
    >>> votive.audio.functional.sliding_window_cmn(x)
    tensor([[-2.],
            [-1.],
            [ 3.]])
    """
    shape = specgram.shape
    frames = shape[-2]
    x = specgram.reshape(-1, *shape[-2:])
    starts, ends = _windows(frames, cmn_window, min_cmn_window, center)
    begin, end = (votive.tensor(v, dtype=votive.int64, device=x.device) for v in (starts, ends))
    count = (end - begin).to(x.dtype).unsqueeze(-1)  # (frame, 1)

    def mean(values: Tensor) -> Tensor:
        # Differences of running sums, which therefore have all the digits there are.
        sums = votive.cumsum(values, 1, dtype=votive.float64)
        sums = votive.nn.functional.pad(sums, (0, 0, 1, 0))
        return (sums.index_select(1, end) - sums.index_select(1, begin)) / count

    m = mean(x)
    out = x - m.to(x.dtype)
    if norm_vars:
        spread = (mean(votive.square(x.double())) - votive.square(m)).to(x.dtype)
        alone = count == 1
        out = votive.where(alone, 0.0, out * votive.where(alone, 1.0, spread) ** -0.5)
    out = out.reshape(shape)
    # So does torchaudio with a single frame.
    return out.squeeze(0) if len(shape) == 2 else out


# What keeps divisions by silence finite.
_TINY = 1e-9


def _correlation(waveform: Tensor, sample_rate: int, frame_time: float, freq_low: int) -> Tensor:
    """Normalised cross-correlation of each frame with what follows: (signal, frame, lag)."""
    lags = math.ceil(sample_rate / freq_low)
    size = math.ceil(sample_rate * frame_time)
    length = waveform.shape[-1]
    frames = math.ceil(length / size)
    padded = votive.nn.functional.pad(waveform, (0, lags + frames * size - length))
    here = padded.unfold(-1, size, size)[:, :frames]
    later = padded.unfold(-1, size + lags, size)[:, :frames, 1:].unfold(-1, size, 1)

    def energy(x: Tensor) -> Tensor:
        return (_TINY + votive.linalg.vector_norm(x, dim=-1)).pow(2)

    product = (later @ here.unsqueeze(-1)).squeeze(-1)
    return product / energy(here).unsqueeze(-1) / energy(later)


def _best_lag(nccf: Tensor, sample_rate: int, freq_high: int) -> Tensor:
    """The lag of the highest correlation; a nearly as high one in the first half goes before it."""
    first = math.ceil(sample_rate / freq_high)
    best = nccf[..., first:].max(-1)
    half = nccf[..., first : nccf.shape[-1] // 2].max(-1)
    lag = votive.where(half.values > 0.99 * best.values, half.indices, best.indices)
    return lag + first + 1


def detect_pitch_frequency(
    waveform: Tensor,
    sample_rate: int,
    frame_time: float = 10 ** (-2),
    win_length: int = 30,
    freq_low: int = 85,
    freq_high: int = 3400,
) -> Tensor:
    """The pitch of (..., time) in hertz, a value for each frame of `frame_time` seconds.

    The lag at which a frame is most like what follows, smoothed by a median over `win_length`.

    >>> x = votive.sin(votive.arange(8000.0) * (2 * votive.pi * 200 / 8000))
    >>> votive.audio.functional.detect_pitch_frequency(x, 8000)[10]
    tensor(200.)
    """
    lead = waveform.shape[:-1]
    signals = waveform.reshape(-1, waveform.shape[-1])
    lag = _best_lag(_correlation(signals, sample_rate, frame_time, freq_low), sample_rate, freq_high)
    before = (win_length - 1) // 2
    padded = votive.cat([lag[..., :1].expand(*lag.shape[:-1], before), lag], -1)
    smooth = padded.unfold(-1, win_length, 1).median(-1).values
    return (sample_rate / (_TINY + smooth.to(votive.float32))).reshape(*lead, smooth.shape[-1])
