"""Questions about tensors that need no kernel: kind of dtype, number of elements, promoted type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.errors import received
from ..core.promotion import is_number, number_type, result_type_of
from .registry import composite

if TYPE_CHECKING:
    from .types import Operand, Tensor


def require_tensors(op: str, **given: Any) -> None:
    """Raise for an argument that a composite passes to operators which would take a number too."""
    for name, value in given.items():
        if not hasattr(value, "_spec"):
            raise TypeError(f"{op}: {name} must be a Tensor, got {received(value)}.")


@composite(method=False)
def is_tensor(obj: object) -> bool:
    """Whether `obj` is a tensor.

    >>> votive.is_tensor(votive.tensor([1]))
    True
    """
    return hasattr(obj, "_spec")


@composite(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one.

    >>> votive.is_floating_point(votive.tensor([1.0]))
    True
    """
    require_tensors("is_floating_point", input=input)
    return bool(input.dtype.is_floating_point)


@composite(method=False)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one.

    >>> votive.is_complex(votive.tensor([1.0]))
    False
    """
    require_tensors("is_complex", input=input)
    return bool(input.dtype.is_complex)


@composite(method=False)
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    >>> votive.is_signed(votive.tensor([True]))
    False
    """
    require_tensors("is_signed", input=input)
    return bool(input.dtype.is_signed)


@composite(method=False)
def is_conj(input: Tensor) -> bool:
    """Whether the tensor is a view whose numbers are still to be conjugated, as `conj` gives it.

    >>> votive.is_conj(votive.tensor([1j]).conj())
    True
    """
    require_tensors("is_conj", input=input)
    return bool(input.is_conj())


@composite(method=False)
def is_neg(input: Tensor) -> bool:
    """Whether negation is still pending: never, it is carried out at once.

    >>> votive.is_neg(votive.tensor([1.0]))
    False
    """
    require_tensors("is_neg", input=input)
    return bool(input.is_neg())


@composite(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made under `inference_mode`.

    >>> votive.is_inference(votive.ones(2))
    False
    """
    require_tensors("is_inference", input=input)
    return bool(input.is_inference())


@composite
def is_nonzero(input: Tensor) -> bool:
    """Whether the single element of a tensor is not zero.

    >>> votive.is_nonzero(votive.tensor([0.0]))
    False
    """
    require_tensors("is_nonzero", input=input)
    return bool(input)


@composite
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    >>> votive.is_same_size(votive.ones(2, 3), votive.zeros(2, 3))
    True
    """
    require_tensors("is_same_size", input=input, other=other)
    return bool(input._spec.shape == other._spec.shape)


@composite(method=False)
def numel(input: Tensor) -> int:
    """The number of elements.

    >>> votive.numel(votive.zeros(2, 3))
    6
    """
    require_tensors("numel", input=input)
    return input._spec.numel


@composite(method=False)
def result_type(tensor1: Operand, tensor2: Operand) -> dt.dtype:
    """The dtype that arithmetic on two operands, tensors or numbers, gives.

    >>> votive.result_type(votive.tensor([1, 2]), 1.0)
    votive.float32
    """
    dims: list[dt.dtype] = []
    zeros: list[dt.dtype] = []
    numbers: list[dt.dtype] = []
    for v in (tensor1, tensor2):
        if not is_number(v):
            require_tensors("result_type", operand=v)
            (dims if v.ndim else zeros).append(v.dtype)
        else:
            value = v.item() if hasattr(v, "item") else v
            numbers.append(number_type(value.__class__))
    return result_type_of(dims, zeros, numbers)
