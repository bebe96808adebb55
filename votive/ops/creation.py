"""Making tensors of a given shape: empty, zeros, ones, full, eye, and their like- and new-forms.

Knows specs, not memory; values from outside come through `_from_data`.
"""

from __future__ import annotations

from typing import Any

from ..core.device import device as Device
from ..core.dtype import dtype as Dtype
from ..core.dtype import of_scalar
from ..core.errors import ShapeError, fail
from ..core.layout import (
    Layout,
    Spec,
    contiguous_strides,
    extent,
    is_dense,
    permuted_strides,
)
from ..core.memory_format import contiguous_format, preserve_format
from .copy import format_strides
from .options import deliver, dtype_of, finish, fitting, number, options, out_dtype
from .registry import OPS, F, Op, composite, structured
from .sizes import also_named, int_of, ints, new_shape

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

structured(
    "_eye(int n, int m, dtype dtype, any device)",
    infer=lambda n, m, dtype, device: Spec(Layout((n, m)), dtype, device),
    method=False, namespaces=(), out=False, differentiable=False,
    doc="Ones on the diagonal, zeros elsewhere.",
)  # fmt: skip


def _filled(op: str, shape: Any, value: Any, out: Any, requires_grad: bool, *given: Any) -> Any:
    """A new tensor of one value, or `out` resized and filled."""
    if out is not None:
        out_dtype(op, out, given[0])
        return finish(out.resize_(shape).fill_(value), requires_grad)
    dtype, device = options(op, *given)
    return finish(F._full(shape, contiguous_strides(shape), value, dtype, device), requires_grad)


