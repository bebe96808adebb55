"""One step of a pipeline on a rank: its actions in their order. Knows stages and links, not how orders come about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...ops.registry import F
from ...tensor import Tensor
from .microbatch import split_args_kwargs_into_chunks
from .stage import PipelineStage

if TYPE_CHECKING:
    from .schedules import PipelineSchedule


class Step:
    """One step while it runs."""

    def __init__(
        self,
        schedule: PipelineSchedule,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        target: Any,
        loss_kwargs: dict[str, Any],
        trains: bool,
        return_outputs: bool,
    ) -> None:
        self.schedule, self.stages, self.link = schedule, schedule._stages, schedule._link
        self.loss_kwargs, self.trains, self.return_outputs = loss_kwargs, trains, return_outputs
        n, last = schedule._n_microbatches, schedule._num_stages - 1
        self.last = last
        if 0 in self.stages:
            if not args and not kwargs:
                raise ValueError("step: the rank of the first stage gives the batch.")
        elif args:
            raise ValueError("step: only the rank of the first stage gives positional arguments.")
        spec = schedule._args_chunk_spec if args else None
        self.args, self.kwargs = split_args_kwargs_into_chunks(args, kwargs, n, spec, schedule._kwargs_chunk_spec)
        self.targets: list[Any] | None = None
        if last in self.stages and schedule._loss_fn is not None:
            if target is None and trains:
                raise ValueError("step: the rank of the last stage gives target=, for the loss.")
            if target is not None:
                self.targets = [a[0] for a in split_args_kwargs_into_chunks((target,), None, n)[0]]
        self.losses: dict[int, Tensor] = {}
        self.raw: dict[int, Tensor] = {}
        self.outputs: dict[int, Any] = {}

    def run(self) -> None:
        """Do what the order says for this rank."""
        schedule = self.schedule
        n = schedule._n_microbatches
        for stage in self.stages.values():
            stage.begin(n, self.trains)
        order = schedule.pipeline_order[next(iter(self.stages.values())).group_rank]
        if not self.trains:
            order = [a for a in order if a.kind == "F"]
        for at, action in enumerate(order):
            for s, kind, m in order[at : at + 2]:  # what comes next is received meanwhile
                if kind == "F" and s > 0:
                    self.link.expect_arguments(s, m)
                elif kind in "BI" and s < self.last and m in self.stages[s]._passed:
                    self.link.expect_gradients(s, m, self.stages[s].results(m))
            stage, m = self.stages[action.stage_index], action.microbatch
            if action.kind == "F":
                self._forward(stage, m)
            elif action.kind == "W":
                stage.backward_weight_one_chunk(m)
            else:
                self._backward(stage, m, action.kind == "B")

    def _forward(self, stage: PipelineStage, m: int) -> None:
        arguments: list[Tensor] = []
        args = self.args[m] if stage.is_first else ()
        if not stage.is_first:
            arguments = self.link.take_arguments(stage.stage_index, m)
            args = tuple(arguments)
        found = stage.forward_one_chunk(m, args, self.kwargs[m], arguments)
        if not stage.is_last:
            results = list(found) if isinstance(found, (list, tuple)) else [found]
            self.link.send_results(stage.stage_index, m, results)
            return
        if self.return_outputs:
            self.outputs[m] = _detached(found)
        if self.targets is not None:
            assert self.schedule._loss_fn is not None, "asked before"
            loss = self.schedule._loss_fn(found, self.targets[m], **self.loss_kwargs)
            if not isinstance(loss, Tensor) or loss.numel() != 1:
                raise ValueError("step: loss_fn must give a tensor of one number.")
            self.losses[m] = loss.detach()
            if self.trains:
                self.raw[m] = loss

    def _backward(self, stage: PipelineStage, m: int, whole: bool) -> None:
        roots: list[Tensor]
        grads: list[Tensor | None]
        if stage.is_last:
            # Divided here, gradients that were there before stay as they are.
            scale = 1 / self.schedule._n_microbatches if self.schedule.scale_grads else 1.0
            loss = self.raw.pop(m)
            roots, grads = [loss], [F.full(loss.shape, scale, dtype=loss.dtype, device=loss.device)]
        else:
            roots = stage.results(m)
            grads = self.link.take_gradients(stage.stage_index, m, roots)
        found = stage.backward_one_chunk(m, roots, grads, whole)
        if not stage.is_first:
            self.link.send_gradients(stage.stage_index, m, found)


def _detached(found: Any) -> Any:
    if isinstance(found, Tensor):
        return found.detach()
    if isinstance(found, (list, tuple)) and not hasattr(found, "_fields"):
        return type(found)(_detached(v) for v in found)
    return {k: _detached(v) for k, v in found.items()} if type(found) is dict else found
