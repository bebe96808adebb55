"""SpecAugment: spans of states, or of features, that training hides. Park et al. 2019, arXiv:1904.08779."""

from __future__ import annotations

import votive

from ...tensor import Tensor


def hidden_spans(rows: int, length: int, share: float, span: int, least: int, ends: list[int] | None = None) -> Tensor:
    """Which of `length` places in each of so many rows are hidden (rows, length): spans of `span` from random places.

    A row of `ends[i]` places has `share * ends[i] / span` spans, rounded by chance, and at least `least` where there
    is room; spans may lie over each other.

    >>> from votive.models.wave.masking import hidden_spans
    >>> hidden_spans(2, 10, 0.0, 3, 1).sum(1).tolist()
    [3, 3]
    """
    if span < 1 or span > length:
        raise ValueError(f"spans of {span} do not fit into {length} places; set mask_time_length and the like to less.")
    chance = float(votive.rand(()))
    found = votive.zeros(rows, length) > 0
    for i in range(rows):
        end = length if ends is None else ends[i]
        starts = max(end - span + 1, 0)
        count = min(max(int(share * end / span + chance), least), length // span, starts)
        for start in votive.randperm(starts)[:count].tolist() if starts else ():
            found[i, start : start + span] = True
    return found
