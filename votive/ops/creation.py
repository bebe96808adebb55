"""Making tensors: from sizes, from data, from ranges. Knows specs, not memory."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core.device import resolve
from ..core.layout import Layout, Spec
from ..core.memory_format import preserve_format
from .copy import format_strides
from .registry import F, composite, structured


def sizes(op: str, size: tuple[Any, ...]) -> tuple[int, ...]:
    """`f(2, 3)` and `f((2, 3))` mean the same shape."""
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        size = tuple(size[0])
    out = tuple(s.__index__() if hasattr(s, "__index__") else s for s in size)
    for s in out:
        if not isinstance(s, int):
            raise TypeError(f"{op}: sizes must be integers, got {type(s).__name__}.")
        if s < 0:
            raise RuntimeError(f"{op}: trying to create a tensor with negative dimension {s}: {out}.")
    return out


structured(
    "_empty(int[] size, int[] stride, dtype dtype, any device)",
    infer=lambda size, stride, dtype, device: Spec(Layout(size, stride), dtype, device),
    method=False, namespaces=(), out=False, differentiable=False,
    doc="New memory with arbitrary content.",
)  # fmt: skip

structured(
    "_full(int[] size, int[] stride, Scalar value, dtype dtype, any device)",
    infer=lambda size, stride, value, dtype, device: Spec(Layout(size, stride), dtype, device),
    method=False, namespaces=(), out=False, differentiable=False,
    doc="New memory filled with one value.",
)  # fmt: skip


def finish(t: Any, requires_grad: bool) -> Any:
    """Honour requires_grad= on a freshly made tensor."""
    return t.requires_grad_() if requires_grad else t


def new_full(size: tuple[int, ...], value: Any, dtype: Any, device: Any) -> Any:
    layout = Layout(size)
    return F._full(size, layout.strides, value, dtype or dt.get_default_dtype(), resolve(device))


@composite(method=False)
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """New memory with given strides and arbitrary content.

    >>> votive.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    t = F._empty(tuple(size), tuple(stride), dtype or dt.get_default_dtype(), resolve(device))
    return finish(t, requires_grad)


@composite(method=False)
def zeros(
    *size: Any, out: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """A tensor of zeros.

    >>> votive.zeros(2)
    tensor([0., 0.])
    """
    shape = sizes("zeros", size)
    if out is not None:
        return out.resize_(shape).zero_()
    return finish(new_full(shape, 0, dtype, device), requires_grad)


@composite(method=False)
def ones(
    *size: Any, out: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """A tensor of ones.

    >>> votive.ones(2)
    tensor([1., 1.])
    """
    shape = sizes("ones", size)
    if out is not None:
        return out.resize_(shape).fill_(1)
    return finish(new_full(shape, 1, dtype, device), requires_grad)


def _like(op: str, input: Any, value: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    spec = input._spec
    strides = format_strides(op, spec, memory_format)
    return F._full(spec.shape, strides, value, dtype or spec.dtype, device or spec.device)


@composite(method=False)
def zeros_like(
    input: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """Zeros with the shape, dtype and device of `input`.

    >>> votive.zeros_like(votive.tensor([1, 2]))
    tensor([0, 0])
    """
    t = _like("zeros_like", input, 0, dtype, device, memory_format)
    return finish(t, requires_grad)


@composite(method=False)
def ones_like(
    input: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """Ones with the shape, dtype and device of `input`.

    >>> votive.ones_like(votive.tensor([3, 4]))
    tensor([1, 1])
    """
    t = _like("ones_like", input, 1, dtype, device, memory_format)
    return finish(t, requires_grad)


@composite(method=False)
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A new tensor with a copy of `data`.

    >>> votive.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    return finish(F._from_data(data, dtype, device), requires_grad)


structured(
    "fill(Tensor input, Operand value)",
    infer=lambda x, value: x.dense_like(),
    grad={"input": None, "value": lambda c, g: g.sum()},
    inplace=True, method=False, out=False,
    doc="""A tensor like `input` filled with one value.

    >>> votive.fill(votive.zeros(2), 7)
    tensor([7., 7.])
    """,
)  # fmt: skip


@composite(name="zero_")
def zero_(input: Any) -> Any:
    """Overwrite this tensor with zeros.

    >>> votive.ones(2).zero_()
    tensor([0., 0.])
    """
    return input.fill_(0)
