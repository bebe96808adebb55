"""Heun's steps, two calls each: Karras et al. 2022, arXiv:2206.00364, algorithm 1."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from ..output import SchedulerOutput
from . import tables
from .sigmas import SigmaScheduler


class HeunDiscreteScheduler(SigmaScheduler):
    """A step of Euler's, and another with the mean of the slopes at both its ends.

    >>> from votive.models.diffusion import HeunDiscreteScheduler
    >>> scheduler = HeunDiscreteScheduler()
    >>> scheduler.set_timesteps(2)
    >>> scheduler.timesteps
    tensor([999.,   0.,   0.])
    """

    defaults: ClassVar[dict[str, Any]] = {
        "num_train_timesteps": 1000,
        "beta_start": 0.00085,
        "beta_end": 0.012,
        "beta_schedule": "linear",
        "trained_betas": None,
        "prediction_type": "epsilon",
        "use_karras_sigmas": False,
        "use_exponential_sigmas": False,
        "use_beta_sigmas": False,
        "clip_sample": False,
        "clip_sample_range": 1.0,
        "timestep_spacing": "linspace",
        "steps_offset": 0,
    }
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **SigmaScheduler.choices,
        "beta_schedule": ("linear", "scaled_linear", "squaredcos_cap_v2", "exp"),
    }
    changing: ClassVar[tuple[str, ...]] = ("prev_derivative", "dt", "sample")
    order = 2

    def prepare(self) -> None:
        super().prepare()
        self._forget()

    def _forget(self) -> None:
        self.prev_derivative: Tensor | None = None
        self.dt: float | None = None
        self.sample: Tensor | None = None

    @property
    def state_in_first_order(self) -> bool:
        """Whether the next call is the first of a step."""
        return self.dt is None

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: votive.device | str | None = None,
        num_train_timesteps: int | None = None,
        timesteps: list[int] | None = None,
    ) -> None:
        """Choose the timesteps of a run: so many, or your own."""
        c, name = self.config, type(self).__name__
        tables.one_of(name, num_inference_steps=num_inference_steps, timesteps=timesteps)
        flags = [k for k in ("use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas") if c[k]]
        if timesteps is not None and flags:
            raise ValueError(f"{name}.set_timesteps: timesteps of your own do not go with {flags[0]}.")
        if timesteps is not None:
            found = np.array(timesteps, np.float32)
        else:
            trained = num_train_timesteps or c.num_train_timesteps
            count = tables.check_count(name, num_inference_steps, trained)
            settings = type(c)({**c, "num_train_timesteps": trained})
            found = tables.spaced(settings, count, c.timestep_spacing, np.float32)
        self.num_inference_steps = count = len(timesteps) if timesteps is not None else num_inference_steps or 0
        levels = self.levels_at(found)
        own = tables.chosen_sigmas(c, levels, count)
        if own is not None:
            levels, found = own, tables.sigma_to_t(own, np.log(self.trained))
        levels = np.concatenate([levels[:1], levels[1:].repeat(2), [0.0]])
        found = np.concatenate([found[:1], found[1:].repeat(2)]).astype(np.float32)
        self._forget()
        self.take_schedule(levels, found, device)

    def check_step(self, timestep: Tensor | float) -> None:
        """Raise before timesteps are set."""
        del timestep
        self.check_ready()

    def step(
        self, model_output: Tensor, timestep: Tensor | float, sample: Tensor, return_dict: bool = True
    ) -> SchedulerOutput | tuple[Tensor, Tensor]:
        """The first half of a step, or the second, by turns."""
        self.check_step(timestep)
        index = self.index_of(timestep)
        first = self.state_in_first_order
        sigma, after = self.levels[index - (not first)], self.levels[index + 1 - (not first)]
        clean = self._bounded(self._denoised(model_output, sample, sigma if first else after))
        if first:
            slope = (sample - clean) / float(sigma)
            dt = float(after - sigma)
            self.prev_derivative, self.dt, self.sample = slope, dt, sample
            found = sample + slope * dt
        else:
            assert self.prev_derivative is not None, "the first half kept it"
            assert self.dt is not None, "the first half kept it"
            assert self.sample is not None, "the first half kept it"
            slope = (self.prev_derivative + (sample - clean) / float(after)) / 2
            found = self.sample + slope * self.dt
            self._forget()
        self.advance()
        return SchedulerOutput(prev_sample=found, pred_original_sample=clean) if return_dict else (found, clean)
