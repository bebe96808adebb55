"""Networks without anything else installed: sizes, stored scores, weights from files, errors."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.io import LoadError
from votive.vision import models

STORED = Path(__file__).parent / "data" / "models.npz"
# Torchvision's documentation, and for EfficientNet-Lite the table of TensorFlow's repository.
PARAMETERS = {
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "resnext50_32x4d": 25_028_904,
    "resnext101_32x8d": 88_791_336,
    "resnext101_64x4d": 83_455_272,
    "wide_resnet50_2": 68_883_240,
    "wide_resnet101_2": 126_886_696,
    "mobilenet_v2": 3_504_872,
    "efficientnet_lite0": 4_652_008,
    "efficientnet_lite1": 5_416_680,
    "efficientnet_lite2": 6_092_072,
    "efficientnet_lite3": 8_197_096,
    "efficientnet_lite4": 13_006_568,
    "unet": 31_037_698,
    "vit_b_16": 86_567_656,
    "vit_b_32": 88_224_232,
    "vit_l_16": 304_326_632,
    "vit_l_32": 306_535_400,
    "vit_h_14": 632_045_800,
}
# Small nets whose weights come from a formula; make_models.py stores what the references give.
GOLDEN: dict[str, dict[str, Any]] = {
    "resnet18": {"num_classes": 6},
    "resnet50": {"num_classes": 6},
    "mobilenet_v2": {"num_classes": 6},
    "efficientnet_lite0": {"num_classes": 6},
    "unet": {"width": 4},
}


def numbers(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers that depend on a tensor's name and shape only; those of a norm are near one."""
    raw = np.random.Philox(key=zlib.crc32(name.encode())).random_raw(int(np.prod(shape)))
    spread = raw.astype(np.float64).reshape(shape) / 2.0**63 - 1.0
    if len(shape) > 1:
        return (spread * np.sqrt(6.0 / np.prod(shape[1:]))).astype(np.float32)
    near = 1.0 if name.endswith(("running_var", "weight")) else 0.0
    return (near + 0.2 * spread).astype(np.float32)


def state(net: Any) -> dict[str, np.ndarray]:
    """Weights by the formula for all that a net keeps."""
    return {k: numbers(k, tuple(v.shape)) for k, v in net.state_dict().items() if not k.endswith("num_batches_tracked")}


def picture() -> np.ndarray:
    return numbers("picture", (2, 3, 48, 40)) * 10


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_net_has_as_many_parameters_as_is_published(name: str) -> None:
    with votive.nn.init.skipped():
        net = models.get_model(name)
    assert sum(p.numel() for p in net.parameters()) == PARAMETERS[name]


def test_every_name_is_counted() -> None:
    assert set(models.list_models()) == set(PARAMETERS)


@pytest.mark.parametrize("name", GOLDEN)
def test_scores_are_those_that_are_stored(name: str) -> None:
    net = models.get_model(name, **GOLDEN[name]).eval()
    models.load_weights(net, {k: votive.tensor(v) for k, v in state(net).items()})
    with votive.no_grad():
        got = net(votive.tensor(picture())).numpy()
    expected = np.load(STORED)[name]
    assert got.shape == expected.shape
    assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()


def test_weights_are_read_from_files_of_any_kind(tmp_path: Path) -> None:
    net = models.mobilenet_v2(num_classes=4, width_mult=0.35)
    votive.io.safetensors.save_file(net.state_dict(), tmp_path / "net.safetensors")
    told = {"num_classes": 4, "width_mult": 0.35}
    again = models.mobilenet_v2(weights=tmp_path / "net.safetensors", **told)
    for name, value in net.state_dict().items():
        assert votive.equal(again.state_dict()[name], value), name


@pytest.mark.parametrize("prefix", ["state_dict.", "module.", "model.module."])
def test_what_training_scripts_wrap_around_weights_is_understood(prefix: str) -> None:
    net = models.unet(width=2)
    wrapped = {prefix + k: v for k, v in net.state_dict().items()}
    wrapped["epoch"] = votive.tensor(3)
    again = models.unet(weights=wrapped, width=2)
    assert votive.equal(again.outc.conv.weight, net.outc.conv.weight)


def test_weights_of_another_net_are_refused_by_name() -> None:
    with pytest.raises(LoadError, match=r"layer1\.\*\.conv3"):
        models.resnet18(weights=models.resnet50(num_classes=10).state_dict(), num_classes=10)


def test_weights_of_another_number_of_classes_are_refused() -> None:
    weights = models.resnet18(num_classes=3).state_dict()
    with pytest.raises(LoadError, match=r"fc\.weight"):
        models.resnet18(weights=weights)


@pytest.mark.parametrize("weights", ["DEFAULT", "IMAGENET1K_V1", True])
def test_nothing_is_downloaded_and_that_is_said(weights: Any) -> None:
    with pytest.raises(ValueError, match="Nothing is downloaded"):
        models.resnet18(weights=weights)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"no/such\.pth"):
        models.mobilenet_v2(weights="no/such.pth")


def test_an_unknown_net_is_told_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match="resnet18"):
        models.get_model("resnet17")


def test_settings_that_no_net_has_are_errors() -> None:
    with pytest.raises(ValueError, match="3 values"):
        models.resnet50(replace_stride_with_dilation=[True])
    with pytest.raises(ValueError, match="Bottleneck"):
        models.resnet18(groups=2)
    with pytest.raises(NotImplementedError, match="dilation"):
        models.resnet18(replace_stride_with_dilation=[False, False, True])
    with pytest.raises(ValueError, match="rows of 4"):
        models.mobilenet_v2(inverted_residual_setting=[[1, 2, 3]])
    with pytest.raises(ValueError, match="16 x 16"):
        models.unet(width=2)(votive.ones(1, 3, 8, 8))


def test_a_block_that_is_dropped_gives_what_came_in() -> None:
    block = models.efficientnet_lite.LiteBlock(4, 4, 3, 1, 2, drop=0.9999999)
    x = votive.randn(2, 4, 5, 5)
    assert votive.equal(block.train()(x), x)
    assert not votive.equal(block.eval()(x), x)


def test_blocks_that_start_at_zero_pass_on_what_came() -> None:
    net = models.resnet18(zero_init_residual=True)
    x = votive.rand(1, 64, 6, 6)
    assert votive.allclose(net.layer1(x), x)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_an_empty_batch_has_no_scores(name: str) -> None:
    net = models.get_model(name, num_classes=5).eval()
    assert net(votive.ones(0, 3, 64, 64)).shape == (0, 5)
