"""Tensors that modules register by themselves: parameters, buffers and their uninitialised forms.

Knows Tensor; knows no module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from ..core import dtype as dt
from ..core.device import DeviceLike
from ..core.errors import received
from ..core.memory_format import preserve_format
from ..dispatch import disabled
from ..ops.registry import F
from ..tensor import Tensor


def _adopt(cls: type, data: Tensor, requires_grad: bool) -> Any:
    """A tensor of class `cls` over the memory of `data`, without its history."""
    out: Any = object.__new__(cls)
    out._take_fields(data.detach())
    if requires_grad:
        # Not the public method: an uninitialised parameter refuses most questions about itself.
        Tensor.requires_grad_(data.detach(), True)
        out._rg = True
    return out


class _ParameterMeta(type):
    """Lets tensors of a custom class count as parameters when they carry the mark."""

    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and _marked(instance, "_is_param")


def _marked(tensor: Tensor, mark: str) -> bool:
    return bool(tensor.__dict__.get(mark, False))


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes a parameter of the module it is assigned to.

    >>> votive.nn.Parameter(votive.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __torch_function__ = disabled  # operators give plain tensors

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        if data is None:
            data = F.empty((0,))
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter: data must be a Tensor, got {received(data)}.")
        if type(data) in (Tensor, Parameter) or isinstance(data, cls):
            return _adopt(cls, data, requires_grad)
        # A custom tensor keeps its class and is marked instead.
        out = _adopt(type(data), data, requires_grad)
        out._is_param = True
        return out

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        pass

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            copied = F.clone(self.detach(), memory_format=preserve_format)
            memo[id(self)] = type(self)(copied, self.requires_grad)
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + super().__repr__()


class _BufferMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and _marked(instance, "_is_buffer")


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that becomes a buffer of the module it is assigned to.

    >>> m = votive.nn.Module()
    >>> m.mean = votive.nn.Buffer(votive.zeros(2))
    >>> list(m.state_dict())
    ['mean']
    """

    __torch_function__ = disabled
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = F.empty((0,))
        # A plain tensor with a mark, so that results of operations need no unwrapping.
        out: Any = data.detach().requires_grad_(data.requires_grad)
        out.persistent = persistent
        out._is_buffer = True
        return out


if TYPE_CHECKING:
    _Tensor = Tensor
else:
    _Tensor = object


class UninitializedTensorMixin(_Tensor):
    """A tensor whose shape is not known yet; it only knows its dtype and device.

    >>> votive.nn.parameter.UninitializedParameter(dtype=votive.float64).dtype
    votive.float64
    """

    cls_to_become: ClassVar[type]
    __torch_function__ = disabled

    def _refuse(self) -> NoReturn:
        raise ValueError(
            "Attempted to use an uninitialized parameter or buffer. This happens with a lazy "
            f"module or a {type(self).__name__} made by hand. Call forward with a dummy batch to "
            "initialize it first."
        )

    # Every operator asks its arguments for `_spec`; the real one stays in __dict__, the slot empty.
    @property
    def _spec(self) -> Any:
        self._refuse()

    @_spec.setter
    def _spec(self, spec: Any) -> None:
        self.__dict__["_spec"] = spec

    @property
    def data(self) -> Tensor:
        """The empty tensor that carries dtype and device."""
        out = object.__new__(Tensor)
        out._data, out._storage = self._data, self._storage
        out._spec, out._rg = self.__dict__["_spec"], False
        return out

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor._set(self, value)

    @property
    def dtype(self) -> Any:
        return self.__dict__["_spec"].dtype

    @property
    def device(self) -> Any:
        return self.__dict__["_spec"].device

    @property
    def is_meta(self) -> bool:
        return self.data.is_meta

    @property
    def shape(self) -> NoReturn:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This usually happens "
            "in load_state_dict when an uninitialized parameter is loaded into an initialized one; "
            "call forward to initialize it first."
        )

    def is_floating_point(self) -> bool:
        return self.data.is_floating_point()

    def is_complex(self) -> bool:
        return self.data.is_complex()

    def get_device(self) -> int:
        return self.data.get_device()

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        self.data.requires_grad_(requires_grad)  # refuses integers
        self._rg = bool(requires_grad)
        return self

    def share_memory_(self) -> NoReturn:
        raise RuntimeError("Can't share memory of an uninitialized parameter or buffer; call forward first.")

    def materialize(self, shape: Any, device: DeviceLike = None, dtype: dt.dtype | None = None) -> None:
        """Become an ordinary tensor of this shape, with undefined values."""
        device = self.device if device is None else device
        dtype = self.dtype if dtype is None else dtype
        self.data = F.empty(tuple(shape), device=device, dtype=dtype)
        self.__class__ = self.cls_to_become
        self._spec = self.__dict__.pop("_spec")

    def __repr__(self, *, tensor_contents: str | None = None) -> str:  # type: ignore[override]
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: object) -> Any:
        return type(self), (self._rg, str(self.device), self.dtype)

    def __copy__(self) -> Any:
        out = _adopt(type(self), self.data, self._rg)
        out.__dict__.update(self.__dict__)
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self._rg, self.device, self.dtype)
        return memo[id(self)]


def _conversion(name: str) -> Any:
    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = getattr(self.data, name)(*args, **kwargs)
        if isinstance(self, Parameter):
            return made  # its memory is exchanged
        return type(self)(self._rg, made.device, made.dtype, self.persistent)

    return convert


# What stays allowed, because Module.to and kin must work before the first forward.
for _name in ("to", "cpu", "cuda", "half", "bfloat16", "float", "double", "char", "short", "int", "long", "type"):
    setattr(UninitializedTensorMixin, _name, _conversion(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]  # see __repr__
    """A parameter whose shape the first forward decides.

    >>> p = votive.nn.UninitializedParameter()
    >>> p.materialize((2, 3))
    >>> p.shape, type(p).__name__
    (votive.Size([2, 3]), 'Parameter')
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: DeviceLike = None, dtype: dt.dtype | None = None) -> Any:
        return _adopt(cls, F.empty((0,), device=device, dtype=dtype), requires_grad)

    def __init__(self, requires_grad: bool = True, device: DeviceLike = None, dtype: dt.dtype | None = None) -> None:
        pass


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape the first forward decides.

    >>> b = votive.nn.UninitializedBuffer(dtype=votive.float16)
    >>> b.materialize((2,))
    >>> b.dtype
    votive.float16
    """

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: DeviceLike = None,
        dtype: dt.dtype | None = None,
        persistent: bool = True,
    ) -> Any:
        out = _adopt(cls, F.empty((0,), device=device, dtype=dtype), requires_grad)
        out.persistent, out._is_buffer = persistent, True
        return out


def is_lazy(param: Tensor | None) -> bool:
    """Whether the shape of a parameter or buffer is still unknown.

    >>> votive.nn.parameter.is_lazy(votive.nn.UninitializedParameter())
    True
    """
    return isinstance(param, UninitializedTensorMixin)
