"""Schedules as tables of numbers: betas, products of alphas, spaced timesteps, noise levels. Knows no samples."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import votive

from ..settings import Settings

Array: TypeAlias = NDArray[Any]
SPACINGS = ("linspace", "leading", "trailing")
# With zero signal at the end, what stands for infinite noise: 2**-24 is what float16 still tells from zero.
LEAST_ALPHA = 2**-24


def _bars(kind: str) -> Callable[[float], float]:
    """The share of signal that is left at a time from 0 to 1."""

    def laplace(t: float) -> float:
        log_snr = -0.5 * math.copysign(1, 0.5 - t) * math.log(1 - 2 * math.fabs(0.5 - t) + 1e-6)
        snr = math.exp(log_snr)
        return math.sqrt(snr / (1 + snr))

    return {
        # Nichol & Dhariwal 2021, arXiv:2102.09672, equation 17.
        "squaredcos_cap_v2": lambda t: math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2,
        "exp": lambda t: math.exp(t * -12.0),
        "laplace": laplace,
    }[kind]


def betas_of(config: Settings) -> Array:
    """The variance that each timestep adds, in float32.

    >>> from votive.models.diffusion import DDIMScheduler
    >>> from votive.models.diffusion.schedulers.tables import betas_of
    >>> betas_of(DDIMScheduler(num_train_timesteps=3).config)
    array([0.0001 , 0.01005, 0.02   ], dtype=float32)
    """
    start, end, count = config.beta_start, config.beta_end, config.num_train_timesteps
    if config.trained_betas is not None:
        found = np.asarray(config.trained_betas, np.float32)
    elif config.beta_schedule == "linear":
        found = votive.linspace(start, end, count, dtype=votive.float32).numpy()
    elif config.beta_schedule == "scaled_linear":
        found = votive.linspace(start**0.5, end**0.5, count, dtype=votive.float32).numpy() ** 2
    elif config.beta_schedule == "sigmoid":
        found = (votive.linspace(-6, 6, count).sigmoid() * (end - start) + start).numpy()
    else:
        bar, n = _bars(config.beta_schedule), count
        found = np.array([min(1 - bar((i + 1) / n) / bar(i / n), 0.999) for i in range(n)], np.float32)
    return zero_terminal_snr(found) if config.get("rescale_betas_zero_snr") else found


def cumulative(alphas: Array) -> Array:
    """Running products in float32."""
    found: Array = votive.from_numpy(np.ascontiguousarray(alphas, np.float32)).cumprod(0).numpy()
    return found


def zero_terminal_snr(betas: Array) -> Array:
    """Betas after which no signal is left: Lin et al. 2023, arXiv:2305.08891, algorithm 1."""
    root = np.sqrt(cumulative(1 - betas))
    first, last = root[0].copy(), root[-1].copy()
    root = (root - last) * (first / (first - last))
    bar = root**2
    return 1 - np.concatenate([bar[:1], bar[1:] / bar[:-1]])


def spaced(config: Settings, count: int, spacing: str, dtype: Any = np.int64) -> Array:
    """`count` timesteps from the last one down: Lin et al. 2023, arXiv:2305.08891, table 2."""
    trained = config.num_train_timesteps
    if spacing == "linspace":
        if dtype == np.float32:
            return np.linspace(0, trained - 1, count, dtype=np.float32)[::-1].copy()
        return np.linspace(0, trained - 1, count).round()[::-1].astype(np.int64)
    if spacing == "leading":
        return (np.arange(count) * (trained // count))[::-1].astype(dtype) + config.steps_offset
    return np.round(np.arange(trained, 0, -trained / count)).astype(dtype) - 1


def check_count(name: str, count: int | None, trained: int) -> int:
    """The number of steps, if it can be."""
    if count is None or count < 1:
        raise ValueError(f"{name}.set_timesteps: num_inference_steps must be 1 or more, got {count}.")
    if count > trained:
        raise ValueError(
            f"{name}.set_timesteps: num_inference_steps={count} is more than the {trained} timesteps of training."
        )
    return count


def check_descending(name: str, timesteps: list[int], trained: int) -> None:
    """Raise for timesteps of a caller's own that go up or begin too late."""
    if any(b >= a for a, b in itertools.pairwise(timesteps)):
        raise ValueError(f"{name}.set_timesteps: timesteps must go down, got {timesteps}.")
    if not timesteps or timesteps[0] >= trained:
        raise ValueError(f"{name}.set_timesteps: timesteps must begin below {trained}, got {timesteps[:1]}.")


