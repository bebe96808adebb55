"""The parameters of one `fully_shard` call: gathered before they are used, their gradients reduced to shards behind.

Knows parameters by the places where modules hold them; knows no calls of modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...autograd.accumulate import accumulate
from ...autograd.early import outermost, when_backward_ends
from ...autograd.function import Function
from ...autograd.grad_hooks import run_hooks
from ...autograd.modes import no_grad
from ...core import dtype as dt
from ...core.device import device as Device
from ...core.mode import mode
from ...ops.registry import F
from ...tensor import Tensor
from ..collectives import all_gather_into_tensor
from ..group import ProcessGroup
from ..reduce_op import ReduceOp
from ..reductions import all_reduce, reduce_scatter_tensor
from ..work import Work
from .policies import MixedPrecisionPolicy
from .saved import LIVE
from .sharding import ShardedParameter, Sharding, marked


@dataclass
class Held:
    """A parameter, all places where modules hold it, and how it is spread."""

    name: str
    places: list[tuple[Any, str]]
    sharding: Sharding

    @property
    def shard(self) -> ShardedParameter:
        """What this rank has of it."""
        module, name = self.places[0]
        found = module._parameters[name]
        if not isinstance(found, ShardedParameter):
            raise RuntimeError(
                f"fully_shard: {self.name} was replaced by another parameter; copy values into it instead, and load "
                "state dicts without assign=True."
            )
        return found


class Unit:
    """Parameters that are gathered and reduced together."""

    def __init__(
        self,
        held: Sequence[Held],
        group: ProcessGroup,
        replicas: ProcessGroup | None,
        policy: MixedPrecisionPolicy,
        device: Device,
    ) -> None:
        self.held, self.group, self.replicas, self.policy = list(held), group, replicas, policy
        self.device = device  # that computes; shards may be elsewhere
        self.shards: list[ShardedParameter] = [h.shard for h in held]
        self.fulls: list[Tensor] | None = None  # gathered, until resharded
        self.fulls_versions: tuple[int, ...] = ()
        self.recorded: list[Tensor] | None = None  # the same with the history of the pass that uses them
        self.again: list[Tensor] | None = None  # gathered for backward
        self.begun: list[tuple[list[int], Tensor, Work | None]] | None = None
        self.begun_versions: tuple[int, ...] = ()
        self.in_inference = False  # where `fulls` were made
        self.inside = 0  # calls of the module that run
        self.syncs = True
        self.reduces_replicas = True
        self.reshards_after_backward = True
        self.divisor: float | None = None
        self.sums: dict[int, Tensor] = {}  # gradients that were not sent yet
        self.under_way: list[tuple[list[int], Tensor, Work | None]] = []
        self.before: Unit | None = None  # what ran before it in forward, which backward needs next
        self.next_forward: list[Unit] = []
        self.next_backward: list[Unit] | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        raise TypeError("fully_shard: a sharded module cannot be copied; copy it before it is sharded.")

    def __reduce__(self) -> Any:
        raise TypeError("fully_shard: a sharded module belongs to its process; save its state dict instead.")

    # --- gathering ----------------------------------------------------------------------------

    def versions(self) -> tuple[int, ...]:
        """Changes whenever a shard is written."""
        return tuple(s._storage.version for s in self.shards)

    def _kinds(self, members: Sequence[int], kinds: Sequence[dt.dtype]) -> list[list[int]]:
        """Members of one type each, in their order."""
        found: dict[str, list[int]] = {}
        for i, kind in zip(members, kinds, strict=True):
            found.setdefault(str(kind), []).append(i)
        return list(found.values())

    @no_grad()
    def begin(self, async_op: bool = True) -> None:
        """Begin to gather all parameters, one message for each type."""
        if self.begun is not None:
            return
        self.shards = [h.shard for h in self.held]
        self.begun_versions = self.versions()
        for h, s in zip(self.held, self.shards, strict=True):
            if s.is_meta:
                raise RuntimeError(
                    f"fully_shard: {h.name} is on the meta device; call to_empty(device=...) on the module and load a "
                    "state, or let it be drawn."
                )
        kinds = [_computing(s, self.policy.param_dtype) for s in self.shards]
        self.begun = []
        for members in self._kinds(range(len(self.held)), kinds):
            flat = F.cat([self.held[i].sharding.padded(self.shards[i].detach().to(kinds[i])) for i in members])
            every = flat.new_empty(self.group.size(), flat.numel())
            work = all_gather_into_tensor(every, flat, self.group, async_op=async_op)
            self.begun.append((members, every, work))

    @no_grad()
    def _finish(self) -> list[Tensor]:
        """The gathered parameters."""
        if self.begun is not None and self.begun_versions != self.versions():
            # Sent for before the shards were written.
            for _, _, work in self.begun:
                if work is not None:
                    work.wait()
            self.begun = None
        self.begin(async_op=False)
        begun, self.begun = self.begun, None
        fulls: list[Any] = [None] * len(self.held)
        for members, every, work in begun or ():
            if work is not None:
                work.wait()
            at = 0
            for i in members:
                sharding = self.held[i].sharding
                full = sharding.joined(every[:, at : at + sharding.numel])
                at += sharding.numel
                fulls[i] = full.clone() if full._storage.root is every._storage.root else full
                fulls[i] = fulls[i].to(self.device)
        return fulls

    def gather(self) -> list[Tensor]:
        """The whole parameters, with the history that brings their gradients back, for a call of the module."""
        stale = self.fulls_versions != self.versions() or (self.in_inference and not mode.inference)
        if self.fulls is not None and stale:
            self.reshard()
        if self.fulls is None:
            self.fulls, self.fulls_versions, self.in_inference = self._finish(), self.versions(), mode.inference
            for i, full in enumerate(self.fulls):
                LIVE[id(full._storage.root)] = (self, i)
        if not mode.grad:
            return [f.detach() for f in self.fulls]
        if self.recorded is None:
            self.recorded = self._with_history(self.fulls)
        return self.recorded

    def _with_history(self, fulls: list[Tensor]) -> list[Tensor]:
        members = [i for i, s in enumerate(self.shards) if s.requires_grad]
        found = [f.detach() for f in fulls]
        if members:
            made = _Gathered.apply(self, members, *[self.shards[i] for i in members])
            for i, t in zip(members, made if isinstance(made, tuple) else (made,), strict=True):
                found[i] = t
        return found

    def reshard(self) -> None:
        """Forget the whole parameters."""
        for full in self.fulls or ():
            LIVE.pop(id(full._storage.root), None)
        self.fulls = self.recorded = None

    def names(self, index: int, t: Tensor) -> bool:
        """Whether a value that backward will read is a view of a gathered parameter that can be made again."""
        full = None if self.fulls is None else self.fulls[index]
        # Memory may have been given back and have come to another tensor since.
        return full is not None and full._storage.root is t._storage.root and full.dtype is t.dtype

    def gathered_again(self) -> list[Tensor]:
        """The whole parameters, for backward; and those of the unit that ran before this one are sent for."""
        if self.fulls is not None:
            return self.fulls
        if self.again is None:
            self.again = self._finish()
            when_backward_ends(self._forget)
            for unit in self.next_backward if self.next_backward is not None else [self.before]:
                if unit is not None and unit.fulls is None and unit.again is None and unit.begun is None:
                    unit.begin()
                    when_backward_ends(unit._forget)
        return self.again

    def _forget(self) -> None:
        self.again = None
        if self.begun is not None:
            self._finish()

    # --- gradients ----------------------------------------------------------------------------

    @no_grad()
    def reduce(self, members: Sequence[int], grads: Sequence[Tensor | None]) -> None:
        """Send the gradients of whole parameters to those who hold their shards."""
        task = outermost()
        if task is not None and task.wanted is not None:
            raise NotImplementedError(
                "fully_shard: gradients of sharded parameters are kept by loss.backward(); autograd.grad and inputs= "
                "are not supported."
            )
        for i, g in zip(members, grads, strict=True):
            if g is not None:
                self.sums[i] = self.sums[i] + g if i in self.sums else g
        if self.reshards_after_backward:
            self.again = None
            if not self.inside:
                self.reshard()
        if not self.syncs:
            return
        if not self.under_way:
            when_backward_ends(self._take)
        sums, self.sums = self.sums, {}
        kinds = [_computing(self.shards[i], self.policy.param_dtype) for i in members]
        kinds = [self.policy.reduce_dtype or k for k in kinds]
        op = ReduceOp.AVG if self.divisor is None else ReduceOp.SUM
        for together in self._kinds(members, kinds):
            kind = kinds[list(members).index(together[0])]
            # Behind its share each rank is told which parameters had a gradient anywhere.
            parts = [self._part(i, sums.get(i), kind) for i in together]
            used = F.tensor([float(i in sums) for i in together], dtype=kind, device=parts[0].device)
            whole = F.cat([*parts, used.expand(self.group.size(), -1)], 1)
            mine = whole.new_empty(whole.shape[1])
            work = reduce_scatter_tensor(mine, whole.reshape(-1), op, self.group, async_op=True)
            self.under_way.append((together, mine, work))

    def _part(self, i: int, grad: Tensor | None, kind: dt.dtype) -> Tensor:
        sharding = self.held[i].sharding
        if grad is None:
            return F.zeros((self.group.size(), sharding.numel), dtype=kind, device=self.device)
        return sharding.split(grad.to(kind))

    def _take(self) -> None:
        """Wait for the gradients of the shards, and keep them."""
        under_way, self.under_way = self.under_way, []
        for members, mine, work in under_way:
            if work is not None:
                work.wait()
            with no_grad():
                if self.replicas is not None and self.reduces_replicas:
                    all_reduce(mine, ReduceOp.AVG if self.divisor is None else ReduceOp.SUM, self.replicas)
                used = mine[mine.numel() - len(members) :].tolist()
                if self.divisor is not None:
                    mine = mine / self.divisor
            at = 0
            for i, n in zip(members, used, strict=True):
                sharding, shard = self.held[i].sharding, self.shards[i]
                count = shard.numel()
                if n > 0:
                    grad = mine[at : at + count].view(shard.shape).to(shard.device, shard.dtype, copy=True)
                    self._keep(shard, grad, sharding)
                at += sharding.numel

    def _keep(self, shard: Tensor, grad: Any, sharding: Sharding) -> None:
        if shard._hooks:
            grad = run_hooks(shard._hooks, grad)
        with no_grad():
            hooks, shard._post_hooks = shard._post_hooks, None
            try:
                accumulate(shard, grad, False)
            finally:
                shard._post_hooks = hooks
            if shard._grad is not None:
                marked(shard._grad, sharding)
            for fn in tuple((hooks or {}).values()):
                fn(shard)


def _computing(shard: Tensor, param_dtype: dt.dtype | None) -> dt.dtype:
    """The type in which a parameter computes."""
    return param_dtype if param_dtype is not None and shard.is_floating_point() else shard.dtype


class _Gathered(Function):
    """The whole parameters of their shards; backward hands their gradients to the unit, which sends them on."""

    @staticmethod
    def forward(ctx: Any, unit: Unit, members: Sequence[int], *shards: Tensor) -> Any:
        ctx.unit, ctx.members = unit, members
        ctx.set_materialize_grads(False)
        assert unit.fulls is not None
        return tuple(unit.fulls[i].detach() for i in members)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if mode.grad:
            raise NotImplementedError("fully_shard: backward(create_graph=True) is not supported.")
        ctx.unit.reduce(ctx.members, grads)
        return (None,) * (2 + len(ctx.members))
