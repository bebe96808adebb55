"""Names and defaults of every parameter of audio and vision are torchaudio's and torchvision's."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import pytest

from votive import audio, vision
from votive.audio import functional, transforms  # noqa: F401  (loaded on first use)
from votive.vision import datasets, io, models, ops, utils  # noqa: F401
from votive.vision.transforms import functional as picture_functional

pytestmark = pytest.mark.parity

# What is not there, each named in docs/audio.md and docs/vision.md.
MISSING = {
    "RNNTLoss",
    "rnnt_loss",
    "get_num_frames",
    "deform_conv2d",
    "DeformConv2d",
    "ps_roi_align",
    "PSRoIAlign",
    "ps_roi_pool",
    "PSRoIPool",
    "flow_to_image",
    "decode_avif",
    "decode_heic",
    "_Image_fromarray",
}
# Further parameters that are votive's own.
MORE = {"melscale_fbanks": {"dtype"}}


def value(default: Any) -> str:
    """A default, so that equal ones of two libraries read the same."""
    if default is inspect.Parameter.empty:
        return ""
    if callable(default):
        return "a function"
    found = getattr(default, "value", default)
    return repr(found).replace("torch.", "").replace("votive.", "")


def parameters(fn: Any, leave: frozenset[str] = frozenset()) -> list[tuple[str, str, str]]:
    given = inspect.signature(fn).parameters.values()
    plain = [p for p in given if p.name not in ("self", *leave)]
    if all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in plain):
        return []  # a class without an __init__ of its own
    return [(p.name, p.kind.name, value(p.default)) for p in plain]


def differences(theirs: ModuleType, ours: ModuleType, names: list[str]) -> list[str]:
    found = []
    for name in names:
        if not hasattr(ours, name):
            if name not in MISSING:
                found.append(f"{name} is missing")
            continue
        assert name not in MISSING, f"{name} is there: take it out of MISSING"
        a = parameters(getattr(theirs, name))
        b = parameters(getattr(ours, name), frozenset(MORE.get(name, ())))
        if a != b:
            found.append(f"{name}: {a} there, {b} here")
    return found


def public(module: ModuleType, kind: Any) -> list[str]:
    return [n for n, v in vars(module).items() if kind(v) and not n.startswith("_")]


def test_torchaudio() -> None:
    theirs = pytest.importorskip("torchaudio")
    classes = [n for n in theirs.transforms.__all__ if n != "DeepClusterFeatures"]
    assert len(classes) > 30
    assert differences(theirs.transforms, audio.transforms, classes) == []
    assert differences(theirs.functional, audio.functional, theirs.functional.__all__) == []


def test_torchvision() -> None:
    pytest.importorskip("torch")
    from tests.vision.torchvision_models import torchvision

    theirs = torchvision()
    import torchvision.transforms.v2 as v2

    assert differences(v2, vision.transforms, public(v2, inspect.isclass)) == []
    # Kernels of single types stand beside each function there.
    parts = ("_image", "_video", "_mask", "_pil", "bounding_boxes", "_keypoints")
    functions = [
        n
        for n in public(v2.functional, inspect.isfunction)
        if not any(part in n for part in parts) or n in ("to_image", "to_pil_image")
    ]
    assert len(functions) > 40
    assert differences(v2.functional, picture_functional, functions) == []
    assert differences(theirs.ops, vision.ops, theirs.ops.__all__) == []
    assert differences(theirs.utils, vision.utils, theirs.utils.__all__) == []
    sets = ["MNIST", "FashionMNIST", "KMNIST", "CIFAR10", "CIFAR100", "ImageFolder"]
    assert differences(theirs.datasets, vision.datasets, [*sets, "DatasetFolder"]) == []
    assert differences(theirs.io, vision.io, theirs.io.__all__) == []
    nets = [n for n in vision.models.list_models() if hasattr(theirs.models, n)]
    assert len(nets) > 8
    known = ["get_model", "get_model_builder", "list_models", "ResNet", "MobileNetV2", "VisionTransformer"]
    assert differences(theirs.models, vision.models, [*nets, *known]) == []
