"""When each token was said: a path through attention to the sound. Knows no words.

Heads whose attention follows the speech are chosen beforehand; their weights, made alignment_matrix and
smoothed, are costs, and the cheapest way through them in order gives each token its time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

import votive
from votive.nn import functional as F

from ..models.whisper_names import later_half
from ..tensor import Tensor
from .segments import PRECISION, STRIDE

if TYPE_CHECKING:
    from ..models.whisper import WhisperForConditionalGeneration as Whisper
    from .window import Window


def median_filter(x: Tensor, width: int) -> Tensor:
    """The median of each `width` neighbours along the last dimension, mirrored at its ends.

    >>> votive.speech.median_filter(votive.tensor([[0.0, 9.0, 1.0, 2.0, 3.0]]), 3)
    tensor([[9., 1., 2., 2., 2.]])
    """
    if width <= 0 or width % 2 != 1:
        raise ValueError(f"median_filter: width must be odd and positive, got {width}.")
    reach = width // 2
    if width == 1 or x.shape[-1] <= reach:
        return x
    lead, size = x.shape[:-1], x.shape[-1]
    wide = F.pad(x.reshape(1, -1, size), (reach, reach), mode="reflect")
    return wide.unfold(-1, width, 1).median(-1).values.reshape(*lead, size)


def dynamic_time_warping(cost: Tensor | Sequence[Sequence[float]] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cheapest way from the first corner of a matrix to the last, as rows and columns.

    A step goes down, right, or both. Sakoe & Chiba 1978.

    >>> rows, columns = votive.speech.dynamic_time_warping([[0, 1, 1], [1, 0, 0]])
    >>> rows.tolist(), columns.tolist()
    ([0, 1, 1], [0, 1, 2])
    """
    if isinstance(cost, votive.Tensor):
        cost = cost.detach().numpy(force=True)
    matrix = np.asarray(cost, np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"dynamic_time_warping: give a matrix that is not empty, got {matrix.shape}.")
    N, M = matrix.shape
    trace = np.full((N + 1, M + 1), 2, np.int8)
    trace[1:, 0] = 1
    # All cells with one sum of row and column depend on the two sums before; a line for each.
    before = np.full(N + 1, np.inf, np.float32)
    last = before.copy()
    before[0] = 0.0
    for total in range(2, N + M + 1):
        i = np.arange(max(1, total - M), min(N, total - 1) + 1)
        both, down, right = before[i - 1], last[i - 1], last[i]
        kind = np.where((both < down) & (both < right), 0, np.where((down < both) & (down < right), 1, 2))
        least = np.where(kind == 0, both, np.where(kind == 1, down, right))
        line = np.full(N + 1, np.inf, np.float32)
        line[i] = matrix[i - 1, total - i - 1] + least
        trace[i, total - i] = kind
        before, last = last, line
    rows, columns = [], []
    i, j = N, M
    while i > 0 or j > 0:
        rows.append(i - 1)
        columns.append(j - 1)
        step = trace[i, j]
        i, j = i - int(step != 2), j - int(step != 1)
    return np.array(rows[::-1]), np.array(columns[::-1])


def alignment_heads(model: Whisper) -> list[list[int]]:
    """The [layer, head] of a model whose attention follows what is said."""
    config = model.config
    return model.generation_config.extra.get("alignment_heads") or later_half(
        config.decoder_layers, config.decoder_attention_heads
    )


def alignment_matrix(weights: Tensor, width: int = 7) -> Tensor:
    """Weights (heads, tokens, sounds) as one matrix (tokens, sounds): standardised over tokens,
    smoothed over time, and the mean of all heads."""
    std = weights.std(-2, keepdim=True, correction=0)
    # A sound that all tokens see alike says nothing.
    scaled = (weights - weights.mean(-2, keepdim=True)) / std.masked_fill(std == 0, 1.0)
    return median_filter(scaled, width).mean(0)


def jumps(matrix: Tensor) -> np.ndarray:
    """The position of the sound at which each row of a matrix is reached, likeliest way."""
    rows, columns = dynamic_time_warping(-matrix.double())
    new = np.diff(rows, prepend=-1) > 0
    return columns[new]


def token_times(
    window: Window, row: int, prompt: list[int], tokens: list[int], heads: list[list[int]], frames: int
) -> list[float]:
    """Seconds in the window at which each token of a text was said, as transformers tells them.

    The last token, which nobody has read, is said when the one before it is.
    """
    if len(tokens) < 2:
        return [0.0] * len(tokens)
    weights, _ = window.attention([*prompt, *tokens[:-1]], heads, row)
    weights = weights[:, len(prompt) :, : frames // STRIDE]
    width = window.model.config.median_filter_width
    times = (jumps(alignment_matrix(weights, width)) * PRECISION).tolist()
    return [*times, times[-1]]
