"""Networks give what torchvision's definitions, or ones written with torch.nn, give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive.vision import models

torch = pytest.importorskip("torch", reason="compares with torch")

from .networks import Lite0, UNet  # noqa: E402
from .torchvision_models import torchvision  # noqa: E402

pytestmark = pytest.mark.parity
# Relative to the largest value: what float32 sums of different orders differ by.
F32 = 1e-4

# Name: (arguments of both, size of the picture).
NETS: dict[str, tuple[dict[str, Any], int]] = {
    "resnet18": ({}, 64),
    "resnet34": ({"num_classes": 7}, 40),
    "resnet50": ({}, 64),
    "resnet101": ({"num_classes": 7}, 33),
    "resnet152": ({"num_classes": 7}, 33),
    "resnext50_32x4d": ({"num_classes": 7}, 40),
    "mobilenet_v2": ({}, 64),
}
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "dilated": ("resnet50", {"replace_stride_with_dilation": [False, True, True]}),
    "narrow": ("mobilenet_v2", {"width_mult": 0.35, "num_classes": 5}),
}


def shaken(net: Any, seed: int = 0) -> Any:
    """A torch net whose norms are no identities and whose weights are repeatable."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, value in net.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
            elif name.endswith("running_mean"):
                value.normal_(0, 0.2)
            elif value.dim() == 1 and value.is_floating_point():
                value.add_(torch.randn_like(value) * 0.1)
    return net


def given(state: dict[str, Any]) -> dict[str, Any]:
    return {k: votive.tensor(v.detach().numpy()) for k, v in state.items()}


def agree(got: Any, expected: Any, tolerance: float = F32, least: float = 0.0) -> None:
    """Equal within `tolerance` of the largest value, or of `least` where that is more."""
    a, b = got.detach().numpy(), expected.detach().numpy()
    assert a.shape == b.shape
    scale = max(np.abs(b).max(), least)
    assert scale > 0
    worst = np.abs(a - b).max() / scale
    assert worst <= tolerance, f"differs by {worst:.2e} of the largest value"


def picture(batch: int, size: Any, channels: int = 3, seed: int = 0) -> tuple[Any, Any]:
    size = (size, size) if isinstance(size, int) else size
    values = np.random.default_rng(seed).standard_normal((batch, channels, *size))
    values = values.astype(np.float32)
    return torch.tensor(values), votive.tensor(values)


@pytest.mark.parametrize("name", [n for n in models.list_models() if n.startswith(("res", "wide", "mobile", "vit"))])
def test_every_net_has_torchvisions_names_and_shapes(name: str) -> None:
    with torch.device("meta"):
        theirs = getattr(torchvision().models, name)()
    with votive.nn.init.skipped():
        ours = models.get_model(name)
    shapes = {k: tuple(v.shape) for k, v in ours.state_dict().items()}
    assert shapes == {k: tuple(v.shape) for k, v in theirs.state_dict().items()}


@pytest.mark.parametrize("name", NETS)
def test_the_scores_of_a_torchvision_net_agree(name: str) -> None:
    settings, size = NETS[name]
    theirs = shaken(getattr(torchvision().models, name)(**settings)).eval()
    ours = models.get_model(name, weights=given(theirs.state_dict()), **settings).eval()
    assert list(ours.state_dict()) == list(theirs.state_dict())
    t, v = picture(2, size)
    with torch.no_grad(), votive.no_grad():
        agree(ours(v), theirs(t))


@pytest.mark.parametrize("name", MORE)
def test_its_settings_mean_the_same(name: str) -> None:
    net, settings = MORE[name]
    theirs = shaken(getattr(torchvision().models, net)(**settings)).eval()
    ours = models.get_model(net, weights=given(theirs.state_dict()), **settings).eval()
    t, v = picture(1, 48)
    with torch.no_grad(), votive.no_grad():
        agree(ours(v), theirs(t))


