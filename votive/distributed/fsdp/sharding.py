"""Which rows of a tensor are on which rank. Knows tensors and groups, not modules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...autograd.modes import no_grad
from ...nn.parallel.agreeing import part_of
from ...nn.parameter import Parameter
from ...ops.registry import F
from ...tensor import Tensor
from ..collectives import all_gather_into_tensor
from ..group import ProcessGroup
from ..reduce_op import ReduceOp
from ..reductions import all_reduce


@dataclass(frozen=True, eq=False)
class Sharding:
    """Equal numbers of rows for each rank of a group, the last ones for the last; some may have none.

    >>> def rows():
    ...     from votive.distributed.fsdp.sharding import Sharding
    ...     spread = Sharding(votive.distributed.group.WORLD, (5, 2))
    ...     return spread.local(votive.arange(10).view(5, 2)).tolist()
    >>> votive.distributed.simulate(rows, 3)
    [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9]]]
    """

    group: ProcessGroup
    shape: tuple[int, ...]
    # What this is a part of, on another mesh, where a distributed tensor was spread (`tensor.stored.Whole`).
    beside: Any = None

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """The shape of the whole, also of one that is cut on another mesh, too."""
        return self.shape if self.beside is None else self.beside.shape

    @property
    def groups(self) -> list[ProcessGroup]:
        """Those among whose ranks it is cut."""
        return [self.group] if self.beside is None else [self.group, *self.beside.groups]

    @property
    def key(self) -> tuple[str, ...]:
        """What tensors have in common that are cut among the same ranks."""
        return tuple(g.group_name for g in self.groups)

    @property
    def rows(self) -> int:
        """How many rows a rank has that is not at the end."""
        return -(-self.shape[0] // self.group.size())

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return math.prod(self.shape[1:])

    @property
    def numel(self) -> int:
        """How many numbers each rank sends, the last ones with zeros behind theirs."""
        return self.rows * self.width

    def place(self, rank: int | None = None) -> slice:
        """The rows of a rank."""
        rank = self.group.rank() if rank is None else rank
        return slice(min(rank * self.rows, self.shape[0]), min((rank + 1) * self.rows, self.shape[0]))

    def local_shape(self) -> tuple[int, ...]:
        """The shape of what this rank holds."""
        rows = self.place()
        return (rows.stop - rows.start, *self.shape[1:])

    def local(self, full: Tensor) -> Tensor:
        """This rank's rows of a whole, in memory of their own."""
        return self.local_of_part(full if self.beside is None else self.beside.part(full))

    def local_of_part(self, part: Tensor) -> Tensor:
        """This rank's rows of what its mesh has together."""
        return part[self.place()].clone()

    def padded(self, local: Tensor) -> Tensor:
        """This rank's rows as `numel` numbers."""
        flat = local.reshape(-1)
        missing = self.numel - flat.numel()
        return F.cat([flat, flat.new_zeros(missing)]) if missing else flat

    def joined(self, every: Tensor) -> Tensor:
        """The whole of what all ranks sent, (ranks, numel)."""
        count = math.prod(self.shape)
        return every.reshape(-1)[:count].reshape(self.shape).contiguous()

    def split(self, full: Tensor) -> Tensor:
        """A whole as what each rank gets of it, (ranks, numel)."""
        flat = full.reshape(-1)
        missing = self.group.size() * self.numel - flat.numel()
        return (F.cat([flat, flat.new_zeros(missing)]) if missing else flat).view(self.group.size(), self.numel)

    @no_grad()
    def gather(self, local: Tensor) -> Tensor:
        """The whole; all ranks call it."""
        part = self.gather_part(local)
        return part if self.beside is None else self.beside.full(part)

    @no_grad()
    def gather_part(self, local: Tensor) -> Tensor:
        """What the ranks of this mesh have together."""
        if tuple(local.shape) != self.local_shape():
            raise ValueError(f"this rank holds {self.local_shape()} of {self.shape}, got {tuple(local.shape)}.")
        every = local.detach().new_empty(self.group.size(), self.numel)
        all_gather_into_tensor(every, self.padded(local.detach()), self.group)
        return self.joined(every)

    @no_grad()
    def total_norm(self, local: Tensor, order: float) -> Tensor:
        """The norm of the whole, from those of the ranks' parts; all ranks call it."""
        local = part_of(local)
        if math.isinf(order):
            total = local.clone()
            for group in self.groups:
                all_reduce(total, ReduceOp.MAX if order > 0 else ReduceOp.MIN, group)
            return total
        if order == 0:
            raise ValueError("the norm of order 0 of gradients in shards is not supported; use another order.")
        total = local.double().pow(order)
        for group in self.groups:
            all_reduce(total, group=group)
        return total.pow(1.0 / order).to(local.dtype)

    @no_grad()
    def largest_(self, value: Tensor) -> None:
        """Write the largest of all ranks' values into each; all ranks call it."""
        for group in self.groups:
            all_reduce(value, ReduceOp.MAX, group)


class ShardedParameter(Parameter):
    """A parameter of which this rank holds some rows; `full_tensor()` gives the whole.

    >>> def shapes():
    ...     layer = votive.distributed.fsdp.fully_shard(votive.nn.Linear(2, 3))
    ...     return tuple(layer.weight.shape), tuple(layer.weight.full_tensor().shape)
    >>> votive.distributed.simulate(shapes, 2)
    [((2, 2), (3, 2)), ((1, 2), (3, 2))]
    """

    _sharding: Sharding

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = super().__deepcopy__(memo)
        copied._sharding = self._sharding
        return copied

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        rows, shape = self._sharding.place(), self._sharding.shape
        return f"Rows {rows.start} to {rows.stop} of {shape}. {super().__repr__()}"

    def full_tensor(self) -> Tensor:
        """The whole, gathered from all ranks, which all call it."""
        return self._sharding.gather(self)

    def to_local(self) -> Tensor:
        """This rank's rows as a plain tensor over the same memory."""
        return self.detach()

    @property
    def full_shape(self) -> tuple[int, ...]:
        """The shape of the whole."""
        return self._sharding.whole_shape


def sharding_of(tensor: Tensor) -> Sharding | None:
    """How a tensor is spread over ranks; None for an ordinary one.

    >>> print(votive.distributed.fsdp.sharding.sharding_of(votive.ones(1)))
    None
    """
    found: Sharding | None = tensor.__dict__.get("_sharding")
    return found


def marked(tensor: Tensor, sharding: Sharding | None) -> Tensor:
    """The tensor, which knows from now on how it is spread."""
    if sharding is not None:
        tensor.__dict__["_sharding"] = sharding
    return tensor
