"""Convolution in one to three dimensions and its transpose. Knows shapes, dtypes, gradients only.

Three operators, each linear in both of its tensors, are each other's gradients, to any order:
`_convolution(input, weight)`, `_convolution_transpose(g, weight)`, `_convolution_weight(input, g)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import ShapeError, UnsupportedError, fail
from ..core.layout import Shape, Spec
from .autocast_policy import LOWER
from .checked_calls import CheckedCalls
from .fold import NN, batched, check_not_negative, check_one_dtype, check_positive, counts, like_input, per_dim
from .matmul import conjugate
from .registry import F, composite, structured
from .sizes import int_of

if TYPE_CHECKING:
    from .types import Ints, Tensor

Geometry = tuple[Shape, Shape, Shape, int]  # stride, padding, dilation, groups
_CALLS = CheckedCalls()


def _infer(x: Spec, weight: Spec, bias: Spec | None, *geometry: Any) -> Spec:
    stride, padding, dilation, _ = geometry
    places = counts(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    return like_input(x, (x.shape[0], weight.shape[0], *places), weight)


def _over_positions(g: Tensor) -> Tensor:
    """The gradient of a bias: one sum per channel."""
    return g.sum((0, *range(2, g.ndim)))


def _cropped(x: Tensor, shape: Shape) -> Tensor:
    """Windows beyond `shape` left out: output_padding may make room for more than there were."""
    for d in range(2, x.ndim):
        if x._spec.shape[d] != shape[d]:
            x = F._slice(x, d, 0, shape[d], 1)
    return x


structured(
    "_convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)",
    placement="convolution",
    multilinear=("input", "weight"),
    infer=_infer,
    grad={
        "input": lambda c, g: F._convolution_transpose(
            g, conjugate(c.weight), None, c.shape("input")[2:], c.stride, c.padding, c.dilation, c.groups
        ),
        "weight": lambda c, g: F._convolution_weight(
            conjugate(c.input), g, c.shape("weight")[2:], c.stride, c.padding, c.dilation, c.groups
        ),
        "bias": lambda c, g: _over_positions(g),
    },
    doc="`y[n, o, p] = b[o] + sum(w[o, i, k] * x[n, i, p * stride + k * dilation - padding])`.",
)

structured(
    "_convolution_transpose(Tensor input, Tensor weight, Tensor? bias, int[] size, int[] stride, "
    "int[] padding, int[] dilation, int groups)",
    placement="convolution",
    multilinear=("input", "weight"),
    infer=lambda x, weight, bias, size, stride, padding, dilation, groups: like_input(
        x, (x.shape[0], weight.shape[1] * groups, *size), weight
    ),
    grad={
        "input": lambda c, g: _cropped(
            F._convolution(g, conjugate(c.weight), None, c.stride, c.padding, c.dilation, c.groups), c.shape("input")
        ),
        "weight": lambda c, g: F._convolution_weight(
            g, conjugate(c.input), c.shape("weight")[2:], c.stride, c.padding, c.dilation, c.groups
        ),
        "bias": lambda c, g: _over_positions(g),
    },
    doc="The transpose of `_convolution` as a map of its input, to tensors of spatial size `size`.",
)

structured(
    "_convolution_weight(Tensor input, Tensor grad, int[] kernel, int[] stride, int[] padding, "
    "int[] dilation, int groups)",
    infer=lambda x, grad, kernel, stride, padding, dilation, groups: x.like(
        (grad.shape[1], x.shape[1] // groups, *kernel)
    ),
    grad={
        "input": lambda c, g: F._convolution_transpose(
            conjugate(c.grad), g, None, c.shape("input")[2:], c.stride, c.padding, c.dilation, c.groups
        ),
        "grad": lambda c, g: _cropped(
            F._convolution(conjugate(c.input), g, None, c.stride, c.padding, c.dilation, c.groups), c.shape("grad")
        ),
    },
    doc="The transpose of `_convolution` as a map of its weight: the weight's gradient.",
)


def _check(op: str, x: Tensor, weight: Tensor, bias: Tensor | None, features: int) -> None:
    """What both directions ask of the tensors: ranks, dtypes, a fitting bias."""
    if weight.ndim != x.ndim:
        fail(ShapeError, op, f"weight must have {x.ndim} dimensions, got shape {tuple(weight.shape)}.")
    if x.dtype in (dt.bool_, *dt.FLOAT8, *dt.BAREBONES):
        fail(UnsupportedError, op, f"not implemented for {x.dtype}.")
    check_one_dtype(op, x, weight=weight, bias=bias)
    if bias is not None and tuple(bias.shape) != (features,):
        fail(
            ShapeError,
            op,
            f"bias must have shape ({features},) to fit the weight of shape "
            f"{tuple(weight.shape)}, got {tuple(bias.shape)}.",
        )
    if 0 in tuple(x.shape)[2:] or 0 in tuple(weight.shape)[2:]:
        fail(
            ShapeError,
            op,
            f"only batch and channels may be empty, got shapes {tuple(x.shape)} and {tuple(weight.shape)}.",
        )


def _check_groups(op: str, weight: Tensor, groups: int) -> None:
    n = weight.shape[0]
    if n < groups or n % groups:
        fail(ShapeError, op, f"the first size of weight {tuple(weight.shape)} is not a multiple of groups={groups}.")


def _geometry(op: str, n: int, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Geometry:
    stride, dilation = per_dim(op, "stride", stride, n), per_dim(op, "dilation", dilation, n)
    padding, groups = per_dim(op, "padding", padding, n), int_of(op, "groups", groups)
    check_not_negative(op, "padding", padding)
    check_positive(op, "stride", stride)
    check_positive(op, "dilation", dilation)
    check_positive(op, "groups", (groups,))
    return stride, padding, dilation, groups


def _padded_same(op: str, x: Tensor, weight: Tensor, stride: Ints, dilation: Ints) -> tuple[Tensor, Shape]:
    """The input and padding that keep its size; an odd total puts one more zero at the end."""
    n = weight.ndim - 2
    if any(s != 1 for s in per_dim(op, "stride", stride, n)):
        fail(RuntimeError, op, f"padding='same' is not possible with stride {stride}; use 1.")
    dilation = per_dim(op, "dilation", dilation, n)
    total = [d * (k - 1) for d, k in zip(dilation, tuple(weight.shape)[2:], strict=True)]
    check_not_negative(op, "padding", tuple(total))
    if any(t % 2 for t in total):
        x = F.constant_pad_nd(x, tuple(p for t in reversed(total) for p in (0, t % 2)))
    return x, tuple(t // 2 for t in total)


def _forward(
    op: str,
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints | str,
    dilation: Ints,
    groups: int,
) -> Tensor:
    given = (stride, padding, dilation, groups)
    key, found = _CALLS.find(op, given, input, weight, bias)
    if found is not None:
        known: Tensor = F._convolution(input, weight, bias, *found)
        return known
    x, alone = batched(op, input, n)
    if weight.ndim != n + 2:
        _check(op, x, weight, None, 0)
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            fail(RuntimeError, op, f"padding must be 'same', 'valid' or integers, got {padding!r}.")
        if padding == "same":
            x, padding = _padded_same(op, x, weight, stride, dilation)
        else:
            padding = 0
    stride, padding, dilation, groups = _geometry(op, n, stride, padding, dilation, groups)
    _check_groups(op, weight, groups)
    if x.shape[1] != weight.shape[1] * groups:
        fail(
            ShapeError,
            op,
            f"a weight of shape {tuple(weight.shape)} with groups={groups} needs "
            f"{weight.shape[1] * groups} input channels, got shape {tuple(x.shape)}.",
        )
    _check(op, x, weight, bias, weight.shape[0])
    size, kernel = tuple(x.shape)[2:], tuple(weight.shape)[2:]
    places = counts(size, kernel, stride, padding, dilation)
    if min(places) < 1:
        fail(
            ShapeError,
            op,
            f"a kernel of size {kernel} (dilation {dilation}) is larger than the input of size "
            f"{size} with padding {padding}.",
        )
    y = F._convolution(x, weight, bias, stride, padding, dilation, groups)
    if x.shape[1] == 0:  # as in torch: no channels in, none out
        y = F._slice(y, 1, 0, 0, 1)
    elif x is input:
        _CALLS.keep(key, given, (stride, padding, dilation, groups))
    return y.squeeze(0) if alone else y


@composite(namespaces=NN, method=False, also=("conv1d",), autocast=LOWER)
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Slide a kernel over signals: (N, C, L) and weight (O, C / groups, K) give (N, O, L').

    >>> x, weight = votive.tensor([[[1.0, 2.0, 4.0]]]), votive.tensor([[[-1.0, 1.0]]])
    >>> votive.nn.functional.conv1d(x, weight)
    tensor([[[1., 2.]]])
    """
    return _forward("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@composite(namespaces=NN, method=False, also=("conv2d",), autocast=LOWER)
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Slide a kernel over images: (N, C, H, W) and weight (O, C / groups, KH, KW).

    >>> image, weight = votive.ones(1, 1, 3, 3), votive.ones(1, 1, 2, 2)
    >>> votive.nn.functional.conv2d(image, weight, padding="same")
    tensor([[[[4., 4., 2.],
              [4., 4., 2.],
              [2., 2., 1.]]]])
    """
    return _forward("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@composite(namespaces=NN, method=False, also=("conv3d",), autocast=LOWER)
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Slide a kernel over volumes: (N, C, D, H, W) and weight (O, C / groups, KD, KH, KW).

    >>> votive.nn.functional.conv3d(votive.ones(1, 2, 2, 2, 2), votive.ones(1, 2, 2, 2, 2))
    tensor([[[[[16.]]]]])
    """
    return _forward("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


def _backward(
    op: str,
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilation: Ints,
) -> Tensor:
    given = (stride, padding, output_padding, groups, dilation)
    key, found = _CALLS.find(op, given, input, weight, bias)
    if found is not None:
        known: Tensor = F._convolution_transpose(input, weight, bias, *found)
        return known
    x, alone = batched(op, input, n)
    if weight.ndim != n + 2:
        _check(op, x, weight, None, 0)
    stride, padding, dilation, groups = _geometry(op, n, stride, padding, dilation, groups)
    extra = per_dim(op, "output_padding", output_padding, n)
    check_not_negative(op, "output_padding", extra)
    if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation, strict=True)):
        fail(
            RuntimeError,
            op,
            f"output_padding must be smaller than stride or dilation, got {extra}, {stride} and {dilation}.",
        )
    _check_groups(op, weight, groups)
    if x.shape[1] != weight.shape[0]:
        fail(
            ShapeError,
            op,
            f"a weight of shape {tuple(weight.shape)} needs {weight.shape[0]} input channels, got "
            f"shape {tuple(x.shape)}.",
        )
    if weight.shape[1] == 0:
        fail(ShapeError, op, f"weight must not be empty, got shape {tuple(weight.shape)}.")
    _check(op, x, weight, bias, weight.shape[1] * groups)
    kernel = tuple(weight.shape)[2:]
    size = tuple(
        (i - 1) * s - 2 * p + d * (k - 1) + e + 1
        for i, s, p, d, k, e in zip(tuple(x.shape)[2:], stride, padding, dilation, kernel, extra, strict=True)
    )
    if min(size) < 1:
        fail(ShapeError, op, f"padding {padding} leaves an output of size {size}; use less.")
    y = F._convolution_transpose(x, weight, bias, size, stride, padding, dilation, groups)
    if x is input:
        _CALLS.keep(key, given, (size, stride, padding, dilation, groups))
    return y.squeeze(0) if alone else y


