"""Actions about what a model sees: a picture, classes, attention, Grad-CAM, maps of features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from ..arguments import Address, Bounds, Index
from ..jobs import Job
from ..vision_models import PictureAnalysis, VisionModel, picture_from
from ..workspace import Missing
from . import action

if TYPE_CHECKING:
    from ...tensor import Tensor


_KEY = "vision"
Picture = Annotated[str, Bounds(1, 900_000)]


def _seen(job: Job) -> PictureAnalysis:
    kept = job.workspace.cache.get(_KEY)
    if kept is None:
        raise Missing("There is no picture yet; open one first.")
    found: PictureAnalysis = kept[0]
    return found


def _f32(x: Tensor) -> np.ndarray:
    found: np.ndarray = x.detach().float().cpu().numpy().astype(np.float32)
    return found


@action("vision.look")
def look(job: Job, image: Picture | None = None) -> Any:
    """Put a picture (base64 of a file, or a drawing) in front of the model; gives its classes."""
    workspace = job.workspace
    if not isinstance(workspace.loaded, VisionModel):
        raise TypeError(f'"{workspace.loaded.name}" reads text, not pictures.')
    seen = PictureAnalysis(workspace.loaded, picture_from(image))
    workspace.cache.pop(_KEY, None)
    workspace.cached(_KEY, lambda: (seen, 1 << 20))
    workspace.log(job, "pixels = processor(picture, return_tensors='vt').pixel_values")
    found, layers, heads = seen.attention, [], 0
    grid = None
    if found is not None:
        layers = [m.address.partition("/")[0] for m in found.layers]
        heads, grid = found.layers[0].shape[1] if layers else 0, found.grid
    data = {
        "classes": seen.classes(),
        "layers": layers,
        "heads": heads,
        "tokens": seen.tokens,
        "cross": 0 if found is None else len(found.cross),
        "cross_heads": found.cross[0].shape[1] if found is not None and found.cross else 0,
        "grid": None if grid is None else [grid.height, grid.width],
        "before": 0 if grid is None else grid.first,
        "maps": list(seen.maps),
    }
    return data, {"picture": seen.picture}


@action("vision.attention")
def attention(
    job: Job,
    what: Literal["rollout", "map", "cross"] = "rollout",
    layer: Index = 0,
    head: Index | None = None,
    query: Index = 0,
) -> Any:
    """A map of attention over the patches: rollout, or that of a token in a layer."""
    found = _seen(job).attention
    if found is None:
        raise ValueError("vision.attention: this model has no attention over patches.")
    if what == "rollout":
        line, made = "glass.patch_attention(model, pixels).rollout()", found.rollout()
    else:
        of = found.cross if what == "cross" else found.layers
        if layer >= len(of) or (head is not None and head >= of[layer].shape[1]):
            raise IndexError(f"vision.attention: there is no layer {layer}, head {head}.")
        if query >= of[layer].shape[2]:
            raise IndexError(f"vision.attention: there is no token {query}.")
        made = found.map(layer, head, query, cross=what == "cross")
        line = f"glass.patch_attention(model, pixels).map({layer}, {head}, {query})"
    job.workspace.log(job, line)
    low, high = float(made.min()), float(made.max())
    return {"low": low, "high": high}, {"map": _f32(made)}


@action("vision.cam")
def cam(job: Job, target: Index | None = None) -> Any:
    """Where a class is seen, as large as the picture."""
    seen = _seen(job)
    if seen.given:
        raise ValueError("vision.cam: this model writes a text and has no classes.")
    found = seen.cam(target)
    job.workspace.log(job, f"glass.grad_cam(model, pixels, target={target})")
    chosen = int(found.target[0])
    data = {"address": found.address, "target": chosen, "label": seen.loaded.label(chosen), "low": 0.0, "high": 1.0}
    return data, {"map": _f32(found.maps[0])}


@action("vision.maps")
def maps(job: Job, at: Address, order: Literal["first", "strongest"] = "first") -> Any:
    """The channels of a convolution, side by side."""
    found = _seen(job).maps
    if at not in found.maps:
        raise KeyError(f"vision.maps: there is no convolution {at!r:.100}.")
    figure = found.figure(at, channels="strongest" if order == "strongest" else None)
    job.workspace.log(job, f"glass.feature_maps(model, pixels).figure({at!r})")
    return {"note": figure.note, "legend": figure.legend}, {"grid": figure.small()}
