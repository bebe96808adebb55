"""Forced alignment finds the best of all paths, as a search through every one of them shows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import votive
from votive.audio.functional import TokenSpan, forced_align, merge_tokens


def collapsed(path: tuple[int, ...], blank: int) -> list[int]:
    """What CTC reads from a path: repeats are one, blanks are none."""
    kept = [t for i, t in enumerate(path) if i == 0 or t != path[i - 1]]
    return [t for t in kept if t != blank]


def best_by_search(log_probs: Any, targets: list[int], blank: int) -> tuple[tuple[int, ...], float]:
    time, classes = log_probs.shape
    found = [
        (float(log_probs[np.arange(time), list(path)].sum()), path)
        for path in product(range(classes), repeat=time)
        if collapsed(path, blank) == targets
    ]
    score, path = max(found)
    return path, score


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize(
    ("time", "targets"), [(1, [1]), (4, [1]), (5, [1, 3]), (6, [1, 1]), (6, [3, 1, 3]), (7, [1, 1, 3]), (3, [1, 1])]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_path_is_the_best_of_all(time: int, targets: list[int], blank: int, dtype: str, seed: int) -> None:
    logits = np.random.default_rng(seed).standard_normal((time, 4)) * 2
    probs = votive.from_numpy(logits.astype(dtype)).log_softmax(-1)
    path, scores = forced_align(probs.unsqueeze(0), votive.tensor([targets], dtype=votive.int32), blank=blank)
    want, score = best_by_search(probs.numpy().astype(np.float64), targets, blank)
    assert path.dtype is votive.int32
    assert path.tolist() == [list(want)]
    assert float(scores.sum()) == pytest.approx(score, rel=1e-5)


def test_of_equals_the_path_that_stays_is_taken() -> None:
    # By hand, with the rule of torchaudio's kernel: a state is left only for a better one.
    probs = votive.zeros(1, 4, 3)
    assert forced_align(probs, votive.tensor([[1]]))[0].tolist() == [[1, 1, 1, 1]]
    assert forced_align(probs, votive.tensor([[1, 2]]))[0].tolist() == [[1, 2, 2, 2]]


def test_scores_have_gradients() -> None:
    probs = votive.randn(1, 5, 4, dtype=votive.float64).log_softmax(-1).requires_grad_()
    path, scores = forced_align(probs, votive.tensor([[1, 2]]))
    scores.sum().backward()
    want = np.eye(4)[path.numpy()]
    assert np.array_equal(probs.grad.numpy(), want)


def test_tokens_are_merged_into_spans() -> None:
    path = votive.tensor([0, 2, 2, 0, 2, 3, 3, 3])
    scores = votive.arange(8.0)
    spans = [TokenSpan(2, 1, 3, 1.5), TokenSpan(2, 4, 5, 4.0), TokenSpan(3, 5, 8, 6.0)]
    assert merge_tokens(path, scores) == spans
    assert [len(span) for span in spans] == [2, 1, 3]
    assert merge_tokens(path, scores, blank=2) == [
        TokenSpan(0, 0, 1, 0.0),
        TokenSpan(0, 3, 4, 3.0),
        TokenSpan(3, 5, 8, 6.0),
    ]
    assert merge_tokens(votive.tensor([], dtype=votive.int64), votive.tensor([])) == []


P = votive.zeros(1, 4, 3)
T = votive.tensor([[1, 2]])


@pytest.mark.parametrize(
    ("args", "kind", "message"),
    [
        ((P, votive.tensor([[1, 0]])), ValueError, "blank"),
        ((P, votive.tensor([[1, 3]])), ValueError, "0..2"),
        ((P, votive.tensor([[1, -1]])), ValueError, "0..2"),
        ((votive.zeros(2, 4, 3), T), RuntimeError, "batch of 1"),
        ((P[0], T), RuntimeError, r"got \(4, 3\)"),
        ((P.int(), T), RuntimeError, "floating-point"),
        ((P, T.float()), RuntimeError, "int32 or int64"),
        ((P, votive.tensor([[1, 1, 2]]), None, None, 7), RuntimeError, "outside"),
        ((P, votive.tensor([[1, 1, 1]])), RuntimeError, "2 repeats"),
        ((P, votive.zeros(1, 0, dtype=votive.int64)), RuntimeError, "empty"),
        ((P, T, votive.tensor([3])), RuntimeError, "input_lengths"),
        ((P, T, votive.tensor([4]), votive.tensor([1])), RuntimeError, "target_lengths"),
    ],
)
def test_errors_say_what_is_wrong(args: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        forced_align(*args)


def test_lists_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="one dimension"):
        merge_tokens(T, T)
    with pytest.raises(ValueError, match="length"):
        merge_tokens(T[0], T[0, :1])
