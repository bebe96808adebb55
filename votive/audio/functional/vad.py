"""Voice activity: where a signal begins to be speech, by the power of its cepstrum, as in SoX."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...core.errors import fail
from ...ops.warning import warn
from ...tensor import Tensor


@dataclass(frozen=True)
class _Plan:
    """The numbers of a detector, in samples, measures and bins."""

    measure: int  # samples of a measure
    period: int  # samples between measures
    dft: int
    measures: int  # that are kept to look back over
    gap: int
    spectrum: slice
    cepstrum: slice
    noise_reduction: float
    smooth: float
    noise_up: float
    noise_down: float

    @property
    def windows(self) -> tuple[np.ndarray, np.ndarray]:
        return _hann(self.measure), _hann(self.spectrum.stop - self.spectrum.start)


def _hann(n: int) -> np.ndarray:
    """A periodic Hann window of energy that does not grow with its length."""
    angle = 2 * math.pi / n * np.arange(n)
    scale = np.float32(2.0 / math.sqrt(n))
    return scale * (0.5 - 0.5 * np.cos(angle)).astype(np.float32)


class _Channel:
    """The running spectra of one channel."""

    def __init__(self, plan: _Plan) -> None:
        bins = plan.spectrum.stop - plan.spectrum.start
        self.plan = plan
        self.window, self.lifter = plan.windows
        self.spectrum, self.noise = np.zeros(bins, np.float32), np.zeros(bins, np.float32)
        self.recent = np.zeros(plan.measures)
        self.mean = 0.0

    def measure(self, samples: np.ndarray, boot: int) -> float:
        """How much of the frame is voice; `boot` counts those taken for noise, then it is -1."""
        plan = self.plan
        frame = np.zeros(plan.dft, np.float32)
        frame[: plan.measure] = samples * self.window
        loud = np.abs(np.fft.rfft(frame)[plan.spectrum])
        keep = np.float32(boot / (1.0 + boot) if boot >= 0 else plan.smooth)
        self.spectrum = self.spectrum * keep + loud * (1 - keep)
        power = self.spectrum**2
        stay = np.where(power > self.noise, np.float32(plan.noise_up), np.float32(plan.noise_down))
        if boot >= 0:
            stay = np.zeros_like(stay)
        self.noise = self.noise * stay + power * (1 - stay)
        voice = np.sqrt(np.maximum(0, power - np.float32(plan.noise_reduction) * self.noise))
        half = np.zeros(plan.dft // 2, np.float32)
        half[plan.spectrum] = voice * self.lifter
        cepstrum = np.fft.rfft(half)[plan.cepstrum]
        total = float((np.abs(cepstrum) ** 2).sum())
        if total <= 0:
            return 0.0
        return max(0.0, 21 + math.log(total / (plan.cepstrum.stop - plan.cepstrum.start)))

    def look_back(self, index: int, trigger_level: float) -> int:
        """How many measures before this one the speech began."""
        n, gap = len(self.recent), self.plan.gap
        found = zero = n
        for j in range(n):
            level = self.recent[(index - j) % n]
            if level >= trigger_level and j <= found + gap:
                zero = found = j
            elif level == 0 and found >= zero:
                zero = j
        return min(n - 1, zero)


def _plan(
    op: str,
    sample_rate: int,
    search_time: float,
    allowed_gap: float,
    measure_freq: float,
    duration: float,
    noise: tuple[float, float, float],
    smooth_time: float,
    filters: tuple[float, float],
    lifters: tuple[float, float],
) -> _Plan:
    measure = int(sample_rate * duration + 0.5)
    dft = 16
    while dft < measure:
        dft *= 2
    first, last = (int(f / sample_rate * dft + 0.5) for f in filters)
    start = math.ceil(sample_rate * 0.5 / lifters[1])
    stop = min(math.floor(sample_rate * 0.5 / lifters[0]), dft // 4)
    if stop <= start:
        fail(
            ValueError,
            op,
            f"no cepstrum lies between lp_lifter_freq={lifters[1]} and hp_lifter_freq="
            f"{lifters[0]} at sample_rate={sample_rate}.",
        )
    up, down, reduction = noise

    def decay(time: float) -> float:
        return math.exp(-1.0 / (time * measure_freq))

    return _Plan(
        measure,
        int(sample_rate / measure_freq + 0.5),
        dft,
        math.ceil(search_time * measure_freq),
        int(allowed_gap * measure_freq + 0.5),
        slice(max(first, 1), min(last, dft // 2)),
        slice(start, stop),
        reduction,
        decay(smooth_time),
        decay(up),
        decay(down),
    )


def vad(
    waveform: Tensor,
    sample_rate: int,
    trigger_level: float = 7.0,
    trigger_time: float = 0.25,
    search_time: float = 1.0,
    allowed_gap: float = 0.25,
    pre_trigger_time: float = 0.0,
    boot_time: float = 0.35,
    noise_up_time: float = 0.1,
    noise_down_time: float = 0.01,
    noise_reduction_amount: float = 1.35,
    measure_freq: float = 20.0,
    measure_duration: float | None = None,
    measure_smooth_time: float = 0.4,
    hp_filter_freq: float = 50.0,
    lp_filter_freq: float = 6000.0,
    hp_lifter_freq: float = 150.0,
    lp_lifter_freq: float = 2000.0,
) -> Tensor:
    """The signal (channel, time) from where speech begins; nothing, if there is none.

    Several channels begin together, where the first of them does. Only the beginning is cut: flip
    the signal to cut its end.

    >>> votive.audio.functional.vad(votive.zeros(1, 16000), 16000).shape
    votive.Size([1, 0])
    """
    if waveform.ndim > 2:
        warn(
            "vad: takes (time) or (channel, time); leading dimensions are taken for channels, and "
            "all of them are cut alike."
        )
    plan = _plan(
        "vad",
        sample_rate,
        search_time,
        allowed_gap,
        measure_freq,
        2.0 / measure_freq if measure_duration is None else measure_duration,
        (noise_up_time, noise_down_time, noise_reduction_amount),
        measure_smooth_time,
        (hp_filter_freq, lp_filter_freq),
        (hp_lifter_freq, lp_lifter_freq),
    )
    lead, length = waveform.shape[:-1], waveform.shape[-1]
    signals = waveform.reshape(-1, length)
    samples = signals.detach().cpu().numpy()
    channels = [_Channel(plan) for _ in samples]
    before = int(pre_trigger_time * sample_rate + 0.5)
    keep = math.exp(-1.0 / (trigger_time * measure_freq))
    boot_last = int(boot_time * measure_freq - 0.5)
    boot = index = back = 0
    for pos in range(plan.measure, length, plan.period):
        triggered = False
        for channel, signal in zip(channels, samples):
            level = channel.measure(signal[pos - plan.measure : pos], boot)
            channel.recent[index] = level
            channel.mean = channel.mean * keep + level * (1.0 - keep)
            triggered = triggered or channel.mean >= trigger_level
            if triggered:
                back = max(back, channel.look_back(index, trigger_level))
        if triggered:
            start = pos - before - plan.measure - back * plan.period
            out = signals[:, max(start, 0) :]
            return out.reshape(*lead, out.shape[-1])
        index = (index + 1) % plan.measures
        boot = -1 if boot in (-1, boot_last) else boot + 1
    out = signals[:, :before] if length >= before else signals
    return out.reshape(*lead, out.shape[-1])
