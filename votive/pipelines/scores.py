"""From a model's logits to scores with names. Arrays only; knows no model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tensor import Tensor

FUNCTIONS = ("sigmoid", "softmax", "none")


def softmax(x: Any) -> Any:
    """Shares of the last axis, in the type that came.

    >>> from votive.pipelines.scores import softmax
    >>> softmax(np.zeros(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def array(x: Tensor) -> Any:
    """Numbers in float32, or float64 if they are so."""
    return (x if str(x.dtype).endswith("float64") else x.float()).detach().cpu().numpy()


def function_of(config: Any, asked: str | None, name: str) -> str:
    """What makes scores of logits: what was asked, or what a model's kind of problem means."""
    if asked is not None:
        if str(asked).lower() not in FUNCTIONS:
            raise ValueError(f"{name}: function_to_apply={asked!r} is not known; it may be {', '.join(FUNCTIONS)}.")
        return str(asked).lower()
    kind = getattr(config, "problem_type", None)
    if kind == "regression":
        return "none"
    return "sigmoid" if kind == "multi_label_classification" or config.num_labels == 1 else "softmax"


def applied(logits: Any, function: str) -> Any:
    """Scores of logits."""
    if function == "none":
        return logits
    return softmax(logits) if function == "softmax" else 1 / (1 + np.exp(-logits))


def named(scores: Any, labels: dict[int, str]) -> list[dict[str, Any]]:
    """Scores with their labels.

    >>> from votive.pipelines.scores import named
    >>> named(np.array([0.25, 0.75]), {0: "no", 1: "yes"})
    [{'label': 'no', 'score': 0.25}, {'label': 'yes', 'score': 0.75}]
    """
    return [{"label": labels[i], "score": float(s)} for i, s in enumerate(scores)]


def best(found: list[dict[str, Any]], top_k: int | None) -> list[dict[str, Any]]:
    """The `top_k` of the highest scores, or all, in their order."""
    ordered = sorted(found, key=lambda one: one["score"], reverse=True)
    return ordered if top_k is None else ordered[:top_k]
