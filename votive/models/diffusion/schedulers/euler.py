"""Euler's steps along the noise levels, plain and ancestral: Karras et al. 2022, arXiv:2206.00364, algorithm 2."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from ..gaussian import Generators
from ..output import SchedulerOutput
from . import tables
from .base import BETAS
from .sigmas import SigmaScheduler


class EulerDiscreteScheduler(SigmaScheduler):
    """Straight steps from one noise level to the next.

    >>> from votive.models.diffusion import EulerDiscreteScheduler
    >>> scheduler = EulerDiscreteScheduler(use_karras_sigmas=True, beta_schedule="scaled_linear")
    >>> scheduler.set_timesteps(3)
    >>> scheduler.sigmas.shape
    votive.Size([4])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **BETAS,
        "prediction_type": "epsilon",
        "interpolation_type": "linear",
        "use_karras_sigmas": False,
        "use_exponential_sigmas": False,
        "use_beta_sigmas": False,
        "sigma_min": None,
        "sigma_max": None,
        "timestep_spacing": "linspace",
        "timestep_type": "discrete",
        "steps_offset": 0,
        "rescale_betas_zero_snr": False,
        "final_sigmas_type": "zero",
    }
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **SigmaScheduler.choices,
        "prediction_type": ("epsilon", "sample", "v_prediction", "original_sample"),
        "interpolation_type": ("linear", "log_linear"),
        "timestep_type": ("discrete", "continuous"),
        "final_sigmas_type": ("zero", "sigma_min"),
    }
    refuses_integers = True

    @property
    def _continuous(self) -> bool:
        return bool(self.config.timestep_type == "continuous" and self.config.prediction_type == "v_prediction")

    def prepare(self) -> None:
        super().prepare()
        if self._continuous:
            self.timesteps = votive.from_numpy(0.25 * np.log(self.levels[:-1]))

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: votive.device | str | None = None,
        timesteps: list[int] | None = None,
        sigmas: list[float] | None = None,
    ) -> None:
        """Choose the timesteps of a run: so many, or your own, or your own noise levels with the last behind them."""
        c, name = self.config, type(self).__name__
        tables.one_of(name, num_inference_steps=num_inference_steps, timesteps=timesteps, sigmas=sigmas)
        flags = [k for k in ("use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas") if c[k]]
        if timesteps is not None and (flags or self._continuous):
            raise ValueError(
                f"{name}.set_timesteps: timesteps of your own do not go with "
                f"{flags[0] if flags else 'continuous timesteps'}, which chooses them; pass num_inference_steps."
            )
        log_trained = np.log(self.trained)
        if sigmas is not None:
            levels = np.array(sigmas, np.float32)
            self.num_inference_steps = len(levels) - 1
            found = tables.sigma_to_t(levels[:-1], log_trained)
        else:
            if timesteps is not None:
                found = np.array(timesteps, np.float32)
            else:
                count = tables.check_count(name, num_inference_steps, c.num_train_timesteps)
                found = tables.spaced(c, count, c.timestep_spacing, np.float32)
            self.num_inference_steps = len(timesteps) if timesteps is not None else num_inference_steps
            count = self.num_inference_steps or 0
            if c.interpolation_type == "linear":
                levels = self.levels_at(found)
            else:
                ends = float(log_trained[-1]), float(log_trained[0])
                levels = votive.linspace(*ends, count + 1, dtype=votive.float32).exp().numpy()
            own = tables.chosen_sigmas(c, levels, count)
            if own is not None:
                levels, found = own, tables.sigma_to_t(own, log_trained)
            last = 0.0 if c.final_sigmas_type == "zero" else self.trained[0]
            levels = np.concatenate([levels, [last]])
        if self._continuous:
            found = 0.25 * np.log(levels[:-1].astype(np.float32))
        self.take_schedule(levels, found.astype(np.float32), device)

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
        return_dict: bool = True,
        variance_noise: Tensor | None = None,
    ) -> SchedulerOutput | tuple[Tensor, Tensor]:
        """One step back; with `s_churn`, some noise is added before, between the levels `s_tmin` and `s_tmax`."""
        self.check_step(timestep)
        index = self.index_of(timestep)
        sigma, x = self.levels[index], sample.float()
        churned = min(s_churn / (len(self.levels) - 1), 2**0.5 - 1) if s_tmin <= sigma <= s_tmax else 0.0
        higher = sigma * np.float32(churned + 1)
        if churned > 0:
            noise = self._noise(model_output, generator, variance_noise) * s_noise
            x = x + noise * float((higher**2 - sigma**2) ** 0.5)
        kind = self.config.prediction_type
        if kind in ("sample", "original_sample"):
            clean = model_output
        elif kind == "epsilon":
            clean = x - float(higher) * model_output
        else:
            clean = self._denoised(model_output, x, sigma)
        slope = (x - clean) / float(higher)
        found = (x + slope * float(self.levels[index + 1] - higher)).to(model_output.dtype)
        self.advance()
        return SchedulerOutput(prev_sample=found, pred_original_sample=clean) if return_dict else (found, clean)

    def get_velocity(self, sample: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        """What a model with `prediction_type="v_prediction"` learns, at timesteps of the schedule."""
        return super().get_velocity(
            sample, noise, votive.tensor([self.index_for_timestep(t) for t in timesteps.tolist()])
        )


class EulerAncestralDiscreteScheduler(SigmaScheduler):
    """Steps that go too far down and add noise up to the next level.

    >>> from votive.models.diffusion import EulerAncestralDiscreteScheduler
    >>> scheduler = EulerAncestralDiscreteScheduler()
    >>> scheduler.set_timesteps(2)
    >>> scheduler.timesteps
    tensor([999.,   0.])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **BETAS,
        "prediction_type": "epsilon",
        "timestep_spacing": "linspace",
        "steps_offset": 0,
        "rescale_betas_zero_snr": False,
    }
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **SigmaScheduler.choices,
        "prediction_type": ("epsilon", "v_prediction"),
    }
    refuses_integers = True

    def set_timesteps(self, num_inference_steps: int, device: votive.device | str | None = None) -> None:
        """Choose how many steps a run has."""
        c = self.config
        self.num_inference_steps = tables.check_count(type(self).__name__, num_inference_steps, c.num_train_timesteps)
        found = tables.spaced(c, num_inference_steps, c.timestep_spacing, np.float32)
        self.take_schedule(np.append(self.levels_at(found), 0.0), found, device)

    def step(
        self,
        model_output: Tensor,
        timestep: Tensor | float,
        sample: Tensor,
        generator: Generators = None,
        return_dict: bool = True,
        variance_noise: Tensor | None = None,
    ) -> SchedulerOutput | tuple[Tensor, Tensor]:
        """One step back; `variance_noise` stands for what would be drawn from the generator."""
        self.check_step(timestep)
        index = self.index_of(timestep)
        sigma, after, x = self.levels[index], self.levels[index + 1], sample.float()
        clean = self._denoised(model_output, x, sigma)
        up = (after**2 * (sigma**2 - after**2) / sigma**2) ** 0.5
        down = (after**2 - up**2) ** 0.5
        found = x + (x - clean) / float(sigma) * float(down - sigma)
        found = found + self._noise(model_output, generator, variance_noise) * float(up)
        self.advance()
        found = found.to(model_output.dtype)
        return SchedulerOutput(prev_sample=found, pred_original_sample=clean) if return_dict else (found, clean)
