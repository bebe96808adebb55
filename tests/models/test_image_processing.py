"""Pictures become the numbers that transformers' processors make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from votive.models.image_processing import NAME

Image = pytest.importorskip("PIL.Image", reason="reads pictures with pillow")


def photo(height: int = 61, width: int = 87, mode: str = "RGB") -> Any:
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (9, 7, 4), dtype=np.uint8)
    big = Image.fromarray(coarse, "RGBA").resize((width, height), Image.Resampling.BICUBIC)
    return big.convert(mode)


@pytest.fixture
def theirs() -> Any:
    pytest.importorskip("torch", reason="compares with transformers")
    from tests.vision.torchvision_models import prepare

    prepare()
    transformers = pytest.importorskip("transformers", reason="compares with transformers")

    def made(name: str, **fields: Any) -> Any:
        from importlib import import_module

        kind = name.lower()
        module = import_module(f"transformers.models.{kind}.image_processing_pil_{kind}")
        return getattr(module, f"{name}ImageProcessorPil")(**fields)

    made.library = transformers  # type: ignore[attr-defined]
    return made


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("ViT", {}),
    "vit of 384": ("ViT", {"size": {"height": 384, "width": 384}, "resample": 3}),
    "vit unscaled": ("ViT", {"do_rescale": False, "size": 40}),
    "vit plain": ("ViT", {"do_normalize": False, "size": {"height": 20, "width": 30}}),
    "deit": ("DeiT", {}),
    "deit small": ("DeiT", {"size": 50, "crop_size": {"height": 71, "width": 64}}),
    "beit cropped": ("Beit", {"size": 64, "do_center_crop": True, "crop_size": 33}),
    "clip": ("CLIP", {}),
    "clip both": ("CLIP", {"size": {"shortest_edge": 40, "longest_edge": 50}, "crop_size": 32}),
    "clip most": ("CLIP", {"size": {"max_height": 40, "max_width": 30}, "do_center_crop": False}),
    "clip nearest": ("CLIP", {"resample": 0, "image_mean": [0.1, 0.2, 0.3]}),
    "convnext": ("ConvNext", {}),
    "convnext small": ("ConvNext", {"size": 50, "crop_pct": 0.8}),
    "segformer": ("Segformer", {"size": {"height": 40, "width": 64}}),
    "blip": ("Blip", {"size": 48}),
}


@pytest.mark.parity
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(61, 87), (90, 40), (224, 224), (7, 5)])
def test_values_are_transformers_bit_by_bit(kind: str, shape: tuple[int, int], theirs: Any) -> None:
    name, fields = KINDS[kind]
    picture = photo(*shape)
    expected = theirs(name, **fields)(picture, return_tensors="np").pixel_values
    got = getattr(models, f"{name}ImageProcessor")(**fields)(picture, return_tensors="np")
    assert got.pixel_values.shape == expected.shape
    assert got.pixel_values.dtype == expected.dtype
    assert np.array_equal(got.pixel_values, expected)


@pytest.mark.parity
@pytest.mark.parametrize("given", ["first", "last", "grey", "floats", "whole floats", "tensor"])
def test_arrays_of_any_layout_agree(given: str, theirs: Any) -> None:
    x = np.array(photo())
    more: dict[str, Any] = {}
    if given == "first":
        x = np.moveaxis(x, -1, 0)
    elif given == "grey":
        x, more = x[..., 0], {"image_mean": 0.4, "image_std": 0.3}
    elif given == "floats":
        x, more = (x / 255).astype(np.float32), {"do_rescale": False}
    elif given == "whole floats":
        x = x.astype(np.float32)
    whole = x[None] if given == "grey" else x  # they ask for a channel
    expected = theirs("ViT", **more)(whole, return_tensors="np").pixel_values
    picture = votive.tensor(x) if given == "tensor" else x
    got = models.ViTImageProcessor(**more)(picture, return_tensors="np").pixel_values
    assert np.array_equal(got, expected)


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK", "LA"])
def test_pictures_of_any_mode_become_colour_alike(mode: str, theirs: Any) -> None:
    expected = theirs("CLIP")(photo(mode=mode), return_tensors="np").pixel_values
    got = models.CLIPImageProcessor()(photo(mode=mode), return_tensors="np").pixel_values
    assert np.array_equal(got, expected)


@pytest.mark.parity
def test_values_of_the_faster_processors_differ_by_a_level_at_most(theirs: Any) -> None:
    # They filter with torch, whose rounding of 8 bits is not quite pillow's.
    fast = theirs.library.ViTImageProcessor()
    expected = fast(photo(), return_tensors="pt").pixel_values.numpy()
    got = models.ViTImageProcessor()(photo(), return_tensors="np").pixel_values
    assert np.abs(got - expected).max() <= 2 / 255 + 1e-6


@pytest.mark.parity
@pytest.mark.parametrize("name", ["ViT", "DeiT", "Beit", "CLIP"])
def test_files_go_both_ways(name: str, theirs: Any, tmp_path: Path) -> None:
    reference = theirs(name)
    reference.save_pretrained(tmp_path / "theirs")
    again = models.AutoImageProcessor.from_pretrained(tmp_path / "theirs")
    assert type(again).__name__ == f"{name}ImageProcessor"
    again.save_pretrained(tmp_path / "ours")
    back = theirs.library.AutoImageProcessor.from_pretrained(tmp_path / "ours", backend="pil")
    expected = reference(photo(), return_tensors="np").pixel_values
    assert np.array_equal(again(photo(), return_tensors="np").pixel_values, expected)
    assert np.array_equal(back(photo(), return_tensors="np").pixel_values, expected)


def written(folder: Path, **fields: Any) -> Path:
    (folder / NAME).write_text(json.dumps(fields))
    return folder


def test_files_of_old_releases_are_read(tmp_path: Path) -> None:
    folder = written(
        tmp_path, feature_extractor_type="CLIPFeatureExtractor", size=48, crop_size=40, do_resize=True, resample=3
    )
    found = models.AutoImageProcessor.from_pretrained(folder)
    assert isinstance(found, models.CLIPImageProcessor)
    assert found.size == {"shortest_edge": 48}
    assert found(photo(), return_tensors="vt").pixel_values.shape == (1, 3, 40, 40)
    changed = models.AutoImageProcessor.from_pretrained(folder, crop_size=16)
    assert changed(photo(), return_tensors="vt").pixel_values.shape == (1, 3, 16, 16)


def test_unknown_processors_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="SwinImageProcessor"):
        models.AutoImageProcessor.from_pretrained(written(tmp_path, image_processor_type="SwinImageProcessor"))


def test_a_file_a_path_and_a_picture_give_the_same(tmp_path: Path) -> None:
    photo().save(tmp_path / "a.png")
    processor = models.ViTImageProcessor(size=32)
    batch = [tmp_path / "a.png", str(tmp_path / "a.png"), photo(), np.array(photo())]
    x = processor(batch, return_tensors="vt").pixel_values
    assert x.shape == (4, 3, 32, 32)
    assert all(votive.equal(x[0], x[i]) for i in range(4))
    many = processor(votive.tensor(np.stack([np.array(photo())] * 2)), return_tensors="vt")
    assert votive.equal(many.pixel_values[1], x[0])


def test_a_photo_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    photo().save(tmp_path / "turned.png", exif=exif)
    found = models.ViTImageProcessor(do_resize=False)(tmp_path / "turned.png")
    assert found.pixel_values[0].shape == (3, 87, 61)


def test_wrong_files_and_wrong_values_are_told(tmp_path: Path) -> None:
    processor = models.ViTImageProcessor()
    with pytest.raises(FileNotFoundError, match="does not exist"):
        processor(tmp_path / "none.png")
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(ValueError, match="no picture that pillow can read"):
        processor(tmp_path / "text.png")
    with pytest.raises(ValueError, match="no picture that pillow can read"):
        processor(tmp_path)
    with pytest.raises(ValueError, match="1, 3 or 4 channels"):
        processor(np.zeros((5, 5, 7), np.uint8))
    with pytest.raises(ValueError, match="from 0 to 255"):
        processor(np.full((5, 5, 3), 300))
    with pytest.raises(TypeError, match="a picture must be"):
        processor(object())
    with pytest.raises(TypeError, match="no option 'sizes'"):
        processor(photo(), sizes=3)
    with pytest.raises(ValueError, match="image_mean has 3 numbers"):
        processor(photo(mode="L"))
    with pytest.raises(ValueError, match="make no batch"):
        processor([photo(), photo(9, 9)], return_tensors="vt", do_resize=False)
    with pytest.raises(ValueError, match="return_tensors='pt'"):
        processor(photo(), return_tensors="pt")
    with pytest.raises(ValueError, match="size must be"):
        models.ViTImageProcessor(size={"height": 3})
    with pytest.warns(UserWarning, match="do_rescale=False"):
        processor(np.array(photo()) / 255.0)


def test_no_pictures_are_an_empty_batch() -> None:
    assert models.ViTImageProcessor()([], return_tensors="vt").pixel_values.shape[0] == 0


def trained() -> Any:
    pytest.importorskip("tokenizers")
    return votive.text.train_bpe(["some small words"], vocab_size=270, progress=False)


@pytest.mark.parametrize("name", ["TrOCRProcessor", "CLIPProcessor"])
def test_pictures_and_texts_are_prepared_together(name: str, tmp_path: Path) -> None:
    kind = models.CLIPImageProcessor if name.startswith("CLIP") else models.ViTImageProcessor
    made = getattr(models, name)(kind(), trained())
    made.save_pretrained(tmp_path)
    found = models.AutoProcessor.from_pretrained(tmp_path)
    assert type(found).__name__ == name
    out = found(images=photo(), text=["words", "small"], return_tensors="np", padding=True)
    assert out.pixel_values.shape == (1, 3, 224, 224)
    ids = out["labels" if name.startswith("TrOCR") else "input_ids"]
    assert found.batch_decode(ids, skip_special_tokens=True)[0].strip("\x00") == "words"
    with pytest.raises(ValueError, match="both"):
        found()
    with pytest.raises(TypeError, match="'padding' is for texts"):
        found(images=photo(), padding=True)


def test_a_model_tells_which_processor_it_wants(tmp_path: Path) -> None:
    models.ViTImageProcessor().save_pretrained(tmp_path)
    trained().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "vision-encoder-decoder"}))
    assert type(models.AutoProcessor.from_pretrained(tmp_path)).__name__ == "TrOCRProcessor"


def test_tensors_move_and_whole_numbers_stay_whole() -> None:
    found = models.BatchFeature(pixel_values=votive.ones(1), input_ids=votive.tensor([1]))
    moved = found.to(votive.bfloat16)
    assert (moved.pixel_values.dtype, moved.input_ids.dtype) == (votive.bfloat16, votive.int64)


@pytest.mark.parity
@pytest.mark.parametrize("fields", [{}, {"do_reduce_labels": True}, {"do_resize": False}])
def test_maps_of_classes_become_labels_alike(fields: dict[str, Any], theirs: Any) -> None:
    rng = np.random.default_rng(0)
    maps = [rng.integers(0, 6, (61, 87), dtype=np.uint8), rng.integers(250, 256, (61, 87), dtype=np.uint8)]
    size = {"height": 33, "width": 120}
    expected = theirs("Segformer", size=size, **fields)([photo()] * 2, [m.copy() for m in maps], return_tensors="np")
    processor = models.SegformerImageProcessor(size=size, **fields)
    got = processor([photo()] * 2, [maps[0], Image.fromarray(maps[1])], return_tensors="np")
    assert np.array_equal(got.labels, expected["labels"])
    assert np.array_equal(got.pixel_values, expected["pixel_values"])
    assert got.labels.dtype == np.int64
    with pytest.raises(ValueError, match="map of classes"):
        processor(photo(), np.zeros((4, 4, 3)))


@pytest.mark.parity
@pytest.mark.parametrize("sizes", [None, [(9, 5), (3, 14)]])
def test_scores_become_maps_of_classes_alike(sizes: Any, theirs: Any) -> None:
    import torch

    scores = np.random.default_rng(0).standard_normal((2, 5, 6, 7)).astype(np.float32)
    processor = models.SegformerImageProcessor()
    found = models.BatchFeature(logits=votive.tensor(scores))
    expected = theirs("Segformer").post_process_semantic_segmentation(
        models.BatchFeature(logits=torch.tensor(scores)), sizes, return_segmentation_scores=True
    )
    got: Any = processor.post_process_semantic_segmentation(found, sizes, return_segmentation_scores=True)
    for ours, one in zip(got, expected, strict=True):
        assert np.array_equal(ours.segmentation.numpy(), one.segmentation.numpy())
        assert np.allclose(ours.segmentation_scores.numpy(), one.segmentation_scores.numpy(), atol=1e-5)
    plain: Any = processor.post_process_semantic_segmentation(found, sizes)
    assert all(np.array_equal(a.numpy(), b.segmentation.numpy()) for a, b in zip(plain, got, strict=True))
    with pytest.raises(ValueError, match="one for each"):
        processor.post_process_semantic_segmentation(found, [(1, 2)])
