"""What the multistep solvers of the diffusion equation share: their schedules, and what an answer means.

Lu et al. 2022, arXiv:2206.00927 and arXiv:2211.01095; Zhao et al. 2023, arXiv:2302.04867. A level `sigma` stands for
the shares `alpha` of signal and `sigma alpha` of noise. Knows no step's arithmetic.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from . import tables
from .base import thresholded
from .sigmas import SigmaScheduler
from .tables import Array


class MultistepSolver(SigmaScheduler):
    """A solver that remembers the last answers, as many as its order."""

    changing: ClassVar[tuple[str, ...]] = ("model_outputs", "lower_order_nums")
    scales_input = False

    def prepare(self) -> None:
        super().prepare()
        self.forget()

    def forget(self) -> None:
        """Before the first step."""
        self.model_outputs: list[Tensor | None] = [None] * self.config.solver_order
        self.lower_order_nums = 0

    @property
    def init_noise_sigma(self) -> float:
        return 1.0

    def parts(self, sigma: Any) -> tuple[Any, Any]:
        """The shares of signal and noise at a level."""
        if self.config.use_flow_sigmas:
            return 1 - sigma, sigma
        alpha = 1 / (sigma**2 + 1) ** 0.5
        return alpha, sigma * alpha

    def log_ratio(self, index: int) -> tuple[Any, Any, Any]:
        """Shares of signal and noise at a step, and the logarithm of their ratio; infinite where there is no noise."""
        alpha, sigma = self.parts(self.levels[index])
        with np.errstate(divide="ignore"):
            return alpha, sigma, np.log(alpha) - np.log(sigma)

    def counted_down(self, count: int, last: int) -> Array:
        """`count` timesteps from `last` down, as spaced as the configuration says."""
        c = self.config
        if c.timestep_spacing == "linspace":
            return np.linspace(0, last - 1, count + 1).round()[::-1][:-1].astype(np.int64)
        if c.timestep_spacing == "leading":
            ratio = last // (count + 1)
            return (np.arange(count + 1) * ratio)[::-1][:-1].astype(np.int64) + c.steps_offset
        return np.arange(last, 0, -c.num_train_timesteps / count).round().astype(np.int64) - 1

    def index_of_unknown(self, timestep: float, steps: list[float]) -> int:
        """The last step, for a timestep that is none of the schedule's."""
        del timestep
        return len(steps) - 1

    def add_noise(self, original_samples: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        """Clean samples as they are at timesteps (batch,) of the schedule."""
        alpha, sigma = self.parts(self._sigma_at(timesteps, original_samples))
        return alpha * original_samples + sigma * noise

    def clean_of(self, output: Tensor, sample: Tensor, index: int) -> Tensor:
        """The clean sample that an answer means at a step, within the configuration's bounds."""
        kind = self.config.prediction_type
        alpha, sigma = (float(x) for x in self.parts(self.levels[index]))
        if kind == "epsilon":
            found = (sample - sigma * output) / alpha
        elif kind == "sample":
            found = output
        elif kind == "v_prediction":
            found = alpha * sample - sigma * output
        else:
            found = sample - float(self.levels[index]) * output
        return self.bounded(found)

    def bounded(self, clean: Tensor) -> Tensor:
        """A clean sample within its own quantile, if the configuration asks for it."""
        c = self.config
        return thresholded(clean, c.dynamic_thresholding_ratio, c.sample_max_value) if c.thresholding else clean

    def noise_of(self, output: Tensor, sample: Tensor, index: int) -> Tensor:
        """The noise that an answer means at a step."""
        kind = self.config.prediction_type
        if kind == "epsilon":
            return output
        alpha, sigma = (float(x) for x in self.parts(self.levels[index]))
        if kind == "flow_prediction":
            raise ValueError(f"{type(self).__name__}: flow_prediction goes with solvers of the clean sample only.")
        return (sample - alpha * output) / sigma if kind == "sample" else alpha * output + sigma * sample

    def remember(self, output: Tensor) -> None:
        """Keep an answer as the newest."""
        self.model_outputs = [*self.model_outputs[1:], output]


def as_run(scheduler: MultistepSolver, levels: Array, timesteps: Array, device: votive.device | str | None) -> None:
    """Begin a run of a solver."""
    scheduler.num_inference_steps = len(timesteps)
    scheduler.forget()
    scheduler.take_schedule(levels, timesteps.astype(np.int64), device)


def last_level(config: Any, trained: Array) -> float:
    """The noise level behind the last step."""
    return 0.0 if config.final_sigmas_type == "zero" else float(trained[0])


__all__ = ["MultistepSolver", "as_run", "last_level", "tables"]
