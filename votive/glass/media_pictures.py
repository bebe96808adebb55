"""Which pictures there are of what a model makes of images and of sound. Draws nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

from .display import Pictures
from .feature_maps import FeatureMaps
from .grad_cam import GradCam
from .patch_attention import PatchAttention
from .pictures import MAPS, sample_names, shows
from .speech import Alignment, Mels


@shows(GradCam)
def _grad_cam(found: GradCam) -> Pictures:
    out: dict[str, Any] = {}
    for sample, suffix in sample_names(found.maps.shape[0]):
        if found.picture is not None:
            out[f"over the picture{suffix}"] = partial(lambda s: [found.over_picture(s)], sample)
        out[f"map{suffix}"] = partial(lambda s: [found.figure(s)], sample)
    return out


@shows(PatchAttention)
def _patch_attention(found: PatchAttention) -> Pictures:
    out: dict[str, Any] = {}

    def add(name: str, what: str, layer: int = -1, head: int | None = None, *, sample: int) -> None:
        if len(out) < MAPS:
            out[name] = lambda: [found.figure(what, layer, head, sample=sample)]

    for sample, suffix in sample_names(found.picture.shape[0]):
        if found.layers:
            add(f"rollout{suffix}", "rollout", sample=sample)
        for what, layers in (("map", found.layers), ("cross", found.cross)):
            for i, layer in enumerate(layers):
                name = layer.address.partition("/")[0]
                add(f"{name}, mean of heads{suffix}", what, i, sample=sample)
                for head in range(layer.shape[1]):
                    add(f"{name}, head {head}{suffix}", what, i, head, sample=sample)
    return out


@shows(FeatureMaps)
def _feature_maps(found: FeatureMaps) -> Pictures:
    out: dict[str, Any] = {}
    for name in found:
        for sample, suffix in sample_names(found[name].shape[0]):
            if len(out) < MAPS:
                out[f"{name}{suffix}"] = partial(lambda n, s: [found.figure(n, s)], name, sample)
    return out


@shows(Mels)
def _mels(found: Mels) -> Pictures:
    return {f"mels{suffix}": partial(lambda s: [found.figure(s)], s) for s, suffix in sample_names(len(found))}


@shows(Alignment)
def _alignment(found: Alignment) -> Pictures:
    out: dict[str, Any] = {"alignment": lambda: [found.figure()]}
    for i, layer in enumerate(found.maps):
        name = layer.address.partition("/")[0]
        out[f"{name}, mean of heads"] = partial(lambda i: [found.figure(i)], i)
        for head in range(layer.shape[1]):
            if len(out) < MAPS:
                out[f"{name}, head {head}"] = partial(lambda i, h: [found.figure(i, h)], i, head)
    return out
