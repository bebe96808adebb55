"""Making tensors after the model of another: `zeros_like`, `new_zeros` and kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core.layout import contiguous_strides
from ..core.memory_format import preserve_format
from .copy import format_strides
from .creation import strided
from .options import finish, fitting, new_memory, number, options, tensor_options
from .registry import OPS, F, Resolved, composite
from .sizes import also_named, new_shape

if TYPE_CHECKING:
    from .types import Ints, Number, Operand, Sequence, Shape, Tensor, TensorOptions, Unpack, dtype, memory_format


def _like(op: str, input: Tensor, value: Number | None, order: memory_format, given: TensorOptions) -> Tensor:
    """A tensor shaped and placed like `input`; `value` None leaves the memory as it is."""
    spec = input._spec
    dtype, device = options(op, given, default=spec.dtype, place=spec.device)
    strides = format_strides(op, spec, order)
    if value is None:
        return finish(new_memory(spec.shape, strides, dtype, device, given), given)
    value = fitting(op, value, dtype)
    return finish(F._full(spec.shape, strides, value, dtype, device), given)


def _shortcut(op: str, *, value: int | None = None) -> Callable[..., Resolved]:
    """What `zeros_like(x)` and kin come down to."""

    def resolve(input: Tensor, dtype: dtype | None = None) -> Resolved:
        spec = input._spec
        kind, place = options(op, {"dtype": dtype}, default=spec.dtype, place=spec.device)
        strides = format_strides(op, spec, preserve_format)
        if value is None:
            return OPS["_empty"], (spec.shape, strides, kind, place)
        return OPS["_full"], (spec.shape, strides, fitting(op, value, kind), kind, place)

    return resolve


@composite(method=False, shortcut=_shortcut("empty_like"))
@tensor_options()
def empty_like(
    input: Tensor, *, memory_format: memory_format = preserve_format, **given: Unpack[TensorOptions]
) -> Tensor:
    """New memory with the shape, order, dtype and device of `input`.

    >>> votive.empty_like(votive.zeros(2, 3)).shape
    votive.Size([2, 3])
    """
    return _like("empty_like", input, None, memory_format, given)


@composite(method=False, shortcut=_shortcut("zeros_like", value=0))
@tensor_options()
def zeros_like(
    input: Tensor, *, memory_format: memory_format = preserve_format, **given: Unpack[TensorOptions]
) -> Tensor:
    """Zeros with the shape, order, dtype and device of `input`.

    >>> votive.zeros_like(votive.tensor([1, 2]))
    tensor([0, 0])
    """
    return _like("zeros_like", input, 0, memory_format, given)


@composite(method=False, shortcut=_shortcut("ones_like", value=1))
@tensor_options()
def ones_like(
    input: Tensor, *, memory_format: memory_format = preserve_format, **given: Unpack[TensorOptions]
) -> Tensor:
    """Ones with the shape, order, dtype and device of `input`.

    >>> votive.ones_like(votive.tensor([3, 4]))
    tensor([1, 1])
    """
    return _like("ones_like", input, 1, memory_format, given)


@composite(method=False)
@tensor_options()
def full_like(
    input: Tensor,
    fill_value: Operand,
    *,
    memory_format: memory_format = preserve_format,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """One value in the shape, order, dtype and device of `input`.

    >>> votive.full_like(votive.tensor([3, 4]), 7)
    tensor([7, 7])
    """
    value = number("full_like", "fill_value", fill_value)
    return _like("full_like", input, value, memory_format, given)


def _new(op: str, input: Tensor, shape: Shape, value: Number, given: TensorOptions) -> Tensor:
    """A row-major tensor with the dtype and device of `input`."""
    dtype, device = options(op, given, default=input._spec.dtype, place=input._spec.device)
    value = fitting(op, value, dtype)
    return finish(F._full(shape, contiguous_strides(shape), value, dtype, device), given)


@composite(namespaces=())
@also_named("size")
@tensor_options()
def new_zeros(input: Tensor, *size: Ints, **given: Unpack[TensorOptions]) -> Tensor:
    """Zeros of another shape with the dtype and device of this tensor.

    >>> votive.tensor([1]).new_zeros(2)
    tensor([0, 0])
    """
    return _new("new_zeros", input, new_shape("new_zeros", size), 0, given)


@composite(namespaces=())
@also_named("size")
@tensor_options()
def new_ones(input: Tensor, *size: Ints, **given: Unpack[TensorOptions]) -> Tensor:
    """Ones of another shape with the dtype and device of this tensor.

    >>> votive.tensor([1]).new_ones(2)
    tensor([1, 1])
    """
    return _new("new_ones", input, new_shape("new_ones", size), 1, given)


@composite(namespaces=())
@tensor_options()
def new_full(input: Tensor, size: Sequence[int], fill_value: Operand, **given: Unpack[TensorOptions]) -> Tensor:
    """One value in another shape with the dtype and device of this tensor.

    >>> votive.tensor([1]).new_full((2,), 7)
    tensor([7, 7])
    """
    value = number("new_full", "fill_value", fill_value)
    return _new("new_full", input, new_shape("new_full", (size,)), value, given)


@composite(namespaces=())
@also_named("size")
@tensor_options()
def new_empty(input: Tensor, *size: Ints, **given: Unpack[TensorOptions]) -> Tensor:
    """New memory of another shape with the dtype and device of this tensor.

    >>> votive.tensor([1]).new_empty(2, 3).shape
    votive.Size([2, 3])
    """
    shape = new_shape("new_empty", size)
    wanted, place = options("new_empty", given, default=input._spec.dtype, place=input._spec.device)
    strides = contiguous_strides(shape)
    return finish(new_memory(shape, strides, wanted, place, given), given)


@composite(namespaces=())
@tensor_options()
def new_empty_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], **given: Unpack[TensorOptions]
) -> Tensor:
    """New memory with given strides and the dtype and device of this tensor.

    >>> votive.tensor([1]).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    op = "new_empty_strided"
    wanted, place = options(op, given, default=input._spec.dtype, place=input._spec.device)
    return finish(strided(op, size, stride, wanted, place, given), given)


@composite(namespaces=())
@tensor_options()
def new_tensor(input: Tensor, data: Any, **given: Unpack[TensorOptions]) -> Tensor:
    """A new tensor with a copy of `data`, by default with the dtype and device of this one.

    >>> votive.tensor([1.5]).new_tensor([1, 2])
    tensor([1., 2.])
    """
    wanted, place = options("new_tensor", given, default=input._spec.dtype, place=input._spec.device)
    return finish(F._from_data(data, wanted, place), given)
