"""Models that see, in the studio: what each action answers, and what the page shows of it."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive import glass, models
from votive.studio.vision_models import drawing
from votive.vision import models as nets

from .client import Page, Refused, studio

Image = pytest.importorskip("PIL.Image", reason="reads pictures with pillow")
SEES: dict[str, Any] = {
    **tiny_sizes.transformer(16, 20, layers=2, heads=2),
    "image_size": 32,
    "patch_size": 8,
    "initializer_range": 0.5,
}
NAMES = {0: "cat", 1: "<b>dog</b>", 2: "candle"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ViT, a TrOCR, a CLIP and a file of a network."""
    path = tmp_path_factory.mktemp("models")
    votive.manual_seed(0)
    vit = models.ViTForImageClassification(models.ViTConfig(**SEES, id2label=NAMES))
    vit.save_pretrained(path / "vit")
    models.ViTImageProcessor(size=32).save_pretrained(path / "vit")
    tokenizer = votive.text.train_bpe(["words"], 270, progress=False)
    config = models.VisionEncoderDecoderConfig(
        encoder=models.ViTConfig(**SEES),
        decoder=models.TrOCRConfig(
            vocab_size=len(tokenizer),
            **tiny_sizes.trocr(16, 20, layers=1, heads=2),
            max_position_embeddings=8,
            init_std=0.5,
        ),
    )
    models.VisionEncoderDecoderModel(config).save_pretrained(path / "trocr")
    models.TrOCRProcessor(models.ViTImageProcessor(size=32), tokenizer).save_pretrained(path / "trocr")
    text = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "vocab_size": 9}
    clip = models.CLIPConfig(text_config=text, vision_config=SEES, projection_dim=8)
    models.CLIPModel(clip).save_pretrained(path / "clip")
    models.CLIPImageProcessor(size=32, crop_size=32).save_pretrained(path / "clip")
    net = nets.mobilenet_v2(num_classes=3, width_mult=1.0)
    votive.io.safetensors.save_file(net.state_dict(), path / "mobilenet_v2.safetensors")
    return path


@pytest.fixture(scope="module")
def one(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with studio(tmp_path_factory.mktemp("sessions"), model=str(folder / "vit")) as found:
        yield found


def packed(pixels: np.ndarray) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


PICTURE = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)


def test_actions_answer_what_the_glass_engine_says(one: Any, folder: Path) -> None:
    model = models.AutoModelForImageClassification.from_pretrained(folder / "vit")
    processor = models.AutoImageProcessor.from_pretrained(folder / "vit")
    x = processor(PICTURE, return_tensors="vt").pixel_values
    expected = glass.patch_attention(model, x)
    with votive.no_grad():
        p = model(x).logits.softmax(-1)[0].tolist()
    with Page(one) as page:
        assert page.ask("model.info")["vision"]
        seen = page.ask("vision.look", image=packed(PICTURE))
        order = sorted(range(3), key=lambda i: -p[i])
        assert [c["label"] for c in seen["classes"]] == [NAMES[i] for i in order]
        assert np.allclose([c["p"] for c in seen["classes"]], [p[i] for i in order], atol=1e-5)
        assert (seen["grid"], seen["before"], seen["heads"]) == ([4, 4], 1, 2)
        assert len(seen["layers"]) == 2
        assert seen["picture"].shape == (32, 32, 3)
        found = page.ask("vision.attention", what="map", layer=1, head=0, query=5)["map"]
        assert np.allclose(found, expected.map(1, 0, 5).numpy(), atol=1e-5)
        found = page.ask("vision.attention")["map"]
        assert np.allclose(found, expected.rollout().numpy(), atol=1e-5)
        cam = page.ask("vision.cam", target=2)
        assert cam["label"] == "candle"
        wanted = glass.grad_cam(model, x, target=2).maps[0].numpy()
        assert np.allclose(cam["map"], wanted, atol=1e-4)
        grid = page.ask("vision.maps", at=seen["maps"][0], order="strongest")["grid"]
        figure = glass.feature_maps(model, x).figure(0, channels="strongest")
        assert np.array_equal(grid, figure.small())
        lines = [d["line"] for name, d in page.events if name == "console"]
        assert "glass.grad_cam(model, pixels, target=2)" in lines


def test_without_a_picture_there_is_a_drawing(one: Any) -> None:
    with Page(one) as page:
        with pytest.raises(Refused, match="Missing: There is no picture yet"):
            page.ask("vision.cam")
        assert page.ask("vision.look")["classes"]


