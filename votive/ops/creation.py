"""Making tensors of a given shape: empty, zeros, ones, full, eye; and from data: tensor.

Knows specs, not memory; values from outside come through `_from_data`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.blocks import block_dtype
from ..core.device import device as Device
from ..core.dtype import dtype as Dtype
from ..core.dtype import of_scalar
from ..core.errors import ShapeError, fail
from ..core.layout import Layout, Spec, contiguous_strides, extent, is_dense, permuted_strides
from ..core.memory_format import contiguous_format
from ..core.remembered import remembered
from .copy import format_strides
from .options import (
    check_options,
    deliver,
    dtype_of,
    finish,
    fitting,
    new_memory,
    number,
    options,
    out_dtype,
    tensor_options,
)
from .registry import OPS, F, Resolved, composite, structured
from .sizes import also_named, int_of, ints, new_shape

if TYPE_CHECKING:
    from .types import (
        DeviceLike,
        Ints,
        Number,
        Operand,
        Sequence,
        Shape,
        Tensor,
        TensorOptions,
        Unpack,
        dtype,
        memory_format,
    )

structured(
    "_empty(int[] size, int[] stride, dtype dtype, any device)",
    infer=lambda size, stride, dtype, device: Spec(Layout(size, stride), dtype, device),
    differentiable=False,
    doc="New memory with arbitrary content.",
)

structured(
    "_full(int[] size, int[] stride, Scalar value, dtype dtype, any device)",
    infer=lambda size, stride, value, dtype, device: Spec(Layout(size, stride), dtype, device),
    differentiable=False,
    doc="New memory filled with one value.",
)

structured(
    "_eye(int n, int m, dtype dtype, any device)",
    infer=lambda n, m, dtype, device: Spec(Layout((n, m)), dtype, device),
    differentiable=False,
    doc="Ones on the diagonal, zeros elsewhere.",
)


# Programs make tensors of a few shapes again and again.
_dense = remembered(1024)(contiguous_strides)


def _full(shape: Shape, strides: Shape, value: Number, dtype: Dtype, device: Device, given: TensorOptions) -> Tensor:
    if given.get("pin_memory") and device.type == "cpu":
        return new_memory(shape, strides, dtype, device, given).fill_(value)
    return F._full(shape, strides, value, dtype, device)


def _filled(op: str, shape: Shape, value: Number, out: Tensor | None, given: TensorOptions) -> Tensor:
    """A new tensor of one value, or `out` resized and filled."""
    if out is not None:
        check_options(op, out_dtype(op, out, given))
        return finish(out.resize_(shape).fill_(value), given, pin=False)
    dtype, device = options(op, given)
    return finish(_full(shape, _dense(shape), value, dtype, device, given), given)


def _shortcut(op: str, *, value: int | None = None) -> Callable[..., Resolved]:
    """What `zeros(2, 3)` and kin come down to; a `value` of None leaves the memory as it is."""

    def resolve(*size: Any, dtype: dtype | None = None) -> Resolved:
        if hasattr(size[0], "_spec"):
            return None
        shape = new_shape(op, size)
        wanted = options(op, {"dtype": dtype})
        if value is None:
            return OPS["_empty"], (shape, contiguous_strides(shape), *wanted)
        return OPS["_full"], (shape, contiguous_strides(shape), value, *wanted)

    return resolve


@composite(method=False, shortcut=_shortcut("zeros", value=0))
@also_named("size")
@tensor_options()
def zeros(*size: Ints, out: Tensor | None = None, **given: Unpack[TensorOptions]) -> Tensor:
    """A tensor of zeros.

    >>> votive.zeros(2)
    tensor([0., 0.])
    """
    return _filled("zeros", new_shape("zeros", size), 0, out, given)


@composite(method=False, shortcut=_shortcut("ones", value=1))
@also_named("size")
@tensor_options()
def ones(*size: Ints, out: Tensor | None = None, **given: Unpack[TensorOptions]) -> Tensor:
    """A tensor of ones.

    >>> votive.ones(2)
    tensor([1., 1.])
    """
    return _filled("ones", new_shape("ones", size), 1, out, given)


@composite(method=False)
@tensor_options()
def full(size: Ints, fill_value: Operand, *, out: Tensor | None = None, **given: Unpack[TensorOptions]) -> Tensor:
    """A tensor of one value; the value decides the dtype unless one is given.

    >>> votive.full((2,), 7)
    tensor([7, 7])
    """
    if hasattr(size, "__index__"):
        raise TypeError("full: size must be a tuple of integers.")
    shape, value = new_shape("full", (size,)), number("full", "fill_value", fill_value)
    if out is None:
        asked = given.get("dtype")
        dtype = of_scalar(value) if asked is None else dtype_of("full", asked)
        value, given["dtype"] = fitting("full", value, dtype), dtype
    return _filled("full", shape, value, out, given)


@composite(method=False, shortcut=_shortcut("empty"))
@also_named("size")
@tensor_options()
def empty(
    *size: Ints,
    out: Tensor | None = None,
    memory_format: memory_format = contiguous_format,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """New memory with arbitrary content.

    >>> votive.empty(2, 3).shape
    votive.Size([2, 3])
    """
    shape = new_shape("empty", size)
    if out is not None:
        check_options("empty", out_dtype("empty", out, given))
        return finish(out.resize_(shape), given, pin=False)
    wanted, place = options("empty", given)
    if memory_format is contiguous_format:
        strides = _dense(shape)
    else:
        strides = format_strides("empty", Spec(Layout(shape), wanted, place), memory_format)
    return finish(new_memory(shape, strides, wanted, place, given), given)


@composite(method=False)
@tensor_options()
def empty_strided(size: Sequence[int], stride: Sequence[int], **given: Unpack[TensorOptions]) -> Tensor:
    """New memory with given strides and arbitrary content.

    >>> votive.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    wanted, place = options("empty_strided", given)
    return finish(strided("empty_strided", size, stride, wanted, place, given), given)


