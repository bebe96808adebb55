"""Changing dtype and device of a module's parameters and buffers. Knows tensors, not calls.

A parameter keeps its identity: its memory is exchanged, so that an optimizer still holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self, cast

from ..autograd.modes import no_grad
from ..core import dtype as dt
from ..core.device import DeviceLike
from ..core.device import device as Device
from ..core.memory_format import memory_format as MemoryFormat
from ..ops.registry import F
from ..tensor import Tensor


def _computing(t: Tensor, dtype: dt.dtype | None) -> Tensor:
    """Weights in blocks keep their blocks; only the numbers that come out of them change."""
    if dtype is None or t.dtype.category >= dt.BOOL:
        return t
    return t.computing_in(dtype)  # type: ignore[attr-defined]


class Convertible:
    """The part of Module that converts its state."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    children: Callable[[], Iterator[Any]]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the memory of every parameter, gradient and buffer by `fn` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            with no_grad():
                param.data = fn(param)
                if param._grad is not None:
                    param._grad.data = fn(param._grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device and cast to a dtype; integer tensors keep theirs.

        `to(device, dtype, non_blocking)`, `to(dtype, non_blocking)`, `to(tensor, non_blocking)`,
        `to(memory_format=votive.channels_last)`.

        >>> m = votive.nn.ParameterList([votive.ones(1)]).to(votive.float64)
        >>> m[0].dtype
        votive.float64
        """
        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None and not dtype.is_inexact:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(t: Tensor) -> Tensor:
            if t.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use Module.to_empty() instead of Module.to() when "
                    "moving a module from meta to a different device."
                )
            cast = dtype if t.is_floating_point() or t.is_complex() else None
            where = t.device if device is None else device
            options: dict[str, Any] = {"non_blocking": non_blocking}
            if memory_format is not None and t.dim() in (4, 5):
                options["memory_format"] = memory_format
            return _computing(t.to(where, t.dtype if cast is None else cast, **options), dtype)

        return self._apply(convert)

    def _cast_floating(self, dtype: dt.dtype) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else _computing(t, dtype))

    def float(self) -> Self:
        """Cast floating point parameters and buffers to float32.

        >>> votive.nn.ParameterList([votive.ones(1)]).half().float()[0].dtype
        votive.float32
        """
        return self._cast_floating(dt.float32)

    def double(self) -> Self:
        """Cast floating point parameters and buffers to float64.

        >>> votive.nn.ParameterList([votive.ones(1)]).double()[0].dtype
        votive.float64
        """
        return self._cast_floating(dt.float64)

    def half(self) -> Self:
        """Cast floating point parameters and buffers to float16.

        >>> votive.nn.ParameterList([votive.ones(1)]).half()[0].dtype
        votive.float16
        """
        return self._cast_floating(dt.float16)

    def bfloat16(self) -> Self:
        """Cast floating point parameters and buffers to bfloat16.

        >>> votive.nn.ParameterList([votive.ones(1)]).bfloat16()[0].dtype
        votive.bfloat16
        """
        return self._cast_floating(dt.bfloat16)

    def type(self, dst_type: str | dt.dtype) -> Self:
        """Cast all parameters and buffers, integer ones too.

        >>> votive.nn.ParameterList([votive.ones(1)]).type(votive.float64)[0].dtype
        votive.float64
        """
        return self._apply(lambda t: cast(Tensor, t.type(dst_type)))

    def cpu(self) -> Self:
        """Move to the CPU.

        >>> votive.nn.ParameterList([votive.ones(1)]).cpu()[0].device
        device(type='cpu')
        """
        return self._apply(lambda t: t.to("cpu"))

    def cuda(self, device: DeviceLike = None) -> Self:
        """Move to a CUDA device, the current one by default."""
        where = f"cuda:{device}" if isinstance(device, int) else device or "cuda"
        return self._apply(lambda t: t.to(where))

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Move to a device without copying values: how a module that was made on "meta" gets memory.

        >>> votive.nn.ParameterList([votive.ones(2)]).to_empty(device="cpu")[0].device
        device(type='cpu')
        """
        return self._apply(lambda t: F.empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Move the values to shared memory; not supported yet, as for tensors."""
        return self._apply(lambda t: t.share_memory_())


def parse_to(*args: Any, **kwargs: Any) -> tuple[Device | None, dt.dtype | None, bool, MemoryFormat | None]:
    """Device, dtype, non_blocking and memory format from the forms that `to` takes.

    >>> from votive.nn.convert import parse_to
    >>> parse_to("cpu", votive.float16)
    (device(type='cpu'), votive.float16, False, None)
    """
    if "copy" in kwargs:
        raise RuntimeError("Module.to() does not accept copy argument")
    unknown = set(kwargs) - {"device", "dtype", "tensor", "non_blocking", "memory_format"}
    if unknown:
        raise TypeError(f"to() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    non_blocking, memory_format = kwargs.get("non_blocking", False), kwargs.get("memory_format")
    rest = list(args)
    if "tensor" in kwargs:
        rest.insert(0, kwargs["tensor"])
    if rest:
        first = rest.pop(0)
        if isinstance(first, Tensor):
            device, dtype = first.device, first.dtype
        elif isinstance(first, dt.dtype):
            dtype = first
        elif first is None or isinstance(first, (str, int, Device)):
            device = first
            if rest and (rest[0] is None or isinstance(rest[0], dt.dtype)):
                dtype = rest.pop(0)
        else:
            raise TypeError(f"to() takes a device, a dtype or a tensor, got {type(first).__name__}.")
    if rest:
        non_blocking = rest.pop(0)
    if rest or not isinstance(non_blocking, bool):
        raise TypeError(f"to() received an invalid combination of arguments: {args}.")
    if memory_format is not None and not isinstance(memory_format, MemoryFormat):
        raise TypeError(f"to(): memory_format must be a memory format, got {memory_format!r}.")
    if isinstance(device, int):
        device = Device("cuda", device)
    return (None if device is None else Device(device)), dtype, non_blocking, memory_format