@pytest.mark.parametrize(
    "asked,reply",
    [
        (("vision.look", {"image": "!!"}), "base64"),
        (("vision.look", {"image": base64.b64encode(b"no picture").decode()}), "pillow"),
        (("vision.attention", {"what": "map", "layer": 9}), "no layer 9"),
        (("vision.attention", {"what": "map", "layer": 0, "head": 5}), "head 5"),
        (("vision.attention", {"what": "map", "layer": 0, "query": 99}), "no token 99"),
        (("vision.attention", {"what": "cross"}), "no layer 0"),
        (("vision.attention", {"what": "all"}), "what"),
        (("vision.maps", {"at": "nowhere"}), "no convolution"),
        (("vision.cam", {"target": 7}), "7"),
        (("session.new", {"prompt": "a"}), "is a vision model"),
    ],
)
def test_what_cannot_be_done_is_told_and_nothing_is_lost(
    one: Any, asked: tuple[str, dict[str, Any]], reply: str
) -> None:
    with Page(one) as page:
        page.ask("vision.look")
        with pytest.raises(Refused, match=reply):
            page.ask(asked[0], **asked[1])
        assert page.ask("vision.attention")["map"].shape == (4, 4)


def test_a_picture_with_too_many_pixels_is_refused(one: Any) -> None:
    file = io.BytesIO()
    Image.new("1", (6000, 5000)).save(file, "PNG")
    with Page(one) as page, pytest.raises(Refused, match="too many"):
        page.ask("vision.look", image=base64.b64encode(file.getvalue()).decode())


def test_a_model_that_reads_tells_its_text_and_where_it_looked(folder: Path, tmp_path: Path) -> None:
    with studio(tmp_path, model=str(folder / "trocr")) as other, Page(other) as page:
        seen = page.ask("vision.look", image=packed(PICTURE))
        model = models.VisionEncoderDecoderModel.from_pretrained(folder / "trocr")
        processor = models.AutoProcessor.from_pretrained(folder / "trocr")
        x = processor(PICTURE, return_tensors="vt").pixel_values
        ids = model.generate(x, max_new_tokens=7)
        assert seen["tokens"] == [processor.decode([int(t)]) for t in ids[0, 1:]]
        assert (seen["classes"], seen["cross"], seen["cross_heads"]) == ([], 1, 2)
        last = len(seen["tokens"]) - 1
        got = page.ask("vision.attention", what="cross", layer=0, head=1, query=last)["map"]
        wanted = glass.patch_attention(model, x, decoder_input_ids=ids[:, :-1])
        assert np.allclose(got, wanted.map(0, 1, last, cross=True).numpy(), atol=1e-5)
        with pytest.raises(Refused, match="no classes"):
            page.ask("vision.cam")


def test_networks_and_clip_are_opened_too(folder: Path, tmp_path: Path) -> None:
    with studio(tmp_path, model=str(folder / "mobilenet_v2.safetensors")) as other:
        with Page(other) as page:
            seen = page.ask("vision.look", image=packed(PICTURE))
            assert len(seen["classes"]) == 3
            assert (seen["grid"], seen["layers"]) == (None, [])
            assert page.ask("vision.cam")["map"].shape == (224, 224)
            with pytest.raises(Refused, match="no attention over patches"):
                page.ask("vision.attention")
    with studio(tmp_path, model=str(folder / "clip")) as other, Page(other) as page:
        seen = page.ask("vision.look")
        assert (seen["classes"], len(seen["layers"])) == ([], 2)


def test_a_model_of_texts_shows_no_pictures(tmp_path: Path) -> None:
    with studio(tmp_path) as other, Page(other) as page:
        with pytest.raises(Refused, match="reads text, not pictures"):
            page.ask("vision.look")


def test_the_page_shows_a_picture_its_classes_and_where_they_are_seen(one: Any, browser: Any, tmp_path: Path) -> None:
    from .browser import Window

    tab = Window(browser, one.url)
    tab.page.locator(".vision-class").first.wait_for()
    tab.rest()
    assert not tab.page.locator("main").is_visible()
    names = tab.page.locator(".vision-class .grow").all_inner_texts()
    assert sorted(names) == sorted(NAMES.values())

    def painted() -> str:
        tab.rest()
        return str(tab.page.evaluate("document.querySelector('.vision-stage').toDataURL()"))

    plain = painted()
    looks = {"picture": plain}
    for mode in ("rollout", "map", "cam", "maps"):
        tab.click(f'[data-mode="{mode}"]')
        looks[mode] = painted()
    assert len(set(looks.values())) == 5
    assert not tab.page.locator('[data-mode="cross"]').is_visible()
    tab.click('[data-mode="map"]')
    before = painted()
    tab.page.locator(".vision-stage").click(position={"x": 20, "y": 20})
    assert painted() != before
    assert "patch 0" in tab.text(".vision-main [role=status]")
    tab.page.locator(".vision-class").nth(1).click()
    tab.rest()
    assert tab.page.locator('.vision-class[aria-selected="true"]').count() == 1
    tab.click('[data-mode="picture"]')
    file = tmp_path / "other.png"
    Image.fromarray(255 - drawing()).save(file)
    tab.page.set_input_files("#vision-file", str(file))
    tab.until(f"document.querySelector('.vision-stage').toDataURL() !== {plain!r}")
    assert painted() != plain
    assert tab.faults == []
    tab.close()
