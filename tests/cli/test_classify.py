"""`votive classify`: what pictures show, by folders of transformers and files of networks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from tests import tiny_sizes
from votive import models
from votive.vision import models as nets

Image = pytest.importorskip("PIL.Image", reason="reads pictures with pillow")
Run = Callable[..., tuple[int, str, str]]
RunJson = Callable[..., Any]
SEES: dict[str, Any] = {**tiny_sizes.transformer(16, 20, layers=1, heads=2), "image_size": 32, "patch_size": 8}
NAMES = {0: "cat", 1: "dog", 2: "candle"}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    found = []
    for i, mode in enumerate(("RGB", "L", "RGBA")):
        found.append(folder / f"{i}.png")
        pixels = rng.integers(0, 256, (40 + i, 50, 4), dtype=np.uint8)
        Image.fromarray(pixels, "RGBA").convert(mode).save(found[-1])
    return found


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vit")
    votive.manual_seed(0)
    config = models.ViTConfig(**SEES, id2label=NAMES, initializer_range=0.5)
    models.ViTForImageClassification(config).save_pretrained(folder)
    models.ViTImageProcessor(size=32).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clip")
    texts = ["a photo of a cat and a dog"]
    tokenizer = votive.text.train_bpe(texts, 280, special_tokens=("<|endoftext|>",), progress=False)
    tokenizer.save_pretrained(folder)
    votive.manual_seed(0)
    text = {
        **{k: v for k, v in SEES.items() if "size" not in k or k.startswith(("hid", "int"))},
        "vocab_size": len(tokenizer),
        "eos_token_id": tokenizer.eos_token_id,
    }
    models.CLIPModel(models.CLIPConfig(text_config=text, vision_config=SEES, projection_dim=8)).save_pretrained(folder)
    models.CLIPImageProcessor(size=32, crop_size=32).save_pretrained(folder)
    return folder


def test_classes_of_a_folder_are_those_of_the_library(run_json: RunJson, vit: Path, pictures: list[Path]) -> None:
    found = run_json("classify", *pictures, "--model", vit, "-k", 2, "--batch-size", 2)
    model = models.AutoModelForImageClassification.from_pretrained(vit)
    x = models.AutoImageProcessor.from_pretrained(vit)(pictures, return_tensors="vt").pixel_values
    with votive.no_grad():
        expected = model(x).logits.softmax(-1)
    assert [row["image"] for row in found["images"]] == [str(p) for p in pictures]
    for row, p in zip(found["images"], expected.tolist()):
        order = sorted(range(3), key=lambda i: -p[i])[:2]
        assert [c["id"] for c in row["classes"]] == order
        assert [c["label"] for c in row["classes"]] == [NAMES[i] for i in order]
        assert np.allclose([c["score"] for c in row["classes"]], [p[i] for i in order], atol=1e-5)


def test_names_and_shares_are_printed(run: Run, vit: Path, pictures: list[Path]) -> None:
    code, out, err = run("classify", pictures[0], "--model", vit)
    assert (code, err) == (0, "")
    assert sorted(line.split("%")[1].strip() for line in out.splitlines()) == sorted(NAMES.values())
    _, out, _ = run("classify", *pictures, "--model", vit)
    assert all(str(p) in out for p in pictures)


def test_a_file_of_weights_is_known_by_its_name(
    run: Run, run_json: RunJson, pictures: list[Path], tmp_path: Path
) -> None:
    votive.manual_seed(0)
    net = nets.resnet18(num_classes=3).eval()
    file = tmp_path / "resnet18-f37072fd.safetensors"
    votive.io.safetensors.save_file(net.state_dict(), file)
    found = run_json("classify", pictures[0], "--model", file)
    with votive.no_grad():
        p = net(nets.preset("resnet18")(pictures[0]).unsqueeze(0)).softmax(-1)[0].tolist()
    got = {c["id"]: c["score"] for c in found["images"][0]["classes"]}
    assert np.allclose([got[i] for i in range(3)], p, atol=1e-5)
    assert found["images"][0]["classes"][0]["label"].startswith("class ")
    other = tmp_path / "weights.safetensors"
    file.rename(other)
    code, _, err = run("classify", pictures[0], "--model", other)
    assert code == 2
    assert "--net NAME" in err
    labels = tmp_path / "names.json"
    labels.write_text(json.dumps({str(i): ["n0", name] for i, name in NAMES.items()}))
    named = run_json("classify", pictures[0], "--model", other, "--net", "resnet18", "--labels", labels)["images"][0][
        "classes"
    ]
    assert {c["label"] for c in named} == set(NAMES.values())
    code, _, err = run("classify", pictures[0], "--model", other, "--net", "resnet17")
    assert code == 2
    assert "resnet18" in err


def test_a_thousand_classes_are_imagenets(run_json: RunJson, pictures: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "mobilenet_v2.safetensors"
    votive.io.safetensors.save_file(nets.mobilenet_v2().state_dict(), file)
    found = run_json("classify", pictures[0], "--model", file)["images"][0]["classes"]
    assert [c["label"] for c in found] == [nets.imagenet_classes()[c["id"]] for c in found]


def test_clip_compares_with_texts(run: Run, run_json: RunJson, clip: Path, pictures: Any) -> None:
    texts = ["a photo of a cat", "a photo of a dog and a cat"]
    asked = [word for t in texts for word in ("--text", t)]
    found = run_json("classify", *pictures, "--model", clip, *asked)["images"]
    model = models.CLIPModel.from_pretrained(clip)
    processor = models.CLIPProcessor.from_pretrained(clip)
    with votive.no_grad():
        given = processor(text=texts, images=pictures, return_tensors="vt", padding=True)
        p = model(given.input_ids, given.pixel_values, given.attention_mask)
        expected = p.logits_per_image.softmax(-1).tolist()
    for row, share in zip(found, expected):
        got = {c["label"]: c["score"] for c in row["classes"]}
        assert np.allclose([got[t] for t in texts], share, atol=1e-5)
    code, _, err = run("classify", pictures[0], "--model", clip)
    assert code == 2
    assert "--text" in err


@pytest.mark.parametrize(
    "wrong,code,printed",
    [
        ([], 2, "--model"),
        (["--model", "{vit}", "-k", "0"], 2, "--top-k"),
        (["--model", "{vit}", "--net", "resnet18"], 2, "--net"),
        (["--model", "{vit}", "--text", "a"], 2, "--text"),
        (["--model", "{vit}", "--labels", "{vit}/config.json"], 1, "numbers of classes"),
        (["--model", "{vit}", "--labels", "{vit}/two.txt"], 1, "names 2 classes"),
        (["--model", "{vit}/no"], 1, "there is no file or folder"),
    ],
)
def test_what_is_wrong_is_told(
    run: Run, vit: Path, pictures: list[Path], wrong: list[str], code: int, printed: str
) -> None:
    (vit / "two.txt").write_text("a\nb\n")
    got, out, err = run("classify", pictures[0], *[w.format(vit=vit) for w in wrong])
    assert got == code
    assert printed in err
    assert out == ""


def test_wrong_pictures_are_told(run: Run, vit: Path, tmp_path: Path) -> None:
    code, _, err = run("classify", tmp_path / "none.png", "--model", vit)
    assert code == 1
    assert "no such file" in err
    (tmp_path / "text.png").write_text("no picture")
    code, _, err = run("classify", tmp_path / "text.png", "--model", vit)
    assert code == 1
    assert "no picture that pillow can read" in err