def trained(net: Any, library: Any, x: Any, goal: Any, step: Any) -> tuple[Any, dict[str, Any]]:
    """Scores, and every gradient, of one pass in training mode; then a step is taken."""
    net.train()
    scores = net(x)
    library.nn.functional.cross_entropy(scores, goal).backward()
    grads = {k: p.grad for k, p in net.named_parameters()}
    step.step()
    return scores, grads


def small(space: Any, name: str) -> Any:
    """A net of few layers, of torchvision's classes or votive's."""
    if name == "mobilenet_v2":
        # Dropout would draw other numbers; all else of training is compared.
        return space.MobileNetV2(num_classes=5, width_mult=0.35, dropout=0.0)
    if name == "basic blocks":
        return space.ResNet(space.resnet.BasicBlock, [2, 1, 1, 1], num_classes=5)
    return space.ResNet(space.resnet.Bottleneck, [1, 2, 1, 1], num_classes=5, groups=4, width_per_group=16)


@pytest.mark.parametrize("name", ["basic blocks", "bottlenecks in groups", "mobilenet_v2"])
def test_a_step_of_training_agrees(name: str) -> None:
    theirs = shaken(small(torchvision().models, name)).double()
    ours = small(models, name).double()
    models.load_weights(ours, given(theirs.state_dict()))
    t, v = picture(4, 64)
    goal = [0, 3, 4, 1]
    rate = {"lr": 0.01, "momentum": 0.9}
    expected, grads = trained(
        theirs, torch, t.double(), torch.tensor(goal), torch.optim.SGD(theirs.parameters(), **rate)
    )
    got, found = trained(ours, votive, v.double(), votive.tensor(goal), votive.optim.SGD(ours.parameters(), **rate))
    agree(got, expected, 1e-9)
    # A shift before a norm has no effect: its gradient is zero but for rounding.
    largest = max(float(g.abs().max()) for g in grads.values())
    for key, g in grads.items():
        agree(found[key], g, 1e-7, 1e-4 * largest)
    mine = ours.state_dict()
    for key, value in theirs.state_dict().items():
        agree(mine[key], value, 1e-8)


def test_efficientnet_lite0_agrees_with_its_description() -> None:
    theirs = shaken(Lite0()).eval()
    ours = models.efficientnet_lite0(weights=given(theirs.weights())).eval()
    for size in (64, (45, 62)):
        t, v = picture(2, size)
        with torch.no_grad(), votive.no_grad():
            agree(ours(v), theirs(t))


def test_gradients_of_efficientnet_lite0_agree() -> None:
    theirs = shaken(Lite0()).double().eval()
    ours = models.efficientnet_lite0().double().eval()
    models.load_weights(ours, given(theirs.weights()))
    t, v = picture(2, 64)
    theirs(t.double()).square().mean().backward()
    ours(v.double()).square().mean().backward()
    expected = {k.replace("/", "."): p.grad for k, p in theirs.named_parameters()}
    for name, p in ours.named_parameters():
        agree(p.grad, expected[name], 1e-8)


@pytest.mark.parametrize("bilinear", [False, True])
def test_a_unet_agrees_with_its_description(bilinear: bool) -> None:
    theirs = shaken(UNet(2, 3, 8, bilinear)).double()
    ours = models.UNet(2, 3, bilinear, width=8).double()
    models.load_weights(ours, given(theirs.weights()))
    for training in (False, True):
        theirs.train(training), ours.train(training)
        t, v = picture(2, (37, 52), channels=2)
        a, b = theirs(t.double()), ours(v.double())
        agree(b, a, 1e-9)
    a.square().mean().backward()
    b.square().mean().backward()
    renamed = dict(zip(theirs.state_dict(), theirs.weights(), strict=True))
    mine = dict(ours.named_parameters())
    for key, p in theirs.named_parameters():
        agree(mine[renamed[key]].grad, p.grad, 1e-7)


