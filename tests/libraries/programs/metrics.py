"""torchmetrics: values over several batches, functional forms, collections, saved states."""

from __future__ import annotations

import functools
from typing import Any

import common  # noqa: F401  # first: it sees to torchvision
import numpy as np
import torch
import torchmetrics
import torchmetrics.clustering
from common import array, integers, main, numbers

N = 20


def classes(name: str, batch: int) -> tuple[Any, Any]:
    """Scores of five classes, and the right ones."""
    scores = torch.from_numpy(numbers(f"{name}{batch}", N, 5)).softmax(-1)
    return scores, torch.from_numpy(integers(f"{name}{batch}", 5, N))


def binary(name: str, batch: int) -> tuple[Any, Any]:
    """Chances and truths."""
    return torch.from_numpy(numbers(f"{name}{batch}", N)).sigmoid(), torch.from_numpy(integers(f"{name}{batch}", 2, N))


def labels(name: str, batch: int) -> tuple[Any, Any]:
    """Chances and truths of four labels at once."""
    chances = torch.from_numpy(numbers(f"{name}{batch}", N, 4)).sigmoid()
    return chances, torch.from_numpy(integers(f"{name}{batch}", 2, N, 4))


def real(name: str, batch: int) -> tuple[Any, Any]:
    """Two rows of numbers."""
    return torch.from_numpy(numbers(f"{name}{batch}", N)), torch.from_numpy(numbers(f"{name}{batch}t", N))


def positive(name: str, batch: int) -> tuple[Any, Any]:
    """Two rows of positive numbers."""
    a, b = real(name, batch)
    return a.abs() + 0.1, b.abs() + 0.1


def images(name: str, batch: int) -> tuple[Any, Any]:
    """Two batches of images in 0..1."""
    a = torch.from_numpy(numbers(f"{name}{batch}", 2, 3, 32, 32)).sigmoid()
    return a, (a + 0.1 * torch.from_numpy(numbers(f"{name}{batch}t", 2, 3, 32, 32))).clamp(0, 1)


def sounds(name: str, batch: int) -> tuple[Any, Any]:
    """Two batches of signals."""
    a = torch.from_numpy(numbers(f"{name}{batch}", 2, 200))
    return a + 0.3 * torch.from_numpy(numbers(f"{name}{batch}t", 2, 200)), a


def groups(name: str, batch: int) -> tuple[Any, Any]:
    """Two groupings."""
    return torch.from_numpy(integers(f"{name}{batch}", 4, N)), torch.from_numpy(integers(f"{name}{batch}t", 3, N))


def texts(name: str, batch: int) -> tuple[Any, Any]:
    """Sentences and what they should be."""
    words = ["the", "cat", "sat", "on", "a", "mat", "while", "dogs", "ran", "far", "away", "from", "rain"]
    rows = integers(f"{name}{batch}", len(words), 3, 8)
    said = [" ".join(words[i] for i in row) for row in rows]
    return said, [[" ".join([*s.split()[:6], "away", "now"])] for s in said]


def lines(name: str, batch: int) -> tuple[Any, Any]:
    """Sentences and one right one each."""
    said, right = texts(name, batch)
    return said, [r[0] for r in right]


