"""Linear multistep steps over the last slopes, after Crowson's k-diffusion."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from ..output import SchedulerOutput
from . import tables
from .base import BETAS
from .sigmas import SigmaScheduler


class LMSDiscreteScheduler(SigmaScheduler):
    """Each step follows the polynomial through the last slopes.

    >>> from votive.models.diffusion import LMSDiscreteScheduler
    >>> scheduler = LMSDiscreteScheduler()
    >>> scheduler.set_timesteps(3)
    >>> scheduler.timesteps
    tensor([999.0000, 499.5000,   0.0000])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **BETAS,
        "use_karras_sigmas": False,
        "use_exponential_sigmas": False,
        "use_beta_sigmas": False,
        "prediction_type": "epsilon",
        "timestep_spacing": "linspace",
        "steps_offset": 0,
    }
    changing: ClassVar[tuple[str, ...]] = ("derivatives",)

    def prepare(self) -> None:
        super().prepare()
        self.derivatives: list[Tensor] = []

    def set_timesteps(self, num_inference_steps: int, device: votive.device | str | None = None) -> None:
        """Choose how many steps a run has."""
        c = self.config
        count = tables.check_count(type(self).__name__, num_inference_steps, c.num_train_timesteps)
        self.num_inference_steps = count
        found = tables.spaced(c, count, c.timestep_spacing, np.float32)
        levels = self.levels_at(found)
        own = tables.chosen_sigmas(c, levels, count)
        if own is not None:
            levels, found = own, tables.sigma_to_t(own, np.log(self.trained)).astype(np.float32)
        self.derivatives = []
        self.take_schedule(np.append(levels, 0.0), found, device)

    def get_lms_coefficient(self, order: int, t: int, current_order: int) -> float:
        """The integral over a step of the polynomial that is 1 at one of the last levels and 0 at the others."""
        nodes, weights = np.polynomial.legendre.leggauss(order)
        a, b = float(self.levels[t]), float(self.levels[t + 1])
        x = (b - a) / 2 * nodes + (a + b) / 2
        value = np.ones_like(x)
        for k in range(order):
            if k != current_order:
                at = float(self.levels[t - k])
                value *= (x - at) / (float(self.levels[t - current_order]) - at)
        return float((b - a) / 2 * (weights * value).sum())

    def step(
        self, model_output: Tensor, timestep: Tensor | float, sample: Tensor, order: int = 4, return_dict: bool = True
    ) -> SchedulerOutput | tuple[Tensor, Tensor]:
        """One step back, over at most `order` slopes."""
        self.check_step(timestep)
        index = self.index_of(timestep)
        sigma = self.levels[index]
        clean = self._denoised(model_output, sample, sigma)
        self.derivatives = [*self.derivatives, (sample - clean) / float(sigma)][-order:]
        order = min(index + 1, order)
        found = sample
        for i, slope in zip(range(order), reversed(self.derivatives), strict=False):
            found = found + self.get_lms_coefficient(order, index, i) * slope
        self.advance()
        return SchedulerOutput(prev_sample=found, pred_original_sample=clean) if return_dict else (found, clean)
