"""Schedules: steps of a pipeline over microbatches, in an order that is data. Knows stages, links and actions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autograd.modes import no_grad
from ...core.mode import mode
from ...tensor import Tensor
from . import orders
from .actions import Order, bubble, check, held_at_most, table, timed
from .links import Link
from .microbatch import Replicate, TensorChunkSpec, merge_chunks
from .shared import Shared
from .stage import PipelineStage
from .step import Step


class PipelineSchedule:
    """What all schedules do. `pipeline_order` says of each rank what it computes; printed, it is a table of time."""

    def __init__(
        self,
        stages: Sequence[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None,
        args_chunk_spec: tuple[Any, ...] | None,
        kwargs_chunk_spec: dict[str, Any] | None,
        output_merge_spec: Any,
        scale_grads: bool,
        homes: Sequence[int],
        order: Sequence[Order],
    ) -> None:
        first = stages[0]
        self._stages = {s.stage_index: s for s in stages}
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._num_stages, self.homes = first.num_stages, list(homes)
        self.pipeline_order = {rank: list(row) for rank, row in enumerate(order)}
        check(order, self._num_stages, n_microbatches)
        mine = [s for s, home in enumerate(homes) if home == first.group_rank]
        if sorted(self._stages) != mine:
            raise ValueError(
                f"{type(self).__name__}: rank {first.group_rank} of the pipeline's group has the stages {mine} of "
                f"{first.num_stages}, and was given {sorted(self._stages)}."
            )
        if any(s.num_stages != first.num_stages or s.group is not first.group for s in stages):
            raise ValueError(f"{type(self).__name__}: stages of one pipeline have one group and one num_stages.")
        self._link = Link(first.group, self.homes, n_microbatches, first.device)
        self._shared = Shared(list(stages), self.homes)

    # --- looking at it ------------------------------------------------------------------------

    def __str__(self) -> str:
        return table(list(self.pipeline_order.values()), self._num_stages)

    @property
    def bubble(self) -> float:
        """Which part of a step ranks wait, if forward passes take 1, backward passes 2, and messages nothing."""
        return bubble(timed(list(self.pipeline_order.values()), self._num_stages))

    @property
    def held(self) -> list[int]:
        """Of how many microbatches each rank holds activations at most."""
        return [held_at_most(row) for row in self.pipeline_order.values()]

    # --- steps --------------------------------------------------------------------------------

    def step(
        self,
        *args: Any,
        target: Any = None,
        losses: list[Any] | None = None,
        return_outputs: bool = True,
        loss_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Forward and backward of a whole batch. The rank of the first stage gives `args`, that of the last `target`.

        `kwargs` go to the stages of this rank. The last rank gets the results, and losses of the microbatches. If
        `scale_grads`, gradients are those of their mean, else of their sum.
        """
        if self._loss_fn is not None and not mode.grad:
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "votive.no_grad() context. Please call eval() instead."
            )
        return self._run(args, kwargs, target, losses, return_outputs, loss_kwargs, self._loss_fn is not None)

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """Forward alone; the last rank gets the results."""
        with no_grad():
            return self._run(args, kwargs, target, losses, True, None, False)

    def _run(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        target: Any,
        losses: list[Any] | None,
        return_outputs: bool,
        loss_kwargs: dict[str, Any] | None,
        trains: bool,
    ) -> Any:
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        step = Step(self, args, kwargs, target, loss_kwargs or {}, trains, return_outputs)
        if trains:
            self._shared.begin()
        try:
            step.run()
            self._link.finish()
        except BaseException:
            self._link.forget()
            raise
        if trains:
            self._shared.finish()
        if losses is not None:
            losses[:] = [step.losses[m] for m in sorted(step.losses)]
        if not step.outputs:
            return None
        return merge_chunks([step.outputs[m] for m in range(self._n_microbatches)], self._output_merge_spec)


