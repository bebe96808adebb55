"""Effects that look at one sample, or one sample back: contrast, shift, dither, overdrive."""

from __future__ import annotations

import math

import votive

from ...core.errors import fail
from ...tensor import Tensor
from .filtering import lfilter


def contrast(waveform: Tensor, enhancement_amount: float = 75.0) -> Tensor:
    """The signal louder without compression, as SoX does it; the amount is 0 to 100.

    >>> votive.audio.functional.contrast(votive.tensor([0.0, 0.5, 1.0]))
    tensor([0.0000, 0.7071, 1.0000])
    """
    if not 0 <= enhancement_amount <= 100:
        fail(ValueError, "contrast", f"enhancement_amount must lie in 0..100, got {enhancement_amount}.")
    x = waveform * (math.pi / 2)
    return votive.sin(x + enhancement_amount / 750.0 * votive.sin(x * 4))


def dcshift(waveform: Tensor, shift: float, limiter_gain: float | None = None) -> Tensor:
    """The signal moved by `shift` and cut to -1..1; `limiter_gain` bends what would be cut.

    >>> votive.audio.functional.dcshift(votive.tensor([0.0, 0.9]), 0.2)
    tensor([0.2000, 1.0000])
    """
    moved = (waveform + shift).clamp(-1, 1)
    if limiter_gain is None or shift == 0:
        return moved
    edge = 1.0 - (abs(shift) - limiter_gain)
    if shift > 0:
        bent = (waveform - edge) * limiter_gain / (1 - edge) + edge + shift
        return votive.where(waveform > edge, bent.clamp(max=edge), moved)
    bent = (waveform + edge) * limiter_gain / (1 - edge) - edge + shift
    return votive.where(waveform < -edge, bent.clamp(min=-edge), moved)


def _drawn(size: int) -> int:
    """A number below `size`, 0 where there is none."""
    return int(votive.randint(size, [1])) if size > 0 else 0


def _distribution(x: Tensor, density_function: str) -> Tensor:
    """What is added to the scaled signals (channel, time) before rounding."""
    channels, times = x.shape[0] - 1, x.shape[1] - 1
    channel, time = _drawn(channels), _drawn(times)
    if density_function == "RPDF":
        return x[channel, time] - 0.5
    if density_function == "GPDF":
        # The sum of seven samples is nearly normal; they are drawn channel by channel, then time.
        places = [(channel, time)] + [(_drawn(channels), _drawn(times)) for _ in range(6)]
        first, *rest = (x[c, t] for c, t in places)
        return sum(rest, first)
    return votive.bartlett_window(times + 1, dtype=x.dtype, device=x.device)


def dither(waveform: Tensor, density_function: str = "TPDF", noise_shaping: bool = False) -> Tensor:
    """The signal rounded to 16 bits after noise is added, as torchaudio does it.

    `density_function` is `TPDF` (triangular), `RPDF` (rectangular) or `GPDF` (Gaussian).

    >>> votive.audio.functional.dither(votive.tensor([[0.0, 0.5, 0.25]]))
    tensor([[0.0000, 0.5000, 0.2500]])
    """
    shape = waveform.shape
    x = waveform.reshape(-1, shape[-1])
    noisy = x * (2**15 - 2) + _distribution(x, density_function)
    rounded = (votive.round(noisy) / 2**15).reshape(shape)
    if not noise_shaping:
        return rounded
    # The error goes to the sample that follows.
    error = (rounded - waveform)[..., :-1]
    return rounded + votive.nn.functional.pad(error, (1, 0))


def overdrive(waveform: Tensor, gain: float = 20, colour: float = 20) -> Tensor:
    """Distortion by soft clipping; `colour` adds even harmonics. Both are 0 to 100.

    >>> votive.audio.functional.overdrive(votive.tensor([[0.1, -0.1]])).shape
    votive.Size([1, 2])
    """
    x = waveform * math.exp(gain * math.log(10) / 20.0) + colour / 200
    soft = votive.where(x < -1, -2.0 / 3.0, votive.where(x > 1, 2.0 / 3.0, x - x**3 * (1.0 / 3)))
    # A filter that removes the offset which `colour` made.
    a, b = (votive.tensor(c, dtype=x.dtype, device=x.device) for c in ([1.0, -0.995], [1.0, -1.0]))
    return (waveform * 0.5 + lfilter(soft, a, b, clamp=False) * 0.75).clamp(-1, 1)
