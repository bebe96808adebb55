"""Universal functions: NumPy decides the dtypes of a call, a kernel over tensors computes it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .convert import Tensor, cast, detached, host, ndarray, place_of, result, to_tensor
from .element_types import BOOL, NARROW_UNSIGNED, UINT64, WEAK, as_dtype, check_cast, kind_of
from .layout import axes_of, ordered

Kernel = Callable[..., Any]


@functools.lru_cache(maxsize=8192)
def _loop(name: str, kinds: tuple[Any, ...], nout: int, dtype: Any, casting: str) -> tuple[numpy.dtype[Any], ...]:
    options: dict[str, Any] = {} if dtype is None else {"signature": (None,) * len(kinds) + (dtype,) * nout}
    found = getattr(numpy, name).resolve_dtypes((*kinds, *(None,) * nout), casting=casting, **options)
    return tuple(as_dtype(d) for d in found)


def _signature(nin: int) -> inspect.Signature:
    """What `help` and other libraries see: the arrays, then NumPy's options."""
    names = ["x"] if nin == 1 else [f"x{i + 1}" for i in range(nin)]
    arrays = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_ONLY) for n in names]
    own = inspect.signature(ufunc.__call__).parameters
    options = [own[n] for n in ("out", "where", "casting", "order", "dtype", "subok")]
    return inspect.Signature(arrays + options)


