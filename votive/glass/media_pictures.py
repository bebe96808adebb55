"""Which pictures there are of what a model makes of pictures. Draws nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

from .display import Pictures
from .feature_maps import FeatureMaps
from .grad_cam import GradCam
from .patch_attention import PatchAttention
from .pictures import shows

# Samples, and maps in all, with a picture of their own.
SAMPLES, MAPS = 16, 500


@shows(GradCam)
def _grad_cam(found: GradCam) -> Pictures:
    out: dict[str, Any] = {}
    count = found.maps.shape[0]
    for sample in range(min(count, SAMPLES)):
        suffix = "" if count == 1 else f", sample {sample}"
        if found.picture is not None:
            out[f"over the picture{suffix}"] = partial(lambda s: [found.over_picture(s)], sample)
        out[f"map{suffix}"] = partial(lambda s: [found.figure(s)], sample)
    return out


@shows(PatchAttention)
def _patch_attention(found: PatchAttention) -> Pictures:
    out: dict[str, Any] = {}
    count = found.picture.shape[0]
    for sample in range(min(count, SAMPLES)):
        suffix = "" if count == 1 else f", sample {sample}"

        def add(name: str, *args: Any, sample: int = sample, suffix: str = suffix) -> None:
            if len(out) < MAPS:
                out[name + suffix] = partial(lambda a, s: [found.figure(*a, sample=s)], args, sample)

        if found.layers:
            add("rollout", "rollout")
        for what, layers in (("map", found.layers), ("cross", found.cross)):
            for i, layer in enumerate(layers):
                name = layer.address.partition("/")[0]
                add(f"{name}, mean of heads", what, i)
                for head in range(layer.shape[1]):
                    add(f"{name}, head {head}", what, i, head)
    return out


@shows(FeatureMaps)
def _feature_maps(found: FeatureMaps) -> Pictures:
    out: dict[str, Any] = {}
    for name in found:
        count = found[name].shape[0]
        for sample in range(min(count, SAMPLES)):
            suffix = "" if count == 1 else f", sample {sample}"
            if len(out) < MAPS:
                out[f"{name}{suffix}"] = partial(lambda n, s: [found.figure(n, s)], name, sample)
    return out
