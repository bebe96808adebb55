"""Tensor: storage, layout, dtype and autograd state in one object; methods are bound from schemas.

Knows no device's internals: what memory looks like is the backend's business.
"""

from __future__ import annotations

import copy as _copy
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dispatch, printing
from .autograd import engine, graph, record, views
from .backends.base import BACKENDS
from .backends.cpu.native.loader import module as native
from .core import dtype as dt
from .core.device import device
from .core.errors import received
from .core.layout import Layout, Size, Spec, is_channels_last
from .core.memory_format import channels_last, channels_last_3d, contiguous_format, layout, memory_format, strided
from .core.mode import mode
from .core.storage import AliasStorage, Storage
from .ops.registry import F

if TYPE_CHECKING:
    from ._operators import TensorMethods
else:
    # The methods of operators are bound when the package is imported; type checkers read their stubs.
    TensorMethods = object


class _LateStorage:
    """The storage of a small result, made on first use: most such tensors die without one."""

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self
        # setdefault is atomic, so two threads get the same storage.
        return tensor.__dict__.setdefault("_storage", Storage(tensor._data))


class Tensor(TensorMethods):
    """A multi-dimensional array that can record its own history.

    >>> votive.Tensor([1, 2])
    tensor([1., 2.])
    """

    _storage: Any = _LateStorage() if native is None else native.LateStorage()
    _data: Any
    _spec: Spec
    # Defaults live on the class, so that a new tensor sets three attributes only.
    _offset: int = 0
    _rg: bool = False
    _edge: Any = None
    _grad: Any = None
    _base: Any = None
    _chain: tuple[Any, ...] = ()
    _seen: int = 0
    _rebased: int = 0
    _views: list[Any] | None = None
    _inference: bool = False
    _no_grad_view: bool = False
    _hooks: dict[int, Any] | None = None
    _post_hooks: dict[int, Any] | None = None
    # NumPy must leave `array * tensor` to Tensor.__rmul__.
    __array_priority__ = 1000

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs:
            made = F.empty((0,))
        elif len(args) == 1 and not isinstance(args[0], int) and not kwargs:
            a = args[0]
            if isinstance(a, Size):
                made = F.empty(a)
            elif isinstance(a, Tensor):
                made = a.detach()
            elif a is None or isinstance(a, (float, complex)):
                raise TypeError(f"Tensor: data must be a sequence, got {type(a).__name__}.")
            else:
                made = F.tensor(a, dtype=dt.get_default_dtype())
        elif all(isinstance(a, int) for a in args) and not kwargs:
            made = F.empty(args)
        else:
            raise TypeError("Tensor() takes sizes or data; use votive.tensor(data, dtype=...).")
        if cls is Tensor:
            return made
        out = object.__new__(cls)
        out.__dict__.update(made.__dict__)
        return out

    # --- what it is ---------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        return self._spec.layout.size

    @property
    def dtype(self) -> dt.dtype:
        return self._spec.dtype

    @property
    def device(self) -> device:
        return self._spec.device

    @property
    def ndim(self) -> int:
        return self._spec.ndim

    def dim(self) -> int:
        return self._spec.ndim

    ndimension = dim

    def size(self, dim: int | None = None) -> Any:
        if dim is None:
            return self._spec.layout.size
        from .core.layout import wrap_dim

        if self.ndim == 0:
            from .core.errors import dim_range

            dim_range("size", dim, 0, ())
        return self._spec.shape[wrap_dim("size", dim, self.ndim, self._spec.shape)]

    def stride(self, dim: int | None = None) -> Any:
        if dim is None:
            return self._spec.strides
        from .core.layout import wrap_dim

        return self._spec.strides[wrap_dim("stride", dim, self.ndim, self._spec.shape)]

    def storage_offset(self) -> int:
        return self._offset

    def numel(self) -> int:
        return self._spec.numel

    nelement = numel

    def element_size(self) -> int:
        return self._spec.dtype.itemsize

    @property
    def itemsize(self) -> int:
        return self._spec.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self._spec.nbytes

    def data_ptr(self) -> int:
        if self._spec.numel == 0:
            return 0
        return self._storage.data_ptr() + self._offset * self._spec.dtype.itemsize

    def untyped_storage(self) -> Storage:
        return self._storage

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked, see `pin_memory`."""
        return bool(self._spec.numel) and self._storage.is_pinned()

    def record_stream(self, stream: Any) -> None:
        """Let the memory, once this tensor is gone, wait for what a stream was given until then.

        Memory is handed out again in the order of the stream it was made on; a tensor that another
        stream uses needs this.
        """
        backend = BACKENDS[self._spec.device.type]
        if not hasattr(backend, "record_stream"):
            raise NotImplementedError(f"record_stream: takes tensors of a GPU, got one on {self._spec.device}.")
        backend.record_stream(self._storage, stream)

    def is_contiguous(self, memory_format: memory_format = contiguous_format) -> bool:
        if memory_format is contiguous_format:
            return self._spec.layout.contiguous
        if memory_format not in (channels_last, channels_last_3d):
            raise RuntimeError(f"is_contiguous: unsupported memory format {memory_format}.")
        if self.ndim != (4 if memory_format is channels_last else 5):
            return False
        return is_channels_last(self._spec.shape, self._spec.strides)

    def is_floating_point(self) -> bool:
        return self._spec.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self._spec.dtype.is_complex

    def is_signed(self) -> bool:
        return self._spec.dtype.is_signed

    def is_set_to(self, tensor: Tensor) -> bool:
        """Whether both are the same window on the same memory."""
        return (
            self._storage.root is tensor._storage.root
            and self._offset == tensor._offset
            and self._spec.layout is tensor._spec.layout
        )

    def is_inference(self) -> bool:
        return self._inference

    def is_conj(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return False

    def resolve_conj(self) -> Tensor:
        return self

    def resolve_neg(self) -> Tensor:
        return self

    @property
    def is_cuda(self) -> bool:
        return self._spec.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        return self._spec.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self._spec.device.type == "meta"

    is_sparse = False
    is_quantized = False

    @property
    def layout(self) -> layout:
        return strided

    def get_device(self) -> int:
        return -1 if self._spec.device.index is None else self._spec.device.index

    @property
    def _version(self) -> int:
        return self._storage.version

    @property
    def _writes(self) -> int:
        """In-place writes to the memory, also those that `_version` leaves out."""
        return self._storage.writes  # type: ignore[no-any-return]

    # --- autograd -----------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return self._rg

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        if self._edge is not None and not requires_grad:
            raise RuntimeError("you can only change requires_grad flags of leaf variables; use .detach().")
        if requires_grad and not self._spec.dtype.is_inexact:
            raise RuntimeError(
                f"only Tensors of floating point and complex dtype can require gradients, got {self._spec.dtype}."
            )
        if requires_grad and self._inference and not mode.inference:
            raise RuntimeError("setting requires_grad=True on an inference tensor; clone() it.")
        self._rg = bool(requires_grad)
        return self

    @property
    def is_leaf(self) -> bool:
        return self.grad_fn is None

    @property
    def grad_fn(self) -> Any:
        if self._base is not None and self._rg:
            views.refresh_view(self)
        return None if self._edge is None else self._edge.node

    @property
    def output_nr(self) -> int:
        return 0 if self._edge is None else int(self._edge.nr)

    @property
    def grad(self) -> Any:
        return self._grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad must be a Tensor or None, got {received(value)}.")
            if value.shape != self.shape:
                raise RuntimeError(f"grad: shape {tuple(value.shape)} does not match the tensor's {tuple(self.shape)}.")
            if value.dtype is not self.dtype:
                raise RuntimeError(f"grad: dtype {value.dtype} does not match {self.dtype}.")
            if value.device is not self.device:
                raise RuntimeError(f"grad: device {value.device} does not match {self.device}.")
        self._grad = value

    def backward(
        self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
    ) -> None:
        """Accumulate the gradients of this tensor into the leaves it came from."""
        engine.backward(self, gradient, retain_graph, create_graph, inputs)

    def register_hook(self, hook: Callable[[Any], Any]) -> graph.Handle:
        """`hook(grad)` runs when this tensor's gradient is known; its result replaces it."""
        if not self._rg:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient.")
        if self.grad_fn is None:
            return graph._add_hook(self, "_hooks", hook)
        node = self._edge.node
        if node.tensor_hooks is None:
            node.tensor_hooks = {}
        table = node.tensor_hooks.setdefault(self._edge.nr, {})
        key = next(graph._hook_ids)
        table[key] = hook
        return graph.Handle(table, key)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], Any]) -> graph.Handle:
        """`hook(self)` runs after this leaf's `.grad` was updated."""
        if not self._rg or self.grad_fn is not None:
            raise RuntimeError("post accumulate grad hooks can only be registered on leaves.")
        return graph._add_hook(self, "_post_hooks", hook)

    def retain_grad(self) -> None:
        """Keep `.grad` for this non-leaf tensor."""
        if not self._rg:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False.")
        if self.grad_fn is None:
            return
        node = self._edge.node
        if node.retained is None:
            node.retained = {}
        node.retained[self._edge.nr] = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        if self._edge is None:
            return False
        refs = self._edge.node.retained or {}
        return self._edge.nr in refs and refs[self._edge.nr]() is self

    def detach(self) -> Tensor:
        """The same memory without history."""
        out = dispatch.make(self._storage, self._data, self._spec, self._offset)
        return out  # type: ignore[no-any-return]

    def detach_(self) -> Tensor:
        if self._base is not None:
            raise RuntimeError("can't detach views in-place; use detach() instead.")
        self._rg, self._edge = False, None
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without history, and with a version of its own: unlike writes to
        `detach()`, those to `data` are not noticed by backward, which then computes with the new
        values.
        """
        storage = AliasStorage(self._storage)
        return dispatch.make(storage, self._data, self._spec, self._offset)  # type: ignore[no-any-return]

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"data must be a Tensor, got {received(value)}.")
        if self._rg and not value.dtype.is_inexact:
            raise RuntimeError("data of a tensor that requires grad must be floating or complex.")
        version = self._storage.version
        self._set(value)
        # As in torch the tensor keeps its own version, and counts for itself from here on.
        self._storage = AliasStorage(value._storage, version)

    def set_(self, source: Tensor) -> Tensor:
        """Look at the memory of `source` from now on."""
        if not isinstance(source, Tensor):
            raise TypeError(f"set_: source must be a Tensor, got {received(source)}.")
        self._set(source)
        return self

    def _set(self, source: Tensor) -> None:
        self._storage, self._data = source._storage, source._data
        self._spec, self._offset = source._spec, source._offset

    def is_shared(self) -> bool:
        return False

    def share_memory_(self) -> Tensor:
        raise NotImplementedError(
            "share_memory_: tensors in shared memory are not there yet; send NumPy arrays instead."
        )

    def is_view(self) -> bool:
        return self._base is not None

    def _is_view(self) -> bool:
        return self._base is not None

    def _remember_view(self, view: Tensor) -> None:
        views = self._views
        if views is None:
            self._views = [weakref.ref(view)]
            return
        views.append(weakref.ref(view))
        # Dead references pile up in loops over x[i]; drop them each time the list has doubled.
        n = len(views)
        if n >= 64 and n & (n - 1) == 0:
            self._views = [r for r in views if r() is not None]

    def _live_views(self) -> Iterator[Tensor]:
        for ref in self._views or ():
            view = ref()
            if view is not None:
                yield view

    # --- values -------------------------------------------------------------------------------

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
            if self._rg:
                raise RuntimeError("can't call numpy() on Tensor that requires grad; use tensor.detach().numpy().")
            if not self.is_cpu:
                raise TypeError(f"can't convert a {self.device} tensor to numpy; use .cpu() first.")
        if dispatch.state.observers:
            dispatch.was_read(self)
        a = BACKENDS[self.device.type].to_numpy(self._data)
        return a.view()  # type: ignore[no-any-return]

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
        return from_numpy(a.astype(np.uint8) if a.dtype == bool else a)  # type: ignore[no-any-return]

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
            source, stream = self.cpu(), None  # type: ignore[attr-defined]
        elif copy:
            source = self.clone()  # type: ignore[attr-defined]
        if dispatch.state.observers:
            dispatch.was_read(self)
        backend = _sharing(source, "export")
        return backend.export(source._data, source._spec, stream, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _sharing(self, "dlpack_device").dlpack_device(self._spec)  # type: ignore[no-any-return]

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
        return backend.array_interface(self._data, self._spec)  # type: ignore[no-any-return]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        node = self.grad_fn
        suffixes = printing.tensor_suffixes(
            dtype=self.dtype.name,
            shape=tuple(self.shape),
            default_dtype=dt.get_default_dtype().name,
            device=str(self.device),
            requires_grad=self._rg,
            grad_fn=node.name() if node is not None else None,
        )
        array = BACKENDS[self.device.type].to_numpy(self._data)
        return printing.format_tensor(array, suffixes=suffixes)

    def __format__(self, spec: str) -> str:
        if self.ndim == 0:
            return format(self.item(), spec)
        if spec:
            raise TypeError("a format is for tensors of no dimension; use item() or tolist().")
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
        if isinstance(element, (Tensor, int, float, bool, complex)):
            return bool((element == self).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, got {received(element)}.")

    # By identity; comparison is elementwise.
    __hash__ = object.__hash__

    def __getitem__(self, index: Any) -> Tensor:
        return F._getitem(self, index)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        F._setitem(self, index, value)

    # --- copying ------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        if self.grad_fn is not None:
            raise RuntimeError(
                "only Tensors created explicitly by the user support the deepcopy protocol; detach() it first."
            )
        # Tensors that share storage share it in the copy too.
        key = id(self._storage)
        storage = memo.get(key)
        if storage is None:
            storage = BACKENDS[self.device.type].clone_storage(self._storage)
            memo[key] = storage
        out = object.__new__(type(self))
        out.__dict__.update({k: v for k, v in self.__dict__.items() if not k.startswith("_") or k == "_offset"})
        out._storage, out._spec = storage, self._spec
        out._data = BACKENDS[self.device.type].view(storage, self._spec, self._offset)
        out._rg = self._rg
        memo[id(self)] = out
        if self._grad is not None:
            out._grad = _copy.deepcopy(self._grad, memo)
        return out

    def __copy__(self) -> Tensor:
        out = object.__new__(type(self))
        out._storage = self._storage  # both must have the same one
        out.__dict__.update(self.__dict__)
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.grad_fn is not None:
            raise RuntimeError("only leaf tensors can be pickled; detach() it first.")
        extra = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
        array = np.ascontiguousarray(BACKENDS[self.device.type].to_numpy(self._data))
        return (
            _rebuild,
            (
                type(self),
                array.tobytes(),
                tuple(self.shape),
                self._spec.strides,
                self.dtype,
                str(self.device),
                self._rg,
                extra,
            ),
        )


def _sharing(tensor: Tensor, what: str) -> Any:
    """The tensor's backend, if it can share memory with other libraries."""
    backend = BACKENDS[tensor._spec.device.type]
    if not hasattr(backend, what):
        raise BufferError(f"__dlpack__: memory on {tensor.device} cannot be shared.")
    return backend


def _rebuild(
    cls: type, raw: bytes, shape: Any, strides: Any, dtype: dt.dtype, dev: str, rg: bool, extra: Any
) -> Tensor:
    """Unpickle: values are stored row-major, the layout is restored when it is dense."""
    array = np.frombuffer(raw, dtype.np).reshape(shape).copy()
    storage, data, spec, _ = BACKENDS["cpu"].wrap(array)
    plain = dispatch.make(storage, data, spec)
    dense = Spec(Layout(shape, strides), dtype, plain.device).dense_like()
    if not dense.contiguous:
        laid = F.empty_strided(shape, dense.strides, dtype=dtype)
        plain = F.copy_(laid, plain)
    if dev != "cpu":
        plain = F.to(plain, device(dev))
    out = object.__new__(cls)
    out.__dict__.update(plain.__dict__)
    out.__dict__.update(extra)
    out._rg = rg
    return out


dispatch.install(Tensor, record)
