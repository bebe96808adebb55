"""Values of which each rank computes a part, put together for whoever looks at them, and taken apart again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.function import Function
from ...core.mode import mode
from ...ops.registry import F
from ...tensor import Tensor
from ..collectives import all_gather_into_tensor
from ..device_mesh import DeviceMesh
from ..reductions import all_reduce


class Parts:
    """Which places along a dimension each rank of a mesh has; several may have the same.

    >>> from votive.distributed.tensor.parts import Parts
    >>> def whole():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     parts = Parts(mesh, -1, [[0, 2], [1]])
    ...     mine = votive.tensor([[0.0, 2.0]]) if mesh.get_rank() == 0 else votive.tensor([[1.0]])
    ...     return parts.whole(mine).tolist(), parts.part(parts.whole(mine)).tolist() == mine.tolist()
    >>> votive.distributed.simulate(whole, 2)
    [([[0.0, 1.0, 2.0]], True), ([[0.0, 1.0, 2.0]], True)]
    """

    def __init__(self, mesh: DeviceMesh, dim: int, places: Sequence[Sequence[int]]) -> None:
        self.group, self.dim, self.me = mesh.get_group(), dim, mesh.get_local_rank()
        self.places = [list(p) for p in places]
        self.size = 1 + max(max(p, default=-1) for p in self.places)
        owner: dict[int, int] = {}
        for r, had in enumerate(self.places):
            for i in had:
                owner.setdefault(i, r)
        self.owned = [owner[i] == self.me for i in self.places[self.me]]

    def whole(self, x: Tensor, summed: bool = False) -> Tensor:
        """The whole of all ranks' parts; all call it. Its gradient is the same on all ranks, or is `summed` up."""
        made: Tensor = _Whole.apply(x, self, summed)
        return made

    def part(self, x: Tensor) -> Tensor:
        """This rank's part of a whole."""
        made: Tensor = F.index_select(x, self.dim, F.tensor(self.places[self.me], device=x.device))
        return made

    def gathered(self, x: Tensor) -> Tensor:
        """`whole` without history."""
        front = F.movedim(x.detach(), self.dim, 0)
        longest = max(len(p) for p in self.places)
        missing = longest - front.shape[0]
        if front.shape[0] != len(self.places[self.me]):
            raise ValueError(f"this rank has {len(self.places[self.me])} places of {self.size}, got {front.shape[0]}.")
        if missing:
            front = F.cat([front, front.new_zeros((missing, *front.shape[1:]))])
        every = front.new_empty((self.group.size() * longest, *front.shape[1:]))
        all_gather_into_tensor(every, front.contiguous(), self.group)
        out = front.new_zeros((self.size, *front.shape[1:]))
        for r, places in enumerate(self.places):
            if places:
                out[F.tensor(places, device=out.device)] = every[r * longest : r * longest + len(places)]
        made: Tensor = F.movedim(out, 0, self.dim).contiguous()
        return made


class _Whole(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, parts: Parts, summed: bool) -> Tensor:
        ctx.how = (parts, summed)
        return parts.gathered(x)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        parts, summed = ctx.how
        if summed:
            before, mode.grad = mode.grad, False
            try:
                g = g.detach().clone()
                all_reduce(g, group=parts.group)
            finally:
                mode.grad = before
        mine = parts.part(g)
        if not all(parts.owned):
            # Where several ranks have the same, one of them hands the gradient on.
            shape = [1] * mine.ndim
            shape[parts.dim] = len(parts.owned)
            mine = mine * F.tensor([float(o) for o in parts.owned], dtype=mine.dtype, device=mine.device).view(shape)
        return mine, None, None


class Spread:
    """What goes into a module's calls and comes out of them in parts; None where it is whole, or distributed."""

    def __init__(self, into: Parts | None = None, out: Parts | None = None) -> None:
        self.into, self.out = into, out
