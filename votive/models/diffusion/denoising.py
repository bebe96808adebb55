"""A run of a denoiser, timestep by timestep: what it does can be seen, changed, and gone back over.

Knows a scheduler and a function that predicts; knows no network and no text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import votive

from ...tensor import Tensor
from .gaussian import Generators
from .schedulers.base import Scheduler


class Denoising:
    """A run that waits before each timestep.

    `latents` is the sample now and may be replaced; `noise` is what the network says of it, asked once; `step()` goes
    on to the next timestep, with another noise if one is given; `back()` goes back exactly, with the numbers that
    generators would draw, and asks the network anew. Made by a pipeline's `denoise`.

    >>> from votive.models.diffusion import DDIMScheduler
    >>> from votive.models.diffusion.denoising import Denoising
    >>> scheduler = DDIMScheduler()
    >>> scheduler.set_timesteps(4)
    >>> run = Denoising(scheduler, votive.ones(1, 1, 2, 2), scheduler.timesteps, lambda x, t: 0.1 * x)
    >>> run.step().shape, run.index, run.timestep
    (votive.Size([1, 1, 2, 2]), 1, 500)
    >>> run.latents = run.latents * 0  # an edit
    >>> run.finish().abs().sum() == 0
    tensor(True)
    >>> run.back(4)
    >>> run.index, run.latents.sum()
    (0, tensor(4.))
    """

    def __init__(
        self,
        scheduler: Scheduler,
        latents: Tensor,
        timesteps: Tensor,
        predict: Callable[[Tensor, Tensor], Tensor],
        *,
        step_options: dict[str, Any] | None = None,
        generator: Generators = None,
        show: Callable[[Tensor, str], Any] | None = None,
        grad: bool = False,
    ) -> None:
        self.scheduler, self.timesteps, self.grad = scheduler, timesteps, grad
        self.index = self._first = 0
        # What the scheduler said beside the sample at the last step: the clean sample as predicted, where it tells it.
        self.last: Any = None
        self._latents = latents
        self._noise: Tensor | None = None
        self._predict, self._step_options, self._generator = predict, dict(step_options or {}), generator
        self._show = show
        self._past: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return len(self.timesteps)

    def __iter__(self) -> Iterator[Denoising]:
        """The run itself before each timestep; what the loop has not stepped over by itself is stepped."""
        while not self.done:
            before = self.index
            yield self
            if self.index == before and not self.done:
                self.step()

    @property
    def done(self) -> bool:
        """Whether no timestep is left."""
        return self.index >= len(self)

    @property
    def timestep(self) -> float:
        """The timestep that comes next."""
        if self.done:
            raise ValueError(f"the run is at its end: all {len(self)} timesteps were taken.")
        return self.timesteps[self.index].item()

    @property
    def latents(self) -> Tensor:
        """The sample as it is now; give it another value to go on from there."""
        return self._latents

    @latents.setter
    def latents(self, value: Tensor) -> None:
        if value.shape != self._latents.shape:
            raise ValueError(f"latents: this run has the shape {tuple(self._latents.shape)}, got {tuple(value.shape)}.")
        self._latents, self._noise = value, None

    @property
    def noise(self) -> Tensor:
        """What the network predicts at this timestep, with guidance; asked when it is first looked at."""
        if self._noise is None:
            with votive.set_grad_enabled(self.grad and votive.is_grad_enabled()):
                self._noise = self._predict(self._latents, self._now())
        return self._noise

    def forget(self) -> None:
        """Ask the network again when `noise` is next needed: after its weights, hooks or the text changed."""
        self._noise = None

    def step(self, noise: Tensor | None = None) -> Tensor:
        """Go on by one timestep, with `noise` in place of what the network predicts; gives the new sample."""
        now = self._now()
        asked = self.noise if noise is None else noise
        past = {
            "latents": self._latents,
            "last": self.last,
            "state": self.scheduler.snapshot(),
            "draws": draws_of(self._generator, self._latents.device),
        }
        with votive.set_grad_enabled(self.grad and votive.is_grad_enabled()):
            found = self.scheduler.step(asked, now, self._latents, **self._step_options)  # type: ignore[attr-defined]
            settled = self.settled(found.prev_sample)
        self._past.append(past)
        self.last, self._latents, self._noise = found, settled, None
        self.index += 1
        return self._latents

    def settled(self, latents: Tensor) -> Tensor:
        """What becomes of the sample that a step led to; the sample itself unless a kind of run says otherwise."""
        return latents

    def back(self, steps: int = 1) -> None:
        """Go back by so many timesteps: the sample, the scheduler and the generators are as they were."""
        most = self.index - self._first
        if not 0 <= steps <= most:
            raise ValueError(f"back: this run goes back by 0 to {most} steps, got {steps}.")
        for _ in range(steps):
            past = self._past.pop()
            self.index -= 1
            self._latents, self._noise, self.last = past["latents"], None, past["last"]
            self.scheduler.restore(past["state"])
            set_draws(self._generator, self._latents.device, past["draws"])

    def drop_past(self) -> None:
        """Forget the steps that were taken: `back` ends here, and what they kept is free."""
        self._past.clear()
        self._first = self.index

    def run(self, until: int | None = None) -> Tensor:
        """Go on until that many timesteps were taken, or to the end; gives the sample."""
        end = len(self) if until is None else until
        if not 0 <= end <= len(self):
            raise ValueError(f"run: until must be 0 to {len(self)}, got {until}.")
        while self.index < end:
            self.step()
        return self._latents

    def finish(self) -> Tensor:
        """Go on to the end; gives the sample."""
        return self.run()

    @property
    def clean(self) -> Tensor | None:
        """The clean sample as it was predicted at the last step; None where the scheduler does not tell it."""
        for name in ("pred_original_sample", "denoised"):
            found = getattr(self.last, name, None)
            if found is not None:
                return found
        return None

    def images(self, output_type: str = "pil", latents: Tensor | None = None) -> Any:
        """Pictures of the sample as it is now, or of other latents such as `clean`."""
        if self._show is None:
            raise ValueError("images: this run was made without a way to show its sample.")
        with votive.no_grad():
            return self._show(self._latents if latents is None else latents, output_type)

    def _now(self) -> Tensor:
        _ = self.timestep
        return self.timesteps[self.index]

    def __repr__(self) -> str:
        at = "at its end" if self.done else f"before timestep {self.timestep:g}"
        return f"Denoising({self.index} of {len(self)} steps taken, {at}, latents {tuple(self._latents.shape)})"


def draws_of(generator: Generators, device: votive.device) -> list[Tensor]:
    """The state of whatever draws noise for a run: the generators given, or the default ones."""
    if generator is None:
        states = [votive.get_rng_state()]
        return [*states, votive.cuda.get_rng_state(device)] if device.type == "cuda" else states
    given = generator if isinstance(generator, list | tuple) else [generator]
    return [g.get_state() for g in given]


def set_draws(generator: Generators, device: votive.device, states: list[Tensor]) -> None:
    """Put back what `draws_of` told."""
    if generator is None:
        votive.set_rng_state(states[0])
        if device.type == "cuda":
            votive.cuda.set_rng_state(states[1], device)
        return
    given = generator if isinstance(generator, list | tuple) else [generator]
    for g, state in zip(given, states, strict=True):
        g.set_state(state)