@pytest.mark.parametrize("size", [(300, 400), (257, 256), (100, 64), (224, 225)])
def test_pictures_are_prepared_as_torchvision_does(size: tuple[int, int]) -> None:
    Image = pytest.importorskip("PIL.Image")
    weights = torchvision().models.ResNet18_Weights.DEFAULT
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    picture = Image.fromarray(pixels)
    got, expected = models.preset("resnet18")(picture), weights.transforms()(picture)
    assert np.array_equal(got.numpy(), expected.numpy())


def test_classes_have_torchvisions_names() -> None:
    weights = torchvision().models.ResNet18_Weights.DEFAULT
    assert models.imagenet_classes() == weights.meta["categories"]


@pytest.mark.parametrize("kind", ["plain", "wrapped", "parallel"])
def test_checkpoints_that_torch_wrote_are_read(kind: str, tmp_path: Any) -> None:
    net = torchvision().models.resnet18(num_classes=3)
    state = net.state_dict()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    saved = {
        "plain": state,
        "wrapped": {"state_dict": state, "epoch": 3, "best": 0.5},
        "parallel": {"model": {f"module.{k}": v for k, v in state.items()}, "optimizer": optimizer.state_dict()},
    }[kind]
    torch.save(saved, tmp_path / "net.pth")
    found = models.resnet18(weights=tmp_path / "net.pth", num_classes=3)
    for name, value in found.state_dict().items():
        assert np.array_equal(value.numpy(), state[name].numpy()), name


VIT = {
    "image_size": 16,
    "patch_size": 4,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 12,
    "mlp_dim": 20,
    "num_classes": 5,
}


@pytest.mark.parametrize("options", [{}, {"representation_size": 7}, {"stem": True}], ids=str)
def test_vision_transformers_give_torchvisions_scores_and_gradients(options: dict[str, Any]) -> None:
    theirs = torchvision().models.vision_transformer
    both: list[dict[str, Any]] = [dict(VIT, **options), dict(VIT, **options)]
    for given_, module in zip(both, (theirs, models.vision_transformer), strict=True):
        if given_.pop("stem", False):
            stages = [(6, 3, 2), (8, 3, 2)]
            given_["conv_stem_configs"] = [module.ConvStemConfig(*s) for s in stages]
    torch.manual_seed(0)
    reference = theirs.VisionTransformer(**both[0])
    with torch.no_grad():  # its last layer begins as zeros
        for value in reference.parameters():
            value.add_(torch.randn_like(value) * 0.2)
    ours = models.VisionTransformer(**both[1])
    models.load_weights(ours, given(reference.state_dict()))
    t, v = picture(3, 16)
    for net in (reference, ours):
        net.eval()
    expected, got = reference(t), ours(v)
    agree(got, expected)
    expected.square().sum().backward()
    got.square().sum().backward()
    for (name, a), b in zip(ours.named_parameters(), reference.parameters(), strict=True):
        assert a.grad is not None, name
        agree(a.grad, b.grad, 1e-3, least=1e-3)
    with pytest.raises(ValueError, match="image_size"):
        ours(v[:, :, :8])


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("vit_b_16", "IMAGENET1K_V1"),
        ("vit_b_32", "IMAGENET1K_V1"),
        ("vit_l_16", "IMAGENET1K_V1"),
        ("vit_l_32", "IMAGENET1K_V1"),
        ("vit_h_14", "IMAGENET1K_SWAG_LINEAR_V1"),
    ],
)
def test_pictures_for_vision_transformers_are_torchvisions_size(name: str, weights: str) -> None:
    theirs = torchvision().models.get_model_weights(name)[weights].transforms()
    ours = models.preset(name)
    assert [ours.crop_size] == theirs.crop_size
    assert [ours.resize_size] == theirs.resize_size
    filters = {2: "bilinear", 3: "bicubic"}
    assert filters[ours.interpolation] == theirs.interpolation.value
