"""Forward and backward sums over alignments, in logarithms (Graves et al. 2006, section 4.1).

A target of S classes has 2 S + 1 states: its classes, with a blank before, between and after them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base import kernel
from ..arrays import Array, Ints


def _states(targets: Array, labels: Array, blank: int, classes: int) -> tuple[Any, Any]:
    """The class of each state, and whether the blank before it may be skipped: (batch, state)."""
    longest = int(labels.max(initial=0))
    inside = np.arange(longest) < labels[:, None]
    padded = np.full(inside.shape, blank, np.int64)
    padded[inside] = targets if targets.ndim == 1 else targets[:, :longest][inside]
    wrong = (padded < 0) | (padded >= classes)
    if wrong.any():
        raise IndexError(f"ctc_loss: target {padded[wrong][0]} is out of range for {classes} classes.")
    state = np.full((len(labels), 2 * longest + 1), blank, np.int64)
    state[:, 1::2] = padded
    skip = np.zeros(state.shape, bool)
    skip[:, 3::2] = padded[:, 1:] != padded[:, :-1]
    return state, skip


def _later(a: Array, by: int) -> Any:
    """Each state's value `by` states before it; nothing precedes the first."""
    out = np.full_like(a, -np.inf)
    out[:, by:] = a[:, : a.shape[1] - by]
    return out


def _alpha(emit: Array, skip: Array, labels: Array) -> Any:
    """log p(all ways to be in a state at a time), (time, batch, state)."""
    alpha = np.full_like(emit, -np.inf)
    alpha[0, :, 0] = emit[0, :, 0]
    if emit.shape[2] > 1:
        alpha[0, :, 1] = np.where(labels > 0, emit[0, :, 1], -np.inf)
    for t in range(1, len(emit)):
        before = alpha[t - 1]
        ways = np.logaddexp(before, _later(before, 1))
        ways = np.logaddexp(ways, np.where(skip, _later(before, 2), -np.inf))
        alpha[t] = ways + emit[t]
    return alpha


def _ends(shape: Ints, labels: Array) -> Any:
    """The two states in which a path may end: the last class and the blank after it."""
    state = np.arange(shape[1])
    last = 2 * labels[:, None]
    return (state == last) | ((state == last - 1) & (last > 0))


def _beta(emit: Array, skip: Array, frames: Array, labels: Array) -> Any:
    """log p(all ways from a state at a time to the end), (time, batch, state)."""
    beta = np.full_like(emit, -np.inf)
    ends = _ends(emit.shape[1:], labels)
    starts = np.where(ends, emit.dtype.type(0), -np.inf)
    # States are reversed, so that "later" means earlier.
    allowed = np.zeros_like(skip)
    allowed[:, 2:] = skip[:, ::-1][:, :-2]
    for t in range(len(emit) - 1, -1, -1):
        if t + 1 < len(emit):
            after = beta[t + 1][:, ::-1]
            ways = np.logaddexp(after, _later(after, 1))
            ways = np.logaddexp(ways, np.where(allowed, _later(after, 2), -np.inf))[:, ::-1]
        else:
            ways = np.full_like(emit[0], -np.inf)
        beta[t] = np.where((frames == t + 1)[:, None], starts, ways) + emit[t]
    return beta


def _emissions(x: Array, state: Array) -> Any:
    return np.take_along_axis(x, np.broadcast_to(state, (len(x), *state.shape)), 2)


def _loss(alpha: Array, frames: Array, labels: Array) -> Any:
    final = alpha[np.maximum(frames, 1) - 1, np.arange(len(frames))]
    paths = np.where(_ends(final.shape, labels), final, -np.inf)
    loss = -np.logaddexp.reduce(paths, 1)
    # Without frames only the empty target has a path, the empty one.
    return np.where(frames > 0, loss, np.where(labels > 0, np.inf, 0)).astype(alpha.dtype)


@kernel("_ctc_loss")
def ctc_loss(x: Array, targets: Array, frames: Array, labels: Array, blank: int, zero_infinity: bool) -> Array:
    state, skip = _states(targets, labels, blank, x.shape[2])
    loss = _loss(_alpha(_emissions(x, state), skip, labels), frames, labels)
    return np.where(np.isposinf(loss), x.dtype.type(0), loss) if zero_infinity else loss


@kernel("_ctc_loss_backward")
def ctc_loss_backward(
    g: Array, x: Array, targets: Array, frames: Array, labels: Array, blank: int, zero_infinity: bool
) -> Array:
    state, skip = _states(targets, labels, blank, x.shape[2])
    emit = _emissions(x, state)
    alpha = _alpha(emit, skip, labels)
    loss = _loss(alpha, frames, labels)
    paths = alpha + _beta(emit, skip, frames, labels)  # counts the emission twice
    share = np.where(np.isneginf(paths), 0, np.exp(paths - emit + loss[:, None]))
    given = np.zeros_like(x)
    sample = np.arange(x.shape[1])[:, None]
    for t in range(len(x)):
        np.add.at(given[t], (sample, state), share[t])
    out = (np.exp(x) - given) * g[:, None]
    # An impossible target has no gradient to speak of.
    out[:, np.isposinf(loss)] = 0 if zero_infinity else np.nan
    out[np.arange(len(x))[:, None] >= frames] = 0
    return out
