"""`DataParallel`: a module that cuts its batches into pieces for several GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...cuda import device_count, is_available
from ..module import Module
from .comm import as_device
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Cut a batch along `dim`, run the pieces on `device_ids` and join the results on `output_device`.

    Without a GPU it calls the module as it is. The module must be on the first of the devices.

    >>> net = votive.nn.DataParallel(votive.nn.Linear(2, 1))
    >>> sorted(net.state_dict()), net(votive.ones(4, 2)).shape
    (['module.bias', 'module.weight'], votive.Size([4, 1]))
    """

    module: Module

    def __init__(
        self, module: Any, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.module = module
        if not is_available():
            self.device_ids: list[Any] = []
            return
        ids = list(range(device_count())) if device_ids is None else list(device_ids)
        if not ids:
            raise RuntimeError("no available devices were found")
        self.dim = dim
        self.device_ids = [as_device(d).index or 0 for d in ids]
        self.output_device = as_device(ids[0] if output_device is None else output_device)
        self.src_device_obj = as_device(ids[0])
        if len(ids) == 1:
            module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        for t in (*self.module.parameters(), *self.module.buffers()):
            if t.device != self.src_device_obj:
                raise RuntimeError(
                    "module must have its parameters and buffers on device "
                    f"{self.src_device_obj} (device_ids[0]) but found one of them on device: {t.device}"
                )
        args, named = self.scatter(inputs, kwargs, self.device_ids)
        if not args and not named:
            args, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*args[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(args)])
        return self.gather(self.parallel_apply(replicas, args, named), self.output_device)

    def replicate(self, module: Any, device_ids: Sequence[Any]) -> list[Any]:
        """A copy of the module per device."""
        return replicate(module, device_ids, not _grad())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]) -> Any:
        """Pieces of the arguments."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Any], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """The results of the pieces."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The results put together."""
        return gather(outputs, output_device, dim=self.dim)


def _grad() -> bool:
    from ...autograd.modes import is_grad_enabled

    return is_grad_enabled()


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """What `DataParallel(module, device_ids, output_device, dim)` gives for `inputs`.

    >>> votive.nn.parallel.data_parallel(votive.nn.Identity(), votive.ones(2))
    tensor([1., 1.])
    """
    given = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*given, **(module_kwargs or {}))
