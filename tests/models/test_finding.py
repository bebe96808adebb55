"""What was found is paired with what is there at the least cost, and files of a DETR with timm's network are read."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest

import votive
import votive.models as models
from votive.models.detr_loss import detection_loss, overlap
from votive.models.matching import linear_sum_assignment

SMALL: dict[str, Any] = {
    "d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8,
    "num_queries": 5, "encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_labels": 3,
}  # fmt: skip
NETWORK = {"model_type": "resnet", "embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 2), (2, 5), (5, 5), (6, 3)])
@pytest.mark.parametrize("maximize", [False, True])
def test_no_other_pairing_costs_less(shape: tuple[int, int], maximize: bool) -> None:
    rng = np.random.default_rng(shape[0] * 7 + shape[1])
    for _ in range(5):
        cost = rng.standard_normal(shape).round(1)
        rows, columns = linear_sum_assignment(cost, maximize)
        assert rows.tolist() == sorted(set(rows.tolist()))
        assert len(set(columns.tolist())) == len(rows) == min(shape)
        wide = cost if shape[0] <= shape[1] else cost.T
        count, room = wide.shape
        sums = [wide[range(count), chosen].sum() for chosen in itertools.permutations(range(room), count)]
        best = max(sums) if maximize else min(sums)
        assert cost[rows, columns].sum() == pytest.approx(best)


@pytest.mark.parity
def test_pairs_are_those_of_scipy() -> None:
    theirs = pytest.importorskip("scipy.optimize").linear_sum_assignment
    rng = np.random.default_rng(0)
    for shape in [(20, 20), (30, 7), (7, 30), (100, 13), (0, 3), (3, 0)]:
        cost = rng.standard_normal(shape)
        for a, b in zip(linear_sum_assignment(cost), theirs(cost), strict=True):
            assert a.tolist() == b.tolist()


def test_costs_that_mean_nothing_are_refused() -> None:
    for cost, told in (
        (np.zeros(3), "must be a matrix"),
        (np.array([[np.nan]]), "no numbers"),
        (np.array([[np.inf]]), "no pairing"),
    ):
        with pytest.raises(ValueError, match=told):
            linear_sum_assignment(cost)


def test_a_picture_without_things_has_a_loss() -> None:
    votive.manual_seed(0)
    model = models.DetrForObjectDetection(models.DetrConfig(**SMALL, backbone_config=NETWORK)).eval()
    empty = {"class_labels": votive.zeros(0, dtype=votive.int64), "boxes": votive.zeros(0, 4)}
    out = model(votive.ones(1, 3, 32, 32), labels=[empty])
    assert float(out.loss_dict["loss_bbox"]) == float(out.loss_dict["loss_giou"]) == 0.0
    assert float(out.loss) == pytest.approx(float(out.loss_dict["loss_ce"]))
    out.loss.backward()
    with pytest.raises(ValueError, match="one dict for each of 1 pictures"):
        detection_loss(out.logits, out.pred_boxes, [], model.config, [])


def test_boxes_apart_overlap_less_than_not_at_all() -> None:
    a, b = votive.tensor([[0.1, 0.1, 0.2, 0.2]]), votive.tensor([[0.7, 0.7, 0.2, 0.2], [0.1, 0.1, 0.2, 0.1]])
    found = overlap(a, b)[0].tolist()
    assert -1 < found[0] < 0
    assert found[1] == pytest.approx(0.5)


def _of_timm(name: str) -> str:
    if ".encoder.stages." not in name and ".embedder." not in name:
        return name
    for long, short in {"embedder.embedder.convolution": "conv1", "embedder.embedder.normalization": "bn1"}.items():
        name = name.replace(long, short)
    name = re.sub(r"shortcut\.(\w+)", lambda m: f"downsample.{int(m[1] == 'normalization')}", name)
    name = re.sub(r"layer\.(\d)\.convolution", lambda m: f"conv{int(m[1]) + 1}", name)
    name = re.sub(r"layer\.(\d)\.normalization", lambda m: f"bn{int(m[1]) + 1}", name)
    return re.sub(r"encoder\.stages\.(\d)\.layers", lambda m: f"layer{int(m[1]) + 1}", name)


def test_a_file_with_the_network_of_timm_is_read() -> None:
    values = {**SMALL, "backbone": "resnet18", "use_timm_backbone": True, "backbone_config": None}
    config = models.DetrConfig.from_dict(values)
    assert (config.backbone_config.depths, config.backbone_config.layer_type) == ([2, 2, 2, 2], "basic")
    assert models.DetrConfig.from_dict(config.to_dict()) == config
    model = models.DetrForObjectDetection(config).eval()
    state = {_of_timm(name): value.clone() for name, value in model.state_dict().items()}
    network = "model.backbone.conv_encoder.model"
    assert {f"{network}.conv1.weight", f"{network}.layer2.0.downsample.1.running_var"} <= set(state)
    again = models.DetrForObjectDetection(config)
    report = again.load_weights(votive.io.MemorySource(state))
    assert not report.missing
    pixels = votive.randn(1, 3, 40, 40)
    with votive.no_grad():
        assert votive.equal(again.eval()(pixels).logits, model(pixels).logits)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"backbone": "efficientnet"}, "the network 'efficientnet' is not known; known: resnet18"),
        ({"dilation": True}, "is not supported"),
        ({"position_embedding_type": "none"}, "must be 'sine' or 'learned'"),
        ({"encoder_attention_heads": 5}, "does not split into encoder_attention_heads=5"),
        ({"d_model": 18}, "multiple of 4"),
    ],
)
def test_what_no_detr_is_made_of_is_told(told: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        models.DetrConfig.from_dict({**SMALL, **told})


def test_training_leaves_norms_of_the_network_as_they_are() -> None:
    model = models.DetrModel(models.DetrConfig(**SMALL, backbone_config=NETWORK)).train()
    before = {name: value.clone() for name, value in model.state_dict().items() if "normalization" in name}
    model(votive.randn(2, 3, 32, 32)).last_hidden_state.sum().backward()
    assert before
    assert all(votive.equal(value, dict(model.state_dict())[name]) for name, value in before.items())
    assert not any("normalization" in name for name, _ in model.named_parameters())
    model.freeze_backbone()
    assert not any(p.requires_grad for p in model.network.parameters())
    model.unfreeze_backbone()
    assert all(p.requires_grad for p in model.network.parameters())
