"""Pooling to a given output size: adaptive windows, and fractional ones at random places.

Knows shapes and gradients. Window i of o over n elements is floor(i n/o) to ceil((i+1) n/o).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, fail
from ..core.layout import Shape, Spec
from .fold import NN, check_not_negative, check_positive, like_input, per_dim
from .pooling import ADAPTIVE, put_back
from .pooling_windows import check_input
from .registry import OPS, F, composite, structured
from .sizes import ints

if TYPE_CHECKING:
    from collections.abc import Callable

    from .declaration import Resolved
    from .types import Ints, Sequence, Tensor


def _pooled(x: Spec, size: Shape) -> Spec:
    return like_input(x, (*x.shape[: -len(size)], *size))


structured(
    "_adaptive_avg_pool(Tensor input, int[] size)",
    placement="samples and channels",
    batch="fold",
    infer=_pooled,
    grad={"input": lambda c, g: F._adaptive_avg_pool_transpose(g, c.shape("input")[-len(c.size) :])},
    doc="The mean of each of `size` windows that together cover the last dimensions.",
)

structured(
    "_adaptive_avg_pool_transpose(Tensor input, int[] size)",
    batch="fold",
    infer=_pooled,
    grad={"input": lambda c, g: F._adaptive_avg_pool(g, c.shape("input")[-len(c.size) :])},
    doc="Each value's share of the mean given back to every element of its window.",
)


def _with_indices(x: Spec, size: Shape, *rest: Any) -> tuple[Spec, Spec]:
    values = _pooled(x, size)
    return values, values.like(dtype=dt.int64)


structured(
    "_adaptive_max_pool(Tensor input, int[] size)",
    placement="samples and channels",
    batch="fold",
    infer=_with_indices,
    grad={"input": lambda c, g, _: put_back(g, c.out1, c.shape("input"), len(c.size), ADAPTIVE)},
    n_out=2,
    doc="The largest value of each of `size` windows and its flat position.",
)

structured(
    "_fractional_max_pool(Tensor input, int[] size, int[] kernel, Tensor samples)",
    infer=_with_indices,
    grad={"input": lambda c, g, _: put_back(g, c.out1, c.shape("input"), len(c.size)), "samples": None},
    n_out=2,
    doc="The largest value of windows whose places follow from `samples` (N, C, dimensions).",
)


def _output_size(op: str, n: int, x: Tensor, given: Any) -> Shape:
    """The wanted size; None among several keeps that of the input."""
    if not isinstance(given, (list, tuple)):
        given = ints(op, "output_size", given) * n
    elif n > 1:
        if len(given) >= x.ndim:
            fail(ValueError, op, f"output_size {given} needs more dimensions than {x.ndim}.")
        kept = tuple(x.shape)[x.ndim - len(given) :]
        given = [k if s is None else s for s, k in zip(given, kept, strict=True)]
    size = ints(op, "output_size", given)
    if len(size) != n:
        fail(RuntimeError, op, f"output_size must be one integer or {n} of them, got {given}.")
    check_not_negative(op, "output_size", size)
    return size


def _check(op: str, n: int, x: Tensor) -> None:
    if not x.dtype.is_floating_point or x.dtype in dt.FLOAT8:
        fail(UnsupportedError, op, f"not implemented for {x.dtype}; it takes floats.")
    if x.ndim not in (n + 1, n + 2) or 0 in tuple(x.shape)[-n:]:
        fail(
            RuntimeError,
            op,
            f"input must have {n + 1} or {n + 2} dimensions, the last {n} not empty, got shape {tuple(x.shape)}.",
        )


def _avg(op: str, n: int, input: Tensor, output_size: Any) -> Tensor:
    size = _output_size(op, n, input, output_size)
    _check(op, n, input)
    return F._adaptive_avg_pool(input, size)


def _shortcut(n: int) -> Callable[..., Resolved]:
    """What an average comes down to: one operator."""

    def resolve(input: Tensor, output_size: Any) -> Resolved:
        op = f"adaptive_avg_pool{n}d"
        size = _output_size(op, n, input, output_size)
        _check(op, n, input)
        return OPS["_adaptive_avg_pool"], (input, size)

    return resolve


@composite(namespaces=NN, method=False, also=("adaptive_avg_pool1d",), shortcut=_shortcut(1))
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Means of `output_size` windows that together cover the last dimension.

    >>> votive.nn.functional.adaptive_avg_pool1d(votive.tensor([[1.0, 2.0, 6.0]]), 2)
    tensor([[1.5000, 4.0000]])
    """
    return _avg("adaptive_avg_pool1d", 1, input, output_size)


@composite(namespaces=NN, method=False, shortcut=_shortcut(2))
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Means of `output_size` windows that together cover the last two dimensions.

    >>> votive.nn.functional.adaptive_avg_pool2d(votive.tensor([[[1.0, 2.0], [3.0, 6.0]]]), 1)
    tensor([[[3.]]])
    """
    return _avg("adaptive_avg_pool2d", 2, input, output_size)


@composite(namespaces=NN, method=False, autocast={"cpu": "float32"}, shortcut=_shortcut(3))
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Means of `output_size` windows that together cover the last three dimensions.

    >>> x = votive.arange(8.0).view(1, 2, 2, 2)
    >>> votive.nn.functional.adaptive_avg_pool3d(x, (None, 1, 1))
    tensor([[[[1.5000]],
    <BLANKLINE>
             [[5.5000]]]])
    """
    return _avg("adaptive_avg_pool3d", 3, input, output_size)


