"""Pooling over sliding windows: maximum, mean, p-norm; max_unpool. Knows shapes and gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import DtypeError, UnsupportedError, fail
from ..core.layout import Shape, Spec
from ..core.mode import mode
from .fold import NN, like_input, per_dim
from .pooling_windows import check_input, geometry
from .registry import OPS, F, composite, structured

if TYPE_CHECKING:
    from collections.abc import Callable

    from .declaration import Resolved
    from .types import Ints, Sequence, Tensor


ADAPTIVE = (0,)


def put_back(g: Tensor, index: Tensor, shape: Shape, n: int, windows: Shape = ()) -> Tensor:
    """Values at flat positions of the last n dimensions of zeros of `shape`; equal ones add up.

    `windows`: kernel, stride, padding, dilation of the windows that positions were found in, in one
    row; `ADAPTIVE` where they cover the dimensions evenly, empty where they are not known.
    """
    return F._max_pool_transpose(g, index.detach(), shape[len(shape) - n :], windows)


def _windows(c: Any) -> Shape:
    return (*c.kernel, *c.stride, *c.padding, *c.dilation)


def _taken(g: Tensor, index: Any, n: int) -> Any:
    """Elements of g at flat positions of its last n dimensions: the transpose of `put_back`."""
    shape = index._spec.shape
    lead = shape[: len(shape) - n]
    flat = F.reshape(g, (*lead, math.prod(g._spec.shape[-n:])))
    at = F.reshape(index, (*lead, math.prod(shape[-n:])))
    return F.reshape(F.gather(flat, -1, at), shape)


def _infer_max(x: Spec, size: Shape, *geometry: Any) -> tuple[Spec, Spec]:
    values = like_input(x, (*x.shape[: -len(size)], *size))
    return values, values.like(dtype=dt.int64)


structured(
    "_max_pool(Tensor input, int[] size, int[] kernel, int[] stride, int[] padding, int[] dilation)",
    placement="samples and channels",
    batch="fold",
    infer=_infer_max,
    grad={"input": lambda c, g, _: put_back(g, c.out1, c.shape("input"), len(c.kernel), _windows(c))},
    n_out=2,
    doc="The largest value of each of `size` windows and its flat position; NaN is the largest.",
)

structured(
    "_max_pool_values(Tensor input, int[] size, int[] kernel, int[] stride, int[] padding, int[] dilation)",
    placement="samples and channels",
    batch="fold",
    infer=lambda x, *geometry: _infer_max(x, *geometry)[0],
    grad={
        "input": lambda c, g: put_back(
            g,
            F._max_pool(c.input, c.size, c.kernel, c.stride, c.padding, c.dilation)[1],
            c.shape("input"),
            len(c.kernel),
            _windows(c),
        )
    },
    doc="The largest value of each of `size` windows; NaN is the largest.",
)

structured(
    "_max_pool_transpose(Tensor input, Tensor index, int[] size, int[] windows)",
    placement="samples and channels",
    batch="fold",
    infer=lambda x, index, size, windows: like_input(x, (*x.shape[: -len(size)], *size)),
    grad={"input": lambda c, g: _taken(g, c.index, len(c.size)), "index": None},
    doc="Values added to zeros where `index` says, counted within the last dimensions. `windows`: see `put_back`.",
)

structured(
    "_avg_pool(Tensor input, int[] size, int[] kernel, int[] stride, int[] padding, bool include_pad, int? divisor)",
    placement="samples and channels",
    batch="fold",
    infer=lambda x, size, *geometry: like_input(x, (*x.shape[: -len(size)], *size)),
    grad={
        "input": lambda c, g: F._avg_pool_transpose(
            g, c.shape("input")[-len(c.kernel) :], c.kernel, c.stride, c.padding, c.include_pad, c.divisor
        )
    },
    doc="The mean of each of `size` windows, or their sum divided by `divisor`.",
)

structured(
    "_avg_pool_transpose(Tensor input, int[] size, int[] kernel, int[] stride, int[] padding, "
    "bool include_pad, int? divisor)",
    batch="fold",
    infer=lambda x, size, *geometry: like_input(x, (*x.shape[: -len(size)], *size)),
    grad={
        "input": lambda c, g: F._avg_pool(
            g, c.shape("input")[-len(c.kernel) :], c.kernel, c.stride, c.padding, c.include_pad, c.divisor
        )
    },
    doc="Each value's share of the mean given back to every element of its window.",
)


def _max_pool(
    op: str,
    n: int,
    input: Tensor,
    kernel: Ints,
    stride: Ints | None,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    if input.dtype.is_complex or input.dtype in (dt.bool_, *dt.FLOAT8, *dt.BAREBONES):
        fail(UnsupportedError, op, f"not implemented for {input.dtype}.")
    found = geometry(op, n, input, kernel, stride, padding, dilation, ceil_mode)
    if return_indices:
        return F._max_pool(input, *found)
    # A gradient needs the positions; they are found again if this one is asked for after all.
    if mode.grad and input.requires_grad:
        return F._max_pool(input, *found)[0]
    return F._max_pool_values(input, *found)


@composite(namespaces=NN, method=False, also=("max_pool1d",))
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window over the last dimension, and its position if asked for.

    >>> votive.nn.functional.max_pool1d(votive.tensor([[[3.0, 1.0, 2.0, 5.0]]]), 2)
    tensor([[[3., 5.]]])
    """
    return _max_pool("max_pool1d", 1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@composite(namespaces=NN, method=False, also=("max_pool2d",))
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window over the last two dimensions, and its flat position.

    >>> votive.nn.functional.max_pool2d(votive.tensor([[[3.0, 1.0], [2.0, 5.0]]]), (2, 1))
    tensor([[[3., 5.]]])
    """
    return _max_pool("max_pool2d", 2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@composite(namespaces=NN, method=False, also=("max_pool3d",), autocast={"cpu": "float32"})
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window over the last three dimensions, and its flat position.

    >>> votive.nn.functional.max_pool3d(votive.arange(8.0).view(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    return _max_pool("max_pool3d", 3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _averages(
    op: str,
    n: int,
    input: Tensor,
    kernel: Ints,
    stride: Ints | None,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None = None,
) -> tuple[Any, ...]:
    """The arguments of `_avg_pool` that a call comes down to."""
    if not (input.dtype is dt.int64 or input.dtype.is_floating_point) or input.dtype in dt.FLOAT8:
        fail(UnsupportedError, op, f"not implemented for {input.dtype}.")
    if divisor == 0:
        fail(RuntimeError, op, "divisor_override must not be zero.")
    size, kernel, stride, padding, _ = geometry(op, n, input, kernel, stride, padding, 1, ceil_mode)
    return input, size, kernel, stride, padding, count_include_pad, divisor


def _avg_pool(op: str, n: int, input: Tensor, *given: Any) -> Tensor:
    result: Tensor = F._avg_pool(*_averages(op, n, input, *given))
    return result


def _shortcut(n: int) -> Callable[..., Resolved]:
    """What an average comes down to: one operator."""

    def resolve(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Resolved:
        given = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        return OPS["_avg_pool"], _averages(f"avg_pool{n}d", n, input, *given)

    def without_divisor(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> Resolved:
        return resolve(input, kernel_size, stride, padding, ceil_mode, count_include_pad)

    return without_divisor if n == 1 else resolve


@composite(namespaces=NN, method=False, also=("avg_pool1d",), shortcut=_shortcut(1))
def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window over the last dimension.

    >>> votive.nn.functional.avg_pool1d(votive.tensor([[[3.0, 1.0, 2.0, 5.0]]]), 2)
    tensor([[[2.0000, 3.5000]]])
    """
    return _avg_pool("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@composite(namespaces=NN, method=False, out=True, shortcut=_shortcut(2))
def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over the last two dimensions, or its sum / divisor_override.

    >>> votive.nn.functional.avg_pool2d(votive.tensor([[[3.0, 1.0], [2.0, 5.0]]]), 2)
    tensor([[[2.7500]]])
    """
    return _avg_pool(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@composite(namespaces=NN, method=False, out=True, autocast={"cpu": "float32"}, shortcut=_shortcut(3))
def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over the last three dimensions, or its sum / divisor_override.

    >>> votive.nn.functional.avg_pool3d(votive.arange(8.0).view(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    return _avg_pool(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _lp_pool(
    op: str, n: int, input: Tensor, norm_type: float, kernel: Ints, stride: Ints | None, ceil_mode: bool
) -> Tensor:
    kernel = per_dim(op, "kernel_size", kernel, n)
    if abs(norm_type) == math.inf:
        sign = 1 if norm_type > 0 else -1
        return sign * _max_pool(op, n, sign * input.abs(), kernel, stride, 0, 1, ceil_mode, False)
    mean = _avg_pool(op, n, input.pow(norm_type), kernel, stride, 0, ceil_mode, True)
    return (F.sign(mean) * F.relu(F.abs(mean)) * math.prod(kernel)).pow(1.0 / norm_type)


@composite(namespaces=NN, method=False)
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """`(sum of x^p)^(1/p)` of each window over the last dimension.

    >>> votive.nn.functional.lp_pool1d(votive.tensor([[[3.0, 4.0]]]), 2, 2)
    tensor([[[5.]]])
    """
    return _lp_pool("lp_pool1d", 1, input, norm_type, kernel_size, stride, ceil_mode)


@composite(namespaces=NN, method=False)
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """`(sum of x^p)^(1/p)` of each window over the last two dimensions.

    >>> votive.nn.functional.lp_pool2d(votive.ones(1, 2, 2), 2, 2)
    tensor([[[2.]]])
    """
    return _lp_pool("lp_pool2d", 2, input, norm_type, kernel_size, stride, ceil_mode)


@composite(namespaces=NN, method=False)
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """`(sum of x^p)^(1/p)` of each window over the last three dimensions.

    >>> votive.nn.functional.lp_pool3d(votive.ones(1, 2, 2, 2), 3, 2)
    tensor([[[[2.]]]])
    """
    return _lp_pool("lp_pool3d", 3, input, norm_type, kernel_size, stride, ceil_mode)


def _unpooled_size(
    op: str, shape: Shape, kernel: Shape, stride: Shape, padding: Shape, given: Sequence[int] | None
) -> Shape:
    n = len(kernel)
    natural = tuple((i - 1) * s + k - 2 * p for i, k, s, p in zip(shape[-n:], kernel, stride, padding, strict=True))
    if given is None:
        return natural
    size = tuple(given)[2:] if len(given) == n + 2 else tuple(given)
    if len(size) != n:
        fail(ValueError, op, f"output_size must have {n} or {n + 2} elements, got {size}.")
    for want, usual, s in zip(size, natural, stride, strict=True):
        if not usual - s < want < usual + s:
            fail(ValueError, op, f"output_size {size} must be within stride {stride} of {natural}.")
    return size


def _max_unpool(
    op: str,
    n: int,
    input: Tensor,
    indices: Tensor,
    kernel: Ints,
    stride: Ints | None,
    padding: Ints,
    size: Sequence[int] | None,
) -> Tensor:
    kernel = per_dim(op, "kernel_size", kernel, n)
    stride = kernel if stride is None else per_dim(op, "stride", stride, n)
    padding, shape = per_dim(op, "padding", padding, n), tuple(input.shape)
    size = _unpooled_size(op, shape, kernel, stride, padding, size)
    if indices.dtype is not dt.int64:
        fail(DtypeError, op, f"indices must be int64, got {indices.dtype}; use .long().")
    if input.ndim not in (n + 1, n + 2) or 0 in shape[1:]:
        check_input(op, input, n)
    if shape != tuple(indices.shape):
        fail(RuntimeError, op, f"indices must have the shape of input {shape}, got {tuple(indices.shape)}.")
    lead, places = shape[:-n], math.prod(shape[-n:])
    zeros = F.zeros((*lead, math.prod(size)), dtype=input.dtype, device=input.device)
    index, values = F.reshape(indices, (*lead, places)), F.reshape(input, (*lead, places))
    return F.reshape(F.scatter(zeros, -1, index, values), (*lead, *size))


@composite(namespaces=NN, method=False, autocast={"cpu": "float32"})
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Values put where max_pool1d found them, with zeros elsewhere.

    >>> values, indices = votive.tensor([[[3.0, 5.0]]]), votive.tensor([[[0, 3]]])
    >>> votive.nn.functional.max_unpool1d(values, indices, 2)
    tensor([[[3., 0., 0., 5.]]])
    """
    return _max_unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@composite(namespaces=NN, method=False, autocast={"cpu": "float32"})
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Values put where max_pool2d found them, with zeros elsewhere.

    >>> votive.nn.functional.max_unpool2d(votive.ones(1, 1, 1), votive.tensor([[[2]]]), 2)
    tensor([[[0., 0.],
             [1., 0.]]])
    """
    return _max_unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@composite(namespaces=NN, method=False, autocast={"cpu": "float32"})
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Any = None,
) -> Tensor:
    """Values put where max_pool3d found them, with zeros elsewhere.

    >>> index = votive.tensor([[[[1]]]])
    >>> votive.nn.functional.max_unpool3d(votive.ones(1, 1, 1, 1), index, (1, 1, 2))
    tensor([[[[0., 1.]]]])
    """
    return _max_unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)
