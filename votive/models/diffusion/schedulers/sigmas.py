"""What schedulers over noise levels share: `x = x_0 + sigma noise`, a level for each step, and a count of steps.

Karras et al. 2022, arXiv:2206.00364. Knows no step's arithmetic.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np

import votive

from ....tensor import Tensor
from . import tables
from .base import AlphaScheduler
from .tables import Array


class StepIndex:
    """The number of the step that comes, found by its timestep when a run begins and counted from there."""

    changing: ClassVar[tuple[str, ...]] = ("_step_index", "_begin_index")
    timesteps: Tensor
    _step_index: int | None = None
    _begin_index: int | None = None

    @property
    def step_index(self) -> int | None:
        """The number of the step that comes; None before the first."""
        return self._step_index

    @property
    def begin_index(self) -> int | None:
        """The number of the first step, where a run was told to begin later."""
        return self._begin_index

    def set_begin_index(self, begin_index: int = 0) -> None:
        """Let a run begin at a step of this number."""
        self._begin_index = begin_index

    def reset_index(self) -> None:
        """Before the first step again."""
        self._step_index = self._begin_index = None

    def index_for_timestep(self, timestep: Tensor | float, schedule_timesteps: Tensor | None = None) -> int:
        """Where a timestep is in the schedule: at its second place, if it has two.

        A run that begins in the middle would otherwise skip the second half of a step that has two halves.
        """
        steps = (self.timesteps if schedule_timesteps is None else schedule_timesteps).tolist()
        found = [i for i, t in enumerate(steps) if t == float(timestep)]
        if not found:
            return self.index_of_unknown(float(timestep), steps)
        return found[1] if len(found) > 1 else found[0]

    def index_of_unknown(self, timestep: float, steps: list[float]) -> int:
        """What a timestep means that is none of the schedule's."""
        raise ValueError(
            f"{type(self).__name__}: {timestep:g} is none of this run's timesteps "
            f"{[round(t, 3) for t in steps[:4]]} …; take them from scheduler.timesteps."
        )

    def index_of(self, timestep: Tensor | float) -> int:
        """The number of the step that comes; a timestep tells it when a run begins."""
        if self._step_index is None:
            known = self._begin_index
            self._step_index = self.index_for_timestep(timestep) if known is None else known
        return self._step_index

    def advance(self) -> None:
        """Count a step."""
        assert self._step_index is not None, "a step asked for it before"
        self._step_index += 1


class SigmaScheduler(StepIndex, AlphaScheduler):
    """A scheduler with a noise level for each step, and one behind the last.

    `levels` are the noise levels in float32, for arithmetic; `sigmas` the same as a tensor.
    """

    changing: ClassVar[tuple[str, ...]] = ("levels", "is_scale_input_called")
    # Whether the model sees samples scaled to variance one.
    scales_input: ClassVar[bool] = True
    # Whether timesteps must be those of the schedule, which are fractions.
    refuses_integers: ClassVar[bool] = False

    def prepare(self) -> None:
        super().prepare()
        tables.check_one_flag(type(self).__name__, self.config)
        if self.config.get("rescale_betas_zero_snr"):
            self.cumulated = np.concatenate([self.cumulated[:-1], [np.float32(tables.LEAST_ALPHA)]])
            self.alphas_cumprod = votive.from_numpy(self.cumulated)
        self.trained: Array = ((1 - self.cumulated) / self.cumulated) ** 0.5
        self.levels: Array = np.concatenate([self.trained[::-1], np.zeros(1, np.float32)])
        count = self.config.num_train_timesteps
        self.timesteps = votive.from_numpy(np.linspace(0, count - 1, count, dtype=np.float32)[::-1].copy())
        self.is_scale_input_called = False

    @property
    def sigmas(self) -> Tensor:
        """The noise level of each step, and one behind the last."""
        return votive.from_numpy(self.levels)

    @property
    def init_noise_sigma(self) -> float:
        most = self.levels.max()
        if self.config.timestep_spacing in ("linspace", "trailing"):
            return float(most)
        return float((most**2 + 1) ** 0.5)

    def take_schedule(self, levels: Array, timesteps: Array, device: votive.device | str | None) -> None:
        """Begin a run with these noise levels and timesteps."""
        self.levels = levels.astype(np.float32)
        self.timesteps = votive.from_numpy(np.ascontiguousarray(timesteps)).to(device)
        self.reset_index()

    def levels_at(self, timesteps: Array) -> Array:
        """The noise levels that training had at timesteps, which may be fractions."""
        return np.interp(timesteps, np.arange(len(self.trained)), self.trained)

    def scale_model_input(self, sample: Tensor, timestep: Tensor | float | None = None) -> Tensor:
        """The sample with variance one, as the model wants to see it."""
        if not self.scales_input:
            return sample
        sigma = self.levels[self.index_of(0.0 if timestep is None else timestep)]
        self.is_scale_input_called = True
        return sample / float((sigma**2 + 1) ** 0.5)

    def check_step(self, timestep: Tensor | float) -> None:
        """Raise or warn where a step was not prepared as it must be."""
        self.check_ready()
        whole = isinstance(timestep, int) or (isinstance(timestep, Tensor) and not timestep.is_floating_point())
        if self.refuses_integers and whole:
            raise ValueError(
                f"{type(self).__name__}.step: a whole number came as timestep; pass one of "
                "scheduler.timesteps, not the number of the step."
            )
        if self.scales_input and not self.is_scale_input_called:
            warnings.warn(
                f"{type(self).__name__}.step: call scale_model_input on what the model sees before; it wants "
                "samples of variance one.",
                stacklevel=3,
            )

    def indices_at(self, timesteps: Tensor) -> list[int]:
        """Numbers of the steps that timesteps (batch,) belong to."""
        if self.begin_index is None:
            return [self.index_for_timestep(t) for t in timesteps.tolist()]
        index = self.begin_index if self.step_index is None else self.step_index
        return [index] * timesteps.shape[0]

    def _sigma_at(self, timesteps: Tensor, like: Tensor) -> Tensor:
        sigma = self.sigmas[votive.tensor(self.indices_at(timesteps))].to(device=like.device, dtype=like.dtype)
        return sigma.view(-1, *([1] * (like.dim() - 1)))

    def add_noise(self, original_samples: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        """Clean samples as they are at timesteps (batch,) of the schedule."""
        return original_samples + noise * self._sigma_at(timesteps, original_samples)

    def _denoised(self, output: Tensor, sample: Tensor, sigma: Any) -> Tensor:
        """The clean sample that an output means, at a noise level."""
        kind = self.config.prediction_type
        if kind == "sample":
            return output
        if kind == "v_prediction":
            return output * float(-sigma / (sigma**2 + 1) ** 0.5) + sample / float(sigma**2 + 1)
        return sample - float(sigma) * output
