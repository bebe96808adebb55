"""Tensors as the contiguous arrays that transports move: in place where that is possible, else by way of a copy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autograd.modes import no_grad
from ..tensor import Tensor
from .transports.base import Array


def checked(what: str, tensor: object) -> Tensor:
    """A tensor that has numbers in memory, or the error that says what came.

    >>> votive.distributed.buffers.checked("all_reduce", 3)
    Traceback (most recent call last):
    ...
    TypeError: Invalid function argument. all_reduce: expected a votive.Tensor, got int.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Invalid function argument. {what}: expected a votive.Tensor, got {type(tensor).__name__}.")
    if type(tensor).__torch_function__ is not Tensor.__torch_function__ and hasattr(tensor, "_components"):
        raise TypeError(
            f"{what}: takes tensors with numbers of their own, got a {type(tensor).__name__}; send its parts."
        )
    if tensor.device.type == "meta":
        raise TypeError(f"{what}: a tensor on the meta device has no numbers.")
    return tensor


def checked_all(what: str, tensors: object, count: int | None = None) -> list[Tensor]:
    """A list of tensors, so many of them."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"Invalid function argument. {what}: expected a list of tensors, got {type(tensors).__name__}.")
    if count is not None and len(tensors) != count:
        raise ValueError(f"{what}: needs a tensor for each of the {count} ranks, got {len(tensors)}.")
    return [checked(what, t) for t in tensors]


def readable(tensor: Tensor) -> Array:
    """The numbers of a tensor, flat; a copy unless they lie side by side on the CPU."""
    x = tensor.detach()
    if x.is_cpu and x.is_contiguous() and not x.is_conj() and not x.is_neg():
        return x.numpy().reshape(-1)
    return np.ascontiguousarray(x.cpu().contiguous().resolve_conj().numpy()).reshape(-1)


class Written:
    """A tensor that a transport writes: `array` is its memory, or becomes its content by `finish`."""

    def __init__(self, tensor: Tensor, reads: bool = False) -> None:
        self.tensor = tensor
        x = tensor.detach()
        self.direct = x.is_cpu and x.is_contiguous() and not tensor._storage.readonly
        if self.direct:
            self.array: Array = x.numpy().reshape(-1)
            tensor._storage.version += 1
        elif reads:
            self.array = readable(tensor).copy()
        else:
            self.array = np.empty(x.numel(), x[:0].cpu().numpy().dtype if x.dim() else x.cpu().numpy().dtype)

    def finish(self) -> None:
        """Bring what was written to where it belongs."""
        if not self.direct:
            with no_grad():
                self.tensor.copy_(from_array(self.array).view(self.tensor.shape))


def from_array(array: Array) -> Tensor:
    """A tensor over an array's memory.

    >>> import numpy as np
    >>> votive.distributed.buffers.from_array(np.ones(2, np.float32))
    tensor([1., 1.])
    """
    from ..surface.interchange import from_numpy

    found: Tensor = from_numpy(array)
    return found


def agreement(tensors: Sequence[Tensor], *more: Any) -> tuple[str, str, int]:
    """What ranks must agree on, what is shown of it, and the bytes."""
    count = sum(t.numel() for t in tensors)
    kind = str(tensors[0].dtype).rpartition(".")[2] if tensors else "nothing"
    rest = " ".join(str(m) for m in more if m is not None)
    sizes = ", ".join(str(tuple(t.shape)) for t in tensors[:3]) + (", ..." if len(tensors) > 3 else "")
    return f"{kind} {count} {rest}", f"{kind} {sizes}{rest and ' '}{rest}", sum(t.nbytes for t in tensors)


def finishing(written: Sequence[Written], result: Any) -> Callable[[], Any]:
    """Finish several, then give the result."""

    def finish() -> Any:
        for one in written:
            one.finish()
        return result

    return finish
