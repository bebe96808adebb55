"""Distances: between sequences, and between normal distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import votive

from ...core.errors import fail
from ...tensor import Tensor
from .checks import shapes


def edit_distance(seq1: Sequence[Any], seq2: Sequence[Any]) -> int:
    """The least number of insertions, deletions and changes that make one of the other.

    >>> votive.audio.functional.edit_distance("kitten", "sitting")
    3
    """
    before = list(range(len(seq2) + 1))
    for i, mine in enumerate(seq1, 1):
        row = [i]
        for j, theirs in enumerate(seq2):
            change = before[j] + (mine != theirs)
            row.append(min(change, row[j] + 1, before[j + 1] + 1))
        before = row
    return before[-1]


def frechet_distance(mu_x: Tensor, sigma_x: Tensor, mu_y: Tensor, sigma_y: Tensor) -> Tensor:
    """`|mu_x - mu_y|^2 + tr(Sx + Sy - 2 sqrt(Sx Sy))` of two normal distributions.

    >>> mu, eye = votive.zeros(2), votive.eye(2)
    >>> votive.audio.functional.frechet_distance(mu, eye, mu + 3, eye)
    tensor(18.)
    """
    op = "frechet_distance"
    if mu_x.ndim != 1 or sigma_x.ndim != 2:
        fail(ValueError, op, f"needs a mean (N) and a covariance (N, N), got {shapes(mu_x, sigma_x)}.")
    if tuple(sigma_x.shape) != (mu_x.shape[0],) * 2:
        fail(ValueError, op, f"sigma_x must be {(mu_x.shape[0],) * 2}, got {tuple(sigma_x.shape)}.")
    if mu_x.shape != mu_y.shape or sigma_x.shape != sigma_y.shape:
        fail(ValueError, op, f"the distributions differ in size, {shapes(sigma_x, sigma_y)}.")
    apart = (mu_x - mu_y).square().sum()
    shared = votive.linalg.eigvals(sigma_x @ sigma_y).sqrt().real.sum()
    return apart + sigma_x.trace() + sigma_y.trace() - 2 * shared