@composite(method=False)
@also_named("size")
def zeros(
    *size: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A tensor of zeros.

    >>> votive.zeros(2)
    tensor([0., 0.])
    """
    shape = new_shape("zeros", size)
    return _filled("zeros", shape, 0, out, requires_grad, dtype, layout, device, pin_memory)


@composite(method=False)
@also_named("size")
def ones(
    *size: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A tensor of ones.

    >>> votive.ones(2)
    tensor([1., 1.])
    """
    shape = new_shape("ones", size)
    return _filled("ones", shape, 1, out, requires_grad, dtype, layout, device, pin_memory)


@composite(method=False)
def full(
    size: Any,
    fill_value: Any,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A tensor of one value; the value decides the dtype unless one is given.

    >>> votive.full((2,), 7)
    tensor([7, 7])
    """
    if hasattr(size, "__index__"):
        raise TypeError("full: size must be a tuple of integers.")
    shape, value = new_shape("full", (size,)), number("full", "fill_value", fill_value)
    if out is None:
        dtype = of_scalar(value) if dtype is None else dtype_of("full", dtype)
        value = fitting("full", value, dtype)
    return _filled("full", shape, value, out, requires_grad, dtype, layout, device, pin_memory)


@composite(method=False)
@also_named("size")
def empty(
    *size: Any,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = contiguous_format,
) -> Any:
    """New memory with arbitrary content.

    >>> votive.empty(2, 3).shape
    votive.Size([2, 3])
    """
    shape = new_shape("empty", size)
    if out is not None:
        out_dtype("empty", out, dtype)
        return finish(out.resize_(shape), requires_grad)
    wanted, place = options("empty", dtype, layout, device, pin_memory)
    strides = format_strides("empty", Spec(Layout(shape), wanted, place), memory_format)
    return finish(F._empty(shape, strides, wanted, place), requires_grad)


@composite(method=False)
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """New memory with given strides and arbitrary content.

    >>> votive.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    wanted, place = options("empty_strided", dtype, layout, device, pin_memory)
    return finish(_strided("empty_strided", size, stride, wanted, place), requires_grad)


def _strided(op: str, size: Any, stride: Any, dtype: Dtype, device: Device) -> Any:
    shape, strides = new_shape(op, (size,)), ints(op, "stride", stride)
    if len(shape) != len(strides):
        fail(ShapeError, op, f"size {shape} and stride {strides} differ in length.")
    if any(s < 0 for s in strides):
        fail(RuntimeError, op, f"strides must not be negative, got {strides}.")
    if is_dense(shape, strides):
        return F._empty(shape, strides, dtype, device)
    # Gaps and overlaps: the memory is as long as what the strides span.
    block = F._empty((extent(shape, strides),), (1,), dtype, device)
    return F._as_strided(block, shape, strides, 0).detach()


@composite(method=False)
def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """New dense memory whose dimensions lie in the given order, outermost first.

    >>> votive.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    op = "empty_permuted"
    shape, order = new_shape(op, (size,)), ints(op, "physical_layout", physical_layout)
    if sorted(order) != list(range(len(shape))):
        fail(
            RuntimeError, op,
            f"physical_layout must hold each of the {len(shape)} dimensions once, got {order}.",
        )  # fmt: skip
    wanted, place = options(op, dtype, layout, device, pin_memory)
    return finish(F._empty(shape, permuted_strides(shape, order), wanted, place), requires_grad)


@composite(method=False)
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """Ones on the diagonal, zeros elsewhere; `m` columns where they differ from the rows.

    >>> votive.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    n = int_of("eye", "n", n)
    m = n if m is None else int_of("eye", "m", m)
    if n < 0 or m < 0:
        fail(RuntimeError, "eye", f"sizes must not be negative, got {n} and {m}.")
    dtype = out_dtype("eye", out, dtype)
    made = F._eye(n, m, *options("eye", dtype, layout, device, pin_memory))
    return deliver(made, out, requires_grad)


@composite(method=False)
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A 0-d tensor of one number, by default of the default dtype.

    >>> votive.scalar_tensor(3)
    tensor(3.)
    """
    wanted, place = options("scalar_tensor", dtype, layout, device, pin_memory)
    value = fitting("scalar_tensor", number("scalar_tensor", "s", s), wanted)
    return finish(F._full((), (), value, wanted, place), requires_grad)


def _like(
    op: str, input: Any, value: Any, memory_format: Any, requires_grad: bool, *given: Any
) -> Any:
    """A tensor shaped and placed like `input`; `value` None leaves the memory as it is."""
    spec = input._spec
    dtype, device = options(op, *given, default=spec.dtype, place=spec.device)
    strides = format_strides(op, spec, memory_format)
    if value is None:
        return finish(F._empty(spec.shape, strides, dtype, device), requires_grad)
    value = fitting(op, value, dtype)
    return finish(F._full(spec.shape, strides, value, dtype, device), requires_grad)


@composite(method=False)
def empty_like(
    input: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """New memory with the shape, order, dtype and device of `input`.

    >>> votive.empty_like(votive.zeros(2, 3)).shape
    votive.Size([2, 3])
    """
    given = (dtype, layout, device, pin_memory)
    return _like("empty_like", input, None, memory_format, requires_grad, *given)


@composite(method=False)
def zeros_like(
    input: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """Zeros with the shape, order, dtype and device of `input`.

    >>> votive.zeros_like(votive.tensor([1, 2]))
    tensor([0, 0])
    """
    given = (dtype, layout, device, pin_memory)
    return _like("zeros_like", input, 0, memory_format, requires_grad, *given)


@composite(method=False)
def ones_like(
    input: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """Ones with the shape, order, dtype and device of `input`.

    >>> votive.ones_like(votive.tensor([3, 4]))
    tensor([1, 1])
    """
    given = (dtype, layout, device, pin_memory)
    return _like("ones_like", input, 1, memory_format, requires_grad, *given)


@composite(method=False)
def full_like(
    input: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """One value in the shape, order, dtype and device of `input`.

    >>> votive.full_like(votive.tensor([3, 4]), 7)
    tensor([7, 7])
    """
    given = (dtype, layout, device, pin_memory)
    value = number("full_like", "fill_value", fill_value)
    return _like("full_like", input, value, memory_format, requires_grad, *given)


def _new(op: str, input: Any, shape: Any, value: Any, requires_grad: bool, *given: Any) -> Any:
    """A row-major tensor with the dtype and device of `input`."""
    dtype, device = options(op, *given, default=input._spec.dtype, place=input._spec.device)
    value = fitting(op, value, dtype)
    return finish(F._full(shape, contiguous_strides(shape), value, dtype, device), requires_grad)


@composite(namespaces=())
@also_named("size")
def new_zeros(
    input: Any,
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """Zeros of another shape with the dtype and device of this tensor.

    >>> votive.tensor([1]).new_zeros(2)
    tensor([0, 0])
    """
    given = (dtype, layout, device, pin_memory)
    return _new("new_zeros", input, new_shape("new_zeros", size), 0, requires_grad, *given)


@composite(namespaces=())
@also_named("size")
def new_ones(
    input: Any,
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """Ones of another shape with the dtype and device of this tensor.

    >>> votive.tensor([1]).new_ones(2)
    tensor([1, 1])
    """
    given = (dtype, layout, device, pin_memory)
    return _new("new_ones", input, new_shape("new_ones", size), 1, requires_grad, *given)


@composite(namespaces=())
def new_full(
    input: Any,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """One value in another shape with the dtype and device of this tensor.

    >>> votive.tensor([1]).new_full((2,), 7)
    tensor([7, 7])
    """
    given = (dtype, layout, device, pin_memory)
    value = number("new_full", "fill_value", fill_value)
    return _new("new_full", input, new_shape("new_full", (size,)), value, requires_grad, *given)


@composite(namespaces=())
@also_named("size")
def new_empty(
    input: Any,
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """New memory of another shape with the dtype and device of this tensor.

    >>> votive.tensor([1]).new_empty(2, 3).shape
    votive.Size([2, 3])
    """
    shape = new_shape("new_empty", size)
    given = (dtype, layout, device, pin_memory)
    wanted, place = options(
        "new_empty", *given, default=input._spec.dtype, place=input._spec.device
    )
    return finish(F._empty(shape, contiguous_strides(shape), wanted, place), requires_grad)


@composite(namespaces=())
def new_empty_strided(
    input: Any,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """New memory with given strides and the dtype and device of this tensor.

    >>> votive.tensor([1]).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    op, given = "new_empty_strided", (dtype, layout, device, pin_memory)
    wanted, place = options(op, *given, default=input._spec.dtype, place=input._spec.device)
    return finish(_strided(op, size, stride, wanted, place), requires_grad)


@composite(namespaces=())
def new_tensor(
    input: Any,
    data: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:
    """A new tensor with a copy of `data`, by default with the dtype and device of this one.

    >>> votive.tensor([1.5]).new_tensor([1, 2])
    tensor([1., 2.])
    """
    given = (dtype, layout, device, pin_memory)
    wanted, place = options(
        "new_tensor", *given, default=input._spec.dtype, place=input._spec.device
    )
    return finish(F._from_data(data, wanted, place), requires_grad)


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
    if pin_memory:
        options("tensor", dtype, None, device, pin_memory)
    wanted = None if dtype is None else dtype_of("tensor", dtype)
    return finish(F._from_data(data, wanted, device), requires_grad)


def _infer_fill(x: Spec, value: Any) -> Spec:
    if isinstance(value, Spec) and value.ndim:
        fail(RuntimeError, "fill_", f"takes a number or a 0-d tensor, got shape {value.shape}.")
    return x.dense_like()


structured(
    "_fill(Tensor input, Operand value)",
    infer=_infer_fill,
    grad={"input": None, "value": lambda c, g: g.sum()},
    method=False, namespaces=(), out=False,
    doc="A tensor like `input` filled with one value.",
)  # fmt: skip


def _fill_value(input: Any, value: Any) -> Any:
    if hasattr(value, "_spec"):
        return value
    return fitting("fill_", number("fill_", "value", value), input._spec.dtype)


@composite(method=False)
def fill(input: Any, value: Any) -> Any:
    """A tensor like `input` filled with one value.

    >>> votive.fill(votive.zeros(2), 7)
    tensor([7., 7.])
    """
    return F._fill(input, _fill_value(input, value))


@composite
def fill_(input: Any, value: Any) -> Any:
    """Overwrite this tensor with one value.

    >>> votive.zeros(2).fill_(7)
    tensor([7., 7.])
    """
    return Op.inplace(OPS["_fill"], (input, _fill_value(input, value)), True)


@composite
def zero_(input: Any) -> Any:
    """Overwrite this tensor with zeros.

    >>> votive.ones(2).zero_()
    tensor([0., 0.])
    """
    return Op.inplace(OPS["_fill"], (input, 0), True)


# The name under which other families read the shape of what they make.
sizes = new_shape
