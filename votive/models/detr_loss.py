"""The loss of a detector: what was found is paired with what is there, and each pair compared. arXiv:2005.12872.

Boxes are (center x, center y, width, height), as shares of the picture. Knows no model.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

import votive
from votive.nn import functional as F

from ..tensor import Tensor
from .config import Config
from .matching import linear_sum_assignment

Targets = list[dict[str, Tensor]]


def corners(boxes: Tensor) -> Tensor:
    """Boxes as (left, top, right, bottom).

    >>> votive.models.detr_loss.corners(votive.tensor([[0.5, 0.5, 1.0, 0.5]]))
    tensor([[0.0000, 0.2500, 1.0000, 0.7500]])
    """
    center, half = boxes[..., :2], boxes[..., 2:] / 2
    return votive.cat([center - half, center + half], -1)


def overlap(a: Tensor, b: Tensor) -> Tensor:
    """How much each box of `a` (n, 4) covers each of `b` (m, 4), less the room around both: -1 to 1, (n, m).

    >>> box = votive.tensor([[0.5, 0.5, 1.0, 0.5]])
    >>> votive.models.detr_loss.overlap(box, box)
    tensor([[1.]])
    """
    a, b = corners(a).unsqueeze(1), corners(b).unsqueeze(0)
    inner = (votive.minimum(a[..., 2:], b[..., 2:]) - votive.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    both = inner[..., 0] * inner[..., 1]
    union = _area(a) + _area(b) - both
    outer = votive.maximum(a[..., 2:], b[..., 2:]) - votive.minimum(a[..., :2], b[..., :2])
    hull = outer[..., 0] * outer[..., 1]
    return both / union - (hull - union) / hull


def _area(box: Tensor) -> Tensor:
    return (box[..., 2] - box[..., 0]) * (box[..., 3] - box[..., 1])


def paired(logits: Tensor, boxes: Tensor, targets: Targets, config: Config) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each picture which queries (first) found which things (second), at the least cost in all."""
    found = []
    with votive.no_grad():
        for scores, places, target in zip(logits.float().softmax(-1), boxes.float(), targets, strict=True):
            wanted = target["boxes"].to(places.device, places.dtype)
            far = (places.unsqueeze(1) - wanted.unsqueeze(0)).abs().sum(-1)
            likely = scores[:, target["class_labels"].to(scores.device)]
            cost = config.bbox_cost * far - config.class_cost * likely - config.giou_cost * overlap(places, wanted)
            most = float(np.finfo(np.float32).max)
            matrix = np.nan_to_num(cost.numpy(force=True), nan=most, posinf=most, neginf=most)
            found.append(linear_sum_assignment(matrix))
    return found


def detection_loss(
    logits: Tensor, boxes: Tensor, targets: Targets, config: Any, each: list[tuple[Tensor, Tensor]]
) -> tuple[Tensor, dict[str, Tensor]]:
    """The weighted sum of all losses, and the losses; `each` holds scores and boxes of the layers before the last."""
    if len(targets) != logits.shape[0]:
        raise ValueError(f"labels: one dict for each of {logits.shape[0]} pictures is needed, got {len(targets)}.")
    count = max(sum(len(target["class_labels"]) for target in targets), 1)
    losses = _losses(logits, boxes, targets, config, count)
    for i, (scores, places) in enumerate(each):
        losses |= {f"{name}_{i}": loss for name, loss in _losses(scores, places, targets, config, count).items()}
    weights = {"loss_ce": 1.0, "loss_bbox": config.bbox_loss_coefficient, "loss_giou": config.giou_loss_coefficient}
    kinds = {name: re.sub(r"_\d+$", "", name) for name in losses}
    parts = [weights[kinds[name]] * loss for name, loss in losses.items() if kinds[name] in weights]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total, losses


def _losses(logits: Tensor, boxes: Tensor, targets: Targets, config: Any, count: int) -> dict[str, Tensor]:
    pairs = paired(logits, boxes, targets, config)
    device, nothing = logits.device, logits.shape[-1] - 1
    wanted = votive.full(logits.shape[:2], nothing, dtype=votive.int64, device=device)
    here, there = [], []
    for i, ((queries, things), target) in enumerate(zip(pairs, targets, strict=True)):
        q, t = (votive.tensor(np.asarray(each, np.int64), device=device) for each in (queries, things))
        wanted[i, q] = target["class_labels"].to(device, votive.int64)[t]
        here.append(boxes[i, q])
        there.append(target["boxes"].to(device, boxes.dtype)[t])
    share = votive.ones(nothing + 1, device=device)
    share[nothing] = config.eos_coefficient
    a, b = votive.cat(here), votive.cat(there)
    with votive.no_grad():
        things = (logits.argmax(-1) != nothing).sum(1).float()
        real = votive.tensor([float(len(target["class_labels"])) for target in targets], device=device)
        wrong = (things - real).abs().mean()
    return {
        "loss_ce": F.cross_entropy(logits.float().flatten(0, 1), wanted.flatten(), share),
        "loss_bbox": (a - b).abs().sum() / count,
        "loss_giou": (1 - overlap(a, b).diagonal()).sum() / count,
        "cardinality_error": wrong,
    }
