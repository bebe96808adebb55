"""Pictures, boxes and what was found are prepared as transformers prepares them for DETR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from votive.models import AutoImageProcessor, DetrImageProcessor
from votive.models.detr import DetrObjectDetectionOutput

pytest.importorskip("PIL", reason="pictures are resized as pillow does")
RNG = np.random.default_rng(0)
PICTURES = [RNG.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((30, 40), (55, 21), (24, 24))]
TOLD = [
    {
        "image_id": 7 + i,
        "annotations": [
            {"bbox": [3, 4, 12.5, 9], "category_id": 2, "area": 112.5, "iscrowd": 0},
            {"bbox": [10, 2, 500, 9], "category_id": 1, "area": 80.0},
            {"bbox": [1, 2, 3, 4], "category_id": 5, "area": 12.0, "iscrowd": 1},
            {"bbox": [1, 2, 0, 4], "category_id": 6, "area": 0.0},
        ][: 4 - i],
    }
    for i in range(3)
]
MADE: list[dict[str, Any]] = [
    {"size": {"shortest_edge": 20, "longest_edge": 33}},
    {"size": {"height": 16, "width": 24}, "do_convert_annotations": False},
    {"do_resize": False, "pad_size": {"height": 60, "width": 64}, "do_normalize": False},
]


@pytest.mark.parity
@pytest.mark.parametrize("made", MADE)
def test_pictures_and_labels_are_those_of_transformers(made: dict[str, Any], tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    kind = getattr(transformers, "DetrImageProcessorPil", transformers.DetrImageProcessor)
    theirs, ours = kind(**made), DetrImageProcessor(**made)
    expected = theirs(PICTURES, annotations=[{**told} for told in TOLD], return_tensors="np")
    got = ours(PICTURES, annotations=TOLD, return_tensors="vt")
    np.testing.assert_allclose(got.pixel_values.numpy(), expected["pixel_values"], atol=1e-5)
    assert np.array_equal(got.pixel_mask.numpy(), expected["pixel_mask"])
    for a, b in zip(got["labels"], expected["labels"], strict=True):
        for name in ("image_id", "class_labels", "boxes", "area", "iscrowd", "orig_size"):
            np.testing.assert_allclose(a[name].numpy(), b[name], atol=1e-5, err_msg=name)
    ours.save_pretrained(tmp_path)
    again = AutoImageProcessor.from_pretrained(tmp_path)
    assert type(again) is DetrImageProcessor
    assert np.array_equal(again(PICTURES, return_tensors="np").pixel_values, got.pixel_values.numpy())


@pytest.mark.parity
def test_what_was_found_is_what_transformers_says() -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    logits, boxes = RNG.standard_normal((2, 9, 4)).astype(np.float32) * 3, RNG.random((2, 9, 4)).astype(np.float32)
    out = DetrObjectDetectionOutput(logits=votive.tensor(logits), pred_boxes=votive.tensor(boxes))
    other = transformers.models.detr.modeling_detr.DetrObjectDetectionOutput(
        logits=torch.tensor(logits), pred_boxes=torch.tensor(boxes)
    )
    for sizes in (None, [(30, 40), (55, 21)]):
        kind = getattr(transformers, "DetrImageProcessorPil", transformers.DetrImageProcessor)
        expected = kind().post_process_object_detection(other, 0.6, sizes)
        got = DetrImageProcessor().post_process_object_detection(out, 0.6, sizes)
        assert sum(len(each["scores"]) for each in got) > 2
        for a, b in zip(got, expected, strict=True):
            for name in ("scores", "labels", "boxes"):
                np.testing.assert_allclose(a[name].numpy(), b[name].numpy(), rtol=1e-5, atol=1e-6)


def test_what_is_prepared_is_what_the_model_learns_from() -> None:
    network = {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}
    config = models.DetrConfig(
        d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=8, decoder_ffn_dim=8, num_queries=5,
        encoder_attention_heads=2, decoder_attention_heads=2, num_labels=8, backbone_config=network,
    )  # fmt: skip
    given = DetrImageProcessor(size={"shortest_edge": 32, "longest_edge": 48})(
        PICTURES, annotations=TOLD, return_tensors="vt"
    )
    out = models.DetrForObjectDetection(config)(**given)
    out.loss.backward()
    assert float(out.loss) > 0
    found = DetrImageProcessor().post_process_object_detection(out, 0.0)
    assert found[0]["boxes"].shape == (5, 4)


@pytest.mark.parametrize(
    ("made", "asked", "told"),
    [
        ({"format": "coco_panoptic"}, {}, "must be 'coco_detection'"),
        ({"do_center_crop": True}, {}, "would cut boxes off"),
        ({"pad_size": {"height": 8, "width": 8}}, {}, "do not fit into pad_size"),
        ({}, {"annotations": TOLD[:1]}, "1 annotations for 3 pictures"),
        ({}, {"annotations": [{}] * 3}, "has image_id and annotations"),
    ],
)
def test_what_cannot_be_prepared_is_told(made: dict[str, Any], asked: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        DetrImageProcessor(**{"size": 20, **made})(PICTURES, **asked)
