"""A tensor's numbers as Python, NumPy and other libraries see them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dispatch
from ..backends.base import BACKENDS
from ..core import dtype as dt
from ..core.errors import received
from ..core.mode import mode
from ..ops.registry import F
from . import printing
from .facts import Facts

if TYPE_CHECKING:
    from ..core.device import DeviceLike

if TYPE_CHECKING:
    from ..tensor import Tensor


class Values(Facts):
    """The part of Tensor that hands out its numbers."""

    def item(self) -> Any:
        """The single value as a Python number."""
        if self._spec.numel != 1:
            raise RuntimeError(f"a Tensor with {self._spec.numel} elements cannot be converted to Scalar.")
        if dispatch.state.observers:
            dispatch.was_read(self)
        return BACKENDS[self._spec.device.type].item(self._data)

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        if dispatch.state.observers:
            dispatch.was_read(self)
        a = BACKENDS[self.device.type].to_numpy(self._data)
        if self.dtype in dt.HALF or self.dtype in dt.FLOAT8:
            a = a.astype(np.float32)
        return a.tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """The same memory as a NumPy array; `force` also detaches and moves to the CPU."""
        if not force:
            if self._rg and mode.grad:
                raise RuntimeError("can't call numpy() on Tensor that requires grad; use tensor.detach().numpy().")
            if not self.is_cpu:
                raise TypeError(f"can't convert a {self.device} tensor to numpy; use .cpu() first.")
        if dispatch.state.observers:
            dispatch.was_read(self)
        a = BACKENDS[self.device.type].to_numpy(self._data)
        return a.view()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        a = self.numpy()
        if dtype is not None and a.dtype != dtype:
            if copy is False:
                raise ValueError("a copy is needed to change the dtype.")
            return a.astype(dtype)
        return a.copy() if copy else a

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
        """NumPy's functions of a tensor give a tensor; their truth values come as bytes, as in
        torch.
        """
        from .interchange import from_numpy

        a = np.asarray(array)
        return from_numpy(a.astype(np.uint8) if a.dtype == bool else a)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The array-API standard's functions for tensors."""
        from importlib import import_module

        import_module("votive.np")
        return import_module("votive.np.array_api").namespace(api_version)

    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> Tensor:
        """The tensor on another device, by the name that the array-API standard gives to `to`."""
        if stream is not None:
            raise ValueError("to_device: streams are chosen by votive.cuda.stream(); leave `stream` out.")
        return F.to(self, device)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """A capsule over this tensor's memory, or over a copy where one is asked for."""
        if self._rg:
            raise BufferError("can't export tensors that require gradient; use tensor.detach().")
        source = self
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if copy is False or tuple(dl_device) != (1, 0):
                raise BufferError(
                    f"__dlpack__: a tensor on {self.device} cannot be exported to {dl_device}"
                    f"{' without a copy' if copy is False else ''}."
                )
            source, stream = self.cpu(), None
        elif copy:
            source = self.clone()
        if dispatch.state.observers:
            dispatch.was_read(self)
        backend = _sharing(source, "export")
        return backend.export(source._data, source._spec, stream, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _sharing(self, "dlpack_device").dlpack_device(self._spec)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Numba's and CuPy's description of memory on the GPU."""
        backend = BACKENDS[self._spec.device.type]
        if not hasattr(backend, "array_interface"):
            raise AttributeError("__cuda_array_interface__: the tensor is not on a GPU.")
        if self._rg:
            raise RuntimeError("can't share a Tensor that requires grad; use tensor.detach().")
        if dispatch.state.observers:
            dispatch.was_read(self)
        return backend.array_interface(self._data, self._spec)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        node = self.grad_fn  # type: ignore[attr-defined]  # of the class that derives from this
        suffixes = printing.tensor_suffixes(
            dtype=self.dtype.name,
            shape=tuple(self.shape),
            default_dtype=dt.get_default_dtype().name,
            device=str(self.device),
            requires_grad=self._rg,
            grad_fn=node.name() if node is not None else None,
        )
        array = None if self.is_meta else BACKENDS[self.device.type].to_numpy(self._data)
        text = printing.format_tensor(array, suffixes=suffixes)
        if "_own_spec" not in self.__dict__:
            return text
        # A class that answers calls itself is shown by its name, and what is below its first line moves with it.
        name = type(self).__name__
        first, *rest = text.removeprefix("tensor").split("\n")
        shift = len(name) - len("tensor")
        moved = [" " * shift + line if shift >= 0 else line.removeprefix(" " * -shift) for line in rest]
        return "\n".join([name + first, *moved])

    def __format__(self, spec: str) -> str:
        if self.ndim == 0:
            return format(self.item(), spec)
        if spec:
            raise TypeError("only 0-d tensors take a format; use item() or tolist().")
        return repr(self)

    def __bool__(self) -> bool:
        if self._spec.numel != 1:
            if self._spec.numel == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def _number(self) -> Any:
        """`item()` for int(), float() and complex(), which complain about a value, not a call."""
        if self._spec.numel != 1:
            raise ValueError("only tensors of one element can be converted to Python numbers.")
        return self.item()

    def _real_number(self) -> Any:
        value = self._number()
        if not isinstance(value, complex):
            return value
        if value.imag != 0:
            raise RuntimeError(f"{value} has an imaginary part; take .real first.")
        return value.real

    def __int__(self) -> int:
        return int(self._real_number())

    def __float__(self) -> float:
        return float(self._real_number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.dtype.category > dt.INT or self._spec.numel != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self._spec.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(F.unbind(self, 0))

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Values, int, float, bool, complex)):
            return bool(F.eq(self, element).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, got {received(element)}.")

    # By identity; comparison is elementwise.
    __hash__ = object.__hash__

    def __getitem__(self, index: object) -> Tensor:
        return F._getitem(self, index)

    def __setitem__(self, index: object, value: object) -> None:
        F._setitem(self, index, value)


def _sharing(tensor: Values, what: str) -> Any:
    """The tensor's backend, if it can share memory with other libraries."""
    backend = BACKENDS[tensor._spec.device.type]
    if not hasattr(backend, what):
        raise BufferError(f"__dlpack__: memory on {tensor.device} cannot be shared.")
    return backend