class PipelineScheduleSingle(PipelineSchedule):
    """Schedules with one stage on each rank."""

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: tuple[TensorChunkSpec | Replicate | None, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec | Replicate] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
        scale_grads: bool = True,
    ) -> None:
        _check_counts(type(self).__name__, n_microbatches)
        if stage.num_stages != stage.group_size:
            raise ValueError(
                f"{type(self).__name__} has one stage on each rank: {stage.num_stages} stages, and "
                f"{stage.group_size} ranks."
            )
        super().__init__(
            [stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads,
            orders.loop(stage.group_size, stage.num_stages), self._ordered(stage.group_size, n_microbatches),
        )  # fmt: skip

    def _ordered(self, ranks: int, microbatches: int) -> list[Order]:
        raise NotImplementedError


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forward, then all backward: simple, and everything is held at once.

    >>> from votive.distributed.pipelining import ScheduleGPipe, table_of
    >>> print(table_of(ScheduleGPipe, 2, 2))
    rank 0  0F0 0F1   .   .   . 0B0   = 0B1   =
    rank 1    . 1F0 1F1 1B0   = 1B1   =   .   .
    """

    def _ordered(self, ranks: int, microbatches: int) -> list[Order]:
        return orders.gpipe(ranks, microbatches)


class Schedule1F1B(PipelineScheduleSingle):
    """One forward pass, one backward pass: a rank holds no more microbatches than there are ranks behind it.

    >>> from votive.distributed.pipelining import Schedule1F1B, table_of
    >>> print(table_of(Schedule1F1B, 2, 3))
    rank 0  0F0 0F1   .   . 0B0   = 0F2 0B1   =   . 0B2   =
    rank 1    . 1F0 1B0   = 1F1 1B1   = 1F2 1B2   =   .   .
    """

    def _ordered(self, ranks: int, microbatches: int) -> list[Order]:
        if microbatches < ranks:
            raise ValueError(
                f"Number of microbatches ({microbatches}) must be greater than or equal to the number of stages "
                f"({ranks})."
            )
        return orders.one_forward_one_backward(ranks, microbatches)


class PipelineScheduleMulti(PipelineSchedule):
    """Schedules with several stages on each rank."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        args_chunk_spec: tuple[TensorChunkSpec | Replicate | None, ...] | None = None,
        kwargs_chunk_spec: dict[str, TensorChunkSpec | Replicate] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
        scale_grads: bool = True,
    ) -> None:
        name = type(self).__name__
        _check_counts(name, n_microbatches)
        if not isinstance(stages, (list, tuple)) or not stages:
            raise ValueError(f"{name}: takes a list of stages, those of this rank.")
        ranks, total = stages[0].group_size, stages[0].num_stages
        if total % ranks:
            raise ValueError(f"{name}: {total} stages do not spread evenly over {ranks} ranks.")
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads,
            self._homes(ranks, total), self._ordered(ranks, total // ranks, n_microbatches),
        )  # fmt: skip

    def _homes(self, ranks: int, stages: int) -> list[int]:
        return orders.loop(ranks, stages)

    def _ordered(self, ranks: int, chunks: int, microbatches: int) -> list[Order]:
        raise NotImplementedError