def strided(
    op: str, size: Sequence[int], stride: Sequence[int], dtype: Dtype, device: Device, given: TensorOptions
) -> Tensor:
    """New memory with checked sizes and strides."""
    shape, strides = new_shape(op, (size,)), ints(op, "stride", stride)
    if len(shape) != len(strides):
        fail(ShapeError, op, f"size {shape} and stride {strides} differ in length.")
    if any(s < 0 for s in strides):
        fail(RuntimeError, op, f"strides must not be negative, got {strides}.")
    if is_dense(shape, strides):
        return new_memory(shape, strides, dtype, device, given)
    # Gaps and overlaps: the memory is as long as what the strides span.
    block = new_memory((extent(shape, strides),), (1,), dtype, device, given)
    return F._as_strided(block, shape, strides, 0).detach()


@composite(method=False)
@tensor_options()
def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], **given: Unpack[TensorOptions]) -> Tensor:
    """New dense memory whose dimensions lie in the given order, outermost first.

    >>> votive.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    op = "empty_permuted"
    shape, order = new_shape(op, (size,)), ints(op, "physical_layout", physical_layout)
    if sorted(order) != list(range(len(shape))):
        fail(RuntimeError, op, f"physical_layout must hold each of the {len(shape)} dimensions once, got {order}.")
    wanted, place = options(op, given)
    strides = permuted_strides(shape, order)
    return finish(new_memory(shape, strides, wanted, place, given), given)


@composite(method=False)
@tensor_options()
def eye(n: int, m: int | None = None, *, out: Tensor | None = None, **given: Unpack[TensorOptions]) -> Tensor:
    """Ones on the diagonal, zeros elsewhere; `m` columns where they differ from the rows.

    >>> votive.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    n = int_of("eye", "n", n)
    m = n if m is None else int_of("eye", "m", m)
    if n < 0 or m < 0:
        fail(RuntimeError, "eye", f"sizes must not be negative, got {n} and {m}.")
    given = out_dtype("eye", out, given)
    return deliver(F._eye(n, m, *options("eye", given)), out, given)


@composite(method=False)
@tensor_options()
def scalar_tensor(s: Operand, **given: Unpack[TensorOptions]) -> Tensor:
    """A 0-d tensor of one number, by default of the default dtype.

    >>> votive.scalar_tensor(3)
    tensor(3.)
    """
    wanted, place = options("scalar_tensor", given)
    value = fitting("scalar_tensor", number("scalar_tensor", "s", s), wanted)
    return finish(_full((), (), value, wanted, place, given), given)


@composite(method=False)
def tensor(
    data: Any,
    *,
    dtype: dtype | None = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`.

    >>> votive.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    given: TensorOptions = {"dtype": dtype, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad}
    if pin_memory:
        options("tensor", given)
    wanted = None if dtype is None else dtype_of("tensor", dtype)
    if wanted is dt.complex32:
        return finish(F._from_data(data, dt.complex64, device).to(wanted), given)
    if isinstance(wanted, block_dtype):
        return finish(F._from_data(data, dt.float32, device).to(wanted), given)
    return finish(F._from_data(data, wanted, device), given)
