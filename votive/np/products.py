"""Products of vectors and matrices, and sums over indices."""

from __future__ import annotations

import operator
from typing import Any

import numpy

from ..core import dtype as dt
from ..ops.registry import F
from .convert import Tensor, cast, ndarray, place_of, result, tensors, to_tensor, wrap
from .element_types import BOOL, NARROW_UNSIGNED, UINT64, as_dtype, can_cast
from .layout import axis_of, ordered
from .reductions import finished
from .ufunc import store


def product(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product of tensors of one dtype, whatever it is."""
    d = a.dtype
    if d is dt.bool_:
        return F.gt(F.matmul(a.to(dt.int64), b.to(dt.int64)), 0)
    if d.np in NARROW_UNSIGNED or d.np == UINT64:
        # The low bits of a product do not depend on signs.
        return F.matmul(a.to(dt.int64), b.to(dt.int64)).to(d)
    return F.matmul(a, b)


def _pair(name: str, x1: Any, x2: Any, dtype: Any = None, casting: str = "same_kind") -> list[Tensor]:
    if type(x1) in (bool, int, float, complex) or type(x2) in (bool, int, float, complex):
        raise ValueError(f"{name}: Input operand does not have enough dimensions")
    pair = tensors(x1, x2)
    if dtype is not None:
        wanted = as_dtype(dtype)
        if not can_cast(pair[0], wanted, casting):
            raise TypeError(f"Cannot cast ufunc '{name}' input to {wanted} with casting rule '{casting}'")
        pair = [cast(t, wanted) for t in pair]
    return pair


def _finish(name: str, value: Tensor, out: Any, order: str, casting: str) -> Any:
    return result(ordered(value, order)) if out is None else store(name, value, out, casting)


def matmul(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    casting: str = "same_kind",
    order: str = "K",
    dtype: Any = None,
    subok: bool = True,
    axes: Any = None,
) -> Any:
    """The matrix product.

    >>> votive.np.matmul([[1, 2]], [3, 4])
    array([11])
    """
    if axes is not None:
        raise NotImplementedError("matmul: `axes` is not supported; move the axes with moveaxis().")
    a, b = _pair("matmul", x1, x2, dtype, casting)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("matmul: Input operand does not have enough dimensions (has 0, requires at least 1)")
    inner = int(b.shape[-2] if b.ndim > 1 else b.shape[0])
    if int(a.shape[-1]) != inner:
        raise ValueError(
            "matmul: Input operand 1 has a mismatch in its core dimension 0 "
            f"(size {inner} is different from {a.shape[-1]})"
        )
    _batches("matmul", a.shape[:-2], b.shape[:-2])
    return _finish("matmul", product(a, b), out, order, casting)


def _batches(name: str, one: Any, two: Any) -> tuple[int, ...]:
    try:
        return numpy.broadcast_shapes(tuple(one), tuple(two))
    except ValueError:
        raise ValueError(f"operands could not be broadcast together in {name}: {tuple(one)} {tuple(two)}") from None


def matvec(x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None) -> Any:
    """Matrices times vectors."""
    a, b = _pair("matvec", x1, x2, dtype)
    return _finish("matvec", product(a, b.unsqueeze(-1)).squeeze(-1), out, "K", "same_kind")


def vecmat(x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None) -> Any:
    """Conjugated vectors times matrices."""
    a, b = _pair("vecmat", x1, x2, dtype)
    return _finish("vecmat", product(_conj(a).unsqueeze(-2), b).squeeze(-2), out, "K", "same_kind")


def _conj(t: Tensor) -> Tensor:
    return F.conj_physical(t) if t.dtype.is_complex else t


def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1, dtype: Any = None) -> Any:
    """Dot products of vectors along an axis, the first ones conjugated.

    >>> votive.np.vecdot([1, 2], [3, 4])
    array(11)
    """
    a, b = _pair("vecdot", x1, x2, dtype)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("vecdot: Input operand does not have enough dimensions (has 0, requires at least 1)")
    a, b = F.movedim(a, axis_of(axis, a.ndim), -1), F.movedim(b, axis_of(axis, b.ndim), -1)
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"vecdot: vectors have {a.shape[-1]} and {b.shape[-1]} elements")
    _batches("vecdot", a.shape[:-1], b.shape[:-1])
    value = product(_conj(a).unsqueeze(-2), b.unsqueeze(-1)).squeeze(-1).squeeze(-1)
    return _finish("vecdot", value, out, "K", "same_kind")


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """The product of vectors or matrices; sums over the last axis of `a` and the second to last of `b`.

    >>> votive.np.dot([1, 2], [3, 4])
    array(11)
    """
    x, y = tensors(a, b)
    if x.ndim == 0 or y.ndim == 0:
        from .ufunc_table import UFUNCS

        return UFUNCS["multiply"](x, y, out=out)
    if x.shape[-1] != y.shape[-2 if y.ndim > 1 else 0]:
        raise ValueError(f"shapes {tuple(x.shape)} and {tuple(y.shape)} not aligned")
    value = _contracted(x, y, [x.ndim - 1], [y.ndim - 2 if y.ndim > 1 else 0])
    return finished("matmul", value, out)


def inner(a: Any, b: Any, /) -> Any:
    """Sums of products over the last axes."""
    x, y = tensors(a, b)
    if x.ndim == 0 or y.ndim == 0:
        return dot(x, y)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"shapes {tuple(x.shape)} and {tuple(y.shape)} not aligned")
    return result(_contracted(x, y, [x.ndim - 1], [y.ndim - 1]))


def vdot(a: Any, b: Any, /) -> Any:
    """The dot product of all elements, the first ones conjugated."""
    x, y = (t.reshape(-1) for t in tensors(a, b))
    if x.shape != y.shape:
        raise ValueError("cannot reshape array: vdot needs as many elements on both sides")
    return result(_contracted(_conj(x), y, [0], [0]))


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """The products of all pairs of elements."""
    x, y = tensors(a, b)
    from .ufunc_table import UFUNCS

    return UFUNCS["multiply"](x.reshape(-1, 1), y.reshape(1, -1), out=out)


def _contracted(a: Tensor, b: Tensor, left: list[int], right: list[int]) -> Tensor:
    """Sums of products over paired axes, as one matrix product."""
    rest_a = [i for i in range(a.ndim) if i not in left]
    rest_b = [i for i in range(b.ndim) if i not in right]
    n = 1
    for i in left:
        n *= int(a.shape[i])
    rows, columns = [int(a.shape[i]) for i in rest_a], [int(b.shape[i]) for i in rest_b]
    order_a, order_b = rest_a + left, right + rest_b
    x = (a.permute(*order_a) if order_a else a).reshape(_size(rows), n)
    y = (b.permute(*order_b) if order_b else b).reshape(n, _size(columns))
    return product(x, y).reshape(tuple(rows + columns))


def _size(sizes: list[int]) -> int:
    n = 1
    for s in sizes:
        n *= s
    return n


def tensordot(a: Any, b: Any, /, axes: Any = 2) -> ndarray:
    """Sums of products over chosen axes.

    >>> votive.np.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]])
    array(5)
    """
    x, y = tensors(a, b)
    if hasattr(axes, "__index__"):
        n = operator.index(axes)
        if n < 0 or n > min(x.ndim, y.ndim):
            raise ValueError(f"tensordot: axes={n} for arrays of {x.ndim} and {y.ndim} dimensions")
        left, right = list(range(x.ndim - n, x.ndim)), list(range(n))
    else:
        one, two = axes
        left = [axis_of(i, x.ndim) for i in ((one,) if hasattr(one, "__index__") else one)]
        right = [axis_of(i, y.ndim) for i in ((two,) if hasattr(two, "__index__") else two)]
    if len(left) != len(right) or any(x.shape[i] != y.shape[j] for i, j in zip(left, right, strict=True)):
        raise ValueError("shape-mismatch for sum")
    return result(_contracted(x, y, left, right))


def kron(a: Any, b: Any) -> ndarray:
    """The Kronecker product."""
    x, y = tensors(a, b)
    n = max(x.ndim, y.ndim)
    x = x.reshape((1,) * (n - x.ndim) + tuple(x.shape))
    y = y.reshape((1,) * (n - y.ndim) + tuple(y.shape))
    for i in range(n):
        x, y = x.unsqueeze(2 * i + 1), y.unsqueeze(2 * i)
    from .ufunc_table import UFUNCS

    value = UFUNCS["multiply"](x, y).tensor
    return wrap(value.reshape(tuple(int(x.shape[2 * i] * y.shape[2 * i + 1]) for i in range(n))))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> ndarray:
    """The cross product of vectors of three numbers.

    >>> votive.np.cross([1, 0, 0], [0, 1, 0])
    array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = tensors(a, b)
    if x.ndim < 1 or y.ndim < 1:
        raise ValueError("At least one array has zero dimension")
    x, y = F.movedim(x, axis_of(axisa, x.ndim), -1), F.movedim(y, axis_of(axisb, y.ndim), -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError("incompatible dimensions for cross product (dimension must be 2 or 3)")
    if x.dtype is dt.bool_:
        raise TypeError("cross: boolean vectors have no differences; convert them with astype(int).")
    shape = numpy.broadcast_shapes(tuple(x.shape[:-1]), tuple(y.shape[:-1]))
    flat = x.shape[-1] == y.shape[-1] == 2
    x, y = _three(x), _three(y)
    x0, x1, x2 = (wrap(v) for v in F.unbind(x, -1))
    y0, y1, y2 = (wrap(v) for v in F.unbind(y, -1))
    if flat:
        return x0 * y1 - x1 * y0
    parts = (x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0)
    value = F.stack([p.tensor.expand(shape) for p in parts], -1)
    return wrap(F.movedim(value, -1, axis_of(axisc, value.ndim)))


def _three(v: Tensor) -> Tensor:
    if v.shape[-1] == 3:
        return v
    return F.cat([v, F.zeros_like(v[..., :1])], -1)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum of a diagonal."""
    from .reductions import sum as total

    return total(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype, out=out)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    """A diagonal, along the last axis."""
    t = to_tensor(a)
    if t.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    i, j = axis_of(axis1, t.ndim), axis_of(axis2, t.ndim)
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    rows, columns = int(t.shape[i]), int(t.shape[j])
    offset = min(max(offset, -rows), columns)
    return wrap(F.diagonal(t, offset, i, j))


def einsum(
    *operands: Any, out: Any = None, dtype: Any = None, order: str = "K", casting: str = "safe", optimize: Any = False
) -> Any:
    """Sums of products by names of indices; `optimize` is accepted, votive chooses the order itself.

    >>> votive.np.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1])
    array([3, 7])
    """
    text, values = _named(operands)
    device = place_of(*values)
    ts = [to_tensor(v, device=device) for v in values]
    if dtype is None:
        from .element_types import promoted

        meet = promoted(*ts)
    else:
        meet = as_dtype(dtype)
        for t in ts:
            if not can_cast(t, meet, casting):
                raise TypeError(
                    f"Cannot cast operand from {t.dtype.np!r} to {meet!r} according to the rule {casting!r}"
                )
    ts = [cast(t, meet) for t in ts]
    if meet == BOOL:
        value = F.gt(F.einsum(text, *[t.to(dt.int64) for t in ts]), 0)
    elif meet in NARROW_UNSIGNED or meet == UINT64:
        value = F.einsum(text, *[t.to(dt.int64) for t in ts]).to(ts[0].dtype)
    else:
        try:
            value = F.einsum(text, *ts)
        except RuntimeError as problem:
            raise ValueError(str(problem)) from None
    return result(ordered(value, order)) if out is None else store("einsum", value, out)


def _named(operands: tuple[Any, ...]) -> tuple[str, list[Any]]:
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), list(operands[1:])
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def text(sub: Any) -> str:
        return "".join("..." if s is Ellipsis else letters[int(s)] for s in sub)

    pairs = len(operands) // 2
    parts = ",".join(text(operands[2 * i + 1]) for i in range(pairs))
    end = f"->{text(operands[-1])}" if len(operands) % 2 else ""
    return parts + end, [operands[2 * i] for i in range(pairs)]


def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """NumPy's plan for `einsum` of arrays of these shapes."""
    text, values = _named(operands)
    return numpy.einsum_path(text, *[numpy.empty(tuple(to_tensor(v).shape)) for v in values], optimize=optimize)
