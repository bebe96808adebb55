"""How a training goes inside the model: step sizes, gradients, dead units. Knows no model."""

from __future__ import annotations

import math
import os
from dataclasses import astuple, dataclass
from typing import Any, Self

import votive

from ..nn import Module
from ..tensor import Tensor
from ..train.callbacks import Callback
from ..train.chart import Curve, build
from ..train.svg import draw
from .address import Address, Patterns
from .display import Displayable
from .probe import Frame, Probe
from .targets import no_match, patterns
from .text_table import table

METRICS = ("update_ratio", "grad_norm", "weight_norm", "dead")


@dataclass(frozen=True)
class Reading:
    """What was measured at one address after one step.

    A module that holds parameters has the norms of all of them together; `update_ratio` is the
    norm of what the step changed over the norm before it. An activation has `dead`, the share of
    its units that no sample has switched on in any measured step so far.

    >>> votive.glass.Reading(3, "layers.0", update_ratio=1e-3).step
    3
    """

    step: int
    address: str
    weight_norm: float = math.nan
    grad_norm: float = math.nan
    update_ratio: float = math.nan
    dead: float = math.nan


class _Units(Probe):
    """Notes which units of activations were ever on."""

    def __init__(self, model: Module, alive: dict[str, Any]) -> None:
        super().__init__(model, ops=True)
        self.alive = alive

    def left(self, frame: Frame) -> None:
        if frame.is_module or not frame.subject.gate:
            return
        with self.muted(), votive.no_grad():
            x = frame.args[0].detach()
            if x.dim() < 2:
                return
            # Images have their features in dimension 1, all else in the last.
            features = 1 if x.dim() == 4 else x.dim() - 1
            on = (x > 0).transpose(0, features).reshape(x.shape[features], -1).any(1)
            key = str(frame.address)
            seen = self.alive.get(key)
            self.alive[key] = on if seen is None or seen.shape != on.shape else seen | on


