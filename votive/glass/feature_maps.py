"""What the convolutions of a net make of a picture: their maps of features, side by side.

Knows modules that give maps, no model class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import votive

from ..nn import Module
from . import values
from .address import Patterns
from .pixels import LEAST, Pixels, coloured, grown, tiled
from .plots import Plottable
from .probe import Frame, Probe
from .targets import modules_for, no_match, patterns

# Channels that are drawn if no others are asked for.
SHOWN = 36


@dataclass(frozen=True)
class FeatureMaps(Plottable):
    """Maps (samples, channels, height, width) by address, in the order of the calls."""

    maps: dict[str, Any]

    def __len__(self) -> int:
        return len(self.maps)

    def __iter__(self) -> Iterator[str]:
        return iter(self.maps)

    def __getitem__(self, at: int | str) -> Any:
        return self.maps[self.named(at)]

    def named(self, at: int | str) -> str:
        """An address, from itself or its number."""
        if isinstance(at, int):
            return list(self.maps)[at]
        if at not in self.maps:
            raise KeyError(f"FeatureMaps: {at!r} is none of {list(self.maps)[:8]}.")
        return str(at)

    def strongest(self, at: int | str = -1, sample: int = 0, count: int = SHOWN) -> list[int]:
        """The channels with the largest mean size, the largest first."""
        x = self[at][sample].abs().mean((1, 2))
        return [int(i) for i in x.topk(min(count, x.shape[0])).indices.tolist()]

    def to_dict(self) -> dict[str, Any]:
        """All maps as lists: for small nets."""
        return {name: x.tolist() for name, x in self.maps.items()}

    def figure(
        self, at: int | str = 0, sample: int = 0, channels: str | Iterable[int] | None = None, each: bool = True
    ) -> Pixels:
        """A grid of channels, by default the first ones; `each` scales them one by one.

        `channels` are numbers, or "strongest".
        """
        name = self.named(at)
        x = self.maps[name][sample].float().cpu().numpy()
        if isinstance(channels, str):
            if channels != "strongest":
                raise ValueError(f"FeatureMaps: channels={channels!r}; take numbers or 'strongest'.")
            chosen = self.strongest(name, sample)
        else:
            chosen = list(range(min(SHOWN, len(x)))) if channels is None else list(channels)
        wrong = [c for c in chosen if not -len(x) <= c < len(x)]
        if wrong or not chosen:
            raise IndexError(f"FeatureMaps: {name} has channels 0..{len(x) - 1}, not {wrong}.")
        x = x[chosen]
        low, high = (x.min((1, 2), keepdims=True), x.max((1, 2), keepdims=True))
        if not each:
            low, high = low.min(keepdims=True), high.max(keepdims=True)
        spread = np.where(high > low, high - low, 1)
        shares = tiled((x - low) / spread)
        scale = max(1, LEAST // max(shares.shape))
        colours = grown(coloured(shares), shares.shape[0] * scale, shares.shape[1] * scale)
        size = f"{self.maps[name].shape[2]} x {self.maps[name].shape[3]}"
        note = f"channels {_listed(chosen)} of {self.maps[name].shape[1]}, {size}"
        legend = (
            "each from its least to its most" if each else (f"from {float(low.min()):.3g} to {float(high.max()):.3g}")
        )
        return Pixels(colours, name, note=note, legend=legend)

    def __repr__(self) -> str:
        return f"<feature maps of {len(self)} calls>"


def _listed(numbers: list[int]) -> str:
    if numbers == list(range(numbers[0], numbers[0] + len(numbers))) and len(numbers) > 2:
        return f"{numbers[0]} to {numbers[-1]}"
    some = ", ".join(map(str, numbers[:8]))
    return some if len(numbers) <= 8 else f"{some}, …"


class _Maps(Probe):
    """Keeps what convolutions give, or the calls that patterns mean."""

    def __init__(self, model: Module, at: Patterns | None) -> None:
        self.wanted = None if at is None else patterns(at)
        if self.wanted is not None:
            modules_for(model, self.wanted)
        super().__init__(model)
        self.kept: dict[str, Any] = {}
        self.others: list[str] = []

    def left(self, frame: Frame) -> None:
        y = values.first(frame.output)
        if self.wanted is None:
            leaf = not any(True for _ in frame.subject.children())
            meant = leaf and getattr(getattr(frame.subject, "weight", None), "ndim", 0) == 4
        else:
            meant = any(p.matches(frame.address, frame) for p in self.wanted)
        if not meant:
            return
        if y is None or y.dim() != 4:
            self.others.append(str(frame.address))
            return
        # What follows may write into it.
        self.kept[str(frame.address)] = y.detach().clone()


def feature_maps(model: Module, *args: object, at: Patterns | None = None, **kwargs: object) -> FeatureMaps:
    """Run a model and give what its convolutions make, or the modules that `at` means.

    >>> _ = votive.manual_seed(0)
    >>> net = votive.nn.Sequential(votive.nn.Conv2d(1, 4, 3), votive.nn.ReLU())
    >>> found = votive.glass.feature_maps(net, votive.rand(1, 1, 8, 8))
    >>> list(found), found["0"].shape, votive.glass.feature_maps(net, votive.rand(1, 1, 8, 8),
    ...     at="1")["1"].min() >= 0
    (['0'], votive.Size([1, 4, 6, 6]), tensor(True))
    """
    probe = _Maps(model, at)
    with votive.no_grad(), probe:
        model(*args, **kwargs)
    if not probe.kept:
        if probe.others:
            raise ValueError(f"feature_maps: {probe.others[0]} gives no maps of features.")
        if probe.wanted is not None:
            raise no_match(probe.wanted[0], [n for n, _ in model.named_modules()])
        raise LookupError("feature_maps: no convolution ran; name modules with at=.")
    return FeatureMaps(probe.kept)