class ufunc:
    """A function of elements with broadcasting, `out`, `where`, `dtype` and `casting`; two arguments can be reduced.

    >>> votive.np.add.reduce([1, 2, 3])
    array(6)
    """

    def __init__(
        self, name: str, kernel: Kernel, *, bools: Kernel | None = None, ints: Kernel | None = None, doc: str = ""
    ) -> None:
        self._numpy: Any = getattr(numpy, name)
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc or f"NumPy's `{name}` over votive's tensors."
        self._kernel, self._bools, self._ints = kernel, bools, ints
        self._direct: dict[dt.dtype, Kernel] = {}  # dtypes that a call neither promotes nor casts
        self.__signature__ = _signature(self._numpy.nin)
        for fact in ("nin", "nout", "nargs", "ntypes", "types", "identity", "signature"):
            setattr(self, fact, getattr(self._numpy, fact))

    nin: int
    nout: int
    nargs: int
    identity: Any

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __call__(
        self,
        *args: Any,
        out: Any = None,
        where: Any = True,
        casting: str = "same_kind",
        order: str = "K",
        dtype: Any = None,
        subok: bool = True,
        signature: Any = None,
    ) -> Any:
        if out is None and where is True and dtype is None and order == "K" and signature is None:
            quick = self._quick(args)
            if quick is not None:
                return quick
        if len(args) > self.nin:
            if out is not None:
                raise TypeError("cannot specify 'out' as both a positional and keyword argument")
            out, args = args[self.nin :], args[: self.nin]
        if len(args) < self.nin:
            raise TypeError(f"{self.__name__}() takes {self.nin} positional arguments but {len(args)} were given")
        if signature is not None:
            raise NotImplementedError(f"{self.__name__}: `signature` is not supported; give `dtype` instead.")
        results = self._compute(args, None if dtype is None else as_dtype(dtype), casting)
        outs = out if isinstance(out, tuple) else (out,) * 1 + (None,) * (self.nout - 1)
        if where is not True:
            results = tuple(self._masked(r, where, o) for r, o in zip(results, outs, strict=True))
        final = tuple(self._finish(r, o, casting, order) for r, o in zip(results, outs, strict=True))
        return final[0] if self.nout == 1 else final

    def _quick(self, args: tuple[Any, ...]) -> ndarray | None:
        """The result where nothing is to be decided: arrays of one floating dtype and shape, or a number beside one."""
        first = args[0] if args else None
        if len(args) != self.nin or first.__class__ is not ndarray:
            return None
        t: Tensor = first.tensor
        kernel = self._direct.get(t.dtype)
        if kernel is None:
            return None
        if self.nin == 1:
            return result(kernel(t))
        other = args[1]
        if other.__class__ is ndarray:
            u = other.tensor
            if u.dtype is not t.dtype or u.shape != t.shape or u.device is not t.device:
                return None
            return result(kernel(t, u))
        small = other.__class__ is float or (other.__class__ is int and -(2**53) < other < 2**53)
        if small and self.__name__ in _WITH_NUMBERS and t.dtype in (dt.float32, dt.float64):
            return result(kernel(t, other))
        return None

    def _compute(self, args: tuple[Any, ...], dtype: Any, casting: str = "same_kind") -> tuple[Tensor, ...]:
        place = place_of(*args)
        values = [a if type(a) in WEAK else to_tensor(a, device=place) for a in args]
        if place.type != "cpu":
            values = [v.to(place) if isinstance(v, Tensor) and v.ndim == 0 else v for v in values]
        kinds = tuple(kind_of(v) for v in values)
        if all(k in WEAK for k in kinds):
            kinds = tuple(numpy.asarray(v).dtype if type(v) is int else numpy.dtype(k) for v, k in zip(values, kinds))
        types = _loop(self.__name__, kinds, self.nout, dtype, casting)
        inputs = self._inputs(values, types, place)
        if inputs is None:
            return (self._outside(args, place),)
        shape = _broadcast(inputs)
        found = self._run(inputs, types)
        found = found if isinstance(found, tuple) else (found,)
        if (
            types[0].kind in "fc"
            and set(kinds) == set(types[: self.nin]) == {types[0]}
            and [f.dtype.np for f in found] == [types[-1]]
        ):
            self._direct[inputs[0].dtype] = self._kernel
        return tuple(
            cast(f if tuple(f.shape) == shape else F.broadcast_to(f, shape), d)
            for f, d in zip(found, types[self.nin :], strict=True)
        )

    def _inputs(self, values: list[Any], types: tuple[Any, ...], place: Any) -> list[Tensor] | None:
        try:
            return [
                cast(v, d) if isinstance(v, Tensor) else to_tensor(v, d, place)
                for v, d in zip(values, types, strict=False)
            ]
        except OverflowError:
            if types[-1] == BOOL and self.__name__ in _COMPARING:
                return None
            raise

    def _outside(self, args: tuple[Any, ...], place: Any) -> Tensor:
        """A comparison with a Python integer that the array's dtype cannot hold."""
        found = self._numpy(*[a if type(a) in WEAK else detached(a) for a in args])
        return to_tensor(found, device=place)

    def _run(self, inputs: list[Tensor], types: tuple[Any, ...]) -> Any:
        first = types[0]
        if first == BOOL and self._bools is not None:
            return self._bools(*inputs)
        if UINT64 in types[: self.nin]:
            return host(self.__name__, self._numpy, *inputs)
        if first in NARROW_UNSIGNED:
            inputs = [i.to(dt.int64) for i in inputs]
        if self._ints is not None and first.kind in "iu":
            return self._ints(*inputs)
        return self._kernel(*inputs)

    def _masked(self, value: Tensor, where: Any, out: Any) -> Tensor:
        mask = to_tensor(where, BOOL, value.device)
        shape = F.broadcast_shapes(tuple(mask.shape), tuple(value.shape))
        base = (
            F.zeros(shape, dtype=value.dtype, device=value.device) if out is None else cast(to_tensor(out), value.dtype)
        )
        return F.where(mask, value, base)

    def _finish(self, value: Tensor, out: Any, casting: str, order: str) -> Any:
        if out is None:
            return result(ordered(value, order))
        return store(self.__name__, value, out, casting)

    # --- along a dimension ------------------------------------------------------------------------

    def _two(self, what: str) -> None:
        if self.nin != 2 or self.nout != 1:
            raise ValueError(f"{what} only supported for binary functions")

    def reduce(
        self,
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        """The function applied along dimensions, first to last.

        >>> votive.np.multiply.reduce([2, 3, 4])
        array(24)
        """
        self._two("reduce")
        from .reducing import reduce_by

        value = reduce_by(self, to_tensor(array), axis, dtype, keepdims, initial, where)
        return result(value) if out is None else store(self.__name__, value, out, "unsafe")

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """All partial results of `reduce`.

        >>> votive.np.add.accumulate([1, 2, 3])
        array([1, 3, 6])
        """
        self._two("accumulate")
        from .reducing import accumulate_by

        value = accumulate_by(self, to_tensor(array), axis, dtype)
        return result(value) if out is None else store(self.__name__, value, out, "same_kind")

    def reduceat(self, array: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """`reduce` over pieces that begin at given indices.

        >>> votive.np.add.reduceat([1, 2, 3, 4], [0, 2])
        array([3, 7])
        """
        self._two("reduceat")
        from .reducing import reduce_by

        t = to_tensor(array)
        (dim,) = axes_of(axis, t.ndim)
        size, starts = int(t.shape[dim]), [int(i) for i in detached(indices)]
        pieces = []
        for k, i in enumerate(starts):
            if not 0 <= i < size:
                raise IndexError(f"index {i} out-of-bounds in {self.__name__}.reduceat [0, {size})")
            end = starts[k + 1] if k + 1 < len(starts) else size
            pieces.append(reduce_by(self, t.narrow(dim, i, max(end - i, 1)), dim, dtype, False, None, True))
        if pieces:
            value = F.stack(pieces, dim)
        else:
            value = reduce_by(self, t.narrow(dim, 0, 1), dim, dtype, True, None, True).narrow(dim, 0, 0)
        return result(value) if out is None else store(self.__name__, value, out, "same_kind")

    def outer(self, A: Any, B: Any, /, **kwargs: Any) -> Any:
        """The function of all pairs.

        >>> votive.np.multiply.outer([1, 2], [3, 4])
        array([[3, 4],
               [6, 8]])
        """
        self._two("outer")
        place = place_of(A, B)
        a = A if type(A) in WEAK else to_tensor(A, device=place)
        b = B if type(B) in WEAK else to_tensor(B, device=place)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            a = a.reshape(tuple(a.shape) + (1,) * b.ndim)
        return self(a, b, **kwargs)

    def at(self, a: Any, indices: Any, b: Any = None, /) -> None:
        """The function applied in place at indices; those that occur several times count several times.

        >>> x = votive.np.zeros(2)
        >>> votive.np.add.at(x, [0, 0], 1)
        >>> x
        array([2., 0.])
        """
        if self.nin == 1:
            t = wrap_of(a)
            t[indices] = self(t[indices])
            return
        self._two("at")
        from .reducing import apply_at

        apply_at(self, wrap_of(a), indices, b)


# A number may stand beside an array in these kernels; it takes the array's dtype, as in NumPy.
_WITH_NUMBERS = ("add", "subtract", "multiply", "divide", "equal", "not_equal", "less", "less_equal", "greater")
_COMPARING = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def wrap_of(a: Any) -> ndarray:
    if not isinstance(a, ndarray):
        raise TypeError(f"the array to be changed must be a votive.np.ndarray, got {type(a).__name__}.")
    return a


def _broadcast(inputs: list[Tensor]) -> tuple[int, ...]:
    if len(inputs) == 1 or all(i.shape == inputs[0].shape for i in inputs[1:]):
        return tuple(inputs[0].shape)
    try:
        return numpy.broadcast_shapes(*[tuple(i.shape) for i in inputs])
    except ValueError:
        shapes = " ".join(str(tuple(i.shape)).replace(" ", "") for i in inputs)
        raise ValueError(f"operands could not be broadcast together with shapes {shapes}") from None


def store(name: str, value: Tensor, out: Any, casting: str = "same_kind") -> Any:
    """Write a result into the array that was given for it."""
    if isinstance(out, tuple):
        (out,) = out
    if not isinstance(out, (ndarray, Tensor)):
        raise TypeError(f"{name}: return arrays must be of votive.np.ndarray, got {type(out).__name__}.")
    target = to_tensor(out)
    check_cast(name, value.dtype.np, target.dtype.np, casting)
    if tuple(target.shape) != tuple(value.shape):
        try:
            value = value.expand(tuple(target.shape))
        except RuntimeError:
            raise ValueError(
                f"{name}: output parameter has shape {tuple(target.shape)}, the result {tuple(value.shape)}"
            ) from None
    target.copy_(cast(value, target.dtype))
    return out
