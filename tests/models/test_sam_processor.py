"""SAM's processor prepares pictures, points and boxes as transformers' does, and gives masks back in their size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models

SIZES = {"size": {"longest_edge": 64}, "pad_size": {"height": 64, "width": 64}}
MASKS = {"mask_size": {"longest_edge": 16}, "mask_pad_size": {"height": 16, "width": 16}}


def pictures() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, (h, w, 3), dtype=np.uint8) for h, w in ((30, 50), (80, 33))]


@pytest.mark.parity
@pytest.mark.parametrize("given", ["points", "uneven", "boxes", "prompts"])
def test_what_is_prepared_is_what_transformers_prepares(given: str) -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    pytest.importorskip("PIL")
    prompts: dict[str, Any] = {
        "points": {"input_points": [[[3, 4], [20, 9]], [[10, 70], [0, 0]]], "input_labels": [[1, 0], [1, 1]]},
        "uneven": {"input_points": [[[3, 4], [20, 9]], [[10, 70]]], "input_labels": [[1, 0], [1]]},
        "boxes": {"input_boxes": [[[1, 2, 30, 20]], [[5, 6, 20, 70]]]},
        "prompts": {"input_points": [[[[3, 4]], [[20, 9]]], [[[10, 70]], [[1, 1]]]]},
    }[given]
    theirs = transformers.SamProcessor(transformers.models.sam.image_processing_pil_sam.SamImageProcessorPil(**SIZES))
    ours = models.SamProcessor(models.SamImageProcessor(**SIZES))
    want, got = theirs(pictures(), return_tensors="pt", **prompts), ours(pictures(), return_tensors="vt", **prompts)
    assert sorted(got) == sorted(want)
    for key, value in want.items():
        np.testing.assert_allclose(got[key].numpy(), value.numpy(), atol=2e-2 if key == "pixel_values" else 1e-4)


def test_masks_come_back_in_the_size_of_the_pictures() -> None:
    processor = models.SamProcessor(models.SamImageProcessor(**SIZES))
    made = processor(pictures(), return_tensors="vt")
    scores = votive.full((2, 1, 3, 16, 16), -1.0)
    scores[:, :, :, :8, :4] = 1.0  # the upper left of the padded square
    found = processor.post_process_masks(scores, made.original_sizes, made.reshaped_input_sizes)
    assert [tuple(mask.shape) for mask in found] == [(1, 3, 30, 50), (1, 3, 80, 33)]
    assert found[0].dtype is votive.bool
    # 38 of 64 rows are the first picture's, and a quarter of 64 columns is a quarter of its width.
    assert bool(found[0][0, 0, :, :11].float().mean() > 0.8)
    assert not found[0][0, 0, :, 15:].any()


@pytest.mark.parity
def test_masks_are_those_of_transformers() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    scores = np.random.default_rng(1).standard_normal((2, 2, 3, 16, 16)).astype(np.float32)
    sizes = ([[30, 50], [80, 33]], [[38, 64], [64, 26]])
    theirs = transformers.models.sam.image_processing_pil_sam.SamImageProcessorPil(**SIZES)
    want = theirs.post_process_masks(list(torch.from_numpy(scores)), *sizes, binarize=False)
    got = models.SamImageProcessor(**SIZES).post_process_masks(scores, *sizes, binarize=False)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-5)


def test_labels_of_a_loss_have_the_size_of_answers() -> None:
    processor = models.SamImageProcessor(**SIZES, **MASKS)
    found = processor(pictures()[:1], segmentation_maps=[np.ones((30, 50), np.int64)], return_tensors="vt")
    assert found.labels.shape == (1, 16, 16)
    assert int(found.labels.sum()) == 10 * 16


def test_a_folder_gives_the_processor_back(tmp_path: Path) -> None:
    models.SamProcessor(models.SamImageProcessor(**SIZES)).save_pretrained(tmp_path)
    again = models.AutoProcessor.from_pretrained(tmp_path)
    assert isinstance(again, models.SamProcessor)
    assert again.image_processor.size == {"longest_edge": 64}
    assert again.image_processor.pad_size == {"height": 64, "width": 64}


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"input_points": [[3, 4]]}, "lists with one list for each picture|points are x and y"),
        ({"input_points": [[[1, 2, 3]]]}, "points are x and y"),
        ({"input_boxes": [[[1, 2]]]}, "boxes are left, top, right and bottom"),
        ({"input_points": [[[1, 2]], [[1, 2], [3, 4]]]}, "input_labels are needed"),
    ],
)
def test_wrong_prompts_are_told(given: dict[str, Any], match: str) -> None:
    processor = models.SamProcessor(models.SamImageProcessor(**SIZES))
    with pytest.raises(ValueError, match=match):
        processor(pictures(), **given)
    with pytest.raises(ValueError, match="longest_edge"):
        models.SamImageProcessor(size={"height": 3, "width": 3})


def test_wrong_prompts_of_a_model_are_told() -> None:
    config = models.SamConfig(
        vision_config={
            "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 32, "patch_size": 8,
            "output_channels": 16, "num_pos_feats": 8,
        },
        prompt_encoder_config={"hidden_size": 16, "image_size": 32, "patch_size": 8},
        mask_decoder_config={"hidden_size": 16, "mlp_dim": 16, "num_attention_heads": 2},
    )  # fmt: skip
    model, x = models.SamModel(config).eval(), votive.ones(1, 3, 32, 32)
    for given, match in (
        ({}, "either pixel_values or image_embeddings"),
        ({"pixel_values": x, "input_points": votive.ones(1, 2, 2)}, r"must be \(batch, prompts, points, 2\)"),
        ({"pixel_values": x, "input_boxes": votive.ones(1, 4)}, r"must be \(batch, boxes, 4\)"),
        ({"pixel_values": x, "input_points": votive.ones(2, 1, 1, 2)}, "are of 2 pictures"),
        ({"pixel_values": votive.ones(1, 3, 16, 32)}, "let SamImageProcessor resize"),
    ):
        with pytest.raises(ValueError, match=match):
            model(**given)
    # A picture is read once for many prompts.
    read = model.get_image_embeddings(x)
    points = votive.tensor([[[[4.0, 5.0]], [[20.0, 9.0]]]])
    with votive.no_grad():
        once, again = model(x, input_points=points), model(image_embeddings=read, input_points=points)
        alone = model(x, input_points=points[:, 1:])
    assert votive.allclose(once.pred_masks, again.pred_masks)
    assert votive.allclose(once.pred_masks[:, 1:], alone.pred_masks, atol=1e-5)
