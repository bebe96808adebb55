"""Steering only the texts that a condition holds for. Knows addresses and directions, no model class.

Lee et al. 2024: a text's mean state at one layer is compared with a condition's direction, and where they are alike
enough, another direction is added at a later layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...nn import Module
from ...tensor import Tensor
from ..edits import Edit
from ..patch import Patch
from .directions import Direction


class ConditionalSteering:
    """What `steer_when` gives, for a `with` block: `met` says which samples of the last text the condition held for,
    `scores` are their cosines.
    """

    def __init__(
        self,
        model: Module,
        condition: Direction,
        steering: Direction,
        *,
        threshold: float,
        scale: float = 1.0,
        below: bool = False,
        positions: Sequence[int] | None = None,
    ) -> None:
        self.condition, self.steering, self.scale = condition, steering, scale
        self.threshold, self.below = threshold, below
        self.met: Tensor | None = None
        self.scores: Tensor | None = None
        where = None if positions is None else tuple(positions)
        self.decided = False
        self._patch = _Conditional(
            self, model, [Edit(condition.at, "call", self._look), Edit(steering.at, "call", self._add, positions=where)]
        )

    def __enter__(self) -> ConditionalSteering:
        self._patch.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._patch.__exit__(*exc)

    def begin(self, past: int) -> None:
        """A run begins behind so many positions of its text."""
        self.decided = past > 0 and self.met is not None

    def _look(self, value: Tensor) -> Tensor:
        if value.dim() != 3:
            raise ValueError(
                f"steer_when: the condition is read from (samples, positions, features), got {value.shape}."
            )
        if not self.decided or self.met is None or len(self.met) != len(value):
            scores = self.condition.similarity(value.detach().float().mean(1))
            self.scores = scores
            self.met = (scores <= self.threshold) if self.below else (scores > self.threshold)
        return value

    def _add(self, value: Tensor) -> Tensor:
        if self.met is None or len(self.met) != len(value):
            raise RuntimeError(
                f"steer_when: {self.steering.at!r} was called before {self.condition.at!r}, so the condition is not "
                "known there; steer at a later place."
            )
        step = (self.steering.vector * self.scale).to(device=value.device, dtype=value.dtype)
        return value + self.met.to(value.dtype).reshape(-1, 1, 1) * step


def steer_when(
    model: Module,
    condition: Direction,
    steering: Direction,
    *,
    threshold: float,
    scale: float = 1.0,
    below: bool = False,
    positions: Sequence[int] | None = None,
) -> ConditionalSteering:
    """Inside a `with` block, add a direction for those samples that a condition holds for.

    The condition is read where its direction is, which the model must call before the place that is steered: the cosine
    of a sample's mean over positions, above `threshold` (with `below=True`, not above). With a key-value cache the
    first run decides for all that follow it; a run whose samples are others decides anew.

    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> one, two = (votive.glass.steering.Direction(at, votive.tensor([1.0, 0.0])) for at in "01")
    >>> with votive.glass.steering.steer_when(net, one, two, threshold=0.5) as steering:
    ...     y = net(votive.tensor([[[1.0, 0.0]], [[0.0, 1.0]]]))
    >>> y.flatten(0, 1), steering.met
    (tensor([[2., 0.],
            [0., 1.]]), tensor([ True, False]))
    """
    return ConditionalSteering(
        model, condition, steering, threshold=threshold, scale=scale, below=below, positions=positions
    )


class _Conditional(Patch):
    """A patch that says when a run begins."""

    def __init__(self, owner: ConditionalSteering, model: Module, edits: list[Edit]) -> None:
        super().__init__(model, edits)
        self.owner = owner

    def entered(self, frame: Any) -> None:
        if frame.parent is None:
            self.owner.begin(self.past)
        super().entered(frame)

    def compiled_as(self) -> Any:
        return None  # what it decides is not in a graph
