"""Grad-CAM: where in a picture a class is seen. Knows maps of features and patches, no model class.

Selvaraju et al. 2017, arXiv:1610.02391: `relu(sum_k a_k A_k)`, with a_k the mean gradient of the
class's score over map k. Tokens of patches are maps as well, one for each feature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import votive

from ..nn import Module
from ..nn import functional as F
from ..tensor import Tensor
from . import values
from .gradients import gradients
from .heatmap import Heatmap
from .patches import Patches, PatchGrid, patches_of
from .pixels import Pixels, as_picture, over
from .plots import Plottable
from .residual_stream import logits_of
from .targets import patterns


@dataclass(frozen=True)
class GradCam(Plottable):
    """`maps` (samples, height, width) as large as the picture, from 0 to 1; `raw` as they came."""

    address: str
    maps: Any
    raw: Any
    target: Any
    score: Any
    picture: Any = None  # (samples, channels, height, width), if the maps are as large

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return {
            "address": self.address,
            "maps": self.maps.tolist(),
            "raw": self.raw.tolist(),
            "target": self.target.tolist(),
            "score": self.score.tolist(),
        }

    def figure(self, sample: int = 0) -> Heatmap:
        """The map of one sample."""
        rows, columns = self.maps.shape[1:]
        # Names at every eighth pixel are enough.
        down, across = ([str(i) if i % 8 == 0 else "" for i in range(n)] for n in (rows, columns))
        return Heatmap(
            self.maps[sample].tolist(),
            down,
            across,
            title=f"Grad-CAM at {self.address}",
            x_name="x",
            y_name="y",
            legend="weight",
            low=0.0,
            high=1.0,
        )

    def over_picture(self, sample: int = 0) -> Pixels:
        """The picture of one sample, coloured where the class is seen."""
        if self.picture is None:
            raise ValueError("GradCam: the maps are not as large as the picture; leave out size=.")
        heat = self.maps[sample].float().cpu().numpy()
        title = f"Grad-CAM at {self.address}"
        if int(self.target[sample]) >= 0:
            title += f", class {int(self.target[sample])}"
        return Pixels(over(as_picture(self.picture[sample]), heat), title, legend="from 0 to 1")


def _where(seen: Patches) -> str:
    """The value whose maps tell most: that of the last attention over patches, or convolution."""
    grid = seen.grid()
    over_patches = [m for m, q, k in seen.attention if grid is not None and q == k == grid.tokens]
    if over_patches:
        # After it, only the class token matters, and patches have no gradient.
        return f"^{over_patches[-1]}:in"
    if seen.last_maps is None:
        raise LookupError("grad_cam: no convolution ran; name a module with at=.")
    return "^" + seen.last_maps


def _maps(name: str, x: Tensor, grid: PatchGrid | None) -> Tensor:
    """Values as maps (samples, features, height, width)."""
    if x.dim() == 4:
        return x
    if x.dim() == 3 and grid is not None and x.shape[1] == grid.tokens:
        return grid.maps(x, 1).permute(0, 3, 1, 2)
    raise ValueError(f"grad_cam: {name} gives {tuple(x.shape)}, no maps of features.")


def grad_cam(
    model: Module,
    *args: object,
    at: str | None = None,
    target: object = None,
    metric: Callable[[Any], Any] | None = None,
    size: tuple[int, int] | None = None,
    **kwargs: object,
) -> GradCam:
    """Where a model that reads pictures (samples, channels, height, width) sees a class.

    `at` is the value whose maps are weighted: a module that gives maps, or tokens of patches. By
    default it is what the last attention over patches reads, or the last convolution's result.
    `target` is a class
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
    seen = patches_of(model, args, kwargs)
    at = _where(seen) if at is None else at
    chosen: list[Any] = []

    def scored(result: object) -> Any:
        scores = logits_of(result)
        goal = scores.detach().argmax(-1) if target is None else votive.as_tensor(target)
        chosen.append(goal.long().reshape(-1).expand(scores.shape[0]))
        return scores.gather(-1, chosen[0].unsqueeze(-1)).squeeze(-1)

    found = gradients(model, patterns(at), (args, kwargs), metric or scored)
    if len(found.values) != 1:
        raise ValueError(f"grad_cam: {at!r} means {list(found.values)}; choose one.")
    ((name, value),) = found.values.items()
    picture = next((t for _, t in values.tensors((args, kwargs)) if t.dim() == 4), None)
    if size is None:
        given = values.first((args, kwargs)) if picture is None else picture
        assert given is not None
        size = given.shape[-2], given.shape[-1]
    with votive.no_grad():
        grid = seen.grid()
        y, g = _maps(name, value, grid), _maps(name, found.grads[name], grid)
        raw = F.relu((g.mean((2, 3), keepdim=True) * y).sum(1))  # (B, h, w)
        large = F.interpolate(raw.unsqueeze(1), size=size, mode="bilinear", align_corners=False)
        large = large.squeeze(1)
        top = large.amax((1, 2), keepdim=True)
        large = large / votive.where(top > 0, top, votive.ones_like(top))
    target = chosen[0] if chosen else votive.full((y.shape[0],), -1, dtype=votive.int64)
    fits = picture is not None and tuple(picture.shape[-2:]) == tuple(large.shape[-2:])
    return GradCam(name, large, raw, target, found.metric, picture.detach() if fits and picture is not None else None)
