"""What a model makes of pictures: attention over patches, Grad-CAM, maps of features."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive import glass, models, nn
from votive.glass.pixels import Pixels, as_picture, over, tiled
from votive.vision import models as nets

SEES: dict[str, Any] = {
    **tiny_sizes.transformer(16, 20, layers=3, heads=2),
    "image_size": 32,
    "patch_size": 8,
    "initializer_range": 0.4,
}
KINDS = {"vit": ("ViT", 1), "deit": ("DeiT", 2), "beit": ("Beit", 1)}
every = pytest.mark.parametrize("kind", KINDS)


@cache
def reader(kind: str = "vit") -> Any:
    votive.manual_seed(0)
    family = KINDS[kind][0]
    more = {"use_relative_position_bias": True} if kind == "beit" else {}
    config = getattr(models, f"{family}Config")(**SEES, **more, num_labels=4)
    return getattr(models, f"{family}ForImageClassification")(config).eval()


@cache
def picture(batch: int = 2, size: tuple[int, int] = (32, 32)) -> Any:
    return votive.rand(batch, 3, *size, generator=votive.Generator().manual_seed(1))


@every
def test_maps_are_the_models_own_weights(kind: str) -> None:
    model, x = reader(kind), picture()
    found = glass.patch_attention(model, x)
    with votive.no_grad():
        own = model(x, output_attentions=True).attentions
    assert len(found) == 3
    first = KINDS[kind][1]
    assert (found.grid.height, found.grid.width, found.grid.first) == (4, 4, first)
    for layer in range(3):
        for head in (0, 1):
            for query in (0, 5):
                expected = own[layer][1, head, query, first:].view(4, 4)
                got = found.map(layer, head, query, sample=1)
                assert votive.allclose(got, expected, atol=1e-5)
        mean = own[layer][0, :, 0, first:].mean(0).view(4, 4)
        assert votive.allclose(found.map(layer), mean, atol=1e-5)


@every
@pytest.mark.parametrize("fusion", ["mean", "max", "min"])
def test_rollout_is_the_product_of_layers_with_their_shortcuts(kind: str, fusion: str) -> None:
    model, x = reader(kind), picture()
    with votive.no_grad():
        own = [a[1].double().numpy() for a in model(x, output_attentions=True).attentions]
    total = np.eye(own[0].shape[-1])
    for a in own:
        a = getattr(a, fusion)(0)
        a = a / 2 + np.eye(len(a)) / 2 if fusion == "mean" else a + np.eye(len(a))
        total = a / a.sum(-1, keepdims=True) @ total
    first = KINDS[kind][1]
    got = glass.patch_attention(model, x).rollout(sample=1, fusion=fusion).numpy()
    assert np.allclose(got, total[0, first:].reshape(4, 4), atol=1e-5)


def test_rollout_without_the_smallest_weights_is_another() -> None:
    found = glass.patch_attention(reader(), picture())
    assert not votive.allclose(found.rollout(), found.rollout(discard=0.9))
    # With nearly all left out, only the way of the class token to itself is certain to stay.
    assert float(found.rollout(discard=0.9).min()) == 0.0
    with pytest.raises(ValueError, match="fusion"):
        found.rollout(fusion="sum")
    with pytest.raises(ValueError, match="discard"):
        found.rollout(discard=1.0)


def test_pictures_of_another_shape_have_another_grid() -> None:
    votive.manual_seed(0)
    config = models.ViTConfig(**{**SEES, "image_size": [16, 40]})
    found = glass.patch_attention(models.ViTModel(config).eval(), picture(1, (16, 40)))
    assert found.map(0).shape == found.rollout().shape == (2, 5)


def test_a_decoder_that_looks_at_patches_is_seen() -> None:
    votive.manual_seed(0)
    config = models.VisionEncoderDecoderConfig(
        encoder=models.ViTConfig(**SEES),
        decoder=models.TrOCRConfig(
            vocab_size=20, **tiny_sizes.trocr(16, 20, layers=2, heads=2), max_position_embeddings=16, init_std=0.4
        ),
    )
    model = models.VisionEncoderDecoderModel(config).eval()
    x, ids = picture(), votive.tensor([[2, 5, 6], [2, 7, 8]])
    found = glass.patch_attention(model, x, decoder_input_ids=ids)
    assert (len(found.layers), len(found.cross)) == (3, 2)
    with votive.no_grad():
        own = model(x, ids, output_attentions=True).cross_attentions
    got = found.map(1, head=1, query=2, sample=1, cross=True)
    assert votive.allclose(got, own[1][1, 1, 2, 1:].view(4, 4), atol=1e-5)
    assert "cross" in found.svg("cross") or "encoder_attn" in found.svg("cross")


def test_clips_texts_are_not_taken_for_patches() -> None:
    votive.manual_seed(0)
    text = {k: v for k, v in SEES.items() if not k.startswith(("image", "patch"))}
    model = models.CLIPModel(
        models.CLIPConfig(
            text_config={**text, "vocab_size": 9, "eos_token_id": 8}, vision_config=SEES, projection_dim=8
        )
    ).eval()
    ids = votive.tensor([[1, 2, 3, 8]])
    found = glass.patch_attention(model, input_ids=ids, pixel_values=picture(1))
    assert len(found) == 3
    assert all(m.address.startswith("vision_model") for m in found.layers)


def test_what_has_no_patches_is_told() -> None:
    with pytest.raises(LookupError, match="no attention over patches"):
        glass.patch_attention(nets.resnet18(num_classes=2).eval(), picture())
    with pytest.raises(ValueError, match="pictures"):
        glass.patch_attention(reader(), votive.ones(2, 3))
    found = glass.patch_attention(reader(), picture())
    with pytest.raises(IndexError, match="no layer 3 of 3"):
        found.map(3)
    with pytest.raises(IndexError, match="cross attention"):
        found.map(0, cross=True)
    with pytest.raises(ValueError, match="'x' is none"):
        found.svg("x")


@every
def test_grad_cam_of_patches_is_the_gradient_at_the_last_attention(kind: str) -> None:
    model, x = reader(kind), picture()
    found = glass.grad_cam(model, x, target=[1, 3])
    inner = getattr(model, model.base_model_prefix)
    last, kept = inner.encoder["layer"][-1], []
    handle = last.layernorm_before.register_forward_hook(lambda m, a, y: kept.append(y))
    scores = model(x).logits
    handle.remove()
    (g,) = votive.autograd.grad(scores[0, 1] + scores[1, 3], [kept[0]])
    first = KINDS[kind][1]
    weights = g[:, first:].mean(1, keepdim=True)
    raw = votive.relu((weights * kept[0][:, first:]).sum(-1)).view(2, 4, 4).detach()
    assert votive.allclose(found.raw, raw, atol=1e-6)
    assert found.maps.shape == (2, 32, 32)
    assert found.address.endswith("attention.attention:in")
    assert float(raw.max()) > 0


def test_grad_cam_takes_tokens_where_it_is_told_and_refuses_what_are_none() -> None:
    model = reader()
    found = glass.grad_cam(model, picture(), at="encoder.layer.1")
    assert found.raw.shape == (2, 4, 4)
    with pytest.raises(ValueError, match="no maps of features"):
        glass.grad_cam(model, picture(), at="classifier")


@pytest.mark.parametrize("name,at", [("resnet18", "layer4.1.conv2"), ("mobilenet_v2", "features.18.0")])
def test_grad_cam_of_a_network_takes_its_last_convolution(name: str, at: str) -> None:
    votive.manual_seed(0)
    net = nets.get_model(name, num_classes=4).eval()
    found = glass.grad_cam(net, picture(1, (64, 64)), target=2)
    assert found.address == at
    assert found.maps.shape == (1, 64, 64)
    assert 0 <= float(found.maps.min()) <= float(found.maps.max()) <= 1


def test_grad_cam_is_drawn_over_the_picture() -> None:
    found = glass.grad_cam(reader(), picture())
    drawn = found.over_picture(1)
    assert drawn.colours.shape == (32, 32, 3)
    expected = over(as_picture(picture()[1]), found.maps[1].numpy())
    assert np.array_equal(drawn.colours, expected)
    with pytest.raises(ValueError, match="size="):
        glass.grad_cam(reader(), picture(), size=(8, 8)).over_picture()


def test_feature_maps_are_what_convolutions_give() -> None:
    votive.manual_seed(0)
    net = nets.resnet18(num_classes=4).eval()
    x = picture(2, (40, 40))
    found = glass.feature_maps(net, x)
    assert len(found) == sum(isinstance(m, nn.Conv2d) for m in net.modules()) == 20
    with votive.no_grad():
        assert votive.equal(found["conv1"], net.conv1(x))
        y = net.maxpool(net.relu(net.bn1(net.conv1(x))))
        # What follows writes into its input; the maps are those before.
        assert votive.equal(found["layer1.0.conv1"], net.layer1[0].conv1(y))
    assert votive.equal(found[0], found["conv1"])
    chosen = glass.feature_maps(net, x, at=["layer2", "layer4"])
    assert list(chosen) == ["layer2", "layer4"]
    order = chosen.strongest("layer2", sample=1, count=3)
    sizes = chosen["layer2"][1].abs().mean((1, 2))
    assert order == sizes.argsort(descending=True)[:3].tolist()


def test_a_grid_shows_each_channel_from_its_least_to_its_most() -> None:
    maps = votive.zeros(1, 5, 2, 2)
    maps[0, 1] = votive.tensor([[0.0, 10.0], [5.0, 0.0]])
    found = glass.FeatureMaps({"conv": maps})
    drawn = found.figure("conv", channels=[1])
    small, large = (68, 1, 84), (253, 231, 37)
    block = drawn.colours.shape[0] // 2
    assert tuple(drawn.colours[0, 0]) == small
    assert tuple(drawn.colours[0, block]) == large
    assert "channels 1 of 5" in drawn.note
    assert found.figure("conv").note.startswith("channels 0 to 4")
    together = found.figure("conv", channels=[0, 1], each=False)
    assert "from 0 to 10" in together.legend
    assert "channels 1" in found.figure("conv", channels="strongest").note
    with pytest.raises(IndexError, match=r"0\.\.4"):
        found.figure("conv", channels=[5])
    with pytest.raises(ValueError, match="strongest"):
        found.figure("conv", channels="best")
    with pytest.raises(KeyError, match="'x'"):
        found["x"]


def test_modules_without_maps_are_refused() -> None:
    net = nets.resnet18(num_classes=4).eval()
    with pytest.raises(ValueError, match="fc gives no maps"):
        glass.feature_maps(net, picture(), at="fc")
    with pytest.raises(glass.NoMatch):
        glass.feature_maps(net, picture(), at="nothing")
    with pytest.raises(LookupError, match="no convolution ran"):
        glass.feature_maps(nn.Linear(2, 2), votive.ones(1, 2))


def shown() -> dict[str, Any]:
    votive.manual_seed(0)
    net = nets.mobilenet_v2(num_classes=4, width_mult=0.35).eval()
    return {
        "attention": glass.patch_attention(reader(), picture()),
        "cam": glass.grad_cam(reader(), picture()),
        "maps": glass.feature_maps(net, picture(1), at=["features.1", "features.4"]),
    }


@pytest.mark.parametrize("name", ["attention", "cam", "maps"])
def test_results_are_drawn_saved_and_told(name: str, tmp_path: Path) -> None:
    found = shown()[name]
    assert json.loads(json.dumps(found.to_dict()))
    for picture_name in found.pictures():
        for figure in found.figures(picture_name):
            ElementTree.fromstring(figure.canvas().svg())
    found.save_svg(tmp_path / "a.svg")
    found.save_html(tmp_path / "a.html")
    assert "data:image/png;base64" in (tmp_path / "a.svg").read_text()
    page = (tmp_path / "a.html").read_text()
    assert "pixels" in page
    found.save(tmp_path / "b.png")
    assert (tmp_path / "b.png").read_bytes()[1:4] == b"PNG"


def test_every_layer_and_head_has_a_picture() -> None:
    names = list(shown()["attention"].pictures())
    assert len(names) == 2 * (1 + 3 * (1 + 2))
    assert names[0] == "rollout, sample 0"
    assert "vit.encoder.layer.2.attention.attention, head 1, sample 1" in names


def test_pixels_are_painted_where_they_belong() -> None:
    colours = np.zeros((2, 2, 3), np.uint8)
    colours[0, 1] = (255, 0, 0)
    canvas = Pixels(colours, "a title").canvas()
    x, y, width, height = canvas.shapes[1][1:5]
    from votive.train.png import encode

    assert canvas.png() != encode(np.full((10, 10, 3), 255, np.uint8))
    canvas = np.full((round(canvas.height), round(canvas.width), 3), 255, np.uint8)
    from votive.glass.canvas import _PNG

    _PNG["image"](canvas, x, y, width, height, colours)
    assert tuple(canvas[round(y), round(x + width) - 1]) == (255, 0, 0)
    assert tuple(canvas[round(y + height) - 1, round(x)]) == (0, 0, 0)
    with pytest.raises(ValueError, match="height, width, 3"):
        Pixels(np.zeros((2, 2), np.uint8))
    large = Pixels(np.zeros((1400, 700, 3), np.uint8))
    assert large.to_dict()["height"] == 467


def test_tiles_have_gaps_that_are_no_numbers() -> None:
    found = tiled(np.ones((3, 2, 2)))
    assert np.isnan(found[:, 2]).all()
    assert np.isnan(found[3:, 3:]).all()
    assert np.nansum(found) == 12


def test_a_decoder_that_norms_after_it_adds_has_a_lens_and_no_shares_of_heads() -> None:
    votive.manual_seed(0)
    config = models.TrOCRConfig(
        vocab_size=20, **tiny_sizes.trocr(16, 20, layers=2, heads=2), max_position_embeddings=16, init_std=0.4
    )
    model, ids = models.TrOCRForCausalLM(config).eval(), votive.tensor([[2, 5, 6, 7]])
    parts = glass.find_parts(model).named()
    assert parts["layers"] == ("model.decoder.layers.0", "model.decoder.layers.1")
    assert (parts["head"], parts["embedding"]) == ("output_projection", "model.decoder.embed_tokens")
    lens = glass.logit_lens(model, ids)
    with votive.no_grad():
        best = model(ids).logits.argmax(-1)
    assert lens.ids[-1, 0, :, 0].tolist() == best[0].tolist()
    with pytest.raises(ValueError, match="does not add the results of its modules"):
        glass.logit_attribution(model, ids)


def test_parts_of_a_model_that_sees_are_found() -> None:
    parts = glass.find_parts(reader()).named()
    assert parts["layers"] == tuple(f"vit.encoder.layer.{i}" for i in range(3))
    assert parts["embedding"] is None
