"""`votive.np.ndarray`: a tensor seen as NumPy's array. It holds the tensor, so memory and gradients are shared."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy

from .. import dispatch
from ..core.device import device as device_type
from ..core.device import resolve
from ..ops.registry import F
from ..tensor import Tensor
from . import indexing


class ndarray:
    """An array with NumPy's behaviour over a votive tensor.

    >>> votive.np.ndarray((2, 3)).shape
    (2, 3)
    """

    __slots__ = ("__weakref__", "_scalar", "tensor")
    __module__ = "votive.np"
    __array_priority__ = 2000
    tensor: Tensor
    _scalar: bool

    def __new__(
        cls, shape: Any, dtype: Any = float, buffer: Any = None, offset: int = 0, strides: Any = None, order: Any = None
    ) -> ndarray:
        from .creation import asarray, empty

        if buffer is None:
            if offset or strides is not None:
                raise TypeError("ndarray: offset and strides need a buffer.")
            return empty(shape, dtype, order or "C")
        return asarray(numpy.ndarray(shape, dtype, buffer, offset, strides, order))

    if TYPE_CHECKING:  # functions that `methods.py` puts here

        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...

    # --- facts ----------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @shape.setter
    def shape(self, value: Any) -> None:
        self.tensor = self.tensor.view(*((value,) if isinstance(value, int) else value))

    @property
    def dtype(self) -> numpy.dtype[Any]:
        return self.tensor.dtype.np

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    @property
    def size(self) -> int:
        return self.tensor.numel()

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(s * self.itemsize for s in self.tensor.stride())

    @property
    def device(self) -> device_type:
        return self.tensor.device

    @property
    def base(self) -> Any:
        return None if self.tensor._base is None else wrap(self.tensor._base)

    @property
    def data(self) -> Any:
        return detached_array(self).data

    @property
    def flags(self) -> Any:
        return detached_array(self).flags

    @property
    def ctypes(self) -> Any:
        return detached_array(self).ctypes

    @property
    def T(self) -> ndarray:
        return wrap(self.tensor.permute(*range(self.ndim - 1, -1, -1)) if self.ndim > 1 else self.tensor)

    @property
    def mT(self) -> ndarray:
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return wrap(self.tensor.transpose(-1, -2))

    @property
    def real(self) -> ndarray:
        return wrap(F.real(self.tensor)) if self.tensor.dtype.is_complex else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> ndarray:
        return wrap(F.imag(self.tensor) if self.tensor.dtype.is_complex else F.zeros_like(self.tensor))

    @imag.setter
    def imag(self, value: Any) -> None:
        if not self.tensor.dtype.is_complex:
            raise TypeError("array does not have imaginary part to set")
        wrap(F.imag(self.tensor))[...] = value

    @property
    def flat(self) -> Any:
        from .iterating import flatiter

        return flatiter(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        self.flat[:] = value

    # --- gradients ------------------------------------------------------------------------------

    @property
    def requires_grad(self) -> bool:
        return self.tensor.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.tensor.requires_grad_(value)

    @property
    def grad(self) -> ndarray | None:
        found = self.tensor.grad
        return None if found is None else wrap(found)

    def backward(self, gradient: Any = None, **options: Any) -> None:
        """Accumulate gradients into the arrays this one was computed from."""
        from .convert import to_tensor

        self.tensor.backward(None if gradient is None else to_tensor(gradient, self.dtype, self.device), **options)

    def detach(self) -> ndarray:
        """The same memory without history."""
        return wrap(self.tensor.detach())

    # --- Python ---------------------------------------------------------------------------------

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.tensor.shape[0])

    def __iter__(self) -> Iterator[ndarray]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __bool__(self) -> bool:
        if self.size != 1:
            which = "an empty array" if not self.size else "an array with more than one element"
            raise ValueError(f"The truth value of {which} is ambiguous. Use a.any() or a.all()")
        return bool(self.tensor.item())

    def _number(self) -> Any:
        if self.ndim:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return self.tensor.item()

    def __int__(self) -> int:
        return int(self._real_number("int"))

    def __float__(self) -> float:
        return float(self._real_number("float"))

    def _real_number(self, what: str) -> Any:
        value = self._number()
        if isinstance(value, complex):
            raise TypeError(f"{what}() argument must be a real number, not a complex array")
        return value

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return operator.index(self.tensor.item())

    def __hash__(self) -> int:
        if not self._scalar:
            raise TypeError("unhashable type: 'votive.np.ndarray'")
        return hash(self.tensor.item())

    def __repr__(self) -> str:
        return numpy.array_repr(detached_array(self))

    def __str__(self) -> str:
        return str(detached_array(self)[()])

    def __format__(self, spec: str) -> str:
        if self.ndim:
            return format(str(self), spec) if not spec else detached_array(self).__format__(spec)
        return format(self.tensor.item(), spec)

    def __copy__(self) -> ndarray:
        return wrap(self.tensor.clone())

    def __deepcopy__(self, memo: dict[int, Any]) -> ndarray:
        return wrap(self.tensor.__deepcopy__(memo))

    def __reduce__(self) -> Any:
        return wrap, (self.tensor,)

    # --- elements -------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> ndarray:
        t, scalar = indexing.get(self.tensor, key)
        out = wrap(t)
        out._scalar = scalar
        return out

    def __setitem__(self, key: Any, value: Any) -> None:
        indexing.put(self.tensor, key, value)

    # --- interchange ----------------------------------------------------------------------------

    def __tensor__(self) -> Tensor:
        return self.tensor

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray[Any, Any]:
        return self.tensor.__array__(dtype, copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        return self.tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        from .standard import namespace

        return namespace(api_version)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from .interplay import call_ufunc

        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        from .interplay import call_function

        return call_function(func, types, args, kwargs)

    def to_device(self, device: Any, /, *, stream: Any = None) -> ndarray:
        """The array on another device; itself where it is there already."""
        if stream is not None:
            raise ValueError("to_device: streams are chosen by votive.cuda.stream(); leave `stream` out.")
        try:
            place = resolve(device)
        except RuntimeError as problem:
            raise ValueError(str(problem)) from None
        return self if place is self.tensor.device else wrap(self.tensor.to(place))


def wrap(t: Tensor) -> ndarray:
    """An array over a tensor."""
    out: ndarray = object.__new__(ndarray)
    out.tensor = t.resolve_conj().resolve_neg() if t._flip else t  # NumPy knows no lazy views
    out._scalar = False
    return out


def detached_array(a: ndarray) -> numpy.ndarray[Any, Any]:
    """The values as a NumPy array, sharing memory on the CPU."""
    if dispatch.state.observers:
        dispatch.was_read(a.tensor)
    return a.tensor.detach().cpu().numpy()


_OPERATORS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
    "divmod": "divmod",
}
_COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater"}
_COMPARISONS["ge"] = "greater_equal"
_KNOWN = (ndarray, Tensor, bool, int, float, complex, numpy.ndarray, numpy.generic, list, tuple)


def _other(value: Any) -> bool:
    return isinstance(value, _KNOWN) or hasattr(value, "__array__")


def install(ufuncs: dict[str, Callable[..., Any]]) -> None:
    """Give the class Python's operators, which are ufuncs."""
    for name, target in _OPERATORS.items():
        fn = ufuncs[target]
        setattr(ndarray, f"__{name}__", _binary(fn))
        setattr(ndarray, f"__r{name}__", _reflected(fn))
        if name != "divmod":
            setattr(ndarray, f"__i{name}__", _inplace(fn))
    for name, target in _COMPARISONS.items():
        setattr(ndarray, f"__{name}__", _comparison(ufuncs[target], name))
    for name, target in (("neg", "negative"), ("pos", "positive"), ("abs", "absolute"), ("invert", "invert")):
        setattr(ndarray, f"__{name}__", _unary(ufuncs[target]))


def _binary(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: fn(self, other) if _other(other) else NotImplemented


def _reflected(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: fn(other, self) if _other(other) else NotImplemented


def _unary(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: fn(self)


def _inplace(fn: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: ndarray, other: Any) -> Any:
        if not _other(other):
            return NotImplemented
        return fn(self, other) if self._scalar else fn(self, other, out=self)

    return run


def _comparison(fn: Callable[..., Any], name: str) -> Callable[..., Any]:
    def run(self: ndarray, other: Any) -> Any:
        if not _other(other):
            if name in ("eq", "ne") and (other is None or isinstance(other, (str, bytes))):
                return wrap(F.full(self.shape, name == "ne", device=self.device))
            return NotImplemented
        return fn(self, other)

    return run
