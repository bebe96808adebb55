"""A broad sample of torchmetrics: values after two updates, and what forward returns for one batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from common import array, integers, main, numbers  # before what imports torchvision

# isort: split
import torchmetrics
from torchmetrics import (
    aggregation,
    audio,
    classification,
    clustering,
    functional,
    image,
    nominal,
    regression,
    retrieval,
    segmentation,
    text,
    wrappers,
)

N, C = 40, 5


def _floats(name: str, *shape: int) -> torch.Tensor:
    return torch.from_numpy(numbers(name, *shape))


def _labels(name: str, high: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(integers(name, high, *shape))


def _flat(value: Any, prefix: str = "value") -> dict[str, np.ndarray]:
    if isinstance(value, torch.Tensor):
        return {prefix: array(value)}
    if isinstance(value, dict):
        return {k: v for key, inner in value.items() for k, v in _flat(inner, f"{prefix}.{key}").items()}
    if isinstance(value, (list, tuple)):
        return {k: v for i, inner in enumerate(value) for k, v in _flat(inner, f"{prefix}.{i}").items()}
    return {prefix: np.array(value)}


def _run(make: Callable[[], Any], data: Callable[[str], tuple[Any, ...]]) -> Callable[[], dict[str, Any]]:
    def case() -> dict[str, Any]:
        metric = make()
        first = _flat(metric(*data("first")), "first")
        metric.update(*data("second"))
        found = {**first, **_flat(metric.compute())}
        metric.reset()
        metric.update(*data("second"))
        return {**found, **_flat(metric.compute(), "reset")}

    return case


binary = lambda n: (_floats(n, N).sigmoid(), _labels(n, 2, N))
multi = lambda n: (_floats(n, N, C).softmax(1), _labels(n, C, N))
many = lambda n: (_floats(n, N, C).sigmoid(), _labels(n, 2, N, C))
plain = lambda n: (_floats(n + "a", N), _floats(n + "b", N))
positive = lambda n: (_floats(n + "a", N).abs() + 0.1, _floats(n + "b", N).abs() + 0.1)
pictures = lambda n: (_floats(n + "a", 2, 3, 32, 32).sigmoid(), _floats(n + "b", 2, 3, 32, 32).sigmoid())
sounds = lambda n: (_floats(n + "a", 3, 200), _floats(n + "b", 3, 200))
found = lambda n: (_floats(n, N).sigmoid(), _labels(n, 2, N), torch.arange(N) // 8)
sets = lambda n: (_labels(n + "a", C, N), _labels(n + "b", C, N))
words = lambda n: (["the cat sat on the mat", "hello there world"], ["a cat sat on the mat", "hello world"])
several = lambda n: (words(n)[0], [[w, "the cat"] for w in words(n)[1]])
masks = lambda n: (_labels(n + "a", 2, 4, C, 8, 8), _labels(n + "b", 2, 4, C, 8, 8))

CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "binary_accuracy": _run(lambda: classification.BinaryAccuracy(), binary),
    "binary_auroc": _run(lambda: classification.BinaryAUROC(), binary),
    "binary_auroc_binned": _run(lambda: classification.BinaryAUROC(thresholds=20), binary),
    "binary_average_precision": _run(lambda: classification.BinaryAveragePrecision(), binary),
    "binary_calibration": _run(lambda: classification.BinaryCalibrationError(n_bins=8), binary),
    "binary_confusion": _run(lambda: classification.BinaryConfusionMatrix(normalize="true"), binary),
    "binary_hinge": _run(lambda: classification.BinaryHingeLoss(), binary),
    "binary_roc": _run(lambda: classification.BinaryROC(), binary),
    "binary_recall_at_precision": _run(lambda: classification.BinaryRecallAtFixedPrecision(0.5), binary),
    "multiclass_accuracy": _run(lambda: classification.MulticlassAccuracy(C, average="macro"), multi),
    "multiclass_top_k": _run(lambda: classification.MulticlassAccuracy(C, top_k=2), multi),
    "multiclass_f1": _run(lambda: classification.MulticlassF1Score(C, average="weighted"), multi),
    "multiclass_precision": _run(lambda: classification.MulticlassPrecision(C, average=None), multi),
    "multiclass_auroc": _run(lambda: classification.MulticlassAUROC(C), multi),
    "multiclass_confusion": _run(lambda: classification.MulticlassConfusionMatrix(C), multi),
    "multiclass_kappa": _run(lambda: classification.MulticlassCohenKappa(C), multi),
    "multiclass_matthews": _run(lambda: classification.MulticlassMatthewsCorrCoef(C), multi),
    "multiclass_jaccard": _run(lambda: classification.MulticlassJaccardIndex(C), multi),
    "multiclass_curve": _run(lambda: classification.MulticlassPrecisionRecallCurve(C, thresholds=10), multi),
    "multiclass_calibration": _run(lambda: classification.MulticlassCalibrationError(C), multi),
    "multilabel_f1": _run(lambda: classification.MultilabelF1Score(C), many),
    "multilabel_ranking": _run(lambda: classification.MultilabelRankingLoss(C), many),
    "multilabel_coverage": _run(lambda: classification.MultilabelCoverageError(C), many),
    "multilabel_auroc": _run(lambda: classification.MultilabelAUROC(C), many),
    "multilabel_hamming": _run(lambda: classification.MultilabelHammingDistance(C), many),
    "mse": _run(lambda: regression.MeanSquaredError(squared=False), plain),
    "mae": _run(lambda: regression.MeanAbsoluteError(), plain),
    "r2": _run(lambda: regression.R2Score(), plain),
    "pearson": _run(lambda: regression.PearsonCorrCoef(), plain),
    "spearman": _run(lambda: regression.SpearmanCorrCoef(), plain),
    "kendall": _run(lambda: regression.KendallRankCorrCoef(), plain),
    "concordance": _run(lambda: regression.ConcordanceCorrCoef(), plain),
    "explained": _run(lambda: regression.ExplainedVariance(), plain),
    "cosine": _run(lambda: regression.CosineSimilarity(), lambda n: (_floats(n, 6, 4), _floats(n + "b", 6, 4))),
    "tweedie": _run(lambda: regression.TweedieDevianceScore(power=1.5), positive),
    "log_error": _run(lambda: regression.MeanSquaredLogError(), positive),
    "percentage": _run(lambda: regression.SymmetricMeanAbsolutePercentageError(), positive),
    "minkowski": _run(lambda: regression.MinkowskiDistance(3), plain),
    "kl": _run(
        lambda: regression.KLDivergence(), lambda n: (_floats(n, 6, 4).softmax(1), _floats(n + "b", 6, 4).softmax(1))
    ),
    "retrieval_map": _run(lambda: retrieval.RetrievalMAP(), found),
    "retrieval_ndcg": _run(lambda: retrieval.RetrievalNormalizedDCG(top_k=4), found),
    "retrieval_mrr": _run(lambda: retrieval.RetrievalMRR(), found),
    "retrieval_recall": _run(lambda: retrieval.RetrievalRecall(top_k=3), found),
    "psnr": _run(lambda: image.PeakSignalNoiseRatio(data_range=1.0), pictures),
    "ssim": _run(lambda: image.StructuralSimilarityIndexMeasure(data_range=1.0), pictures),
    "variation": _run(lambda: image.TotalVariation(), lambda n: pictures(n)[:1]),
    "uqi": _run(lambda: image.UniversalImageQualityIndex(), pictures),
    "sam": _run(lambda: image.SpectralAngleMapper(), pictures),
    "ergas": _run(lambda: image.ErrorRelativeGlobalDimensionlessSynthesis(), pictures),
    "snr": _run(lambda: audio.SignalNoiseRatio(), sounds),
    "si_sdr": _run(lambda: audio.ScaleInvariantSignalDistortionRatio(), sounds),
    "sdr": _run(lambda: audio.SignalDistortionRatio(filter_length=16), sounds),
    "rand": _run(lambda: clustering.AdjustedRandScore(), sets),
    "mutual": _run(lambda: clustering.NormalizedMutualInfoScore(), sets),
    "dunn": _run(lambda: clustering.DunnIndex(), lambda n: (_floats(n, N, 3), _labels(n, 3, N))),
    "calinski": _run(lambda: clustering.CalinskiHarabaszScore(), lambda n: (_floats(n, N, 3), _labels(n, 3, N))),
    "cramers": _run(lambda: nominal.CramersV(C), sets),
    "theil": _run(lambda: nominal.TheilsU(C), sets),
    "bleu": _run(lambda: text.BLEUScore(n_gram=2), several),
    "chrf": _run(lambda: text.CHRFScore(), several),
    "wer": _run(lambda: text.WordErrorRate(), words),
    "cer": _run(lambda: text.CharErrorRate(), words),
    "edit": _run(lambda: text.EditDistance(), words),
    "perplexity": _run(lambda: text.Perplexity(), lambda n: (_floats(n, 2, 6, C), _labels(n, C, 2, 6))),
    "dice": _run(lambda: segmentation.GeneralizedDiceScore(C), masks),
    "mean_iou": _run(lambda: segmentation.MeanIoU(C), masks),
    "mean": _run(lambda: aggregation.MeanMetric(), lambda n: (_floats(n, N),)),
    "cat": _run(lambda: aggregation.CatMetric(), lambda n: (_floats(n, N),)),
    "running": _run(lambda: aggregation.RunningMean(3), lambda n: (_floats(n, N),)),
    "collection": _run(
        lambda: torchmetrics.MetricCollection(
            [
                classification.MulticlassAccuracy(C),
                classification.MulticlassPrecision(C),
                classification.MulticlassRecall(C),
            ]
        ),
        multi,
    ),
    "class_wise": _run(lambda: wrappers.ClasswiseWrapper(classification.MulticlassAccuracy(C, average=None)), multi),
    "min_max": _run(lambda: wrappers.MinMaxMetric(regression.MeanSquaredError()), plain),
    "pairwise": lambda: _flat(functional.pairwise_cosine_similarity(_floats("p", 5, 4), _floats("q", 6, 4))),
}

if __name__ == "__main__":
    main(CASES)
