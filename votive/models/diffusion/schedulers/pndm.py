"""The scheduler of PNDM, which combines the last four answers: Liu et al. 2022, arXiv:2202.09778."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from ..output import SchedulerOutput
from . import tables
from .base import BETAS, AlphaScheduler


class PNDMScheduler(AlphaScheduler):
    """Runge-Kutta steps at the beginning, unless `skip_prk_steps`, then linear multistep ones.

    The model is asked more often than there are steps: `timesteps` has a timestep for each call.

    >>> from votive.models.diffusion import PNDMScheduler
    >>> scheduler = PNDMScheduler(skip_prk_steps=True)
    >>> scheduler.set_timesteps(4)
    >>> scheduler.timesteps
    tensor([750, 500, 500, 250,   0])
    """

    defaults: ClassVar[dict[str, Any]] = {
        **BETAS,
        "skip_prk_steps": False,
        "set_alpha_to_one": False,
        "prediction_type": "epsilon",
        "timestep_spacing": "leading",
        "steps_offset": 0,
    }
    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        **AlphaScheduler.choices,
        "prediction_type": ("epsilon", "v_prediction"),
    }
    changing: ClassVar[tuple[str, ...]] = ("ets", "counter", "cur_model_output", "cur_sample", "prk_timesteps")
    pndm_order = 4

    def prepare(self) -> None:
        super().prepare()
        self._begin([])

    def _begin(self, prk: list[int]) -> None:
        self.prk_timesteps = prk
        self.ets: list[Tensor] = []
        self.counter = 0
        self.cur_model_output: Tensor | None = None
        self.cur_sample: Tensor | None = None

    def set_timesteps(self, num_inference_steps: int, device: votive.device | str | None = None) -> None:
        """Choose how many steps a run has."""
        trained = self.config.num_train_timesteps
        count = tables.check_count(type(self).__name__, num_inference_steps, trained)
        if count < self.pndm_order and not self.config.skip_prk_steps:
            raise ValueError(
                f"{type(self).__name__}.set_timesteps: {count} steps are fewer than the {self.pndm_order} of "
                "Runge-Kutta that a run begins with; ask for more, or make the scheduler with skip_prk_steps=True."
            )
        self.num_inference_steps = count
        up = tables.spaced(self.config, count, self.config.timestep_spacing)[::-1]
        if self.config.skip_prk_steps:
            prk = np.array([], np.int64)
            rest = np.concatenate([up[:-1], up[-2:-1], up[-1:]])[::-1]
        else:
            half = trained // count // 2
            prk = up[-self.pndm_order :].repeat(2) + np.tile(np.array([0, half]), self.pndm_order)
            prk = prk[:-1].repeat(2)[1:-1][::-1]
            rest = up[:-3][::-1]
        self._begin([int(t) for t in prk])
        self.timesteps = votive.from_numpy(np.concatenate([prk, rest]).astype(np.int64)).to(device)

    def step(
        self, model_output: Tensor, timestep: int | Tensor, sample: Tensor, return_dict: bool = True
    ) -> SchedulerOutput | tuple[Tensor]:
        """One call's share of a step: of Runge-Kutta while there are `prk_timesteps`, of the multistep rule then."""
        self.check_ready()
        prk = self.counter < len(self.prk_timesteps) and not self.config.skip_prk_steps
        found = (self._prk if prk else self._plms)(model_output, int(timestep), sample)
        self.counter += 1
        return SchedulerOutput(prev_sample=found) if return_dict else (found,)

    def _stride(self) -> int:
        assert self.num_inference_steps is not None, "that was checked"
        return int(self.config.num_train_timesteps // self.num_inference_steps)

    def _prk(self, output: Tensor, t: int, sample: Tensor) -> Tensor:
        previous = t - (0 if self.counter % 2 else self._stride() // 2)
        t = self.prk_timesteps[self.counter // 4 * 4]
        phase = self.counter % 4
        if phase == 0:
            self.ets.append(output)
            self.cur_sample = sample
        if phase < 3:
            share = (1 / 6 if phase == 0 else 1 / 3) * output
            self.cur_model_output = share if self.cur_model_output is None else self.cur_model_output + share
        else:
            assert self.cur_model_output is not None, "three phases came before"
            output = self.cur_model_output + 1 / 6 * output
            self.cur_model_output = None
        start = self.cur_sample if self.cur_sample is not None else sample
        return self._moved(start, t, previous, output)

    def _plms(self, output: Tensor, t: int, sample: Tensor) -> Tensor:
        previous = t - self._stride()
        if self.counter != 1:
            self.ets = [*self.ets[-3:], output]
        else:
            previous, t = t, t + self._stride()
        e = self.ets
        if len(e) == 1 and self.counter == 0:
            self.cur_sample = sample
        elif len(e) == 1 and self.counter == 1:
            assert self.cur_sample is not None, "the first call kept it"
            output, sample = (output + e[-1]) / 2, self.cur_sample
            self.cur_sample = None
        elif len(e) == 2:
            output = (3 * e[-1] - e[-2]) / 2
        elif len(e) == 3:
            output = (23 * e[-1] - 16 * e[-2] + 5 * e[-3]) / 12
        else:
            output = (1 / 24) * (55 * e[-1] - 59 * e[-2] + 37 * e[-3] - 9 * e[-4])
        return self._moved(sample, t, previous, output)

    def _moved(self, sample: Tensor, t: int, previous: int, output: Tensor) -> Tensor:
        """Equation 11 of the paper."""
        alpha, before = self.alpha(t), self.alpha(previous)
        if self.config.prediction_type == "v_prediction":
            output = float(alpha**0.5) * output + float((1 - alpha) ** 0.5) * sample
        below = alpha * (1 - before) ** 0.5 + (alpha * (1 - alpha) * before) ** 0.5
        return float((before / alpha) ** 0.5) * sample - float(before - alpha) * output / float(below)
