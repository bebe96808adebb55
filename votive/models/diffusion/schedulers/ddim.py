"""The scheduler of DDIM, whose steps need no noise: Song et al. 2021, arXiv:2010.02502."""

from __future__ import annotations

from typing import Any, ClassVar

import votive

from ....tensor import Tensor
from ..gaussian import Generators
from ..output import SchedulerOutput
from . import tables
from .base import BETAS, AlphaScheduler


class DDIMScheduler(AlphaScheduler):
    """Steps over several timesteps at once, with as much noise as `eta` says.

    >>> from votive.models.diffusion import DDIMScheduler
    >>> scheduler = DDIMScheduler(steps_offset=1)
    >>> scheduler.set_timesteps(4)
    >>> scheduler.timesteps
    tensor([751, 501, 251,   1])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **BETAS,
        "clip_sample": True,
        "set_alpha_to_one": True,
        "steps_offset": 0,
        "prediction_type": "epsilon",
        "thresholding": False,
        "dynamic_thresholding_ratio": 0.995,
        "clip_sample_range": 1.0,
        "sample_max_value": 1.0,
        "timestep_spacing": "leading",
        "rescale_betas_zero_snr": False,
    }

    def set_timesteps(self, num_inference_steps: int, device: votive.device | str | None = None) -> None:
        """Choose how many steps a run has."""
        count = tables.check_count(type(self).__name__, num_inference_steps, self.config.num_train_timesteps)
        self.num_inference_steps = count
        found = tables.spaced(self.config, count, self.config.timestep_spacing)
        self.timesteps = votive.from_numpy(found).to(device)

    def step(
        self,
        model_output: Tensor,
        timestep: int | Tensor,
        sample: Tensor,
        eta: float = 0.0,
        use_clipped_model_output: bool = False,
        generator: Generators = None,
        variance_noise: Tensor | None = None,
        return_dict: bool = True,
    ) -> SchedulerOutput | tuple[Tensor, Tensor]:
        """One step back by equation 12; `use_clipped_model_output` takes the noise of the clipped clean sample."""
        self.check_ready()
        assert self.num_inference_steps is not None, "that was checked"
        t = int(timestep)
        alpha = self.alpha(t)
        before = self.alpha(t - self.config.num_train_timesteps // self.num_inference_steps)
        signal, rest = float(alpha**0.5), float((1 - alpha) ** 0.5)
        clean = self._clean(model_output, sample, alpha)
        noise = model_output
        if self.config.prediction_type == "sample":
            noise = (sample - signal * clean) / rest
        elif self.config.prediction_type == "v_prediction":
            noise = signal * model_output + rest * sample
        clean = self._bounded(clean)
        if use_clipped_model_output:
            noise = (sample - signal * clean) / rest
        deviation = eta * ((1 - before) / (1 - alpha) * (1 - alpha / before)) ** 0.5
        found = float(before**0.5) * clean + float((1 - before - deviation**2) ** 0.5) * noise
        if eta > 0:
            found = found + float(deviation) * self._noise(model_output, generator, variance_noise)
        return SchedulerOutput(prev_sample=found, pred_original_sample=clean) if return_dict else (found, clean)
