"""A stage of a pipeline: a module, and what it has computed of each microbatch. Knows no order and no messages."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...autograd.engine import backward
from ...core.device import device as Device
from ...nn.module import Module
from ...nn.parallel import DistributedDataParallel
from ...ops.registry import F
from ...tensor import Tensor
from ..fsdp import FSDPModule
from ..group import ProcessGroup
from ..world import group_of
from .halves import WeightHalf, input_half


class Passed(NamedTuple):
    """What a stage keeps of a microbatch until its backward pass."""

    arguments: list[Tensor]  # leaves, of which gradients go back
    results: list[Tensor]


class PipelineStage:
    """One of `num_stages` parts of a model, which follow one another: `submodule` gets what the part before it gives.

    The submodule may be wrapped by DistributedDataParallel or spread by `fully_shard` along another dimension of the
    mesh; its gradients are then sent with the last microbatch of a step. `input_args` and `output_args`, if they are
    given, say which types and sizes a microbatch has, and others are refused.

    >>> from votive.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> def train():
    ...     rank = votive.distributed.get_rank()
    ...     layer = votive.nn.Linear(2, 2, bias=False)
    ...     votive.nn.init.ones_(layer.weight)
    ...     schedule = ScheduleGPipe(PipelineStage(layer, rank, 2, "cpu"), 2, votive.nn.functional.mse_loss)
    ...     x, y = votive.ones(4, 2), votive.zeros(4, 2)
    ...     losses = []
    ...     schedule.step(*((x,) if rank == 0 else ()), target=y if rank == 1 else None, losses=losses)
    ...     return [loss.item() for loss in losses], layer.weight.grad[0, 0].item()
    >>> votive.distributed.simulate(train, 2)
    [([], 8.0), ([16.0, 16.0], 8.0)]
    """

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any,
        input_args: Tensor | tuple[Tensor, ...] | None = None,
        output_args: Tensor | tuple[Tensor, ...] | None = None,
        output_grads: Any = None,
        input_grads: Any = None,
        group: ProcessGroup | None = None,
        dw_builder: Any = None,
        get_mesh: Any = None,
    ) -> None:
        if not isinstance(submodule, Module):
            raise TypeError(f"PipelineStage: submodule must be a Module, got {type(submodule).__name__}.")
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        for name, given in (("output_grads", output_grads), ("input_grads", input_grads),
                            ("dw_builder", dw_builder), ("get_mesh", get_mesh)):  # fmt: skip
            if given is not None:
                raise NotImplementedError(
                    f"PipelineStage: {name} is not supported; types and sizes travel with the tensors, and backward is "
                    "split by the graph."
                )
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device = Device(device)
        self.group = group_of(group)
        self.group_rank, self.group_size = self.group.rank(), self.group.size()
        if self.group_size > num_stages:
            raise ValueError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self._inputs, self._outputs = _listed(input_args), _listed(output_args)
        if any(p.device != self.device for p in submodule.parameters() if not p.is_meta):
            submodule.to(self.device)
        self.has_backward = False
        self._passed: dict[int, Passed] = {}
        self._weights: dict[int, WeightHalf] = {}
        self._left = 0  # how many backward passes of this step are to come

    @property
    def is_first(self) -> bool:
        """Whether it gets the batch itself."""
        return self.stage_index == 0

    @property
    def is_last(self) -> bool:
        """Whether it gives the result."""
        return self.stage_index == self.num_stages - 1

    @property
    def plain(self) -> Module:
        """The module without the wrapper that averages its gradients."""
        return self.submod.module if isinstance(self.submod, DistributedDataParallel) else self.submod

    # --- a step -------------------------------------------------------------------------------

    def begin(self, microbatches: int, trains: bool) -> None:
        """Forget the step before."""
        self._passed.clear()
        self._weights.clear()
        self.has_backward, self._left = trains, microbatches
        if isinstance(self.submod, DistributedDataParallel):
            self.submod.require_forward_param_sync = True  # buffers once a step

    def forward_one_chunk(
        self, microbatch: int, args: Sequence[Any], kwargs: dict[str, Any], arguments: Sequence[Tensor]
    ) -> Any:
        """Run the module; `args` are the batch's own, or what has come from the stage before (`arguments`)."""
        self._check("input_args", self._inputs, args)
        quiet = isinstance(self.submod, DistributedDataParallel) and self.has_backward
        with self.submod.no_sync() if quiet else contextlib.nullcontext():
            found = self.submod(*args, **kwargs)
        results = _listed(found)
        if results is None or not all(isinstance(t, Tensor) for t in results):
            if not self.is_last:
                raise TypeError(
                    f"stage {self.stage_index} gives a {type(found).__name__}; between stages go a Tensor, or a tuple "
                    "of them."
                )
            results = []
        self._check("output_args", self._outputs, results)
        if self.has_backward:
            self._passed[microbatch] = Passed([t for t in arguments if t.requires_grad], results)
        return found

    def results(self, microbatch: int) -> list[Tensor]:
        """What the module gave for a microbatch that waits for its backward pass."""
        return self._passed[microbatch].results

    def backward_one_chunk(
        self, microbatch: int, roots: Sequence[Tensor], grads: Sequence[Tensor | None], whole: bool
    ) -> list[Tensor]:
        """Gradients of what has come from the stage before; of the weights, too, if it is the `whole` pass."""
        arguments = self._passed.pop(microbatch).arguments
        pairs = [(t, g) for t, g in zip(roots, grads, strict=True) if t.requires_grad]
        found: Sequence[Tensor | None]
        if whole:
            if self.is_last_backward():
                self._send_gradients()
            elif isinstance(self.submod, FSDPModule):
                self._keep_gradients()
            if pairs:
                backward([t for t, _ in pairs], [g for _, g in pairs])
            self._sent()
            found = [t.grad for t in arguments]
            self._left -= 1
        else:
            found, self._weights[microbatch] = input_half([t for t, _ in pairs], [g for _, g in pairs], arguments)
        return [F.zeros_like(t.detach()) if g is None else g for t, g in zip(arguments, found, strict=True)]

    def backward_weight_one_chunk(self, microbatch: int) -> None:
        """The other half of `backward_one_chunk`."""
        if self.is_last_backward():
            self._send_gradients()
        elif isinstance(self.submod, FSDPModule):
            self._keep_gradients()
        self._weights.pop(microbatch).run()
        self._sent()
        self._left -= 1

    def is_last_backward(self) -> bool:
        """Whether the backward pass that comes is the last of the step."""
        return self._left == 1

    def _send_gradients(self) -> None:
        if isinstance(self.submod, DistributedDataParallel):
            self.submod.reducer.arm(self.submod.require_backward_grad_sync)
        elif isinstance(self.submod, FSDPModule):
            self.submod.set_requires_gradient_sync(True)
            self.submod.set_reshard_after_backward(True)

    def _sent(self) -> None:
        # Another stage of this rank may have one of these weights, too.
        if isinstance(self.submod, DistributedDataParallel) and self.is_last_backward():
            self.submod.reducer.arm(False)

    def _keep_gradients(self) -> None:
        assert isinstance(self.submod, FSDPModule), "asked before"
        self.submod.set_requires_gradient_sync(False)
        self.submod.set_reshard_after_backward(False)

    def _check(self, name: str, wanted: Sequence[Tensor] | None, found: Sequence[Any]) -> None:
        if wanted is None:
            return
        shown = [(str(t.dtype), tuple(t.shape)) for t in wanted]
        came = [(str(t.dtype), tuple(t.shape)) if isinstance(t, Tensor) else type(t).__name__ for t in found]
        if shown != came:
            raise ValueError(f"stage {self.stage_index}: {name} says {shown}, and there are {came}.")


def _listed(given: Any) -> list[Tensor] | None:
    if given is None:
        return None
    return list(given) if isinstance(given, (list, tuple)) else [given]


def build_stage(
    stage_module: Module, stage_index: int, pipe_info: Any, device: Any, group: ProcessGroup | None = None
) -> PipelineStage:
    """The stage of a part that `pipeline` has made; `pipe_info` is `pipe.info()`.

    >>> from votive.distributed.pipelining import build_stage, pipeline
    >>> def second():
    ...     model = votive.nn.Sequential(votive.nn.Linear(2, 2), votive.nn.ReLU())
    ...     pipe = pipeline(model, (votive.ones(1, 2),), split_spec=2)
    ...     return build_stage(pipe.get_stage_module(1), 1, pipe.info(), "cpu").is_last
    >>> votive.distributed.simulate(second, 2)
    [True, True]
    """
    return PipelineStage(stage_module, stage_index, pipe_info.num_stages, device, group=group)