class Health(Callback, Displayable):
    """Readings of each module every so many steps, as a Trainer's callback or by hand.

    By hand: `start()` once, `step()` after each step of the optimizer, while the gradients are
    still there, and `close()` at the end; a `with` block does the first and the last. A measured
    step costs a copy of the parameters and a slower forward; the others cost nothing. Update
    ratios near 1e-3 are usual; much more is unstable, much less is slow.

    >>> net = votive.nn.Sequential(votive.nn.Linear(2, 3), votive.nn.ReLU(), votive.nn.Linear(3, 1))
    >>> optimizer = votive.optim.SGD(net.parameters(), 0.1)
    >>> with votive.glass.Health(net) as health:
    ...     net(votive.ones(4, 2)).sum().backward()
    ...     optimizer.step()
    ...     sorted({r.address for r in health.step()})
    ['0', '1/relu#0', '2']
    """

    def __init__(self, model: Module, *, every: int = 1, dead: bool = True) -> None:
        if every < 1:
            raise ValueError(f"Health: every must be positive, got {every}.")
        self.model, self.every, self.dead = model, every, dead
        self.readings: list[Reading] = []
        self.count = 0  # steps so far
        self._before: dict[str, Any] | None = None
        self._alive: dict[str, Any] = {}
        self._units: _Units | None = None

    # --- by hand ------------------------------------------------------------------------------

    def start(self, step: int = 0) -> None:
        """Training begins, after `step` steps that were made earlier."""
        self.count = step
        self._prepare()

    def step(self) -> list[Reading]:
        """A step was made; gives what was measured, if it was one to measure."""
        self.count += 1
        made = self._measure() if self._before is not None else []
        self._prepare()
        return made

    def close(self) -> None:
        """Look no longer."""
        units, self._units, self._before = self._units, None, None
        if units is not None:
            units.__exit__(None, None, None)

    def _prepare(self) -> None:
        """Before a step that is measured, keep the parameters and look at activations."""
        self.close()
        if (self.count + 1) % self.every:
            return
        with votive.no_grad():
            self._before = {n: p.detach().clone() for n, p in self.model.named_parameters()}
        if self.dead:
            self._units = _Units(self.model, self._alive)
            self._units.__enter__()

    def _measure(self) -> list[Reading]:
        assert self._before is not None
        sums: dict[str, list[float]] = {}
        with votive.no_grad():
            for name, p in self.model.named_parameters():
                old = self._before[name]
                row = sums.setdefault(name.rpartition(".")[0], [0.0, 0.0, 0.0, 0.0])
                row[0] += _square(p)
                row[1] += _square(old)
                row[2] += _square(p.detach() - old)
                row[3] += math.nan if p.grad is None else _square(p.grad)
        made = [
            Reading(
                self.count, address, math.sqrt(now), math.sqrt(grad), math.sqrt(change / before) if before else math.nan
            )
            for address, (now, before, change, grad) in sums.items()
        ]
        made += [Reading(self.count, address, dead=1 - float(on.float().mean())) for address, on in self._alive.items()]
        self.readings += made
        return made

    # --- as a callback ------------------------------------------------------------------------

    def on_start(self, trainer: Any) -> None:
        self.start(trainer.step)

    def on_step(self, trainer: Any) -> None:
        self.step()

    def on_end(self, trainer: Any) -> None:
        self.close()

    def state_dict(self) -> dict[str, Any]:
        """What it remembers, for checkpoints."""
        return {"readings": [astuple(r) for r in self.readings], "alive": dict(self._alive)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Remember it again."""
        self.readings = [Reading(*r) for r in state_dict["readings"]]
        self._alive.update(state_dict["alive"])

    def __enter__(self) -> Self:
        self.start(self.count)
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_units", None) is not None:
            self.close()

    # --- reading ------------------------------------------------------------------------------

    @property
    def addresses(self) -> list[str]:
        """All addresses with readings."""
        return list(dict.fromkeys(r.address for r in self.readings))

    def series(self, address: str, metric: str = "update_ratio") -> list[tuple[int, float]]:
        """One metric at one address, as (step, value)."""
        _check(metric)
        found = [(r.step, getattr(r, metric)) for r in self.readings if r.address == address]
        if not found:
            raise KeyError(f"Health: there are no readings of {address!r}.")
        return found

    def dead_units(self, address: str) -> list[int]:
        """The units of an activation that no sample has switched on."""
        if address not in self._alive:
            known = ", ".join(self._alive) or "none"
            raise KeyError(f"Health: {address!r} is not an activation that was seen; seen: {known}.")
        return [i for i, on in enumerate(self._alive[address].tolist()) if not on]

    def __str__(self) -> str:
        latest = {r.address: r for r in self.readings}
        rows = [(a or "(model)", r.step, *(_shown(getattr(r, m)) for m in METRICS)) for a, r in latest.items()]
        return table("", ["address", ">step", *(f">{m}" for m in METRICS)], rows)

    def svg(
        self,
        metric: str = "update_ratio",
        path: str | os.PathLike[str] | None = None,
        *,
        at: Patterns | None = None,
        log: bool = True,
    ) -> str:
        """A line for each address, or for those that match `at`; also written to `path`."""
        _check(metric)
        wanted = None if at is None else patterns(at)
        shown = [a for a in self.addresses if wanted is None or any(p.matches(Address.parse(a)) for p in wanted)]
        if not shown and wanted is not None:
            raise no_match(wanted[0], self.addresses)
        curves = []
        for address in shown:
            points = [(s, v) for s, v in self.series(address, metric) if math.isfinite(v)]
            if points:
                xs, ys = zip(*points, strict=True)
                curves.append(Curve(address or "(model)", xs, ys))
        text = draw(build(curves, title=metric.replace("_", " "), log=log and metric != "dead"))
        if path is not None:
            with open(os.fspath(path), "w", encoding="utf-8") as f:
                f.write(text)
        return text

    def __repr__(self) -> str:
        return f"<health: {self.count} steps, {len(self.readings)} readings>"


def _check(metric: str) -> None:
    if metric not in METRICS:
        raise ValueError(f"Health: metric must be one of {', '.join(METRICS)}, got {metric!r}.")


def _square(t: Tensor) -> float:
    """The sum of squares, in a type that does not overflow."""
    flat = t.detach().reshape(-1).float()
    return float(votive.dot(flat, flat))


def _shown(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}"
