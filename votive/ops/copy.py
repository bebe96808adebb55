"""Copies: cast, clone, copy_, contiguous, to. Knows layouts and dtypes, not how bytes move."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core import spelled
from ..core.affine import quantized_dtype
from ..core.device import cpu as cpu_device
from ..core.device import resolve
from ..core.errors import DeviceError, ShapeError, fail, foreign_array, received
from ..core.layout import Layout, Spec, broadcast_shapes, channels_last_strides, contiguous_strides, is_channels_last
from ..core.memory_format import channels_last, channels_last_3d, contiguous_format, memory_format, preserve_format
from ..core.mode import mode
from .options import check_pinning, dtype_of, number
from .registry import OPS, F, Op, Resolved, composite, structured

if TYPE_CHECKING:
    from .types import DeviceLike, Operand, Tensor, dtype


def format_strides(op: str, x: Spec, order: memory_format | None) -> tuple[int, ...]:
    """Strides of a copy of `x` in a memory format."""
    if order is None or order is preserve_format:
        return x.dense_like().strides
    if order is contiguous_format:
        return contiguous_strides(x.shape)
    if order in (channels_last, channels_last_3d):
        want = 4 if order is channels_last else 5
        if x.ndim != want:
            fail(RuntimeError, op, f"required rank {want} tensor to use {order} format, got {x.ndim}.")
        return channels_last_strides(x.shape)
    raise TypeError(f"{op}: unknown memory_format {order!r}.")


structured(
    "_copy_as(Tensor input, dtype dtype, int[] stride)",
    placement="copied",
    multilinear=("input",),
    infer=lambda x, dtype, stride: Spec(Layout(x.shape, stride), dtype, x.device),
    grad={"input": lambda c, g: g},
    doc="A copy with another dtype or another order of dimensions in memory.",
    elementwise=True,
)


@composite(name="_to_dtype")
def to_dtype(input: Tensor, dtype: dt.dtype) -> Tensor:
    """A cast copy, or the tensor itself when nothing changes."""
    if input._spec.dtype is dtype:
        return input
    return F._copy_as(input, dtype, input._spec.dense_like().strides)


def _clone_shortcut(input: Tensor) -> Resolved:
    return OPS["_copy_as"], (input, input._spec.dtype, format_strides("clone", input._spec, preserve_format))


@composite(shortcut=_clone_shortcut)
def clone(input: Tensor, *, memory_format: memory_format = preserve_format) -> Tensor:
    """A copy with its own memory, through which gradients flow.

    >>> votive.tensor([1, 2]).clone()
    tensor([1, 2])
    """
    return F._copy_as(input, input._spec.dtype, format_strides("clone", input._spec, memory_format))


@composite(namespaces=(), looks=True)
def contiguous(input: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """The tensor itself if it already lies in this order, else a copy that does.

    >>> votive.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if input.is_contiguous(memory_format):
        return input
    return clone(input, memory_format=memory_format)


def _infer_copy(x: Spec, src: Spec) -> Spec:
    if broadcast_shapes("copy_", x.shape, src.shape) != x.shape:
        fail(ShapeError, "copy_", f"a source of shape {src.shape} does not fit into {x.shape}.")
    return x.dense_like()


structured(
    "copy(Tensor input, Tensor src)",
    placement="elementwise",
    infer=_infer_copy,
    grad={"input": None, "src": lambda c, g: g},
    doc="The value of src in the shape and dtype of input; `copy_` writes it there.",
    overwrites=True,
    inplace_casts=True,
    elementwise=True,
    hidden=True,
)


@composite(namespaces=())
def copy_(input: Tensor, src: Operand, non_blocking: bool = False) -> Tensor:
    """Overwrite this tensor with `src`, broadcast and cast.

    >>> votive.zeros(2).copy_(votive.tensor([1, 2]))
    tensor([1., 2.])
    """
    if not hasattr(src, "_spec"):
        if foreign_array(src):
            raise TypeError(f"copy_: src must be a Tensor or a number, got {received(src)}.")
        src = F.tensor(number("copy_", "src", src), device=input.device)
    elif src._spec.device is not input._spec.device:
        return _copy_across(input, src, non_blocking)
    return Op.write(OPS["copy"], (input, src))


def _copy_across(input: Any, src: Any, non_blocking: bool) -> Any:
    """`copy_` from another device. Where nothing is recorded the memory is written directly."""
    base = input._base
    recorded = src._rg or input._rg or (base is not None and base._rg)
    if input._inference or (mode.grad and recorded):
        moved = F._to_device(src, input._spec.device)
        return Op.write(OPS["copy"], (input, moved))
    F._transfer_(input, src, bool(non_blocking))
    return input


