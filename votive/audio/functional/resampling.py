"""Other sample rates: windowed-sinc interpolation, soxr, and speed. Knows no file."""

from __future__ import annotations

import math
from functools import lru_cache

import votive

from ...core import dtype as dt
from ...core.errors import UnsupportedError, fail
from ...ops.registry import F
from ...ops.warning import warn
from ...tensor import Tensor
from ..packages import soxr

_RENAMED = {"sinc_interpolation": "sinc_interp_hann", "kaiser_window": "sinc_interp_kaiser"}
_WINDOWS = ("sinc_interp_hann", "sinc_interp_kaiser")
# soxr's qualities, by its own names.
SOXR = {f"soxr_{q.lower()}": q for q in ("QQ", "LQ", "MQ", "HQ", "VHQ")}
# The Kaiser window's default shape, chosen by torchaudio for kaiser_best of librosa.
_KAISER_BETA = 14.769656459379492


def window_of(method: str) -> str:
    """The method by its present name, after checking that it exists."""
    if method in _RENAMED:
        warn(f"resample: {method!r} is an old name; use {_RENAMED[method]!r}.")
        return _RENAMED[method]
    if method not in _WINDOWS:
        names = ", ".join((*_WINDOWS, *SOXR))
        fail(ValueError, "resample", f"resampling_method must be one of {names}, got {method!r}.")
    return method


def reduced(orig_freq: float, new_freq: float) -> tuple[int, int]:
    """The rates without their common divisor."""
    if orig_freq <= 0 or new_freq <= 0:
        fail(ValueError, "resample", f"rates must be positive, got {orig_freq} and {new_freq}.")
    if int(orig_freq) != orig_freq or int(new_freq) != new_freq:
        why = f"rates must be whole numbers, got {orig_freq} and {new_freq}"
        fail(ValueError, "resample", f"{why}; give their ratio instead, such as orig_freq=8, new_freq=1.")
    divisor = math.gcd(int(orig_freq), int(new_freq))
    return int(orig_freq) // divisor, int(new_freq) // divisor


@lru_cache(maxsize=32)
def sinc_kernel(
    orig: int, new: int, width: int, rolloff: float, window: str, beta: float | None, dtype: dt.dtype | None
) -> tuple[Tensor, int]:
    """A filter for each of the `new` places between `orig` samples: (new, taps), and its reach.

    `sinc(t) w(t / width)` with `t` in periods of the lower of the two rates times `rolloff`. Row i
    begins `reach` samples before the last one at or before place i. Kept, because programs resample
    with few pairs of rates; whoever gets it must not write into it.
    """
    if width <= 0:
        fail(ValueError, "resample", f"lowpass_filter_width must be positive, got {width}.")
    # torchaudio's module makes its kernel in float64 and rounds once; its function in the dtype of
    # the signal. `dtype=None` is the module.
    compute = votive.float64 if dtype is None else dtype
    base = min(orig, new) * rolloff
    reach = math.ceil(width * orig / base)
    taps = -(-(2 * reach + 2) // 8) * 8  # whole vectors; beyond the reach there are zeros
    places = votive.arange(new).unsqueeze(1)
    samples = places * orig // new - reach + votive.arange(taps)  # (new, taps)
    # Whole numbers divide to float32, which is what torchaudio's module has here.
    t = -(places if dtype is None else places.to(dtype)) / new + samples.to(compute) / orig
    t = (t * base).clamp(-width, width)
    if window == "sinc_interp_hann":
        weight = votive.cos(t * math.pi / width / 2) ** 2
    else:
        b = votive.tensor(float(_KAISER_BETA if beta is None else beta))
        weight = votive.i0(b * votive.sqrt(1 - (t / width) ** 2)) / votive.i0(b)
    t = t * math.pi
    sinc = votive.where(t == 0, 1.0, t.sin() / t)
    kernel = sinc * (weight * (base / orig))
    return (kernel.to(votive.float32) if dtype is None else kernel), reach


def apply_kernel(waveform: Tensor, orig: int, new: int, kernel: Tensor, reach: int) -> Tensor:
    """The signal at `new / orig` times its rate."""
    if not waveform.is_floating_point():
        fail(TypeError, "resample", f"takes floating-point signals, got {waveform.dtype}.")
    lead, length = waveform.shape[:-1], waveform.shape[-1]
    wanted = math.ceil(new * length / orig)
    kernel = kernel.to(waveform.device)
    out = F._polyphase(waveform.reshape(-1, length), kernel, orig, reach, wanted)
    return out.reshape(*lead, wanted)


def _through_soxr(waveform: Tensor, orig: int, new: int, quality: str) -> Tensor:
    if waveform.requires_grad and votive.is_grad_enabled():
        fail(UnsupportedError, "resample", "soxr has no gradient; use sinc_interp_hann or _kaiser, or detach().")
    if waveform.dtype not in (votive.float32, votive.float64, votive.int16, votive.int32):
        fail(TypeError, "resample", f"soxr takes float32, float64, int16 and int32 signals, got {waveform.dtype}.")
    lead, length = waveform.shape[:-1], waveform.shape[-1]
    signals = waveform.detach().reshape(-1, length).numpy()
    wanted = math.ceil(new * length / orig)
    out = votive.zeros(*signals.shape[:1], wanted, dtype=waveform.dtype)
    for row, signal in zip(out.numpy(), signals):
        made = soxr("resample").resample(signal, orig, new, quality=quality)[:wanted]
        row[: made.size] = made
    return out.reshape(*lead, wanted)


def resample(
    waveform: Tensor,
    orig_freq: int,
    new_freq: int,
    lowpass_filter_width: int = 6,
    rolloff: float = 0.99,
    resampling_method: str = "sinc_interp_hann",
    beta: float | None = None,
) -> Tensor:
    """The signal (..., time) at another sample rate.

    `resampling_method` is `sinc_interp_hann` or `sinc_interp_kaiser`, which have gradients, or
    `soxr_qq`, `soxr_lq`, `soxr_mq`, `soxr_hq`, `soxr_vhq`, the soxr library from quick to very high
    quality, which has not.

    >>> x = votive.sin(votive.arange(8.0))
    >>> votive.audio.functional.resample(x, 2, 1).shape
    votive.Size([4])
    """
    orig, new = reduced(orig_freq, new_freq)
    if orig == new:
        return waveform
    if resampling_method in SOXR:
        return _through_soxr(waveform, orig, new, SOXR[resampling_method])
    window = window_of(resampling_method)
    kernel, reach = sinc_kernel(orig, new, lowpass_filter_width, rolloff, window, beta, waveform.dtype)
    return apply_kernel(waveform, orig, new, kernel, reach)


def speed_rates(orig_freq: int, factor: float) -> tuple[int, int]:
    """The rates, without common divisor, whose ratio is `factor`."""
    return reduced(int(factor * orig_freq), int(orig_freq))


def sped_lengths(lengths: Tensor | None, source: int, target: int) -> Tensor | None:
    """Lengths of signals after the change of speed."""
    return None if lengths is None else votive.ceil(lengths * target / source).to(lengths.dtype)


def speed(
    waveform: Tensor, orig_freq: int, factor: float, lengths: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """The signal (..., time) played `factor` times as fast, and the lengths that signals now have.

    >>> x, lengths = votive.audio.functional.speed(votive.zeros(2, 100), 10, 2.0)
    >>> x.shape, lengths
    (votive.Size([2, 50]), None)
    """
    source, target = speed_rates(orig_freq, factor)
    return resample(waveform, source, target), sped_lengths(lengths, source, target)