M5 = {"num_classes": 5}
L4 = {"num_labels": 4}
# metric: (class, options, what it is given)
METRICS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "accuracy": ("classification.MulticlassAccuracy", M5, classes),
    "accuracy_micro": ("classification.MulticlassAccuracy", {**M5, "average": "micro", "top_k": 2}, classes),
    "binary_accuracy": ("classification.BinaryAccuracy", {}, binary),
    "labels_accuracy": ("classification.MultilabelAccuracy", L4, labels),
    "precision": ("classification.MulticlassPrecision", M5, classes),
    "recall": ("classification.MulticlassRecall", {**M5, "average": None}, classes),
    "f1": ("classification.MulticlassF1Score", {**M5, "average": "weighted"}, classes),
    "fbeta": ("classification.MultilabelFBetaScore", {**L4, "beta": 0.5}, labels),
    "specificity": ("classification.BinarySpecificity", {}, binary),
    "confusion": ("classification.MulticlassConfusionMatrix", {**M5, "normalize": "true"}, classes),
    "auroc": ("classification.BinaryAUROC", {}, binary),
    "auroc_classes": ("classification.MulticlassAUROC", M5, classes),
    "auroc_binned": ("classification.MulticlassAUROC", {**M5, "thresholds": 11}, classes),
    "precision_average": ("classification.MultilabelAveragePrecision", L4, labels),
    "roc": ("classification.BinaryROC", {}, binary),
    "pr_curve": ("classification.BinaryPrecisionRecallCurve", {}, binary),
    "calibration": ("classification.MulticlassCalibrationError", M5, classes),
    "kappa": ("classification.MulticlassCohenKappa", M5, classes),
    "matthews": ("classification.MulticlassMatthewsCorrCoef", M5, classes),
    "jaccard": ("classification.MulticlassJaccardIndex", M5, classes),
    "hinge": ("classification.MulticlassHingeLoss", M5, classes),
    "hamming": ("classification.MultilabelHammingDistance", L4, labels),
    "exact": ("classification.MultilabelExactMatch", L4, labels),
    "ranking": ("classification.MultilabelRankingLoss", L4, labels),
    "coverage": ("classification.MultilabelCoverageError", L4, labels),
    "stat_scores": ("classification.MulticlassStatScores", {**M5, "average": None}, classes),
    "mse": ("MeanSquaredError", {}, real),
    "mae": ("MeanAbsoluteError", {}, real),
    "mape": ("MeanAbsolutePercentageError", {}, positive),
    "msle": ("MeanSquaredLogError", {}, positive),
    "r2": ("R2Score", {}, real),
    "variance": ("ExplainedVariance", {}, real),
    "pearson": ("PearsonCorrCoef", {}, real),
    "spearman": ("SpearmanCorrCoef", {}, real),
    "kendall": ("KendallRankCorrCoef", {}, real),
    "concordance": ("ConcordanceCorrCoef", {}, real),
    "log_cosh": ("LogCoshError", {}, real),
    "tweedie": ("TweedieDevianceScore", {"power": 1.5}, positive),
    "kl": ("KLDivergence", {}, lambda n, b: (classes(n, b)[0], classes(n + "t", b)[0])),
    "cosine": ("CosineSimilarity", {"reduction": "mean"}, lambda n, b: (classes(n, b)[0], classes(n + "t", b)[0])),
    "minkowski": ("MinkowskiDistance", {"p": 3}, real),
    "psnr": ("image.PeakSignalNoiseRatio", {"data_range": 1.0}, images),
    "ssim": ("image.StructuralSimilarityIndexMeasure", {"data_range": 1.0}, images),
    "uqi": ("image.UniversalImageQualityIndex", {}, images),
    "sam": ("image.SpectralAngleMapper", {}, images),
    "ergas": ("image.ErrorRelativeGlobalDimensionlessSynthesis", {}, images),
    "snr": ("audio.SignalNoiseRatio", {}, sounds),
    "si_sdr": ("audio.ScaleInvariantSignalDistortionRatio", {}, sounds),
    "sdr": ("audio.SignalDistortionRatio", {"filter_length": 16}, sounds),
    "mutual_information": ("clustering.MutualInfoScore", {}, groups),
    "rand": ("clustering.AdjustedRandScore", {}, groups),
    "v_measure": ("clustering.VMeasureScore", {}, groups),
    "cramer": ("nominal.CramersV", {"num_classes": 4}, groups),
    "theil": ("nominal.TheilsU", {"num_classes": 4}, groups),
    "bleu": ("text.BLEUScore", {}, texts),
    "sacre_bleu": ("text.SacreBLEUScore", {}, texts),
    "chrf": ("text.CHRFScore", {}, texts),
    "wer": ("text.WordErrorRate", {}, lines),
    "cer": ("text.CharErrorRate", {}, lines),
    "edit": ("text.EditDistance", {}, lines),
    "mean": ("MeanMetric", {}, lambda n, b: (real(n, b)[0], real(n, b)[1].abs())),
}


def flat(value: Any, name: str = "value") -> dict[str, Any]:
    """A value as arrays, whatever it is made of."""
    if isinstance(value, dict):
        return {k: v for key, part in value.items() for k, v in flat(part, f"{name}.{key}").items()}
    if isinstance(value, list | tuple):
        return {k: v for i, part in enumerate(value) for k, v in flat(part, f"{name}.{i}").items()}
    return {name: array(value)}


def metric(name: str) -> dict[str, Any]:
    """The value of each batch, of all, after a reset, and of a copy with the saved state."""
    path, options, given = METRICS[name]
    cls = functools.reduce(getattr, path.split("."), torchmetrics)
    made = cls(**options)
    found: dict[str, Any] = {}
    for batch in range(3):
        found.update(flat(made(*given(name, batch)), f"batch.{batch}"))
    found.update(flat(made.compute(), "all"))
    made.persistent(True)
    other = cls(**options)
    other.persistent(True)
    other.load_state_dict(made.state_dict())
    made.reset()
    made.update(*given(name, 3))
    found.update(flat(made.compute(), "after"))
    return found


def collection() -> dict[str, Any]:
    """Several metrics that share what they compute, with a prefix, tracked over epochs."""
    made = torchmetrics.MetricCollection(
        [
            torchmetrics.classification.MulticlassAccuracy(**M5),
            torchmetrics.classification.MulticlassF1Score(**M5),
            torchmetrics.classification.MulticlassAUROC(**M5),
        ],
        prefix="val/",
    )
    found = {}
    tracker = torchmetrics.MetricTracker(made, maximize=True)
    for epoch in range(2):
        tracker.increment()
        for batch in range(2):
            tracker.update(*classes(f"collection{epoch}", batch))
        found.update(flat(tracker.compute(), f"epoch.{epoch}"))
    found["groups"] = np.array(str(made.compute_groups))
    mean = torchmetrics.MeanSquaredError() + 2 * torchmetrics.MeanAbsoluteError()
    mean.update(*real("sum", 0))
    return {**found, "sum": array(mean.compute())}


def detection() -> dict[str, Any]:
    """Overlaps of boxes."""
    boxes = torch.from_numpy(np.abs(numbers("boxes", 4, 4)) * 10)
    boxes[:, 2:] += boxes[:, :2]
    found = [
        {
            "boxes": boxes,
            "scores": torch.from_numpy(numbers("scores", 4)).sigmoid(),
            "labels": torch.tensor([0, 1, 0, 1]),
        }
    ]
    right = [{"boxes": boxes + 1, "labels": torch.tensor([0, 1, 1, 1])}]
    out = {}
    for name in ("IntersectionOverUnion", "GeneralizedIntersectionOverUnion", "CompleteIntersectionOverUnion"):
        made = getattr(torchmetrics.detection, name)()
        made.update(found, right)
        out.update(flat(made.compute(), name))
    return out


CASES: dict[str, Any] = {
    **{name: functools.partial(metric, name) for name in METRICS},
    "collection": collection,
    "detection": detection,
}

if __name__ == "__main__":
    main(CASES)
