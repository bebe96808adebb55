"""Filter banks and the cosine transform: matrices made from numbers. Knows no signal."""

from __future__ import annotations

import math

import votive

from ...core import dtype as dt
from ...core.errors import fail
from ...ops.warning import warn
from ...tensor import Tensor

# Slaney's scale (Auditory Toolbox 1998): linear with 3 mel per 200 Hz up to 1 kHz, above it 27 mel
# for each factor of 6.4.
_HZ_PER_MEL = 200.0 / 3
_KNEE_HZ = 1000.0
_KNEE_MEL = _KNEE_HZ / _HZ_PER_MEL
_LOG_STEP = math.log(6.4) / 27.0


def _check_scale(op: str, mel_scale: str) -> None:
    if mel_scale not in ("htk", "slaney"):
        fail(ValueError, op, f'mel_scale must be "htk" or "slaney", got {mel_scale!r}.')


def _mel_of(hz: float, mel_scale: str) -> float:
    if mel_scale == "htk":  # O'Shaughnessy 1987, as in the HTK book
        return 2595.0 * math.log10(1.0 + hz / 700.0)
    if hz >= _KNEE_HZ:
        return _KNEE_MEL + math.log(hz / _KNEE_HZ) / _LOG_STEP
    return hz / _HZ_PER_MEL


def _hz_of(mels: Tensor, mel_scale: str) -> Tensor:
    if mel_scale == "htk":
        return 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    above = _KNEE_HZ * votive.exp(_LOG_STEP * (mels - _KNEE_MEL))
    return votive.where(mels >= _KNEE_MEL, above, _HZ_PER_MEL * mels)


def _triangles(freqs: Tensor, corners: Tensor) -> Tensor:
    """Triangles over `freqs`, each between a corner and the one after the next."""
    widths = corners[1:] - corners[:-1]
    distance = corners.unsqueeze(0) - freqs.unsqueeze(1)  # (freq, corner)
    rising = -distance[:, :-2] / widths[:-1]
    falling = distance[:, 2:] / widths[1:]
    return votive.minimum(rising, falling).clamp(min=0.0)


def melscale_fbanks(
    n_freqs: int,
    f_min: float,
    f_max: float,
    n_mels: int,
    sample_rate: int,
    norm: str | None = None,
    mel_scale: str = "htk",
    *,
    dtype: dt.dtype | None = None,
) -> Tensor:
    """Triangular filters at equal distances on the mel scale, a column each: (n_freqs, n_mels).

    With `norm="slaney"` every triangle has the same area. `dtype` is what it is computed in, the
    default dtype if not given.

    >>> votive.audio.functional.melscale_fbanks(5, 0.0, 4000.0, 2, 8000)
    tensor([[0.0000, 0.0000],
            [0.6759, 0.3241],
            [0.0000, 0.9055],
            [0.0000, 0.4528],
            [0.0000, 0.0000]])
    """
    op = "melscale_fbanks"
    if norm is not None and norm != "slaney":
        fail(ValueError, op, f'norm must be None or "slaney", got {norm!r}.')
    _check_scale(op, mel_scale)
    freqs = votive.linspace(0, sample_rate // 2, n_freqs, dtype=dtype)
    lowest, highest = _mel_of(f_min, mel_scale), _mel_of(f_max, mel_scale)
    corners = _hz_of(votive.linspace(lowest, highest, n_mels + 2, dtype=dtype), mel_scale)
    bank = _triangles(freqs, corners)
    if norm == "slaney":
        bank = bank * (2.0 / (corners[2:] - corners[:-2]))
    if n_freqs and n_mels and bool((bank.amax(dim=0) == 0.0).any()):
        warn(f"{op}: at least one filter is zero everywhere; n_mels={n_mels} may be too many for n_freqs={n_freqs}.")
    return bank


def linear_fbanks(n_freqs: int, f_min: float, f_max: float, n_filter: int, sample_rate: int) -> Tensor:
    """Triangular filters at equal distances in hertz, a column each: (n_freqs, n_filter).

    >>> votive.audio.functional.linear_fbanks(5, 0.0, 4.0, 1, 8)
    tensor([[0.0000],
            [0.5000],
            [1.0000],
            [0.5000],
            [0.0000]])
    """
    freqs = votive.linspace(0, sample_rate // 2, n_freqs)
    return _triangles(freqs, votive.linspace(f_min, f_max, n_filter + 2))


def create_dct(n_mfcc: int, n_mels: int, norm: str | None) -> Tensor:
    """The cosine transform of type 2 as a matrix to multiply with: (n_mels, n_mfcc).

    `2 cos(pi k (n + 1/2) / n_mels)`; with `norm="ortho"` its columns have length 1.

    >>> votive.audio.functional.create_dct(2, 2, norm="ortho")
    tensor([[ 0.7071,  0.7071],
            [ 0.7071, -0.7071]])
    """
    if norm is not None and norm != "ortho":
        fail(ValueError, "create_dct", f'norm must be None or "ortho", got {norm!r}.')
    n = votive.arange(float(n_mels))
    k = votive.arange(float(n_mfcc)).unsqueeze(1)
    dct = votive.cos(math.pi / float(n_mels) * (n + 0.5) * k)  # (n_mfcc, n_mels)
    if norm is None:
        return (dct * 2.0).t()
    dct[0] *= 1.0 / math.sqrt(2.0)
    return (dct * math.sqrt(2.0 / float(n_mels))).t()
