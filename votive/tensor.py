"""Tensor: storage, layout, dtype and autograd state in one object; methods are bound from schemas.

Knows no device's internals: what memory looks like is the backend's business.
"""

from __future__ import annotations

import copy as _copy
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import dispatch
from .autograd import engine, graph, record, views
from .backends.base import BACKENDS
from .core import dtype as dt
from .core.device import device
from .core.errors import received
from .core.layout import Layout, Size, Spec
from .core.mode import mode
from .core.storage import AliasStorage
from .ops.registry import F
from .surface.layouts import Layouts


class Tensor(Layouts):
    """A multi-dimensional array that can record its own history.

    >>> votive.Tensor([1, 2])
    tensor([1., 2.])
    """

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
        out._take_fields(made)
        return out

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dispatch.prepare_class(cls)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What a subclass makes of a call: the function's result, with tensors in it of this class."""
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        result = dispatch.disabled(func, types, args, kwargs)
        return result if cls is Tensor or func in _facts() else _convert(result, cls)

    def as_subclass(self, cls: type) -> Any:
        """The same memory and history as a tensor of another class.

        >>> class Named(votive.Tensor): ...
        >>> type(votive.ones(2).as_subclass(Named) + 1).__name__
        'Named'
        """
        if not (isinstance(cls, type) and issubclass(cls, Tensor)):
            raise RuntimeError(f"cls must be a subclass of Tensor, got {received(cls)}.")
        # A leaf's gradient goes on to the one that was given.
        return _as(F._view(self, self._spec.shape) if self._rg and self._edge is None else self, cls)

    @staticmethod
    def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
        """The memory of a tensor as a leaf of another class: what `__new__` of a subclass gives."""
        out = _as(data.detach(), cls)
        return out.requires_grad_() if require_grad else out

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
        return out

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
        return dispatch.make(storage, self._data, self._spec, self._offset)

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
        """Whether processes that are forked from this one see its writes; memory of a GPU counts as shared."""
        return self.device.type != "cpu" or self._storage.root.shared

    def share_memory_(self) -> Tensor:
        """Move the values into memory that this process and those forked from it have in common."""
        from .surface.shared import share

        share(self)
        return self

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

    # --- copying ------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if id(self) in memo:
            return memo[id(self)]
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
        out._take_fields(self)
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.grad_fn is not None:
            raise RuntimeError("only leaf tensors can be pickled; detach() it first.")
        extra = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
        raw = None if self.is_meta else np.ascontiguousarray(BACKENDS[self.device.type].to_numpy(self._data)).tobytes()
        return (
            _rebuild,
            (type(self), raw, tuple(self.shape), self._spec.strides, self.dtype, str(self.device), self._rg, extra),
        )


def _as(tensor: Any, cls: type) -> Any:
    """A tensor of another class with the same memory and history."""
    out: Any = object.__new__(cls)
    out._storage = tensor._storage  # both must have the same one
    out._take_fields(tensor)
    out._views = None
    if tensor._base is not None:
        tensor._base._remember_view(out)
    return out


def _convert(result: Any, cls: type) -> Any:
    """A result with the tensors in it made instances of a subclass."""
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else _as(result, cls)
    if isinstance(result, (tuple, list)) and not isinstance(result, Size):
        parts = [_convert(r, cls) for r in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


@functools.cache
def _facts() -> frozenset[Any]:
    """Functions whose result is no tensor of the subclass: what autograd hands out."""
    of = Tensor.__dict__
    return frozenset([of["grad"].__get__, of["grad"].__set__, of["grad_fn"].__get__, of["requires_grad"].__set__])


def _rebuild(
    cls: type, raw: bytes | None, shape: Any, strides: Any, dtype: dt.dtype, dev: str, rg: bool, extra: Any
) -> Tensor:
    """Unpickle: values, if any, are stored row-major, the layout is restored when it is dense."""
    dense = Spec(Layout(shape, strides), dtype, device(dev)).dense_like()
    if raw is None:
        plain = F.empty_strided(shape, dense.strides, dtype=dtype, device=dev)
    else:
        array = np.frombuffer(raw, dtype.np).reshape(shape).copy()
        storage, data, spec, _ = BACKENDS["cpu"].wrap(array)
        plain = dispatch.make(storage, data, spec)
        if not dense.contiguous:
            laid = F.empty_strided(shape, dense.strides, dtype=dtype)
            plain = F.copy_(laid, plain)
        if dev != "cpu":
            plain = F.to(plain, device(dev))
    out: Tensor = object.__new__(cls)
    out._take_fields(plain)
    out.__dict__.update(extra)
    out._rg = rg
    return out


dispatch.install(Tensor, record)
