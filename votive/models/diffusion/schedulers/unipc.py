"""UniPC, a predictor with a corrector of the same answers: Zhao et al. 2023, arXiv:2302.04867."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from ..output import SchedulerOutput
from . import tables
from .base import BETAS
from .solver import MultistepSolver, as_run, last_level
from .tables import Array


class UniPCMultistepScheduler(MultistepSolver):
    """Each answer first corrects the sample it was asked at, then predicts the next.

    >>> from votive.models.diffusion import UniPCMultistepScheduler
    >>> scheduler = UniPCMultistepScheduler()
    >>> scheduler.set_timesteps(4)
    >>> scheduler.timesteps
    tensor([999, 749, 500, 250])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **BETAS,
        "solver_order": 2,
        "prediction_type": "epsilon",
        "thresholding": False,
        "dynamic_thresholding_ratio": 0.995,
        "sample_max_value": 1.0,
        "predict_x0": True,
        "solver_type": "bh2",
        "lower_order_final": True,
        "disable_corrector": [],
        "solver_p": None,
        "use_karras_sigmas": False,
        "use_exponential_sigmas": False,
        "use_beta_sigmas": False,
        "use_flow_sigmas": False,
        "flow_shift": 1.0,
        "timestep_spacing": "linspace",
        "steps_offset": 0,
        "final_sigmas_type": "zero",
        "rescale_betas_zero_snr": False,
        "use_dynamic_shifting": False,
        "time_shift_type": "exponential",
        "sigma_min": None,
        "sigma_max": None,
        "shift_terminal": None,
    }
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **MultistepSolver.choices,
        "prediction_type": ("epsilon", "sample", "v_prediction", "flow_prediction"),
        "solver_type": ("bh1", "bh2", "midpoint", "heun", "logrho"),
        "final_sigmas_type": ("zero", "sigma_min"),
        "time_shift_type": ("exponential", "linear"),
    }
    refused: ClassVar[dict[str, tuple[tuple[Any, ...], str]]] = {
        "solver_p": ((None,), "another scheduler as predictor is not known here")
    }
    changing: ClassVar[tuple[str, ...]] = ("last_sample", "this_order")

    def prepare(self) -> None:
        c = self.config
        if c.solver_type not in ("bh1", "bh2"):
            self.change_config(solver_type="bh2")
        if c.shift_terminal is not None and not c.use_flow_sigmas:
            raise ValueError(f"{type(self).__name__}: shift_terminal goes with use_flow_sigmas=True.")
        super().prepare()

    def forget(self) -> None:
        super().forget()
        self.last_sample: Tensor | None = None
        self.this_order = 0

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: votive.device | str | None = None,
        sigmas: list[float] | None = None,
        mu: float | None = None,
    ) -> None:
        """Choose how many steps a run has, or your own noise levels of a flow; `mu` shifts those of a flow."""
        c, name = self.config, type(self).__name__
        if sigmas is not None and not c.use_flow_sigmas:
            raise ValueError(f"{name}.set_timesteps: sigmas of your own go with use_flow_sigmas=True.")
        if c.use_dynamic_shifting and mu is None:
            raise ValueError(f"{name}.set_timesteps: use_dynamic_shifting=True wants mu.")
        if mu is not None and not c.use_dynamic_shifting:
            raise ValueError(f"{name}.set_timesteps: mu goes with use_dynamic_shifting=True.")
        tables.one_of(name, num_inference_steps=num_inference_steps, sigmas=sigmas)
        count = len(sigmas) if sigmas is not None else num_inference_steps
        count = tables.check_count(name, count, c.num_train_timesteps)
        found = self.counted_down(count, c.num_train_timesteps)
        trained = self.trained if sigmas is None else np.array(sigmas)
        levels = tables.chosen_sigmas(c, trained[::-1], count)
        if levels is not None:
            if c.use_karras_sigmas and c.use_flow_sigmas:
                levels = levels / (levels + 1)
                found = levels * c.num_train_timesteps
            else:
                found = tables.sigma_to_t(levels, np.log(trained))
                found = found.round() if c.use_karras_sigmas else found
        elif c.use_flow_sigmas:
            levels = self._flow(count, sigmas, mu)
            found = levels * c.num_train_timesteps
        last = last_level(c, self.trained)
        if levels is None:
            levels = self.levels_at(found)
        elif c.final_sigmas_type == "sigma_min":
            last = levels[-1]
        as_run(self, np.append(levels, last), found, device)

    def _flow(self, count: int, sigmas: list[float] | None, mu: float | None) -> Array:
        """Noise levels of a flow, shifted toward its noisy end."""
        c = self.config
        levels = np.linspace(1, 1 / c.num_train_timesteps, count + 1)[:-1] if sigmas is None else np.array(sigmas)
        if mu is not None:
            levels = shifted(mu, levels, c.time_shift_type)
        else:
            levels = c.flow_shift * levels / (1 + (c.flow_shift - 1) * levels)
        if c.shift_terminal:
            levels = stretched(levels, c.shift_terminal)
        if abs(levels[0] - 1) < 1e-6:  # without any signal there is no ratio
            levels[0] -= 1e-6
        return levels

    def convert_model_output(self, model_output: Tensor, sample: Tensor) -> Tensor:
        """What the solver steps with: the clean sample, or the noise without `predict_x0`."""
        index = self.step_index or 0
        found = self.clean_of if self.config.predict_x0 else self.noise_of
        return found(model_output, sample, index)

    def step(
        self, model_output: Tensor, timestep: int | Tensor, sample: Tensor, return_dict: bool = True
    ) -> SchedulerOutput | tuple[Tensor]:
        """Correct the sample by its own answer, then take a step."""
        self.check_step(timestep)
        c, index = self.config, self.index_of(timestep)
        output = self.convert_model_output(model_output, sample)
        if index > 0 and index - 1 not in c.disable_corrector and self.last_sample is not None:
            sample = self._moved(self.last_sample, self.this_order, index - 1, output)
        self.remember(output)
        order = min(c.solver_order, len(self.timesteps) - index) if c.lower_order_final else c.solver_order
        self.this_order = min(order, self.lower_order_nums + 1)
        self.last_sample = sample
        found = self._moved(sample, self.this_order, index, None)
        self.lower_order_nums = min(self.lower_order_nums + 1, c.solver_order)
        self.advance()
        return SchedulerOutput(prev_sample=found) if return_dict else (found,)

    def _moved(self, x: Tensor, order: int, index: int, answer: Tensor | None) -> Tensor:
        """From the level of a step to the next one: a prediction, or with the `answer` from there a correction."""
        alpha, sigma, ratio = self.log_ratio(index + 1)
        alpha_0, sigma_0, ratio_0 = self.log_ratio(index)
        newest = self.model_outputs[-1]
        assert newest is not None, "the newest answer is there"
        one = np.float32(1)
        with np.errstate(all="ignore"):
            h = ratio - ratio_0
            scaled = -h if self.config.predict_x0 else h
            phi = np.expm1(scaled)
            step = scaled if self.config.solver_type == "bh1" else phi
            nodes = [(self.log_ratio(index - i)[2] - ratio_0) / h for i in range(1, order)] + [one]
            olds = [(self.model_outputs[-1 - i] - newest) / float(r) for i, r in enumerate(nodes[:-1], 1)]
            wanted, rest, factorial = [], phi / scaled - 1, 1
            for i in range(1, order + 1):
                wanted.append(rest * factorial / step)
                factorial *= i + 1
                rest = rest / scaled - 1 / factorial
            weights = self._weights(np.array(nodes, np.float32), np.array(wanted, np.float32), answer is not None)
            if self.config.predict_x0:
                found, scale = float(sigma / sigma_0) * x - float(alpha * phi) * newest, alpha * step
            else:
                found, scale = float(alpha / alpha_0) * x - float(sigma * phi) * newest, sigma * step
        if answer is not None:
            olds.append(answer - newest)
        for weight, old in zip(weights, olds, strict=True):
            found = found - float(scale * weight) * old
        return found.to(x.dtype)

    def _weights(self, nodes: Array, wanted: Array, correcting: bool) -> Array:
        """How much each difference of answers counts: equation 6 of the paper; in the simplest cases a half."""
        order = len(nodes)
        if order == (1 if correcting else 2):
            return np.array([0.5], np.float32)
        powers = np.stack([nodes**i for i in range(order)])
        if correcting:
            return np.linalg.solve(powers, wanted)
        return np.linalg.solve(powers[:-1, :-1], wanted[:-1]) if order > 1 else wanted[:0]


def shifted(mu: float, levels: Array, kind: str) -> Array:
    """Levels of a flow moved toward noise, by `exp(mu)` or by `mu`: Esser et al. 2024, arXiv:2403.03206, equation 23.

    >>> from votive.models.diffusion.schedulers.unipc import shifted
    >>> shifted(1.0, np.array([0.5]), "linear")
    array([0.5])
    """
    factor = math.exp(mu) if kind == "exponential" else mu
    return factor / (factor + (1 / levels - 1))


def stretched(levels: Array, last: float) -> Array:
    """Levels stretched so that the last one is `last`.

    >>> from votive.models.diffusion.schedulers.unipc import stretched
    >>> stretched(np.array([1.0, 0.5]), 0.2)
    array([1. , 0.2])
    """
    rest = 1 - levels
    return 1 - rest / (rest[-1] / (1 - last))
