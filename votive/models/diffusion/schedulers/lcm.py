"""The scheduler of latent consistency models, of few steps: Luo et al. 2023, arXiv:2310.04378."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from ..gaussian import Generators
from ..output import LCMSchedulerOutput
from . import tables
from .base import AlphaScheduler
from .ddim import DDIMScheduler
from .sigmas import StepIndex


class LCMScheduler(StepIndex, AlphaScheduler):
    """Each step goes to a clean sample and puts noise over it again.

    >>> from votive.models.diffusion import LCMScheduler
    >>> scheduler = LCMScheduler()
    >>> scheduler.set_timesteps(4)
    >>> scheduler.timesteps
    tensor([999, 759, 499, 259])
    """

    defaults: ClassVar[dict[str, Any]] = {
        "num_train_timesteps": 1000,
        "beta_start": 0.00085,
        "beta_end": 0.012,
        "beta_schedule": "scaled_linear",
        "trained_betas": None,
        "original_inference_steps": 50,
        "clip_sample": False,
        "clip_sample_range": 1.0,
        **{k: DDIMScheduler.defaults[k] for k in ("set_alpha_to_one", "steps_offset", "prediction_type")},
        "thresholding": False,
        "dynamic_thresholding_ratio": 0.995,
        "sample_max_value": 1.0,
        "timestep_spacing": "leading",
        "timestep_scaling": 10.0,
        "rescale_betas_zero_snr": False,
    }
    changing: ClassVar[tuple[str, ...]] = ("custom_timesteps",)
    custom_timesteps = False

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: votive.device | str | None = None,
        original_inference_steps: int | None = None,
        timesteps: list[int] | None = None,
        strength: float = 1.0,
    ) -> None:
        """Choose some of the timesteps that the model was distilled with, of which there are so many."""
        name, trained = type(self).__name__, self.config.num_train_timesteps
        tables.one_of(name, num_inference_steps=num_inference_steps, timesteps=timesteps)
        original = original_inference_steps or self.config.original_inference_steps
        if original > trained:
            raise ValueError(f"{name}.set_timesteps: original_inference_steps={original} is more than {trained}.")
        known = np.arange(1, int(original * strength) + 1) * (trained // original) - 1
        if timesteps is not None:
            tables.check_descending(name, list(timesteps), trained)
            strange = [t for t in timesteps[1:] if t not in known]
            if strange or len(timesteps) > original:
                warnings.warn(
                    f"{name}.set_timesteps: the model was not distilled with timesteps {strange[:4] or timesteps[:4]}"
                    f"; it knows {original}.",
                    stacklevel=2,
                )
            self.num_inference_steps, self.custom_timesteps = len(timesteps), True
            kept = min(int(len(timesteps) * strength), len(timesteps))
            found = np.array(timesteps, np.int64)[len(timesteps) - kept :]
        else:
            count = tables.check_count(name, num_inference_steps, trained)
            if count > original or len(known) < count:
                raise ValueError(
                    f"{name}.set_timesteps: num_inference_steps={count} is more than the {min(len(known), original)} "
                    f"timesteps that original_inference_steps={original} and strength={strength} leave."
                )
            self.num_inference_steps, self.custom_timesteps = count, False
            at = np.floor(np.linspace(0, len(known), num=count, endpoint=False)).astype(np.int64)
            found = known[::-1][at]
        self.timesteps = votive.from_numpy(np.ascontiguousarray(found, np.int64)).to(device)
        self.reset_index()

    def get_scalings_for_boundary_condition_discrete(self, timestep: int) -> tuple[float, float]:
        """How much of the sample stays and how much of the clean one comes, appendix C."""
        scaled, data = timestep * self.config.timestep_scaling, 0.5
        return data**2 / (scaled**2 + data**2), scaled / (scaled**2 + data**2) ** 0.5

    def step(
        self,
        model_output: Tensor,
        timestep: int | Tensor,
        sample: Tensor,
        generator: Generators = None,
        return_dict: bool = True,
        variance_noise: Tensor | None = None,
    ) -> LCMSchedulerOutput | tuple[Tensor, Tensor]:
        """One step back; `variance_noise` stands for what would be drawn from the generator."""
        self.check_ready()
        t, index = int(timestep), self.index_of(timestep)
        following = index + 1
        before = self.alpha(int(self.timesteps[following]) if following < len(self.timesteps) else t)
        clean = self._bounded(self._clean(model_output, sample, self.alpha(t)))
        stay, out = self.get_scalings_for_boundary_condition_discrete(t)
        denoised = out * clean + stay * sample
        found = denoised
        if index != (self.num_inference_steps or 0) - 1:
            noise = self._noise(model_output, generator, variance_noise, denoised.dtype)
            found = float(before**0.5) * denoised + float((1 - before) ** 0.5) * noise
        self.advance()
        return LCMSchedulerOutput(prev_sample=found, denoised=denoised) if return_dict else (found, denoised)
