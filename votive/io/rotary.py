"""The two orders that rows of query and key weights have in files. Arrays and tensors; no files.

Rotary embeddings rotate pairs of numbers. Hugging Face pairs number i of a head with i + D/2
(halves), Meta's checkpoints and what descends from them (llama2.c, GGUF of the llama architecture)
pair 2i with 2i + 1 (neighbours). Attention gives the same either way if the rows that make the
numbers are in the matching order.
"""

from __future__ import annotations

from typing import Any


def halves(rows: Any, heads: int) -> Any:
    """Rows (heads·D, ...) ordered for pairs of neighbours, in the order for pairs of halves.

    >>> from votive.io.rotary import halves, neighbours
    >>> halves(votive.arange(8), 2)
    tensor([0, 2, 1, 3, 4, 6, 5, 7])
    """
    return _reordered(rows, heads, (-1, 2))


def neighbours(rows: Any, heads: int) -> Any:
    """The inverse of `halves`.

    >>> from votive.io.rotary import neighbours
    >>> neighbours(votive.arange(8), 1)
    tensor([0, 4, 1, 5, 2, 6, 3, 7])
    """
    return _reordered(rows, heads, (2, -1))


def _reordered(rows: Any, heads: int, pairs: tuple[int, int]) -> Any:
    count = rows.shape[0]
    if heads < 1 or count % (2 * heads):
        raise ValueError(f"{count} rows do not make {heads} heads of an even size.")
    rest = tuple(rows.shape[1:])
    return rows.reshape((heads, *pairs, *rest)).swapaxes(1, 2).reshape((count, *rest))
