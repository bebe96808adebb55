"""Records for scaled dot product attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.ops.catalog import S, op

HIDDEN_ROW = [[True, False, True], [False, False, False]]
NONE = S(2, 3, values=np.where(HIDDEN_ROW, 0.5, -math.inf).tolist(), grad=False)


def attention(
    q: Any,
    k: Any,
    v: Any,
    mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """Row by row, each by a plain softmax over what it sees."""
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ np.swapaxes(k, -2, -1) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if is_causal:
        seen = np.arange(scores.shape[-1]) <= np.arange(scores.shape[-2])[:, None]
        scores = np.where(seen, scores, -np.inf)
    weights = np.zeros(scores.shape)
    for at in np.ndindex(*scores.shape[:-1]):
        seen = scores[at] > -np.inf
        if seen.any():
            e = np.exp(scores[at][seen] - scores[at][seen].max())
            weights[at][seen] = e / e.sum()
    return weights @ v


LONG = (S(2, 2, 3, 4), S(2, 2, 5, 4), S(2, 2, 5, 3))
SHORT = (S(2, 4), S(3, 4), S(3, 5))
GROUPS = (S(1, 4, 2, 3), S(1, 2, 3, 3), S(1, 2, 3, 3))
BOOL = S(2, 3, dtype="bool", values=HIDDEN_ROW)

RECORDS = [
    op(
        "nn.functional.scaled_dot_product_attention",
        samples=[
            LONG,
            SHORT,
            (S(2, 3, 4), S(2, 3, 4), S(2, 3, 4)),
            (S(2, 1, 2, 3, 4), S(2, 1, 2, 2, 4), S(2, 1, 2, 2, 4)),
            (S(2, 3, 2, 4), S(1, 3, 3, 4), S(2, 1, 3, 5)),
            (*LONG, {"is_causal": True}),
            (S(1, 2, 5, 3), S(1, 2, 3, 3), S(1, 2, 3, 3), {"is_causal": True}),
            (*SHORT, {"scale": 0.25}),
            (*SHORT, {"scale": 0.0}),
            (*SHORT, BOOL),
            (*SHORT, NONE),
            (*LONG, S(3, 5)),
            (*LONG, S(2, 1, 1, 5)),
            (S(1, 2, 2, 4), S(1, 2, 3, 4), S(1, 2, 3, 4), BOOL),
            (*GROUPS, {"enable_gqa": True}),
            (*GROUPS, S(4, 2, 3), {"enable_gqa": True}),
            (S(2, 4), S(0, 4), S(0, 5)),
            (S(1, 2, 0, 4), S(1, 2, 3, 4), S(1, 2, 3, 4)),
            (S(0, 2, 2, 4), S(0, 2, 3, 4), S(0, 2, 3, 4)),
        ],
        reference=attention,
        errors=[
            ((S(4), S(4), S(4)), RuntimeError),
            ((S(2, 4), S(3, 5), S(3, 5)), RuntimeError),
            ((S(2, 4), S(3, 4), S(4, 4)), RuntimeError),
            ((*SHORT, S(2, 4)), RuntimeError),
            ((*SHORT, S(5, 2, 3)), RuntimeError),
            ((*SHORT, S(2, 3, dtype="int64")), RuntimeError),
            ((*SHORT, BOOL, 0.0, True), RuntimeError),
            ((*SHORT, None, 1.5), RuntimeError),
            ((*SHORT, {"enable_gqa": True}), IndexError),
            ((S(4, 2, 3), S(3, 3, 3), S(3, 3, 3), {"enable_gqa": True}), RuntimeError),
            ((S(1, 4, 2, 3), S(1, 2, 3, 3), S(1, 2, 3, 3)), RuntimeError),
            ((S(2, 4), S(3, 4, dtype="float32"), S(3, 4)), RuntimeError),
            ((S(2, 4, dtype="complex64"),) * 3, NotImplementedError),
        ],
    ),
    op(
        # Scores of thousands: softmax picks one key, or halves what is equal.
        "nn.functional.scaled_dot_product_attention",
        samples=[
            (S(values=[[200.0] * 4, [-200.0] * 4]), S(values=[[200.0] * 4] * 3), S(3, 2)),
            (S(values=[[100.0]]), S(values=[[100.0], [-100.0]]), S(2, 2)),
        ],
        reference=attention,
        grad=False,
    ),
    op("nn.functional.scaled_dot_product_attention", samples=[(*SHORT, None, 0.5), (*LONG, None, 0.25)], random=True),
    op(
        "nn.functional.scaled_dot_product_attention",
        samples=[(*SHORT, None, 1.0)],
        reference=lambda q, k, v, mask, p: np.zeros((2, 5)),
    ),
]