class _Spelled(PipelineScheduleMulti):
    """Those whose constructor has no chunk specs, as in torch."""

    def __init__(
        self,
        stages: list[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        output_merge_spec: dict[str, Any] | tuple[Any] | None = None,
        scale_grads: bool = True,
    ) -> None:
        super().__init__(stages, n_microbatches, loss_fn, None, None, output_merge_spec, scale_grads)


class ScheduleLoopedBFS(_Spelled):
    """Several stages on each rank, breadth first: all microbatches go through one before the next has its turn.

    >>> from votive.distributed.pipelining import ScheduleLoopedBFS, table_of
    >>> print(table_of(ScheduleLoopedBFS, 1, 1, 2))
    rank 0  0F0 1F0 1B0   = 0B0   =
    """

    def _ordered(self, ranks: int, chunks: int, microbatches: int) -> list[Order]:
        return orders.breadth_first(ranks, chunks, microbatches)


class ScheduleInterleaved1F1B(PipelineScheduleMulti):
    """1F1B with several stages on each rank: a smaller bubble for more messages.

    >>> from votive.distributed.pipelining import ScheduleInterleaved1F1B, table_of
    >>> print(table_of(ScheduleInterleaved1F1B, 2, 2, 2))
    rank 0  0F0 0F1 2F0 2F1   .   . 2B0   =   . 2B1   = 0B0   = 0B1   =
    rank 1    . 1F0 1F1 3F0 3B0   = 3F1 3B1   = 1B0   = 1B1   =   .   .
    """

    def _ordered(self, ranks: int, chunks: int, microbatches: int) -> list[Order]:
        return orders.interleaved(ranks, chunks, microbatches)


class ScheduleInterleavedZeroBubble(PipelineScheduleMulti):
    """Backward in halves: the gradients of weights are made where a rank would otherwise wait.

    >>> from votive.distributed.pipelining import ScheduleInterleavedZeroBubble, table_of
    >>> print(table_of(ScheduleInterleavedZeroBubble, 2, 3, 1))
    rank 0  0F0 0F1   . 0I0 0W0 0I1 0F2 0W1   . 0I2 0W2
    rank 1    . 1F0 1I0 1F1 1I1 1W0 1W1 1F2 1I2 1W2   .
    """

    def _ordered(self, ranks: int, chunks: int, microbatches: int) -> list[Order]:
        return orders.interleaved_zero_bubble(ranks, chunks, microbatches)


class ScheduleZBVZeroBubble(_Spelled):
    """Two stages on each rank, forth and back like a V, with backward in halves: almost no rank ever waits.

    >>> from votive.distributed.pipelining import ScheduleZBVZeroBubble, table_of
    >>> print(table_of(ScheduleZBVZeroBubble, 2, 2, 2))
    rank 0  0F0 0F1   . 3F0 3I0 3F1 3I1 0I0 3W0 0I1 3W1 0W0 0W1
    rank 1    . 1F0 2F0 1F1 2F1 2I0 1I0 2I1 1I1 2W0 1W0 2W1 1W1
    """

    def _homes(self, ranks: int, stages: int) -> list[int]:
        if stages != 2 * ranks:
            raise ValueError(f"ZBV requires exactly 2 stages per rank, but got {stages // ranks}.")
        return orders.vee(ranks, stages)

    def _ordered(self, ranks: int, chunks: int, microbatches: int) -> list[Order]:
        return orders.zero_bubble_vee(ranks, microbatches)


SCHEDULES: dict[str, type[PipelineSchedule]] = {
    "1F1B": Schedule1F1B,
    "Interleaved1F1B": ScheduleInterleaved1F1B,
    "GPipe": ScheduleGPipe,
    "LoopedBFS": ScheduleLoopedBFS,
    "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
    "ZBVZeroBubble": ScheduleZBVZeroBubble,
}


def get_schedule_class(schedule_name: str) -> type[PipelineSchedule]:
    """A schedule by its name, in letters of any size.

    >>> from votive.distributed.pipelining import get_schedule_class
    >>> get_schedule_class("gpipe").__name__
    'ScheduleGPipe'
    """
    for name, found in SCHEDULES.items():
        if name.lower() == schedule_name.lower():
            return found
    raise ValueError(f"Unknown schedule '{schedule_name}'. The available schedules are {list(SCHEDULES)}")


def order_of(kind: type[PipelineSchedule], ranks: int, microbatches: int, stages_per_rank: int = 1) -> list[Order]:
    """What each rank would do under a schedule, without any stage.

    >>> from votive.distributed.pipelining import Schedule1F1B, order_of
    >>> order_of(Schedule1F1B, 2, 2)[1]
    [1F0, 1B0, 1F1, 1B1]
    """
    _check_counts(kind.__name__, microbatches)
    made = kind.__new__(kind)
    if isinstance(made, PipelineScheduleSingle):
        if stages_per_rank != 1:
            raise ValueError(f"{kind.__name__} has one stage on each rank, got stages_per_rank={stages_per_rank}.")
        return made._ordered(ranks, microbatches)
    assert isinstance(made, PipelineScheduleMulti), "there are two kinds"
    made._homes(ranks, ranks * stages_per_rank)
    return made._ordered(ranks, stages_per_rank, microbatches)


def table_of(kind: type[PipelineSchedule], ranks: int, microbatches: int, stages_per_rank: int = 1) -> str:
    """The table of a schedule, without any stage: time from left to right, F forward, B backward, I and W its halves.

    >>> from votive.distributed.pipelining import Schedule1F1B, table_of
    >>> print(table_of(Schedule1F1B, 1, 1))
    rank 0  0F0 0B0   =
    """
    return table(order_of(kind, ranks, microbatches, stages_per_rank), ranks * stages_per_rank)


def _check_counts(name: str, microbatches: int) -> None:
    if isinstance(microbatches, bool) or not isinstance(microbatches, int) or microbatches < 1:
        raise ValueError(f"{name}: n_microbatches must be 1 or more, got {microbatches!r}.")
