"""How pipelines ask their scheduler: timesteps, options of a step, settings of early files. Knows no network."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import votive

from ...tensor import Tensor
from .gaussian import Generators
from .schedulers.base import Scheduler


def set_timesteps(
    scheduler: Scheduler,
    count: int,
    device: votive.device,
    timesteps: list[int] | None = None,
    sigmas: list[float] | None = None,
) -> Tensor:
    """The timesteps of a run of so many steps, or one's own where the scheduler takes them."""
    if timesteps is not None and sigmas is not None:
        raise ValueError("give timesteps or sigmas, not both.")
    setter: Any = scheduler.set_timesteps  # type: ignore[attr-defined]
    for name, value in (("timesteps", timesteps), ("sigmas", sigmas)):
        if value is None:
            continue
        if name not in inspect.signature(setter).parameters:
            raise ValueError(f"{type(scheduler).__name__} takes no {name} of one's own; pass num_inference_steps.")
        setter(**{name: value}, device=device)
        return scheduler.timesteps
    setter(count, device=device)
    return scheduler.timesteps


def step_options(scheduler: Scheduler, eta: float, generator: Generators) -> dict[str, Any]:
    """What a scheduler's `step` takes beside the sample: schedulers that draw nothing take no generator."""
    taken = inspect.signature(scheduler.step).parameters  # type: ignore[attr-defined]
    if eta != 0 and "eta" not in taken:
        raise ValueError(f"{type(scheduler).__name__} has no eta, which is DDIM's; leave it at 0.")
    found: dict[str, Any] = {"eta": eta} if "eta" in taken else {}
    return {**found, **({"generator": generator} if "generator" in taken else {})}


def mended_settings(name: str, unet: Any, scheduler: Scheduler) -> None:
    """What files of early versions say wrongly, as diffusers mends it; warnings tell."""
    if scheduler.config.get("steps_offset", 1) != 1:
        warnings.warn(f"{name}: the scheduler's steps_offset is taken to be 1, as these models need it.", stacklevel=3)
        scheduler.change_config(steps_offset=1)
    if scheduler.config.get("clip_sample", False):
        warnings.warn(
            f"{name}: the scheduler's clip_sample is taken to be False: latents have no bounds.", stacklevel=3
        )
        scheduler.change_config(clip_sample=False)
    version = str(unet.config.get("_diffusers_version", "1")).split(".")
    early = len(version) > 1 and version[0] == "0" and version[1].isdigit() and int(version[1]) < 9
    size = unet.config.sample_size
    if early and isinstance(size, int) and size < 64:
        warnings.warn(f"{name}: the denoiser's sample_size is taken to be 64, not {size}.", stacklevel=3)
        unet.change_config(sample_size=64)