_sizes: dict[Any, Shape] = {}  # what maxima came down to, by input and wanted size


def _max_size(op: str, n: int, input: Tensor, output_size: Any) -> Shape:
    """The size of the result, once it was checked."""
    key = (op, input._spec, output_size) if output_size.__class__ is int else None
    found = _sizes.get(key)
    if found is None:
        found = _output_size(op, n, input, output_size)
        _check(op, n, input)
        check_input(op, input, n)
        if key is not None:
            if len(_sizes) > 1024:
                _sizes.clear()
            _sizes[key] = found
    return found


def _max(op: str, n: int, input: Tensor, output_size: Any, return_indices: bool) -> Any:
    size = _max_size(op, n, input, output_size)
    found = F._adaptive_max_pool(input, size)
    return found if return_indices else found[0]


@composite(namespaces=NN, method=False)
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Largest values of `output_size` windows over the last dimension, and their positions.

    >>> votive.nn.functional.adaptive_max_pool1d(votive.tensor([[1.0, 2.0, 6.0]]), 2)
    tensor([[2., 6.]])
    """
    return _max("adaptive_max_pool1d", 1, input, output_size, return_indices)


@composite(name="adaptive_max_pool1d", method=False)
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None
) -> tuple[Tensor, ...]:
    """Largest values of `output_size` windows over the last dimension, and their positions.

    >>> votive.adaptive_max_pool1d(votive.tensor([[1.0, 2.0, 6.0]]), 1)
    (tensor([[6.]]), tensor([[2]]))
    """
    return _max("adaptive_max_pool1d", 1, input, output_size, True)


@composite(namespaces=NN, method=False)
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Largest values of `output_size` windows over the last two dimensions.

    >>> votive.nn.functional.adaptive_max_pool2d(votive.tensor([[[1.0, 2.0], [3.0, 6.0]]]), 1)
    tensor([[[6.]]])
    """
    return _max("adaptive_max_pool2d", 2, input, output_size, return_indices)


@composite(namespaces=NN, method=False, autocast={"cpu": "float32"})
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Largest values of `output_size` windows over the last three dimensions.

    >>> votive.nn.functional.adaptive_max_pool3d(votive.arange(8.0).view(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    return _max("adaptive_max_pool3d", 3, input, output_size, return_indices)


def _fractional_size(op: str, n: int, x: Tensor, size: Ints | None, ratio: float | Sequence[float] | None) -> Shape:
    if size is not None:
        return per_dim(op, "output_size", size, n)
    if ratio is None:
        fail(ValueError, op, "needs output_size or output_ratio.")
    ratios = (ratio,) * n if isinstance(ratio, (int, float)) else tuple(ratio)
    if len(ratios) != n:
        fail(ValueError, op, f"output_ratio must be one number or {n} of them, got {ratio}.")
    return tuple(int(s * r) for s, r in zip(tuple(x.shape)[-n:], ratios, strict=True))


def _fractional(
    op: str,
    n: int,
    input: Tensor,
    kernel: Ints,
    size: Ints | None,
    ratio: float | Sequence[float] | None,
    return_indices: bool,
    samples: Tensor | None,
) -> Any:
    size = _fractional_size(op, n, input, size, ratio)
    kernel = per_dim(op, "kernel_size", kernel, n)
    check_positive(op, "kernel_size", kernel)
    check_not_negative(op, "output_size", size)
    _check(op, n, input)
    check_input(op, input, n)
    shape = tuple(input.shape)
    for i, k, o in zip(shape[-n:], kernel, size, strict=True):
        most = i - k + (n == 2)  # torch asks for one element more in three dimensions
        if o > most:
            fail(RuntimeError, op, f"{o} windows of size {k} do not fit into size {i}; use at most {most}.")
    batch = shape[0] if input.ndim == n + 2 else 1
    wanted = (batch, shape[-n - 1], n)
    if samples is None:
        samples = F.rand(*wanted, dtype=input.dtype, device=input.device)
    elif samples.dtype is not input.dtype:
        fail(DtypeError, op, f"samples must be {input.dtype} like input, got {samples.dtype}.")
    elif samples.ndim != 3 or samples.shape[0] < batch or tuple(samples.shape)[1:] != wanted[1:]:
        fail(RuntimeError, op, f"samples must have shape {wanted}, got {tuple(samples.shape)}.")
    found = F._fractional_max_pool(input, size, kernel, samples)
    return found if return_indices else found[0]


@composite(namespaces=NN, method=False, autocast={"cpu": "float32"})
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Largest values of windows at places drawn at random between evenly spaced ones.

    Graham 2014, "Fractional max-pooling", section 2.

    >>> x = votive.arange(9.0).view(1, 3, 3)
    >>> votive.nn.functional.fractional_max_pool2d(x, 2, output_size=1)
    tensor([[[8.]]])
    """
    return _fractional(
        "fractional_max_pool2d", 2, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )


@composite(namespaces=NN, method=False, autocast={"cpu": "float32"})
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Largest values of windows at places drawn at random between evenly spaced ones.

    >>> x = votive.arange(8.0).view(1, 2, 2, 2)
    >>> votive.nn.functional.fractional_max_pool3d(x, 1, output_size=1)
    tensor([[[[7.]]]])
    """
    return _fractional(
        "fractional_max_pool3d", 3, input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
