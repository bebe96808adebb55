"""Pairing what was found with what is there, at the least cost in all. Arrays only, no tensors."""

from __future__ import annotations

import numpy as np


def linear_sum_assignment(cost: np.ndarray, maximize: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of a matrix in pairs, each in one pair at most, whose entries have the least sum.

    Shortest paths through pairs that may be changed, Jonker and Volgenant 1987; rows come in order. Without scipy, with
    its result wherever it is the only best one.

    >>> from votive.models.matching import linear_sum_assignment
    >>> rows, columns = linear_sum_assignment(np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0]]))
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [1, 0])
    """
    cost = np.asarray(cost, np.float64)
    if cost.ndim != 2:
        raise ValueError(f"linear_sum_assignment: cost must be a matrix, got shape {cost.shape}.")
    cost = -cost if maximize else cost
    if np.isnan(cost).any() or np.isneginf(cost).any():
        raise ValueError("linear_sum_assignment: cost has entries that are no numbers, or infinitely good.")
    if cost.shape[0] > cost.shape[1]:
        columns, rows = _matched(cost.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    return _matched(cost)


def _matched(cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every row's column, where there are no more rows than columns."""
    rows, columns = cost.shape
    row_price, column_price = np.zeros(rows), np.zeros(columns)
    owner = np.full(columns, -1)  # the row that has each column
    for start in range(rows):
        distance, before = np.full(columns, np.inf), np.full(columns, -1)
        open_ = np.ones(columns, bool)
        reached, row, column = 0.0, start, -1
        seen_rows = []
        while True:
            seen_rows.append((row, reached))
            new = reached + cost[row] - row_price[row] - column_price
            better = open_ & (new < distance)
            distance[better], before[better] = new[better], row
            column = int(np.argmin(np.where(open_, distance, np.inf)))
            reached = distance[column]
            if not np.isfinite(reached):
                raise ValueError("linear_sum_assignment: some rows fit no column; no pairing has a finite cost.")
            open_[column] = False
            row = int(owner[column])
            if row < 0:
                break
        for one, at in seen_rows:
            row_price[one] += reached - at
        done = ~open_
        column_price[done] -= reached - distance[done]
        while True:  # along the path every row takes the next column
            row = int(before[column])
            owner[column], column = row, int(np.flatnonzero(owner == row)[0]) if row != start else -1
            if row == start:
                break
    taken = np.flatnonzero(owner >= 0)
    order = np.argsort(owner[taken])
    return owner[taken][order], taken[order]