def one_of(name: str, **given: Any) -> None:
    """Raise unless exactly one of the arguments came."""
    there = [key for key, value in given.items() if value is not None]
    if len(there) != 1:
        raise ValueError(f"{name}.set_timesteps: give one of {', '.join(given)}, got {' and '.join(there) or 'none'}.")


def sigma_to_t(sigmas: Array, log_sigmas: Array) -> Array:
    """The timesteps, as fractions, at which training had these noise levels."""
    found = []
    for sigma in sigmas:
        log_sigma = np.log(np.maximum(sigma, 1e-10))
        above = (log_sigma - log_sigmas) >= 0
        low = int(np.cumsum(above).argmax().clip(max=len(log_sigmas) - 2))
        a, b = log_sigmas[low], log_sigmas[low + 1]
        w = np.clip((a - log_sigma) / (a - b), 0, 1)
        found.append((1 - w) * low + w * (low + 1))
    return np.array(found)


def between(config: Settings, sigmas: Array) -> tuple[float, float]:
    """The least and the largest noise level: the configuration's, or those of a schedule that goes down."""
    low, high = config.get("sigma_min"), config.get("sigma_max")
    return (sigmas[-1].item() if low is None else low), (sigmas[0].item() if high is None else high)


def karras(low: float, high: float, count: int) -> Array:
    """Noise levels of Karras et al. 2022, arXiv:2206.00364, equation 5, with rho 7."""
    ramp = np.linspace(0, 1, count)
    a, b = high ** (1 / 7.0), low ** (1 / 7.0)
    return (a + ramp * (b - a)) ** 7.0


def exponential(low: float, high: float, count: int) -> Array:
    """Noise levels whose logarithms are evenly spaced."""
    return np.exp(np.linspace(math.log(high), math.log(low), count))


def beta_spaced(low: float, high: float, count: int) -> Array:
    """Noise levels by quantiles of the beta distribution: Lee et al. 2024, arXiv:2407.12173."""
    return np.array([low + beta_quantile(p, 0.6, 0.6) * (high - low) for p in 1 - np.linspace(0, 1, count)])


def chosen_sigmas(config: Settings, sigmas: Array, count: int) -> Array | None:
    """The noise levels that a flag of the configuration asks for, of a schedule that goes down; None without one."""
    made = {"use_karras_sigmas": karras, "use_exponential_sigmas": exponential, "use_beta_sigmas": beta_spaced}
    for key, function in made.items():
        if config.get(key):
            return function(*between(config, sigmas), count)
    return None


def check_one_flag(name: str, config: Settings) -> None:
    """Raise where a configuration asks for two spacings of noise levels."""
    keys = ("use_beta_sigmas", "use_exponential_sigmas", "use_karras_sigmas")
    there = [key for key in keys if config.get(key)]
    if len(there) > 1:
        raise ValueError(f"{name}: only one of {', '.join(keys)} can be true; {' and '.join(there)} are.")


def beta_quantile(p: float, a: float, b: float) -> float:
    """Where the beta distribution's cumulative function is `p`.

    >>> from votive.models.diffusion.schedulers.tables import beta_quantile
    >>> round(beta_quantile(0.5, 0.6, 0.6), 9), round(beta_quantile(0.2, 2.0, 1.0), 9)
    (0.5, 0.447213595)
    """
    if p <= 0 or p >= 1:
        return float(p >= 1)
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _beta_cdf(middle, a, b) < p else (low, middle)
    return (low + high) / 2


def _beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction: Numerical Recipes, section 6.4."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_cdf(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    h = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            h *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return front * h / a
