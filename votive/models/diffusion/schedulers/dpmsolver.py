"""DPM-Solver and DPM-Solver++ of orders 1 to 3, also with noise at each step.

Lu et al. 2022, arXiv:2206.00927 and arXiv:2211.01095.
"""

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
from .solver import MultistepSolver, as_run, last_level

_OWN = ("use_karras_sigmas", "use_lu_lambdas", "use_exponential_sigmas", "use_beta_sigmas")


class DPMSolverMultistepScheduler(MultistepSolver):
    """Steps through the exact solution of the linear part, with the last answers as a polynomial.

    >>> from votive.models.diffusion import DPMSolverMultistepScheduler
    >>> scheduler = DPMSolverMultistepScheduler(use_karras_sigmas=True, algorithm_type="sde-dpmsolver++")
    >>> scheduler.set_timesteps(4)
    >>> scheduler.timesteps
    tensor([999, 775, 301,   0])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **BETAS,
        "solver_order": 2,
        "prediction_type": "epsilon",
        "thresholding": False,
        "dynamic_thresholding_ratio": 0.995,
        "sample_max_value": 1.0,
        "algorithm_type": "dpmsolver++",
        "solver_type": "midpoint",
        "lower_order_final": True,
        "euler_at_final": False,
        "use_karras_sigmas": False,
        "use_exponential_sigmas": False,
        "use_beta_sigmas": False,
        "use_lu_lambdas": False,
        "use_flow_sigmas": False,
        "flow_shift": 1.0,
        "final_sigmas_type": "zero",
        "lambda_min_clipped": -math.inf,
        "variance_type": None,
        "timestep_spacing": "linspace",
        "steps_offset": 0,
        "rescale_betas_zero_snr": False,
        "use_dynamic_shifting": False,
        "time_shift_type": "exponential",
    }
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **MultistepSolver.choices,
        "solver_order": (1, 2, 3),
        "prediction_type": ("epsilon", "sample", "v_prediction", "flow_prediction"),
        "algorithm_type": ("dpmsolver++", "dpmsolver", "sde-dpmsolver++", "sde-dpmsolver", "deis"),
        "solver_type": ("midpoint", "heun", "logrho", "bh1", "bh2"),
        "final_sigmas_type": ("zero", "sigma_min"),
        "time_shift_type": ("exponential",),
    }

    def prepare(self) -> None:
        c = self.config
        # Names that other solvers have for theirs.
        if c.algorithm_type == "deis":
            self.change_config(algorithm_type="dpmsolver++")
        if c.solver_type not in ("midpoint", "heun"):
            self.change_config(solver_type="midpoint")
        if self.config.algorithm_type in ("dpmsolver", "sde-dpmsolver") and c.final_sigmas_type == "zero":
            raise ValueError(
                f"{type(self).__name__}: final_sigmas_type='zero' is not possible with "
                f"algorithm_type={c.algorithm_type!r}, which divides by it; use 'sigma_min'."
            )
        if c.solver_order == 3 and self.config.algorithm_type == "sde-dpmsolver":
            raise ValueError(f"{type(self).__name__}: there is no rule of order 3 for 'sde-dpmsolver'; use 1 or 2.")
        super().prepare()

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: votive.device | str | None = None,
        mu: float | None = None,
        timesteps: list[int] | None = None,
    ) -> None:
        """Choose the timesteps of a run: so many, or your own; `mu` shifts those of a flow."""
        c, name = self.config, type(self).__name__
        tables.one_of(name, num_inference_steps=num_inference_steps, timesteps=timesteps)
        if mu is not None and not c.use_dynamic_shifting:
            raise ValueError(f"{name}.set_timesteps: mu goes with use_dynamic_shifting=True.")
        shift = c.flow_shift if mu is None else math.exp(mu)
        own = next((key for key in _OWN if c[key]), None)
        if timesteps is not None and own is not None:
            raise ValueError(f"{name}.set_timesteps: timesteps of your own do not go with {own}, which chooses them.")
        if timesteps is not None:
            found = np.array(timesteps, np.int64)
        else:
            tables.check_count(name, num_inference_steps, c.num_train_timesteps)
            found = self.counted_down(num_inference_steps or 0, self._first())
        count = len(found) if timesteps is not None else num_inference_steps or 0
        log_trained, levels = np.log(self.trained), None
        if own == "use_lu_lambdas":
            levels = np.exp(np.linspace(log_trained[-1].item(), log_trained[0].item(), count))
        elif own is not None:
            levels = tables.chosen_sigmas(c, self.trained[::-1], count)
        if levels is not None:
            found = tables.sigma_to_t(levels, log_trained)
            if c.beta_schedule != "squaredcos_cap_v2" and own in ("use_karras_sigmas", "use_lu_lambdas"):
                found = found.round()
        elif c.use_flow_sigmas:
            clean = np.linspace(1, 1 / c.num_train_timesteps, count + 1)
            levels = np.flip(shift * (1 - clean) / (1 + (shift - 1) * (1 - clean)))[:-1]
            found = levels * c.num_train_timesteps
        else:
            levels = self.levels_at(found)
        as_run(self, np.append(levels, last_level(c, self.trained)), found, device)

    def _first(self) -> int:
        """Behind the first timestep: those with less signal than `lambda_min_clipped` are left out."""
        alpha, sigma = np.sqrt(self.cumulated), np.sqrt(1 - self.cumulated)
        with np.errstate(divide="ignore"):
            ratios = (np.log(alpha) - np.log(sigma))[::-1]
        return int(self.config.num_train_timesteps - np.searchsorted(ratios, self.config.lambda_min_clipped))

    def convert_model_output(self, model_output: Tensor, sample: Tensor) -> Tensor:
        """What the solver steps with: the clean sample, or the noise where it is a solver of noise."""
        c = self.config
        index = self.step_index or 0
        if c.prediction_type == "epsilon" and c.variance_type in ("learned", "learned_range"):
            model_output = model_output[:, :3]
        if c.algorithm_type in ("dpmsolver++", "sde-dpmsolver++"):
            return self.clean_of(model_output, sample, index)
        noise = self.noise_of(model_output, sample, index)
        if c.thresholding:
            alpha, sigma = (float(x) for x in self.parts(self.levels[index]))
            clean = self.bounded((sample - sigma * noise) / alpha)
            noise = (sample - alpha * clean) / sigma
        return noise

    def step(
        self,
        model_output: Tensor,
        timestep: int | Tensor,
        sample: Tensor,
        generator: Generators = None,
        variance_noise: Tensor | None = None,
        return_dict: bool = True,
    ) -> SchedulerOutput | tuple[Tensor]:
        """One step back; the first ones, and in short runs the last ones, have a lower order."""
        self.check_step(timestep)
        c, index, steps = self.config, self.index_of(timestep), len(self.timesteps)
        short = c.lower_order_final and steps < 15
        at_end = index == steps - 1 and (c.euler_at_final or short or c.final_sigmas_type == "zero")
        output = self.convert_model_output(model_output, sample)
        self.remember(output)
        noise = None
        if c.algorithm_type.startswith("sde"):
            noise = self._noise(output, generator, variance_noise, votive.float32)
        order = min(c.solver_order, self.lower_order_nums + 1)
        if at_end:
            order = 1
        elif index == steps - 2 and short:
            order = min(order, 2)
        found = self._moved(sample.float(), order, index, noise).to(output.dtype)
        self.lower_order_nums = min(self.lower_order_nums + 1, c.solver_order)
        self.advance()
        return SchedulerOutput(prev_sample=found) if return_dict else (found,)

    def _moved(self, x: Tensor, order: int, index: int, noise: Tensor | None) -> Tensor:
        """The sample at the next level, by a polynomial: algorithm 2 of the second paper and its appendix."""
        kind, solver = self.config.algorithm_type, self.config.solver_type
        alpha, sigma, ratio = self.log_ratio(index + 1)
        alpha_0, sigma_0, ratio_0 = self.log_ratio(index)
        with np.errstate(all="ignore"):
            h = ratio - ratio_0
            clean, drawn = kind.endswith("++"), noise is not None
            # By the terms of the polynomial: its value, slope and bend.
            if clean and not drawn:
                first, e = sigma / sigma_0, np.exp(-h) - 1
                terms = -alpha * e, alpha * (e / h + 1), -alpha * ((e + h) / h**2 - 0.5)
                middle = -0.5 * alpha * e
            elif not clean and not drawn:
                first, e = alpha / alpha_0, np.exp(h) - 1
                terms = -sigma * e, -sigma * (e / h - 1), -sigma * ((e - h) / h**2 - 0.5)
                middle = -0.5 * sigma * e
            elif clean:
                first, e = sigma / sigma_0 * np.exp(-h), 1 - np.exp(-2 * h)
                terms = alpha * e, alpha * (e / (-2 * h) + 1), alpha * ((e - 2 * h) / (2 * h) ** 2 - 0.5)
                middle = 0.5 * alpha * e
                spread = sigma * np.sqrt(1 - np.exp(-2 * h))
            else:
                first, e = alpha / alpha_0, np.exp(h) - 1
                terms = -2 * sigma * e, -2 * sigma * (e / h - 1), np.float32(0)
                middle = -sigma * e
                spread = sigma * np.sqrt(np.exp(2 * h) - 1)
            found = float(first) * x + float(terms[0]) * self._answer(1)
            if order > 1:
                before = (ratio_0 - self.log_ratio(index - 1)[2]) / h
                slope = float(1 / before) * (self._answer(1) - self._answer(2))
                if order == 2:
                    found = found + float(middle if solver == "midpoint" else terms[1]) * slope
                else:
                    earlier = (self.log_ratio(index - 1)[2] - self.log_ratio(index - 2)[2]) / h
                    older = float(1 / earlier) * (self._answer(2) - self._answer(3))
                    bend = float(1 / (before + earlier)) * (slope - older)
                    slope = slope + float(before / (before + earlier)) * (slope - older)
                    found = found + float(terms[1]) * slope + float(terms[2]) * bend
        return found if noise is None else found + float(spread) * noise

    def _answer(self, age: int) -> Tensor:
        found = self.model_outputs[-age]
        assert found is not None, "the order is no higher than the answers there are"
        return found
