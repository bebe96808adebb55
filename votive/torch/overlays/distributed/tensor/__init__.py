"""`torch.distributed.tensor`: the class that libraries test tensors against. No tensor is one here."""

from __future__ import annotations

from typing import Any, NoReturn

from .....tensor import Tensor

__all__ = ["DTensor", "Partial", "Placement", "Replicate", "Shard", "distribute_module", "distribute_tensor"]

_REASON = "votive trains in one process, so tensors are not spread over several."


class DTensor(Tensor):
    """A tensor spread over processes: there to be tested against."""

    def __new__(cls, *args: Any, **options: Any) -> DTensor:
        raise NotImplementedError(f"DTensor: {_REASON}")


class Placement:
    """How a tensor is spread."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is cut into pieces, along a certain dimension if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether the processes' values are still to be summed."""
        return isinstance(self, Partial)


class Replicate(Placement):
    """Each process has all of it."""


class Shard(Placement):
    """Each process has a piece along a dimension."""

    def __init__(self, dim: int) -> None:
        self.dim = dim


class Partial(Placement):
    """Each process has a summand."""

    def __init__(self, reduce_op: str = "sum") -> None:
        self.reduce_op = reduce_op


def distribute_tensor(*args: Any, **options: Any) -> NoReturn:
    """Spread a tensor over processes."""
    raise NotImplementedError(f"distribute_tensor: {_REASON}")


def distribute_module(*args: Any, **options: Any) -> NoReturn:
    """Spread a module over processes."""
    raise NotImplementedError(f"distribute_module: {_REASON}")
