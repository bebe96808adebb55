"""Where each token was spoken: the best path of CTC, and the spans on it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import votive

from ...core.errors import fail
from ...tensor import Tensor
from .checks import shapes


def _check(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor | None, target_lengths: Tensor | None, blank: int
) -> None:
    op = "forced_align"
    if not log_probs.is_floating_point():
        fail(RuntimeError, op, f"log_probs must be floating-point, got {log_probs.dtype}.")
    if targets.dtype not in (votive.int32, votive.int64):
        fail(RuntimeError, op, f"targets must be int32 or int64, got {targets.dtype}.")
    if log_probs.ndim != 3 or targets.ndim != 2:
        given = shapes(log_probs, targets)
        fail(RuntimeError, op, f"needs log_probs (1, time, class) and targets (1, length), got {given}.")
    if log_probs.shape[0] != 1 or targets.shape[0] != 1:
        fail(RuntimeError, op, f"takes a batch of 1, got {shapes(log_probs, targets)}; align one after the other.")
    if not 0 <= blank < log_probs.shape[-1]:
        fail(RuntimeError, op, f"blank={blank} is outside of {log_probs.shape[-1]} classes.")
    if not targets.numel():
        fail(RuntimeError, op, "targets are empty; there is nothing to align.")
    if bool((targets == blank).any()):
        fail(ValueError, op, f"targets must not hold the blank, {blank}.")
    if int(targets.max()) >= log_probs.shape[-1] or int(targets.min()) < 0:
        fail(ValueError, op, f"targets must lie in 0..{log_probs.shape[-1] - 1}.")
    for name, lengths, size in (
        ("input_lengths", input_lengths, log_probs.shape[1]),
        ("target_lengths", target_lengths, targets.shape[1]),
    ):
        if lengths is not None and (lengths.ndim != 1 or lengths.tolist() != [size]):
            fail(RuntimeError, op, f"{name} must be [{size}], got {lengths.tolist()}.")


def _viterbi(scores: np.ndarray, states: np.ndarray, blank: int) -> np.ndarray:
    """The best sequence of states: each stays, moves on by one, or skips a blank."""
    n = len(states)
    # A blank may be skipped only between different tokens.
    skip = np.zeros(n, bool)
    skip[2:] = (states[2:] != blank) & (states[2:] != states[:-2])
    best = np.full(n, -np.inf)
    best[:2] = scores[0, states[:2]]
    moves = np.zeros((len(scores), n), np.int8)
    for t in range(1, len(scores)):
        one, two = np.full(n, -np.inf), np.full(n, -np.inf)
        one[1:] = best[:-1]
        two[2:] = np.where(skip[2:], best[:-2], -np.inf)
        # Of equals the one that stays, as in torchaudio.
        move = np.where((two > one) & (two > best), 2, np.where((one > best) & (one > two), 1, 0))
        best = np.choose(move, (best, one, two)) + scores[t, states]
        moves[t] = move
    at = n - 1 if best[-1] > best[-2] else n - 2
    path = np.empty(len(scores), np.int64)
    for t in range(len(scores) - 1, -1, -1):
        path[t] = at
        at -= moves[t, at]
    return path


def forced_align(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | None = None,
    target_lengths: Tensor | None = None,
    blank: int = 0,
) -> tuple[Tensor, Tensor]:
    """The most probable way of saying `targets` (1, length), as a token or blank for each frame.

    `log_probs` is (1, time, class). Also gives the log probability of each frame's token.

    >>> p = votive.tensor([[[0.1, 0.9], [0.6, 0.4], [0.2, 0.8]]]).log()
    >>> tokens, scores = votive.audio.functional.forced_align(p, votive.tensor([[1, 1]]))
    >>> tokens
    tensor([[1, 0, 1]])
    """
    _check(log_probs, targets, input_lengths, target_lengths, blank)
    tokens = targets.cpu().numpy()[0]
    time, repeats = log_probs.shape[1], int((tokens[1:] == tokens[:-1]).sum())
    if time < len(tokens) + repeats:
        why = f"{len(tokens)} targets with {repeats} repeats do not fit into {time} frames."
        fail(RuntimeError, "forced_align", why)
    states = np.full(2 * len(tokens) + 1, blank)
    states[1::2] = tokens
    scores = log_probs.detach().cpu().numpy()[0].astype(np.float64)
    best = votive.from_numpy(states[_viterbi(scores, states, blank)])
    path = best.to(device=targets.device, dtype=targets.dtype).unsqueeze(0)
    return path, log_probs.gather(-1, path.long().unsqueeze(-1)).squeeze(-1)


@dataclass
class TokenSpan:
    """A token and the frames in which it is said: `start` to before `end`, with its mean score.

    >>> len(votive.audio.functional.TokenSpan(token=5, start=2, end=6, score=-0.1))
    4
    """

    token: int
    start: int
    end: int
    score: float

    def __len__(self) -> int:
        return self.end - self.start


def merge_tokens(tokens: Tensor, scores: Tensor, blank: int = 0) -> list[TokenSpan]:
    """The spans of equal tokens on a path (time), without blanks.

    >>> path, scores = votive.tensor([1, 1, 0, 2]), votive.tensor([-1.0, -2.0, 0.0, -0.5])
    >>> votive.audio.functional.merge_tokens(path, scores)
    [TokenSpan(token=1, start=0, end=2, score=-1.5), TokenSpan(token=2, start=3, end=4, score=-0.5)]
    """
    op = "merge_tokens"
    if tokens.ndim != 1 or scores.ndim != 1:
        fail(ValueError, op, f"tokens and scores must have one dimension, got {shapes(tokens, scores)}.")
    if len(tokens) != len(scores):
        fail(ValueError, op, f"tokens and scores differ in length, {len(tokens)}, {len(scores)}.")
    path = tokens.tolist()
    edges = [t for t in range(1, len(path)) if path[t] != path[t - 1]]
    bounds = [0, *edges, len(path)] if path else []
    return [
        TokenSpan(path[start], start, end, float(scores[start:end].mean()))
        for start, end in pairwise(bounds)
        if path[start] != blank
    ]
