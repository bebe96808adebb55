"""What makes the copies of a module the same on all ranks, and the error where they cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...autograd.modes import no_grad
from ...distributed import ProcessGroup, all_gather_object, broadcast
from ...ops.registry import F
from ...tensor import Tensor

# What is sent at once, in bytes.
AT_ONCE = 64 * 1024 * 1024


def part_of(t: Tensor) -> Any:
    """What this rank holds of a tensor: of a distributed one its part, else the tensor.

    >>> votive.nn.parallel.agreeing.part_of(votive.ones(1))
    tensor([1.])
    """
    return t.__dict__["_held"] if "_placements" in t.__dict__ else t


@no_grad()
def broadcast_all(tensors: Iterable[Tensor], group: ProcessGroup, source: int = 0) -> None:
    """Write one rank's tensors into those of all others, many at once.

    >>> def both():
    ...     x, y = votive.full((2,), votive.distributed.get_rank() + 1.0), votive.tensor(votive.distributed.get_rank())
    ...     votive.nn.parallel.agreeing.broadcast_all([x, y], votive.distributed.group.WORLD)
    ...     return x.tolist(), y.item()
    >>> votive.distributed.simulate(both, 2)[1]
    ([1.0, 1.0], 0)
    """
    if group.size() == 1:
        return
    waiting: dict[tuple[str, str], list[Tensor]] = {}
    for t in map(part_of, tensors):
        kind = (str(t.dtype), str(t.device))
        together = waiting.setdefault(kind, [])
        together.append(t)
        if sum(one.nbytes for one in together) >= AT_ONCE:
            _broadcast(waiting.pop(kind), group, source)
    for together in waiting.values():
        _broadcast(together, group, source)


def _broadcast(tensors: Sequence[Tensor], group: ProcessGroup, source: int) -> None:
    joined = F.cat([t.detach().reshape(-1) for t in tensors])
    broadcast(joined, group=group, group_src=source)
    if group.rank() == source:
        return
    at = 0
    for t in tensors:
        t.copy_(joined[at : at + t.numel()].view(t.shape))
        at += t.numel()


def check_same_everywhere(named: Sequence[tuple[str, Tensor]], group: ProcessGroup, what: str = "DDP") -> None:
    """Raise on all ranks unless they have the same parameters."""
    mine = [(n, tuple(t.shape), str(t.dtype), t.requires_grad) for n, t in named]
    found: list[Any] = [None] * group.size()
    all_gather_object(found, mine, group)
    first = found[0]
    for r, theirs in enumerate(found[1:], 1):
        if len(theirs) != len(first):
            raise RuntimeError(
                f"{what} expects same model across all ranks, but Rank 0 has {len(first)} params, while rank {r} has "
                f"inconsistent {len(theirs)} params."
            )
        for i, (a, b) in enumerate(zip(first, theirs, strict=True)):
            if a[1:] != b[1:]:
                raise RuntimeError(
                    f"{what} expects same model across all ranks, but parameter {i} is {_shown(a)} on rank 0 and "
                    f"{_shown(b)} on rank {r}."
                )


def _shown(entry: tuple[str, tuple[int, ...], str, bool]) -> str:
    name, shape, kind, learns = entry
    return f"{name} {shape} {kind}{'' if learns else ' without gradient'}"
