"""Which pictures there are of what a model hears. Draws nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

from .display import Pictures
from .pictures import shows
from .speech import Alignment, Mels

# Samples and heads with a picture of their own.
SAMPLES, HEADS = 16, 500


@shows(Mels)
def _mels(found: Mels) -> Pictures:
    count = len(found)
    names = {s: "mels" if count == 1 else f"mels, sample {s}" for s in range(min(count, SAMPLES))}
    return {name: partial(lambda s: [found.figure(s)], s) for s, name in names.items()}


@shows(Alignment)
def _alignment(found: Alignment) -> Pictures:
    out: dict[str, Any] = {"alignment": lambda: [found.figure()]}
    for i, layer in enumerate(found.maps):
        name = layer.address.partition("/")[0]
        out[f"{name}, mean of heads"] = partial(lambda i: [found.figure(i)], i)
        for head in range(layer.shape[1]):
            if len(out) < HEADS:
                out[f"{name}, head {head}"] = partial(lambda i, h: [found.figure(i, h)], i, head)
    return out
