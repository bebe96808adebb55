"""Ranks with unequal numbers of batches: who has no more takes part in the others' steps with gradients of zero."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from ...core.mode import mode
from ...distributed import ReduceOp, all_reduce
from ...ops.registry import F
from ..layers.sync_batchnorm import SyncBatchNorm
from .agreeing import broadcast_all

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel


class Joining:
    """The block of `DistributedDataParallel.join`: its end is reached by all ranks together."""

    def __init__(self, model: DistributedDataParallel, by_all: bool, throws: bool) -> None:
        if model.static_graph:
            raise NotImplementedError("join: static_graph=True is not supported; use find_unused_parameters=True.")
        if not throws and any(isinstance(m, SyncBatchNorm) for m in model.module.modules()):
            raise ValueError(
                "join: SyncBatchNorm needs all ranks in every forward pass; pass throw_on_early_termination=True."
            )
        self.model, self.by_all, self.throws = model, by_all, throws
        self.group = model.process_group

    def __enter__(self) -> Joining:
        if self.model._joining is not None:
            raise RuntimeError("join: the blocks of one model cannot be nested.")
        self.model._joining = self
        return self

    def step(self) -> None:
        """Tell all ranks what this one's forward pass will send; called at its beginning."""
        model = self.model
        sends = mode.grad and model.require_backward_grad_sync
        self._agreed(True, sends, model.will_sync_module_buffers())

    def _agreed(self, active: bool, sends: bool, follows: bool) -> tuple[int, bool]:
        """How many ranks go on, and whether they send gradients; if they want it, buffers are given to all."""
        told = F.tensor([int(active), int(sends), int(follows)])
        all_reduce(told, group=self.group)
        count, sending, following = told.tolist()
        if self.throws and count < self.group.size():
            self.model._joining = None
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        if sending not in (0, count):
            raise RuntimeError("join: some ranks are within no_sync() and some are not; all must be.")
        if not self.by_all and count:
            self.model.reducer.divisor = count
        if following:
            named = self.model.module.named_buffers()
            buffers = [b for n, b in named if n not in self.model.parameters_to_ignore]
            broadcast_all(buffers, self.group, self._last(active))
        return count, sending > 0

    def _last(self, counts: bool) -> int:
        """The last of the ranks that count."""
        last = F.tensor([self.group.rank() if counts else -1])
        all_reduce(last, ReduceOp.MAX, self.group)
        return int(last.item())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        model = self.model
        if kind is not None:
            model._joining = None
            return
        alone = True  # until somebody goes on
        while True:
            count, sends = self._agreed(False, False, False)
            if not count:
                break
            alone = False
            if sends:
                model.reducer.accompany()
        model._joining, model.reducer.divisor = None, None
        # Optimizers of ranks that ended early have stepped less often: what the last ones have counts.
        broadcast_all([t for _, t in model._own()], self.group, self._last(alone))
