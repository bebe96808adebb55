"""The scheduler of DDPM, which adds noise at each step: Ho et al. 2020, arXiv:2006.11239."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from ..gaussian import Generators
from ..output import SchedulerOutput
from . import tables
from .base import BETAS, AlphaScheduler


class DDPMScheduler(AlphaScheduler):
    """Ancestral steps through the trained timesteps.

    >>> from votive.models.diffusion import DDPMScheduler
    >>> scheduler = DDPMScheduler()
    >>> x = votive.ones(1, 1, 2, 2)
    >>> scheduler.step(votive.zeros(1, 1, 2, 2), 0, x).prev_sample.flatten()[:1]
    tensor([1.])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **BETAS,
        "variance_type": "fixed_small",
        "clip_sample": True,
        "prediction_type": "epsilon",
        "thresholding": False,
        "dynamic_thresholding_ratio": 0.995,
        "clip_sample_range": 1.0,
        "sample_max_value": 1.0,
        "timestep_spacing": "leading",
        "steps_offset": 0,
        "rescale_betas_zero_snr": False,
    }
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **AlphaScheduler.choices,
        "beta_schedule": ("linear", "scaled_linear", "squaredcos_cap_v2", "laplace", "sigmoid"),
        "variance_type": ("fixed_small", "fixed_small_log", "fixed_large", "learned", "learned_range"),
    }
    changing: ClassVar[tuple[str, ...]] = ("custom_timesteps",)
    custom_timesteps = False

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: votive.device | str | None = None,
        timesteps: list[int] | None = None,
    ) -> None:
        """Choose the timesteps of a run: so many, or your own, which go down."""
        name, trained = type(self).__name__, self.config.num_train_timesteps
        tables.one_of(name, num_inference_steps=num_inference_steps, timesteps=timesteps)
        if timesteps is not None:
            tables.check_descending(name, list(timesteps), trained)
            found, self.custom_timesteps = np.array(timesteps, np.int64), True
        else:
            count = tables.check_count(name, num_inference_steps, trained)
            self.num_inference_steps, self.custom_timesteps = count, False
            found = tables.spaced(self.config, count, self.config.timestep_spacing)
        self.timesteps = votive.from_numpy(found).to(device)

    def previous_timestep(self, timestep: int | Tensor) -> int:
        """The timestep after this one in a run; -1 behind the last."""
        t = int(timestep)
        if not (self.custom_timesteps or self.num_inference_steps):
            return t - 1
        steps = self.timesteps.tolist()
        if t not in steps:
            raise ValueError(f"{type(self).__name__}: {t} is none of the timesteps {steps[:4]} … of this run.")
        at = steps.index(t)
        return -1 if at == len(steps) - 1 else int(steps[at + 1])

    def step(
        self,
        model_output: Tensor,
        timestep: int | Tensor,
        sample: Tensor,
        generator: Generators = None,
        return_dict: bool = True,
        variance_noise: Tensor | None = None,
    ) -> SchedulerOutput | tuple[Tensor, Tensor]:
        """One step back; `variance_noise` stands for what would be drawn from the generator."""
        t = int(timestep)
        learned = None
        if model_output.shape[1] == 2 * sample.shape[1] and self.config.variance_type in ("learned", "learned_range"):
            model_output, learned = model_output.split(sample.shape[1], dim=1)
        alpha, before = self.alpha(t), self.alpha(self.previous_timestep(t))
        ratio = alpha / before
        clean = self._bounded(self._clean(model_output, sample, alpha))
        # Equation 7 of the paper.
        toward = float(before**0.5 * (1 - ratio) / (1 - alpha))
        stay = float(ratio**0.5 * (1 - before) / (1 - alpha))
        found = toward * clean + stay * sample
        if t > 0:
            noise = self._noise(model_output, generator, variance_noise)
            found = found + self._deviation(alpha, before, learned) * noise
        return SchedulerOutput(prev_sample=found, pred_original_sample=clean) if return_dict else (found, clean)

    def _deviation(self, alpha: Any, before: Any, learned: Tensor | None) -> Tensor | float:
        """The standard deviation of the noise of a step: equation 7, or Nichol & Dhariwal 2021, equation 15."""
        kind = self.config.variance_type
        beta = 1 - alpha / before
        variance = max((1 - before) / (1 - alpha) * beta, np.float32(1e-20))
        if kind in ("learned", "learned_range"):
            if learned is None:
                raise ValueError(
                    f"{type(self).__name__}.step: variance_type={kind!r} wants a model output with twice the channels "
                    "of the sample."
                )
            if kind == "learned":
                return learned**0.5
            share = (learned + 1) / 2
            return (0.5 * (share * float(np.log(beta)) + (1 - share) * float(np.log(variance)))).exp()
        return float((beta if kind == "fixed_large" else variance) ** 0.5)
