"""Writes data/functional.npz: what torchvision makes of the cases, for use without it.

    python -m tests.vision.make_functional

Written with torchvision 0.28 and torch 2.13 on a processor with AVX-512.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.vision import functional_cases as cases

GOLDEN = Path(__file__).parent / "data" / "functional.npz"


def thinned(array: Any, key: str) -> Any:
    """Every fourth row of float images: enough to compare with, and a quarter of the file."""
    return array[..., ::4, :] if key.endswith("/float32") else array


def results() -> dict[str, Any]:
    """By case and kind of input: `shrink/uint8`, `shrink/mask`, `shrink/boxes`."""
    from tests.vision.reference import torchvision

    torchvision()
    import torch
    from torchvision import tv_tensors
    from torchvision.transforms.v2 import functional as F

    found: dict[str, Any] = {}
    images = {k: torch.from_numpy(cases.image(k)) for k in ("uint8", "float32")}
    for table in (cases.GEOMETRY, cases.IMAGES, cases.COLOUR):
        for case, entry in table.items():
            for kind, image in images.items():
                name, args, options = cases.scaled(entry, kind)
                found[f"{case}/{kind}"] = getattr(F, name)(image, *args, **options)
    canvas = tv_tensors.BoundingBoxes(cases.boxes(), format="XYXY", canvas_size=(24, 31))
    for case, (name, args, options) in cases.GEOMETRY.items():
        out = getattr(F, name)(canvas, *args, **options)
        found[f"{case}/boxes"] = out
        found[f"{case}/canvas"] = torch.tensor(out.canvas_size)
        found[f"{case}/mask"] = getattr(F, name)(tv_tensors.Mask(cases.mask()), *args, **options)
    return {k: thinned(v.numpy(), k) for k, v in found.items()}


if __name__ == "__main__":
    np.savez_compressed(GOLDEN, **results())
