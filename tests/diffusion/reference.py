"""diffusers, where it is installed, and what runs its objects and votive's side by side."""

from __future__ import annotations

import contextlib
import math
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import votive
from votive.models.diffusion import schedulers as ours

torch = pytest.importorskip("torch", reason="compares with torch")
with warnings.catch_warnings():
    # Libraries that it looks for on import warn of things of their own.
    warnings.simplefilter("ignore")
    diffusers = pytest.importorskip("diffusers", reason="compares with diffusers")
    from diffusers import schedulers as theirs
diffusers.utils.logging.set_verbosity_error()

# Relative to the largest value, or to one: steps in float32 of another order differ by no more.
CLOSE = 1e-5
SHAPE = (2, 4, 6, 6)


def agree(got: Any, expected: Any, what: str = "", tolerance: float = CLOSE, beside: float = 1.0) -> None:
    """Equal shapes, and values within `tolerance` of the largest one, or of what they are a difference of."""
    a, b = _array(got), _array(expected)
    assert a.shape == b.shape, f"{what}: {a.shape}, not {b.shape}"
    assert np.isfinite(b).all(), f"{what}: the reference is not finite"
    worst, scale = np.abs(a - b).max(initial=0.0), max(beside, np.abs(b).max(initial=0.0))
    assert worst <= tolerance * scale, f"{what}: {worst / scale:.2e}"


def _array(x: Any) -> Any:
    return np.asarray(x.detach().numpy() if hasattr(x, "detach") else x, np.float64)


def drawn(seed: int = 0, count: int = 1, shape: tuple[int, ...] = SHAPE) -> Any:
    """Normal noise; that of all tests."""
    found = np.random.default_rng(seed).standard_normal((count, *shape)).astype(np.float32)
    return found[0] if count == 1 else found


def answer(x: Any, t: float, channels: int | None = None) -> Any:
    """What a network might say: bounded, smooth, not linear, and another at each timestep."""
    found = np.tanh(0.7 * x + 0.2 * math.sin(0.01 * t) + 0.1 * np.roll(x, 1, -1))
    if channels is not None and channels != x.shape[1]:
        found = np.concatenate([found, np.cos(found) * 0.5], 1)
    return found.astype(np.float32)


@contextlib.contextmanager
def same_noise(seed: int = 1) -> Iterator[list[int]]:
    """While the block runs, the draws of both libraries' schedulers are the same, by their number.

    The list counts how many each made.
    """
    counts = [0, 0]

    def their_draw(shape: Any, *args: Any, **kwargs: Any) -> Any:
        counts[0] += 1
        return torch.from_numpy(drawn(seed + counts[0], 1, tuple(shape)))

    def our_draw(shape: tuple[int, ...], *args: Any, **kwargs: Any) -> Any:
        counts[1] += 1
        return votive.from_numpy(drawn(seed + counts[1], 1, shape))

    with pytest.MonkeyPatch.context() as patch:
        for name in ours.__all__:
            kind = getattr(theirs, name, None)
            if kind is not None and hasattr(module := sys.modules[kind.__module__], "randn_tensor"):
                patch.setattr(module, "randn_tensor", their_draw)
        patch.setattr(ours.base, "randn", our_draw)
        patch.setattr(ours.flow_match_euler, "randn", our_draw)
        yield counts


def pair(name: str, **config: Any) -> tuple[Any, Any]:
    """diffusers' scheduler of a name and configuration, and votive's."""
    return getattr(theirs, name)(**config), getattr(ours, name)(**config)


def set_both(pair: tuple[Any, Any], **how: Any) -> None:
    """Set the timesteps of both, and compare what the runs begin with."""
    reference, scheduler = pair
    reference.set_timesteps(**how)
    scheduler.set_timesteps(**how)
    agree(scheduler.timesteps, reference.timesteps, "timesteps")
    assert scheduler.timesteps.is_floating_point() == reference.timesteps.is_floating_point()
    if hasattr(reference, "sigmas"):
        agree(scheduler.sigmas, reference.sigmas, "sigmas")
    if hasattr(reference, "init_noise_sigma"):
        agree(scheduler.init_noise_sigma, reference.init_noise_sigma, "init_noise_sigma")


def follow(pair: tuple[Any, Any], channels: int | None = None, first: int = 0, **options: Any) -> None:
    """Take all steps of both with one network, each from its own samples, and compare them on the way."""
    reference, scheduler = pair
    start = drawn(0) * float(getattr(reference, "init_noise_sigma", 1.0))
    theirs_x, x = torch.from_numpy(start.copy()), votive.from_numpy(start.copy())
    scaled = hasattr(reference, "scale_model_input")
    # Without any signal at the end the noise is 4096 times as strong as what it is taken from in the first step, and
    # what is left has the rounding of such numbers.
    strong = reference.config.get("rescale_betas_zero_snr") and float(getattr(reference, "init_noise_sigma", 1.0)) > 1e3
    beside = float(np.abs(start).max()) if strong else 1.0
    with same_noise() as counts:
        for i in range(first, len(reference.timesteps)):
            their_t, t = reference.timesteps[i], scheduler.timesteps[i]
            seen = reference.scale_model_input(theirs_x, their_t) if scaled else theirs_x
            own = scheduler.scale_model_input(x, t)
            agree(own, seen, f"input of step {i}", beside=beside)
            there = torch.from_numpy(answer(seen.numpy(), float(their_t), channels))
            here = votive.from_numpy(answer(own.numpy(), float(t), channels))
            expected = reference.step(there, their_t, theirs_x, **options)
            got = scheduler.step(here, t, x, **options)
            agree(got.prev_sample, expected.prev_sample, f"step {i}", beside=beside)
            for key in ("pred_original_sample", "denoised"):
                if getattr(expected, key, None) is not None:
                    agree(getattr(got, key), getattr(expected, key), f"{key} of step {i}", beside=beside)
            theirs_x, x = expected.prev_sample, got.prev_sample
        assert counts[0] == counts[1]
