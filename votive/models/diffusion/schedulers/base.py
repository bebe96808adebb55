"""What schedulers share: tables of a configuration, noise over clean samples, the state of a run. Knows no model."""

from __future__ import annotations

from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np

import votive

from ....tensor import Tensor
from ...config import StrPath
from ..gaussian import Generators, randn
from ..places import find_folder
from ..settings import Configured
from . import tables
from .tables import Array

BETAS: dict[str, Any] = {
    "num_train_timesteps": 1000,
    "beta_start": 0.0001,
    "beta_end": 0.02,
    "beta_schedule": "linear",
    "trained_betas": None,
}
_KINDS: list[type[Scheduler]] = []


class Scheduler(Configured):
    """Says at which timesteps a model is asked and what its answers make of a sample.

    >>> from votive.models.diffusion import EulerDiscreteScheduler
    >>> scheduler = EulerDiscreteScheduler()
    >>> scheduler.set_timesteps(4)
    >>> scheduler.timesteps
    tensor([999., 666., 333.,   0.])
    """

    config_name: ClassVar[str] = "scheduler_config.json"
    # Calls of the model for one step.
    order: ClassVar[int] = 1
    # What changes during a run, beside what every scheduler has.
    changing: ClassVar[tuple[str, ...]] = ()
    timesteps: Tensor

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _KINDS.append(cls)

    def __init__(self, *args: Any, **values: Any) -> None:
        self.configure(args, values)
        self.num_inference_steps: int | None = None
        self.prepare()

    def prepare(self) -> None:
        """Make the tables that the configuration describes."""
        raise NotImplementedError

    @property
    def init_noise_sigma(self) -> float:
        """The standard deviation of the noise that a run begins with."""
        return 1.0

    @classmethod
    def kindred(cls) -> set[str]:
        """Keys of all schedulers: one may be made from the configuration of another."""
        return {key for kind in _KINDS for key in kind.defaults}

    @classmethod
    def from_pretrained(cls, name: StrPath, *, subfolder: str | None = None, **changes: Any) -> Self:
        """From the folder, or the subfolder, that holds scheduler_config.json; `changes` replace keys.

        >>> import tempfile
        >>> from votive.models.diffusion import DDIMScheduler
        >>> folder = tempfile.mkdtemp()
        >>> DDIMScheduler(beta_end=0.5).save_pretrained(folder)
        >>> DDIMScheduler.from_pretrained(folder).config.beta_end
        0.5
        """
        places = {k: changes.pop(k) for k in ("revision", "token", "cache_dir", "local_files_only") if k in changes}
        folder = find_folder(name, [subfolder] if subfolder else None, **places)
        return cls.from_config(cls.load_config(folder, subfolder=subfolder), **changes)

    def save_pretrained(self, folder: StrPath) -> None:
        """Write scheduler_config.json into a folder."""
        self.save_config(folder)

    def scale_model_input(self, sample: Tensor, timestep: Tensor | float | None = None) -> Tensor:
        """The sample as the model wants to see it."""
        del timestep
        return sample

    def __len__(self) -> int:
        return int(self.config.num_train_timesteps)

    def snapshot(self) -> dict[str, Any]:
        """The state of a run, which `restore` goes back to: what is next is then the same again.

        >>> from votive.models.diffusion import DPMSolverMultistepScheduler
        >>> scheduler = DPMSolverMultistepScheduler()
        >>> scheduler.set_timesteps(3)
        >>> state = scheduler.snapshot()
        >>> first = scheduler.step(votive.ones(1), scheduler.timesteps[0], votive.ones(1)).prev_sample
        >>> scheduler.restore(state)
        >>> votive.equal(first, scheduler.step(votive.ones(1), scheduler.timesteps[0], votive.ones(1)).prev_sample)
        True
        """
        names = (
            "timesteps",
            "num_inference_steps",
            *reduce(lambda a, c: a + c.__dict__.get("changing", ()), type(self).__mro__, ()),
        )
        kept = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return {name: list(value) if isinstance(value, list) else value for name, value in kept.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state that `snapshot` gave."""
        for name, value in state.items():
            setattr(self, name, list(value) if isinstance(value, list) else value)

    def check_ready(self) -> None:
        """Raise before timesteps are set."""
        if self.num_inference_steps is None:
            raise ValueError(f"{type(self).__name__}.step: call set_timesteps(num_inference_steps) first.")

    def _noise(
        self, like: Tensor, generator: Generators, given: Tensor | None, dtype: votive.dtype | None = None
    ) -> Tensor:
        """Noise of a step: what was given, or a draw."""
        dtype = like.dtype if dtype is None else dtype
        if given is not None:
            if generator is not None:
                raise ValueError(f"{type(self).__name__}.step: give generator or variance_noise, not both.")
            return given.to(device=like.device, dtype=dtype)
        return randn(tuple(like.shape), generator, like.device, dtype)

    def __repr__(self) -> str:
        given = {k: v for k, v in self.config.items() if not k.startswith("_") and v != self.defaults.get(k)}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in given.items())})"


class AlphaScheduler(Scheduler):
    """A scheduler over the products of alphas that training had: `x_t = sqrt(a_t) x_0 + sqrt(1 - a_t) noise`."""

    choices: ClassVar[dict[str, tuple[Any, ...]]] = {
        "beta_schedule": ("linear", "scaled_linear", "squaredcos_cap_v2"),
        "prediction_type": ("epsilon", "sample", "v_prediction"),
        "timestep_spacing": tables.SPACINGS,
    }

    def prepare(self) -> None:
        """Betas, alphas and their products, as tensors and, for arithmetic, as arrays in float32."""
        betas = tables.betas_of(self.config)
        self.cumulated: Array = tables.cumulative(1 - betas)
        self.keep_tables(betas)

    def keep_tables(self, betas: Array) -> None:
        """Show the tables as tensors."""
        self.betas = votive.from_numpy(betas)
        self.alphas = votive.from_numpy(1 - betas)
        self.alphas_cumprod = votive.from_numpy(self.cumulated)
        self.timesteps = votive.arange(len(betas) - 1, -1, -1)

    def alpha(self, t: int) -> Any:
        """The product of alphas at a timestep; that of the clean sample before the first."""
        return self.cumulated[t] if t >= 0 else self.final_alpha

    @property
    def final_alpha(self) -> Any:
        """The product of alphas of a clean sample."""
        whole = self.config.get("set_alpha_to_one", True)
        return np.float32(1.0) if whole else self.cumulated[0]

    @property
    def final_alpha_cumprod(self) -> Tensor:
        """`final_alpha` as a tensor."""
        return votive.tensor(float(self.final_alpha))

    def _parts(self, timesteps: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        """The shares of signal and noise at timesteps (batch,), for samples such as `like`."""
        bars = self.alphas_cumprod.to(device=like.device, dtype=like.dtype)[timesteps.to(like.device).long()].flatten()
        bars = bars.view(-1, *([1] * (like.dim() - 1)))
        return bars**0.5, (1 - bars) ** 0.5

    def add_noise(self, original_samples: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        """Clean samples as they are at timesteps (batch,).

        >>> from votive.models.diffusion import DDPMScheduler
        >>> x = votive.ones(2, 1)
        >>> DDPMScheduler().add_noise(x, votive.zeros(2, 1), votive.tensor([0, 999])).flatten()
        tensor([0.9999, 0.0064])
        """
        signal, rest = self._parts(timesteps, original_samples)
        return signal * original_samples + rest * noise

    def get_velocity(self, sample: Tensor, noise: Tensor, timesteps: Tensor) -> Tensor:
        """What a model with `prediction_type="v_prediction"` learns: Salimans & Ho 2022, arXiv:2202.00512."""
        signal, rest = self._parts(timesteps, sample)
        return signal * noise - rest * sample

    def _clean(self, output: Tensor, sample: Tensor, alpha: Any) -> Tensor:
        """The clean sample that an output means, at a product of alphas."""
        kind = self.config.prediction_type
        if kind == "sample":
            return output
        signal, rest = float(alpha**0.5), float((1 - alpha) ** 0.5)
        if kind == "v_prediction":
            return signal * sample - rest * output
        return (sample - rest * output) / signal

    def _bounded(self, x: Tensor) -> Tensor:
        """A clean sample within the bounds that the configuration sets."""
        c = self.config
        if c.get("thresholding"):
            return thresholded(x, c.dynamic_thresholding_ratio, c.sample_max_value)
        return x.clamp(-c.clip_sample_range, c.clip_sample_range) if c.get("clip_sample") else x


def thresholded(sample: Tensor, ratio: float, most: float) -> Tensor:
    """A sample within its own quantile, scaled to -1 .. 1: Saharia et al. 2022, arXiv:2205.11487, section 2.3.

    >>> from votive.models.diffusion.schedulers.base import thresholded
    >>> thresholded(votive.tensor([[[[4.0, 2.0]]]]), 1.0, 9.0)
    tensor([[[[1.0000, 0.5000]]]])
    """
    wide = sample if sample.dtype == votive.float64 else sample.float()
    flat = wide.reshape(sample.shape[0], -1)
    bound = flat.abs().quantile(ratio, dim=1).clamp(1, most).unsqueeze(1)
    return (flat.minimum(bound).maximum(-bound) / bound).reshape(sample.shape).to(sample.dtype)
