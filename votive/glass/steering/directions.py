"""Directions between two kinds of texts, as data and as edits. Knows addresses, no model class."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import votive

from ...nn import Module
from ...serialization import FileFormatError
from ...tensor import Tensor
from ..address import Patterns
from ..display import Displayable, Pictures
from ..edits import Edit
from ..patch import patch
from ..plots import Bars
from ..probes.layers import Positions, gather

METHODS = ("mean", "pca")


@dataclass(frozen=True)
class Direction(Displayable):
    """A vector at an address, and how it was found.

    >>> direction = votive.glass.steering.Direction("0", votive.tensor([3.0, 4.0]))
    >>> direction.unit.tolist(), direction.norm
    ([0.6000000238418579, 0.800000011920929], 5.0)
    """

    at: str
    vector: Tensor
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def norm(self) -> float:
        """Its length."""
        return float(self.vector.double().norm())

    @property
    def unit(self) -> Tensor:
        """The same of length 1."""
        return self.vector / self.vector.norm().clamp(min=1e-30)

    def add(self, scale: float = 1.0, **options: Any) -> Edit:
        """The edit that adds it; options are an edit's, such as `positions`."""
        return Edit(self.at, "add", self.vector * scale, **options)

    def ablate(self, at: str | None = None, **options: Any) -> Edit:
        """The edit that takes it out of values, here or at another address or pattern: `x - (x . u) u`."""
        return Edit(self.at if at is None else at, "call", Projection(self.unit), **options)

    def similarity(self, x: Tensor) -> Tensor:
        """Cosines with values, (..., features) to (...)."""
        unit = self.unit.to(device=x.device, dtype=votive.float32)
        x = x.float()
        return (x @ unit) / x.norm(dim=-1).clamp(min=1e-30)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file."""
        votive.save({"direction": {"at": self.at, "about": self.about}, "vector": self.vector}, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Direction:
        """Read what `save` wrote."""
        found = votive.load(path)
        fields = found.get("direction") if isinstance(found, dict) else None
        vector = found.get("vector") if isinstance(found, dict) else None
        if not isinstance(fields, dict) or not isinstance(vector, Tensor) or vector.dim() != 1:
            raise FileFormatError(f"Direction.load: {os.fspath(path)} holds no direction.")
        return cls(str(fields.get("at")), vector, dict(fields.get("about") or {}))

    def pictures(self) -> Pictures:
        _values, index = self.vector.abs().topk(min(20, len(self.vector)))
        names = [str(i) for i in index.tolist()]
        found = [float(self.vector[int(i)]) for i in index.tolist()]
        return {
            "direction": lambda: [Bars(found, names, title=f"largest of {len(self.vector)} at {self.at}", x_name="")]
        }


@dataclass(frozen=True)
class Projection:
    """Takes a direction of length 1 out of values.

    >>> votive.glass.steering.directions.Projection(votive.tensor([1.0, 0.0]))(votive.ones(1, 2))
    tensor([[0., 1.]])
    """

    unit: Tensor

    def __call__(self, x: Tensor) -> Tensor:
        unit = self.unit.to(device=x.device, dtype=votive.promote_types(x.dtype, votive.float32))
        wide = x.to(unit.dtype)
        return (wide - (wide @ unit).unsqueeze(-1) * unit).to(x.dtype)


def contrast(
    model: Module,
    positive: Iterable[Any],
    negative: Iterable[Any],
    at: str,
    *,
    positions: Positions = -1,
    method: str = "mean",
) -> Direction:
    """The direction from what a model has for one kind of texts to what it has for another (Rimsky et al. 2024).

    "mean" is the difference of means; "pca" the first principal direction of the differences of pairs (Zou et al.
    2023), of which there must be as many positive as negative, with the length that pairs differ by along it. Several
    positions of a text are averaged.

    >>> net = votive.nn.Sequential(votive.nn.Identity())
    >>> found = votive.glass.steering.contrast(net, [votive.ones(2, 3, 2)], [votive.zeros(1, 3, 2)], "0")
    >>> found.vector
    tensor([1., 1.])
    """
    if method not in METHODS:
        raise ValueError(f"contrast: method must be one of {', '.join(METHODS)}, got {method!r}.")
    a, b = (_rows(model, batches, at, positions) for batches in (positive, negative))
    about = {"method": method, "samples": [len(a), len(b)]}
    return Direction(at, _direction(a, b, method), about)


def _rows(model: Module, batches: Iterable[Any], at: str, positions: Positions) -> Tensor:
    found = gather(model, batches, at, positions).sites
    if len(found) != 1:
        raise ValueError(f"contrast: {at!r} means {len(found)} values, such as {next(iter(found))!r}; name one.")
    return next(iter(found.values())).mean(1)


def _direction(a: Tensor, b: Tensor, method: str) -> Tensor:
    wide = votive.promote_types(a.dtype, votive.float32)
    a, b = a.double(), b.double()
    mean = a.mean(0) - b.mean(0)
    if method == "mean":
        return mean.to(wide)
    if len(a) != len(b):
        raise ValueError(f"contrast: pca compares pairs, got {len(a)} positive and {len(b)} negative texts.")
    apart = a - b
    # Both orders of each pair: their mean is 0, so that what all pairs share counts too.
    _, _, rows = votive.linalg.svd(apart, full_matrices=False)
    unit = rows[0] if float(rows[0] @ mean) >= 0 else -rows[0]
    return (unit * (apart @ unit).mean()).to(wide)


def find_direction(
    model: Module,
    positive: Iterable[Any],
    negative: Iterable[Any],
    *,
    at: Patterns = "layers.*",
    positions: Sequence[int] = (-1,),
    score: Callable[[Module, Direction], float] | None = None,
    metric: Callable[[Any], Tensor] | None = None,
) -> tuple[Direction, list[tuple[Direction, float]]]:
    """The difference of means that matters most, among those of all sites and positions (Arditi et al. 2024).

    Each candidate is taken out of the values at all sites while the positive texts run; the best is the one after
    which `metric`, a number per sample of the model's output such as a refusal's score, is lowest. `score(model,
    direction)` judges in another way, lower being better. Given back are the best and all of them, best first.

    >>> net = votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())
    >>> best, ranked = votive.glass.steering.find_direction(net, [votive.tensor([[[2.0, 1.0]]])],
    ...     [votive.tensor([[[0.0, 1.0]]])], at="*", metric=lambda y: y[:, -1, 0])
    >>> best.vector.tolist(), len(ranked), round(ranked[0][1], 6)
    ([2.0, 0.0], 2, 0.0)
    """
    if (score is None) == (metric is None):
        raise ValueError("find_direction: give metric=, or score=.")
    good, bad = list(positive), list(negative)
    one, two = (gather(model, b, at, list(positions)).sites for b in (good, bad))
    everywhere = list(one)
    ranked = []
    for site in everywhere:
        for j, position in enumerate(positions):
            about = {
                "method": "mean",
                "position": int(position),
                "positive": len(one[site]),
                "negative": len(two[site]),
            }
            direction = Direction(site, _direction(one[site][:, j], two[site][:, j], "mean"), about)
            if not direction.norm > 0:
                continue  # both kinds are the same there
            if score is not None:
                ranked.append((direction, float(score(model, direction))))
            elif metric is not None:
                ranked.append((direction, _without(model, direction, everywhere, good, metric)))
    if not ranked:
        raise ValueError("find_direction: the two kinds of texts have the same values at all sites.")
    ranked.sort(key=lambda r: r[1])
    return ranked[0][0], ranked


def _without(
    model: Module, direction: Direction, sites: list[str], batches: list[Any], metric: Callable[[Any], Tensor]
) -> float:
    from ..sweep_runs import inputs_of

    total, many = 0.0, 0
    edits = [direction.ablate(f"^{site}") for site in sites]
    with votive.no_grad(), patch(model, edits, measure=False):
        for batch in batches:
            args, kwargs = inputs_of(batch)
            found = metric(model(*args, **kwargs))
            total, many = total + float(found.double().sum()), many + found.numel()
    return total / many


def random_direction(direction: Direction, *, seed: int = 0) -> Direction:
    """A direction of the same length at random, to compare with.

    >>> direction = votive.glass.steering.Direction("0", votive.tensor([3.0, 4.0]))
    >>> round(votive.glass.steering.random_direction(direction).norm, 5)
    5.0
    """
    generator = votive.Generator().manual_seed(seed)
    found = votive.randn(len(direction.vector), generator=generator)
    return Direction(direction.at, found / found.norm() * direction.norm, {"method": "random", "seed": seed})