def _infer_transfer(x: Spec, src: Spec, non_blocking: bool) -> tuple[Spec, ...]:
    _infer_copy(x, src)
    if x.layout.overlaps:
        fail(
            RuntimeError,
            "copy_",
            "more than one element of the written-to tensor refers to a single memory location; "
            "clone() the tensor first.",
        )
    return ()


structured(
    "_transfer_(Tensor input, Tensor src, bool non_blocking)",
    own_process=True,
    infer=_infer_transfer,
    differentiable=False,
    n_out=0,
    mutates=("input",),
    across=True,
    doc="Overwrite a tensor with one of another device.",
    overwrites=True,
    inplace_casts=True,
    elementwise=True,
)


def suggested(x: Spec) -> memory_format:
    """The memory format that torch reads from strides."""
    if not x.contiguous and is_channels_last(x.shape, x.strides):
        return channels_last if x.ndim == 4 else channels_last_3d
    return contiguous_format


def agreed_strides(shape: tuple[int, ...], inputs: Sequence[Spec]) -> tuple[int, ...]:
    """Strides of a new tensor: channels-last if all the inputs lie so, else row-major."""
    if all(suggested(x) is not contiguous_format for x in inputs):
        return channels_last_strides(shape)
    return contiguous_strides(shape)


def _asked(args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Read the three forms of `to`: (tensor, …), (dtype, …) and (device, dtype, …)."""
    found: dict[str, Any] = {}
    order = ["non_blocking", "copy"]
    if args:
        first, rest = args[0], list(args[1:])
        if hasattr(first, "_spec"):
            found.update(dtype=first.dtype, device=first.device)
        elif isinstance(first, (dt.dtype, type)):
            found["dtype"] = first
        else:
            found["device"] = first
            order = ["dtype", *order]
        if len(rest) > len(order):
            raise TypeError(f"to: takes at most {len(order) + 1} arguments, got {len(args)}.")
        found.update(zip(order, rest, strict=False))
    for name, value in named.items():
        if value is not None and value is not False:
            if name in found:
                raise TypeError(f"to: {name} is given twice.")
            found[name] = value
    return found


def _to_shortcut(input: Tensor, dtype: dtype | None = None) -> Resolved:
    if not isinstance(dtype, dt.dtype) or dtype is dt.complex32 or dtype.category < 0:
        return None
    if input._spec.dtype is dtype:
        return None, (input,)
    return OPS["_copy_as"], (input, dtype, format_strides("to", input._spec, preserve_format))


@composite(namespaces=(), shortcut=_to_shortcut)
def to(
    input: Tensor,
    *args: Tensor | dtype | DeviceLike | bool,
    dtype: dtype | None = None,
    device: DeviceLike = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: memory_format = preserve_format,
) -> Tensor:
    """This tensor with another dtype, device or memory format; itself when nothing changes.

    >>> votive.tensor([1, 2]).to(votive.float64)
    tensor([1., 2.], dtype=votive.float64)
    """
    named = {"dtype": dtype, "device": device, "non_blocking": non_blocking, "copy": copy}
    asked = _asked(args, named)
    spec = input._spec
    want = spec.dtype if asked.get("dtype") is None else dtype_of("to", asked["dtype"])
    place = spec.device if asked.get("device") is None else resolve(asked["device"])
    moved = input
    if place is not spec.device:
        moved = F._to_device(input, place, bool(asked.get("non_blocking", False)))
    if want is dt.complex32:
        wide = F._copy_as(moved, dt.complex64, format_strides("to", spec, memory_format))
        return import_module("votive.surface.complex_half").halved(wide)  # above this layer, and needed by few
    if isinstance(want, quantized_dtype):
        fail(RuntimeError, "to", f"numbers become {want} by quantize_per_tensor(), which takes the scale.")
    if want.category < 0:  # a block format
        return import_module("votive.surface.block_tensor").encoded(moved, want)
    keeps_order = memory_format in (None, preserve_format) or memory_format is suggested(spec)
    if moved._spec.dtype is want and keeps_order and not (asked.get("copy") and moved is input):
        return moved
    return F._copy_as(moved, want, format_strides("to", spec, memory_format))


structured(
    "_to_device(Tensor input, any device, bool non_blocking=False)",
    own_process=True,
    placement="elementwise",
    batch="same",
    infer=lambda x, device, non_blocking: Spec(x.dense_like().layout, x.dtype, device),
    grad={"input": lambda c, g: F._to_device(g, c.spec("input").device)},
    doc="A copy on another device.",
)


structured(
    "_pin_memory(Tensor input)",
    own_process=True,
    infer=lambda x: x.dense_like(),
    grad={"input": lambda c, g: g},
    doc="A copy in page-locked memory.",
)

structured(
    "_empty_pinned(int[] size, int[] stride, dtype dtype)",
    own_process=True,
    infer=lambda size, stride, dtype: Spec(Layout(size, stride), dtype, cpu_device),
    differentiable=False,
    doc="New page-locked memory with arbitrary content.",
)


@composite(namespaces=())
def pin_memory(input: Tensor, device: DeviceLike = None) -> Any:
    """This tensor in page-locked memory, from which copies to a GPU need not be waited for.

    >>> votive.ones(2).pin_memory().is_pinned() if votive.cuda.is_available() else True
    True
    """
    if input.is_pinned():
        return input
    if input._spec.device.type != "cpu":
        kind = _TYPE_NAMES[input._spec.dtype]
        fail(
            RuntimeError,
            "pin_memory",
            f"cannot pin 'votive.{input._spec.device.type}.{kind}Tensor'; only dense CPU tensors can be pinned.",
        )
    check_pinning("pin_memory")
    return F._pin_memory(input)


def _caster(name: str, target: dt.dtype) -> None:
    def cast(input: Tensor, memory_format: memory_format = preserve_format) -> Tensor:
        return to(input, target, memory_format=memory_format)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"""This tensor as {target}.

    >>> votive.tensor([1, 0]).{name}().dtype
    {target}
    """
    composite(namespaces=(), shortcut=lambda input: _to_shortcut(input, target))(cast)


for _name, _target in {
    "double": dt.float64,
    "float": dt.float32,
    "half": dt.float16,
    "bfloat16": dt.bfloat16,
    "long": dt.int64,
    "int": dt.int32,
    "short": dt.int16,
    "char": dt.int8,
    "byte": dt.uint8,
    "bool": dt.bool_,
    "cfloat": dt.complex64,
    "cdouble": dt.complex128,
}.items():
    _caster(_name, _target)


@composite(namespaces=())
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """This tensor with the dtype of another.

    >>> votive.tensor([1]).type_as(votive.tensor(1.5))
    tensor([1.])
    """
    return to(input, other.dtype, device=other.device)


@composite(namespaces=())
def cpu(input: Tensor, memory_format: memory_format = preserve_format) -> Tensor:
    """This tensor on the CPU.

    >>> votive.tensor([1]).cpu()
    tensor([1])
    """
    return to(input, device="cpu", memory_format=memory_format)


@composite(namespaces=())
def cuda(
    input: Tensor, device: DeviceLike = None, non_blocking: bool = False, memory_format: memory_format = preserve_format
) -> Any:
    """This tensor on a GPU, the current one unless told otherwise.

    >>> votive.tensor([1]).cuda().device.type if votive.cuda.is_available() else "cuda"
    'cuda'
    """
    place = resolve("cuda" if device is None else device)
    if place.type != "cuda":
        fail(DeviceError, "cuda", f"the device must be a GPU, got {place}; use to({str(place)!r}).")
    return to(input, device=place, non_blocking=non_blocking, memory_format=memory_format)


_TYPE_NAMES = {
    dt.float64: "Double",
    dt.float32: "Float",
    dt.float16: "Half",
    dt.bfloat16: "BFloat16",
    dt.int64: "Long",
    dt.int32: "Int",
    dt.int16: "Short",
    dt.int8: "Char",
    dt.uint8: "Byte",
    dt.bool_: "Bool",
    dt.complex64: "ComplexFloat",
    dt.complex128: "ComplexDouble",
    dt.uint16: "UInt16",
    dt.uint32: "UInt32",
    dt.uint64: "UInt64",
    dt.float8_e4m3fn: "Float8_e4m3fn",
    dt.float8_e5m2: "Float8_e5m2",
}
_BY_TYPE_NAME = {f"{name}Tensor": d for d, name in _TYPE_NAMES.items()}


@composite(name="type", namespaces=())
def type_(input: Tensor, dtype: dtype | str | None = None, non_blocking: bool = False) -> Tensor | str:
    """The name of this tensor's type, or the tensor cast to another type.

    >>> votive.tensor([1.5]).type()
    'votive.FloatTensor'
    """
    if dtype is None:
        prefix = spelled.package if input.device.type == "cpu" else f"{spelled.package}.{input.device.type}"
        return f"{prefix}.{_TYPE_NAMES[input._spec.dtype]}Tensor"
    if isinstance(dtype, dt.dtype):
        return to(input, dtype, non_blocking)
    # "votive.cuda.FloatTensor" says where, too; so does a class of that name.
    text = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
    *path, name = text.split(".")
    place = path[1:]
    found = _BY_TYPE_NAME.get(name)
    if found is None or path[:1] != [spelled.package] or len(place) > 1:
        raise ValueError(f"type: invalid type {text!r}; a type is named such as '{spelled.package}.FloatTensor'.")
    return to(input, place[0] if place else "cpu", found, non_blocking)
