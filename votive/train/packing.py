"""Rows of training: several examples in one, which do not see each other, or one in each. Knows no tokenizer.

Krell et al. 2021, arXiv:2107.02027, for the packing.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import votive
from votive import nn

from ..tensor import Tensor
from .conversations import Encoded

Row = list[Encoded]
# How far results of a packed row may be from those of its examples alone: sums are rounded otherwise, and products
# with blocks of few bits round their inputs by the number of rows.
_NEAR, _NEAR_BLOCKS = 1e-3, 5e-2


def pack(lengths: Sequence[int], room: int) -> list[list[int]]:
    """Which examples go into a row together: the longest first, each where the least room is left that holds it.

    >>> votive.train.packing.pack([3, 5, 2, 4], 7)
    [[1, 2], [3, 0]]
    """
    rows: list[list[int]] = []
    left: list[tuple[int, int]] = []  # (room, row), sorted
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        at = bisect_left(left, (lengths[i], -1))
        space, row = left.pop(at) if at < len(left) else (room, len(rows))
        if row == len(rows):
            rows.append([])
        rows[row].append(i)
        insort(left, (space - lengths[i], row))
    return rows


def rows_of(examples: Sequence[Encoded], context: int, packed: bool) -> list[Row]:
    """Rows of at most `context` tokens; not packed, each example is one."""
    if not packed:
        return [[example] for example in examples]
    return [[examples[i] for i in row] for row in pack([len(e) for e in examples], context)]


class Collate:
    """Rows as one batch, padded on the right.

    Of packed rows, `position_ids` begin again with each example, and `attention_mask` (batch, 1, positions, positions)
    lets a token see those before it of its own example only.

    >>> from votive.train.conversations import Encoded
    >>> rows = [[Encoded([5, 6], [True, True]), Encoded([7], [True])]]
    >>> batch = votive.train.packing.Collate(0, packed=True)(rows)
    >>> batch["labels"], batch["position_ids"]
    (tensor([[-100,    6, -100]]), tensor([[0, 1, 0]]))
    >>> batch["attention_mask"][0, 0].long()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 0, 1]])
    """

    def __init__(self, pad: int, *, packed: bool) -> None:
        self.pad, self.packed = pad, packed

    def __call__(self, rows: Sequence[Row]) -> dict[str, Tensor]:
        length = max(sum(map(len, row)) for row in rows)
        filled = [self._filled(row, length) for row in rows]
        ids, labels, places, owners = (votive.tensor(list(column)) for column in zip(*filled))
        batch = {"input_ids": ids, "labels": labels}
        if not self.packed:
            return {**batch, "attention_mask": (owners >= 0).long()}
        same = owners.unsqueeze(2) == owners.unsqueeze(1)  # (B, T, T)
        at = votive.arange(length)
        before = at.unsqueeze(1) >= at
        return {**batch, "position_ids": places, "attention_mask": (same & before).unsqueeze(1)}

    def _filled(self, row: Row, length: int) -> tuple[list[int], list[int], list[int], list[int]]:
        ids: list[int] = []
        labels: list[int] = []
        places: list[int] = []
        owners: list[int] = []
        for number, example in enumerate(row):
            # The first token of an example follows nothing: the one before it is another's.
            learned = [False, *example.learned[1:]]
            ids += example.ids
            labels += [i if wanted else -100 for i, wanted in zip(example.ids, learned, strict=True)]
            places += range(len(example))
            owners += [number] * len(example)
        rest = length - len(ids)
        return ids + [self.pad] * rest, labels + [-100] * rest, places + [0] * rest, owners + [-1] * rest


def check_packing(model: nn.Module, rows: Sequence[Row]) -> None:
    """See on the row with the longest example that what a model gives is what it gives for each example alone.

    It is not where layers carry a state along the row, or see fewer positions than an example has.
    """
    several = [row for row in rows if len(row) > 1]
    if not several:
        return
    row = max(several, key=lambda r: max(map(len, r)))
    blocks = any(not p.is_floating_point() or getattr(p, "blocks", None) is not None for p in model.parameters())
    training = model.training
    model.eval()
    try:
        with votive.no_grad():
            alone = votive.cat([_logits(model, [[e]], False)[0] for e in row])
            together = _logits(model, [row], True)[0]
            far = float((together - alone).norm() / alone.norm().clamp(min=1e-12))
    finally:
        model.train(training)
    if not far <= (_NEAR_BLOCKS if blocks else _NEAR):
        raise ValueError(
            f"packing: examples that share a row change what {type(model).__name__} gives by {100 * far:.2g} %; "
            "train it with packing=False (--no-packing)."
        )


def _logits(model: Any, rows: Sequence[Row], packed: bool) -> Tensor:
    batch = Collate(0, packed=packed)(rows)
    batch.pop("labels")
    moved = {name: value.to(model.device) for name, value in batch.items()}
    found: Tensor = model(**moved, use_cache=False).logits.float()
    return found


class Shares:
    """Batches of a loader, each told its share: how many targets it has, against the mean of its step's batches.

    A step takes the mean of several batches' losses; weighted so, it is the mean over all their targets, however
    these are spread.

    >>> batches = [{"labels": votive.tensor([[0, 1, 1, 1]])}, {"labels": votive.tensor([[0, 1, -100, -100]])}]
    >>> [float(b["share"]) for b in votive.train.packing.Shares(batches, 2)]
    [1.5, 0.5]
    """

    def __init__(self, loader: Any, accumulate: int = 1, count: Callable[[Any], int] | None = None) -> None:
        self.loader, self.accumulate, self.count = loader, accumulate, count or targets_of

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        group: list[dict[str, Tensor]] = []
        for batch in self.loader:
            group.append(batch)
            if len(group) == self.accumulate:
                yield from shared(group, self.count)
                group = []
        yield from shared(group, self.count)

    def state_dict(self) -> dict[str, Any]:
        """Where the loader is: the trainer takes all batches of a step at once."""
        found: dict[str, Any] = self.loader.state_dict()
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on there."""
        self.loader.load_state_dict(state_dict)


def targets_of(batch: Mapping[str, Any]) -> int:
    """How many labels a batch has behind its first positions.

    >>> votive.train.packing.targets_of({"labels": votive.tensor([[5, 6, -100]])})
    1
    """
    return int((batch["labels"][:, 1:] != -100).sum())


def shared(group: Sequence[dict[str, Tensor]], count: Callable[[Any], int]) -> list[dict[str, Tensor]]:
    """The batches of a step, each with its share of what `count` counts, against their mean.

    >>> batches = [{"x": votive.zeros(3)}, {"x": votive.zeros(1)}]
    >>> [float(b["share"]) for b in votive.train.packing.shared(batches, lambda b: len(b["x"]))]
    [1.5, 0.5]
    """
    counts = [count(batch) for batch in group]
    return [
        {**batch, "share": votive.tensor(number * len(group) / sum(counts))}
        for batch, number in zip(group, counts, strict=True)
    ]
