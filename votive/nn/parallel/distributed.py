"""DistributedDataParallel: a module of which every rank holds a copy that sees its own part of each batch."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...core.mode import mode
from ...futures import Future
from ...tensor import Tensor
from ..module import Module
from ..parameter import is_lazy
from .buckets import MIB, GradBucket, bytes_of
from .comm import as_device
from .moving import moved
from .scatter_gather import gather

if TYPE_CHECKING:
    from .joining import Joining
    from .reducer import Reducer

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Let every rank run a module on its own part of a batch, and average the gradients while backward runs.

    All ranks begin with rank 0's parameters and buffers. Gradients go in buckets of `bucket_cap_mb` MiB, from the last
    parameter to the first. With a loss that is a mean, ranks with equally large parts make the step of one process.

    >>> def train():
    ...     model = votive.nn.parallel.DistributedDataParallel(votive.nn.Linear(1, 1, bias=False))
    ...     x = votive.full((2, 1), votive.distributed.get_rank() + 1.0)
    ...     model(x).mean().backward()
    ...     return model.module.weight.grad.item()
    >>> votive.distributed.simulate(train, 2)
    [1.5, 1.5]
    """

    module: Any  # a Module
    _joining: Joining | None = None

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        for name, given, instead in (
            ("delay_all_reduce_named_params", delay_all_reduce_named_params, "all gradients are averaged in backward"),
            ("param_to_hook_all_reduce", param_to_hook_all_reduce, "all gradients are averaged in backward"),
            ("mixed_precision", mixed_precision, "use votive.autocast, and bf16_compress_hook for what is sent"),
            ("skip_all_reduce_unused_params", skip_all_reduce_unused_params, "find_unused_parameters=True sends zeros"),
            ("batched_grad_copy", batched_grad_copy, "gradient_as_bucket_view=True copies less"),
        ):
            if given:
                raise NotImplementedError(f"DistributedDataParallel: {name} is not supported; {instead}.")
        if check_reduction:
            warnings.warn("DistributedDataParallel: check_reduction has no effect.", FutureWarning, stacklevel=2)
        if broadcast_buffers is not None and forward_sync_buffers is not None:
            raise ValueError("DistributedDataParallel: give one of broadcast_buffers and forward_sync_buffers.")
        self.process_group = _group_of(process_group, device_mesh)
        self.device_mesh = device_mesh
        first = 1 * MIB if bucket_cap_mb is None else bytes_of(bucket_cap_mb, "bucket_cap_mb")
        self.bucket_bytes_cap = bytes_of(bucket_cap_mb, "bucket_cap_mb")
        self._caps = [first, self.bucket_bytes_cap]
        if bucket_cap_mb_list:
            self._caps = [bytes_of(cap, "bucket_cap_mb_list") for cap in bucket_cap_mb_list]
        self.dim, self.static_graph = dim, static_graph
        self.find_unused_parameters, self.gradient_as_bucket_view = find_unused_parameters, gradient_as_bucket_view
        self.broadcast_buffers = broadcast_buffers is not False and forward_sync_buffers is not False
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self.module = module
        named = self._checked()
        self.device_ids, self.output_device = _placed(self._own(), device_ids, output_device)
        if init_sync:
            from .agreeing import broadcast_all, check_same_everywhere

            check_same_everywhere(
                [(n, p) for n, p in module.named_parameters() if n not in self.parameters_to_ignore], self.process_group
            )
            kept = self.broadcast_buffers or forward_sync_buffers is not None
            broadcast_all([p for _, p in self._own(buffers=kept)], self.process_group)
        self.reducer = self._watched(named)

    def _own(self, buffers: bool = True) -> list[tuple[str, Tensor]]:
        """Parameters and buffers by name, but for those to be ignored."""
        every: list[tuple[str, Tensor]] = list(self.module.named_parameters())
        if buffers:
            every += self.module.named_buffers()
        return [(n, t) for n, t in every if n not in self.parameters_to_ignore]

    def _checked(self) -> list[tuple[str, Tensor]]:
        """The parameters that get gradients."""
        if any(is_lazy(p) for _, p in self._own()):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. "
                "Run a dummy forward pass to correctly initialize the modules"
            )
        named = [(n, p) for n, p in self._own(buffers=False) if p.requires_grad]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        for path, part in self.module.named_modules():
            if getattr(part, "sparse", False) and f"{path}.weight".lstrip(".") in dict(named):
                raise NotImplementedError(
                    f"DistributedDataParallel: {path or 'the module'} gives sparse gradients, and only dense ones are "
                    "sent; build the embedding with sparse=False."
                )
        return named

    def _watched(self, named: Sequence[tuple[str, Tensor]]) -> Reducer:
        from .reducer import Reducer

        options = (self.find_unused_parameters, self.gradient_as_bucket_view, self.static_graph)
        return Reducer(named, self.process_group, self._caps, *options)

    # --- calls --------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        sends = self.require_backward_grad_sync
        if mode.grad:
            self.reducer.arm(sends)
        if self._joining is not None:
            self._joining.step()
        elif self.will_sync_module_buffers():
            from .agreeing import broadcast_all

            broadcast_all(
                [b for n, b in self.module.named_buffers() if n not in self.parameters_to_ignore], self.process_group
            )
        if self.device_ids:
            inputs, kwargs = moved((inputs, kwargs), self.device_ids[0])
        result = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = sends or not mode.grad
        return result

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward pass begins by giving rank 0's buffers to all."""
        return self.require_forward_param_sync and self.broadcast_buffers and any(True for _ in self.module.buffers())

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Results put together on one device."""
        return gather(outputs, output_device, dim=self.dim)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients add up on each rank: passes begun in this block send none, the next one outside sends the sums.

        >>> def accumulate():
        ...     model = votive.nn.parallel.DistributedDataParallel(votive.nn.Linear(1, 1, bias=False))
        ...     x = votive.full((1, 1), votive.distributed.get_rank() + 1.0)
        ...     with model.no_sync():
        ...         model(x).sum().backward()
        ...     alone = model.module.weight.grad.item()
        ...     model(x).sum().backward()
        ...     return alone, model.module.weight.grad.item()
        >>> votive.distributed.simulate(accumulate, 2)
        [(1.0, 3.0), (2.0, 3.0)]
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> contextlib.AbstractContextManager[Any]:
        """Let ranks have unequal numbers of batches: in this block, who has no more goes along with the others.

        Gradients are divided by the number of ranks, or of those that still have batches. Behind the block all ranks
        have the parameters of those that took most steps.

        >>> def train():
        ...     model = votive.nn.parallel.DistributedDataParallel(votive.nn.Linear(1, 1, bias=False))
        ...     optimizer = votive.optim.SGD(model.parameters(), lr=0.1)
        ...     with model.join():
        ...         for _ in range(1 + votive.distributed.get_rank()):
        ...             optimizer.zero_grad()
        ...             model(votive.ones(1, 1)).sum().backward()
        ...             optimizer.step()
        ...     return model.module.weight.item()
        >>> first, second = votive.distributed.simulate(train, 2)
        >>> first == second
        True
        """
        if not enable:
            return contextlib.nullcontext()
        from .joining import Joining

        return Joining(self, divide_by_initial_world_size, throw_on_early_termination)

    def register_comm_hook(self, state: Any, hook: Callable[[Any, GradBucket], Future[Any]]) -> None:
        """Let `hook(state, bucket)` average the gradients of each bucket; it gives the Future of the new buffer.

        >>> from votive.distributed.algorithms.ddp_comm_hooks import default_hooks
        >>> def train():
        ...     model = votive.nn.parallel.DistributedDataParallel(votive.nn.Linear(1, 1, bias=False))
        ...     model.register_comm_hook(None, default_hooks.bf16_compress_hook)
        ...     model(votive.full((1, 1), votive.distributed.get_rank() + 1.0)).sum().backward()
        ...     return model.module.weight.grad.item()
        >>> votive.distributed.simulate(train, 2)
        [1.5, 1.5]
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook, self.reducer.hook_state = hook, state

    # --- copies -------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        from ...distributed import group

        if self.process_group is not group.WORLD:
            raise RuntimeError("DDP Pickling/Unpickling are only supported when using DDP with the default group.")
        state: dict[str, Any] = super().__getstate__()
        return {k: v for k, v in state.items() if k not in ("process_group", "reducer", "device_mesh")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group, self.device_mesh = _group_of(None, None), None
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.reducer = self._watched(self._checked())


def _group_of(process_group: Any, mesh: Any) -> Any:
    from ...distributed.world import needed

    if process_group is not None and mesh is not None:
        raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
    if mesh is not None:
        if mesh.ndim != 1:
            raise RuntimeError(f"Only 1D device mesh is supported, but got {mesh}.")
        return mesh.get_group(0)
    if process_group is None:
        return needed().group
    if not hasattr(process_group, "ranks"):
        raise ValueError(f"DistributedDataParallel: this rank is not in the process group, got {process_group!r}.")
    return process_group


def _placed(
    named: Sequence[tuple[str, Tensor]], device_ids: Sequence[Any] | None, output_device: Any
) -> tuple[list[Any] | None, Any]:
    """Where inputs go, and the device that results are on."""
    devices = {t.device for _, t in named}
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    if not device_ids:
        return None, output_device
    kinds = {d.type for d in devices}
    if kinds != {"cuda"} or len(devices) > 1:
        raise ValueError(
            "DistributedDataParallel device_ids and output_device arguments only work with single-device/"
            f"multiple-device GPU modules or CPU modules, but got device_ids {list(device_ids)}, output_device "
            f"{output_device}, and module parameters {devices}."
        )
    place = as_device(device_ids[0])
    return [place], as_device(output_device) if output_device is not None else place