@composite(namespaces=NN, method=False, also=("conv_transpose1d",), autocast=LOWER)
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of conv1d: each input value adds its multiple of the kernel to the output.

    >>> x, weight = votive.tensor([[[1.0, 10.0]]]), votive.tensor([[[1.0, 2.0]]])
    >>> votive.nn.functional.conv_transpose1d(x, weight)
    tensor([[[ 1., 12., 20.]]])
    """
    return _backward("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@composite(namespaces=NN, method=False, also=("conv_transpose2d",), autocast=LOWER)
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of conv2d: each input value adds its multiple of the kernel to the output.

    >>> votive.nn.functional.conv_transpose2d(votive.ones(1, 1, 1, 2), votive.ones(1, 1, 2, 2))
    tensor([[[[1., 2., 1.],
              [1., 2., 1.]]]])
    """
    return _backward("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@composite(namespaces=NN, method=False, also=("conv_transpose3d",), autocast=LOWER)
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of conv3d: each input value adds its multiple of the kernel to the output.

    >>> ones = votive.ones(1, 1, 1, 1, 2)
    >>> votive.nn.functional.conv_transpose3d(ones, ones)
    tensor([[[[[1., 2., 1.]]]]])
    """
    return _backward("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


@composite(namespaces=NN, method=False, also=("conv_tbc",), autocast=LOWER)
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """conv1d over the first dimension of (time, batch, channels), with weight (K, C, O).

    >>> votive.nn.functional.conv_tbc(votive.ones(3, 1, 1), votive.ones(2, 1, 1), votive.zeros(1))
    tensor([[[2.]],
    <BLANKLINE>
            [[2.]]])
    """
    op = "conv_tbc"
    for name, t, rank in (("input", input, 3), ("weight", weight, 3), ("bias", bias, 1)):
        if t.ndim != rank:
            fail(ShapeError, op, f"{name} must have {rank} dimension(s), got {tuple(t.shape)}.")
    y = _forward(op, 1, input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad, 1, 1)
    return y.permute(2, 0, 1).contiguous()
