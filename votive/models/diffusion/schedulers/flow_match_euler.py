"""Euler's steps along a flow from noise to pictures: Lipman et al. 2022, arXiv:2210.02747; Esser et al. 2024."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from ..gaussian import Generators, randn
from ..output import SchedulerOutput
from . import tables
from .base import Scheduler
from .sigmas import StepIndex
from .tables import Array
from .unipc import shifted, stretched


class FlowMatchEulerDiscreteScheduler(StepIndex, Scheduler):
    """Straight steps where `x = (1 - sigma) x_0 + sigma noise` and the model gives the direction.

    >>> from votive.models.diffusion import FlowMatchEulerDiscreteScheduler
    >>> scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    >>> scheduler.set_timesteps(2)
    >>> scheduler.sigmas
    tensor([1.0000, 0.0089, 0.0000])
    """

    defaults: ClassVar[dict[str, Any]] = {
        "num_train_timesteps": 1000,
        "shift": 1.0,
        "use_dynamic_shifting": False,
        "base_shift": 0.5,
        "max_shift": 1.15,
        "base_image_seq_len": 256,
        "max_image_seq_len": 4096,
        "invert_sigmas": False,
        "shift_terminal": None,
        "use_karras_sigmas": False,
        "use_exponential_sigmas": False,
        "use_beta_sigmas": False,
        "time_shift_type": "exponential",
        "stochastic_sampling": False,
    }
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {"time_shift_type": ("exponential", "linear")}
    changing: ClassVar[tuple[str, ...]] = ("levels",)

    def prepare(self) -> None:
        """The schedule of training."""
        c = self.config
        tables.check_one_flag(type(self).__name__, c)
        trained = c.num_train_timesteps
        levels = np.linspace(1, trained, trained, dtype=np.float32)[::-1] / np.float32(trained)
        self._shift = c.shift
        if not c.use_dynamic_shifting:
            levels = c.shift * levels / (1 + (c.shift - 1) * levels)
        self.levels: Array = levels.astype(np.float32)
        self.timesteps = votive.from_numpy(self.levels * np.float32(trained))
        self.sigma_min, self.sigma_max = self.levels[-1].item(), self.levels[0].item()

    @property
    def sigmas(self) -> Tensor:
        """The noise level of each step, and one behind the last."""
        return votive.from_numpy(self.levels)

    @property
    def shift(self) -> float:
        """How far levels are moved toward noise."""
        return float(self._shift)

    def set_shift(self, shift: float) -> None:
        """Move the levels of the next run by another number."""
        self._shift = shift

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: votive.device | str | None = None,
        sigmas: list[float] | None = None,
        mu: float | None = None,
        timesteps: list[float] | None = None,
    ) -> None:
        """Choose the levels of a run: so many, or your own, which are shifted; the model is told `timesteps`."""
        c, name = self.config, type(self).__name__
        if c.use_dynamic_shifting != (mu is not None):
            raise ValueError(f"{name}.set_timesteps: mu goes with use_dynamic_shifting=True, and it with mu.")
        lengths = {len(x) for x in (sigmas, timesteps) if x is not None}
        lengths |= {num_inference_steps} if num_inference_steps is not None else set()
        if len(lengths) != 1:
            raise ValueError(
                f"{name}.set_timesteps: give num_inference_steps, sigmas or timesteps; of one length, if several."
            )
        (count,) = lengths
        trained = c.num_train_timesteps
        told = None if timesteps is None else np.array(timesteps, np.float32)
        if sigmas is not None:
            levels = np.array(sigmas, np.float32)
        else:
            at = np.linspace(self.sigma_max * trained, self.sigma_min * trained, count) if told is None else told
            levels = at / trained
        if mu is not None:
            levels = shifted(mu, levels, c.time_shift_type)
        else:
            levels = self.shift * levels / (1 + (self.shift - 1) * levels)
        if c.shift_terminal:
            levels = stretched(levels, c.shift_terminal)
        own = tables.chosen_sigmas(c, levels, count)
        levels = (levels if own is None else own).astype(np.float32)
        told = levels * np.float32(trained) if told is None else told
        if c.invert_sigmas:
            levels = 1 - levels
            told = levels * np.float32(trained)
        self.num_inference_steps = count
        self.levels = np.append(levels, np.float32(c.invert_sigmas))
        self.timesteps = votive.from_numpy(np.ascontiguousarray(told)).to(device)
        self.reset_index()

    def scale_noise(self, sample: Tensor, timestep: Tensor, noise: Tensor) -> Tensor:
        """Clean samples as they are at timesteps (batch,) of the schedule."""
        if self.begin_index is None:
            indices = [self.index_for_timestep(t) for t in timestep.tolist()]
        else:
            index = self.begin_index if self.step_index is None else self.step_index
            indices = [index] * timestep.shape[0]
        sigma = self.sigmas[votive.tensor(indices)].to(device=sample.device, dtype=sample.dtype)
        sigma = sigma.view(-1, *([1] * (sample.dim() - 1)))
        return sigma * noise + (1.0 - sigma) * sample

    def step(
        self,
        model_output: Tensor,
        timestep: Tensor | float,
        sample: Tensor,
        s_churn: float = 0.0,
        s_tmin: float = 0.0,
        s_tmax: float = math.inf,
        s_noise: float = 1.0,
        generator: Generators = None,
        per_token_timesteps: Tensor | None = None,
        return_dict: bool = True,
        variance_noise: Tensor | None = None,
    ) -> SchedulerOutput | tuple[Tensor]:
        """One step; with `stochastic_sampling`, to the clean sample and up again with new noise."""
        self.check_ready()
        if (s_churn, s_tmin, s_tmax, s_noise) != (0.0, 0.0, math.inf, 1.0) or per_token_timesteps is not None:
            raise ValueError(
                f"{type(self).__name__}.step: s_churn, s_tmin, s_tmax, s_noise and per_token_timesteps have no effect "
                "on this rule; leave them out."
            )
        if isinstance(timestep, int) or (isinstance(timestep, Tensor) and not timestep.is_floating_point()):
            raise ValueError(
                f"{type(self).__name__}.step: a whole number came as timestep; pass one of "
                "scheduler.timesteps, not the number of the step."
            )
        index = self.index_of(timestep)
        sigma, after, x = self.levels[index], self.levels[index + 1], sample.float()
        if self.config.stochastic_sampling:
            clean = x - float(sigma) * model_output
            if variance_noise is None:
                variance_noise = randn(tuple(x.shape), generator, x.device, x.dtype)
            found = float(1 - after) * clean + float(after) * variance_noise
        else:
            found = x + float(after - sigma) * model_output
        self.advance()
        found = found.to(model_output.dtype)
        return SchedulerOutput(prev_sample=found) if return_dict else (found,)
