"""Grad-CAM: where in a picture a class is seen. Knows maps of features, no model class.

Selvaraju et al. 2017, arXiv:1610.02391: `relu(sum_k a_k A_k)`, with a_k the mean gradient of the
class's score over map k.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import votive

from ..nn import functional as F
from . import values
from .gradients import gradients
from .heatmap import Heatmap
from .plots import Drawn
from .probe import Frame, Probe
from .stream import logits_of
from .targets import patterns


@dataclass(frozen=True)
class GradCam(Drawn):
    """`maps` (samples, height, width) as large as the picture, from 0 to 1; `raw` as they came."""

    address: str
    maps: Any
    raw: Any
    target: Any
    score: Any

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return {
            "address": self.address, "maps": self.maps.tolist(), "raw": self.raw.tolist(),
            "target": self.target.tolist(), "score": self.score.tolist(),
        }  # fmt: skip

    def figure(self, sample: int = 0) -> Heatmap:
        """The map of one sample."""
        rows, columns = self.maps.shape[1:]
        # Names at every eighth pixel are enough.
        names = [[str(i) if i % 8 == 0 else "" for i in range(n)] for n in (rows, columns)]
        return Heatmap(
            self.maps[sample].tolist(), *names, title=f"Grad-CAM at {self.address}", x_name="x",
            y_name="y", legend="weight", low=0.0, high=1.0,
        )  # fmt: skip


class _LastMaps(Probe):
    """The last innermost call that gives maps of features."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.found: str | None = None

    def left(self, frame: Frame) -> None:
        y = values.first(frame.output)
        leaf = not any(True for _ in frame.subject.children())
        if leaf and y is not None and y.dim() == 4 and y.shape[2] * y.shape[3] > 1:
            if getattr(getattr(frame.subject, "weight", None), "ndim", 0) == 4:
                self.found = str(frame.address)


def grad_cam(
    model: Any, *args: Any, at: str | None = None, target: Any = None,
    metric: Callable[[Any], Any] | None = None, size: Any = None, **kwargs: Any,
) -> GradCam:  # fmt: skip
    """Where a model that reads pictures (samples, channels, height, width) sees a class.

    `at` is the module whose maps are weighted, by default the last convolution; `target` a class
    for all or each of the samples, by default the likeliest; `size` that of the result, by default
    the picture's. `metric` gives a number for each sample in place of the target's score.

    >>> _ = votive.manual_seed(0)
    >>> net = votive.nn.Sequential(votive.nn.Conv2d(1, 2, 3), votive.nn.Flatten(),
    ...     votive.nn.Linear(8, 3))
    >>> votive.glass.grad_cam(net, votive.ones(1, 1, 4, 4), target=1).maps.shape
    votive.Size([1, 4, 4])
    """
    if metric is not None and target is not None:
        raise ValueError("grad_cam: give target or metric, not both.")
    if at is None:
        with votive.no_grad(), _LastMaps(model) as last:
            model(*args, **kwargs)
        if last.found is None:
            raise LookupError("grad_cam: no convolution ran; name a module with at=.")
        at = "^" + last.found
    chosen: list[Any] = []

    def scored(result: Any) -> Any:
        scores = logits_of(result)
        goal = scores.detach().argmax(-1) if target is None else votive.as_tensor(target)
        chosen.append(goal.long().reshape(-1).expand(scores.shape[0]))
        return scores.gather(-1, chosen[0].unsqueeze(-1)).squeeze(-1)

    found = gradients(model, patterns(at), (args, kwargs), metric or scored)
    if len(found.values) != 1:
        raise ValueError(f"grad_cam: {at!r} means {list(found.values)}; choose one.")
    ((name, y),) = found.values.items()
    if y.dim() != 4:
        raise ValueError(f"grad_cam: {name} gives {tuple(y.shape)}, no maps of features.")
    with votive.no_grad():
        weights = found.grads[name].mean((2, 3), keepdim=True)
        raw = F.relu((weights * y).sum(1))  # (B, h, w)
        size = tuple(values.first((args, kwargs)).shape[-2:]) if size is None else size
        large = F.interpolate(raw.unsqueeze(1), size=size, mode="bilinear", align_corners=False)
        large = large.squeeze(1)
        top = large.amax((1, 2), keepdim=True)
        large = large / votive.where(top > 0, top, votive.ones_like(top))
    target = chosen[0] if chosen else votive.full((y.shape[0],), -1, dtype=votive.int64)
    return GradCam(name, large, raw, target, found.metric)
