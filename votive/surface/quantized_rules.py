"""What calls do with quantized tensors: views and moves are done to the codes, functions that choose among values too,
averages and bounded functions compute with numbers and round again. Knows no kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..core import dtype as dt
from ..core.device import DeviceLike, resolve
from ..core.errors import UnsupportedError
from ..dispatch.wrapped import OwnSpec
from ..ops.operator import Op
from ..ops.registry import COMPOSITES, OPS, F
from ..tensor import Tensor
from .destination import destination
from .quantized_tensor import QuantizedTensor, like, made_of

Fn = TypeVar("Fn", bound=Callable[..., Any])
NN = "nn.functional."


def _rule(*names: str) -> Callable[[Fn], Fn]:
    """What calls of these names do, when a quantized tensor is among their arguments."""

    def register(fn: Fn) -> Fn:
        QuantizedTensor._rules.update(dict.fromkeys(names, fn))
        return fn

    return register


def _call(name: str, input: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What was called, on another tensor. An operator is given all of its arguments in their order."""
    found = COMPOSITES.get(name) or OPS.get(name) or getattr(F, name.rpartition(".")[2])
    return found.apply((input, *args)) if isinstance(found, Op) and not kwargs else found(input, *args, **kwargs)


def _uniform(x: QuantizedTensor, what: str) -> QuantizedTensor:
    if x._axis is not None:
        raise RuntimeError(f"{what}: this is possible only on uniformly quantized tensors; {x._advice}")
    return x


def on_codes(name: str, input: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Something that moves or repeats elements, or chooses among them by their order: the scale is above 0."""
    short = name.rpartition(".")[2].lstrip("_")
    if not isinstance(input, QuantizedTensor):
        raise UnsupportedError(f"{short}: a quantized tensor is not for this argument; use .dequantize().")
    others = tuple(a._codes if isinstance(a, QuantizedTensor) else a for a in args)
    made = _call(name, _uniform(input, short)._codes, others, kwargs)
    if isinstance(made, (tuple, list)):
        parts = [like(input, m) if m.dtype is input._codes.dtype else m for m in made]
        return type(made)(parts) if type(made) in (tuple, list) else type(made)(*parts)
    return like(input, made)


def _by_order(*names: str) -> None:
    """What is done to the codes although no declaration says that it moves elements only."""

    def bind(name: str) -> None:
        _rule(name)(lambda input, *args, **kwargs: on_codes(name, input, args, kwargs))

    for name in names:
        bind(name)


_by_order("flip", "tile", "repeat", "repeat_interleave", "view_as", "reshape_as", "expand_as", "_views")
_by_order("split", "chunk", "unbind", "take_along_dim", "masked_select", "sort", "topk", "max", "min", "amax", "amin")
_by_order(NN + "pixel_shuffle", NN + "channel_shuffle", "pixel_shuffle", "channel_shuffle")


@_rule("clone")
def _clone(input: QuantizedTensor, memory_format: Any = None) -> Any:
    made = input._codes.clone() if memory_format is None else input._codes.clone(memory_format=memory_format)
    return like(input, made)


@_rule("contiguous")
def _contiguous(input: QuantizedTensor, memory_format: Any = None) -> Any:
    if input.is_contiguous(memory_format):
        return input
    return _clone(input, memory_format) if memory_format is not None else like(input, input._codes.contiguous())


@_rule("to", "_to_device")
def _to(
    input: Any,
    *args: Any,
    dtype: Any = None,
    device: DeviceLike = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    """Moves keep the codes, floating-point types leave them; no quantized type is reached by a cast."""
    dtype, device, non_blocking = destination(args, dtype, device, non_blocking)
    if not isinstance(input, QuantizedTensor):
        raise RuntimeError(f"to: numbers become {dtype!r} by quantize_per_tensor(), which takes the scale.")
    if dtype is not None and dtype.is_floating_point:
        return F.to(input.dequantize(), dtype=dtype, device=device)
    if dtype is not None and dtype is not input._kind_of:
        raise RuntimeError(f"to: {input._kind_of!r} is not cast to {dtype!r}; {input._advice}")
    place = input.device if device is None else resolve(device)
    if place is input.device and not copy:
        return input
    codes = F.to(input._codes, place, non_blocking=non_blocking, copy=copy)
    scale, zero = input._scale, input._zero
    if isinstance(scale, Tensor) and isinstance(zero, Tensor):
        scale, zero = scale.to(place), zero.to(place)
    return made_of(codes, input._kind_of, scale, zero, input._axis)


@_rule("cpu")
def _cpu(input: QuantizedTensor, memory_format: Any = None) -> Any:
    return _to(input, device="cpu")


@_rule("cuda")
def _cuda(input: QuantizedTensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
    place = "cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device
    return _to(input, device=place, non_blocking=non_blocking)


@_rule("copy_")
def _copy(input: Any, src: Any, non_blocking: bool = False) -> Any:
    """Codes are taken with what they mean; numbers become codes of this tensor's scale."""
    if not isinstance(input, QuantizedTensor):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize"
        )
    if isinstance(src, QuantizedTensor):
        if src._kind_of is not input._kind_of:
            raise RuntimeError(f"copy_: quantized types must be the same, got {input._kind_of!r} and {src._kind_of!r}.")
        input._codes.copy_(src._codes)
        input._scale, input._zero, input._axis = src._scale, src._zero, src._axis
        # Compiled programs know the scale by the spec, so that becomes another one.
        input._spec = OwnSpec(tuple(input.shape), input._kind_of, input.device, tuple(input._codes.stride()))
        return input
    input._codes.copy_(again(input, src.to(dt.float32).expand(input.shape))._codes)
    return input


def again(x: QuantizedTensor, numbers: Tensor) -> QuantizedTensor:
    """Numbers as codes that mean what those of a tensor do."""
    from .quantized_functions import quantize_per_channel, quantize_per_tensor

    if x._axis is not None and isinstance(x._scale, Tensor) and isinstance(x._zero, Tensor):
        return quantize_per_channel(numbers, x._scale, x._zero, x._axis, x._kind_of)
    out: QuantizedTensor = quantize_per_tensor(numbers, x._scale, x._zero, x._kind_of)
    return out


@_rule("equal")
def _equal(input: Any, other: Any) -> bool:
    if not (isinstance(input, QuantizedTensor) and isinstance(other, QuantizedTensor)):
        raise UnsupportedError("equal: a quantized tensor is compared with another one; use .dequantize().")
    same = input._kind_of is other._kind_of and input._axis == other._axis and input.shape == other.shape
    return bool(
        same
        and _same(input._scale, other._scale)
        and _same(input._zero, other._zero)
        and input._codes.equal(other._codes)
    )


def _same(a: Any, b: Any) -> bool:
    return bool(a.equal(b)) if isinstance(a, Tensor) and isinstance(b, Tensor) else a is b or a == b


@_rule("cat")
def _cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Joined with the scale of the first; others are rounded to it."""
    first = tensors[0]
    if not all(isinstance(t, QuantizedTensor) and t._kind_of is first._kind_of for t in tensors):
        raise UnsupportedError("cat: quantized tensors are joined with those of the same type; use .dequantize().")
    parts = []
    for t in tensors:
        _uniform(t, "cat")
        same = t._scale == first._scale and t._zero == first._zero
        parts.append(t._codes if same else again(first, t.dequantize())._codes)
    return like(first, F.cat(parts, dim))


@_rule("relu", NN + "relu")
def _relu(input: QuantizedTensor, inplace: bool = False) -> Any:
    codes = F.clamp(_uniform(input, "relu")._codes, min=input.q_zero_point())
    return input._become(like(input, codes)) if inplace else like(input, codes)


@_rule("relu_")
def _relu_in_place(input: QuantizedTensor) -> Any:
    return _relu(input, True)


@_rule("clamp", "clip")
def _clamp(input: QuantizedTensor, min: float | None = None, max: float | None = None) -> Any:
    bounds = [None if v is None else again(input, F.tensor([float(v)]))._codes for v in (min, max)]
    return like(_uniform(input, "clamp"), F.clamp(input._codes, bounds[0], bounds[1]))


@_rule("hardtanh", NN + "hardtanh")
def _hardtanh(input: QuantizedTensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    return _clamp(input, min_val, max_val)


@_rule("relu6", NN + "relu6")
def _relu6(input: QuantizedTensor, inplace: bool = False) -> Any:
    return _clamp(input, 0.0, 6.0)


def _rounded_again(*names: str) -> None:
    """Averages and such: computed with numbers, rounded to the same scale."""

    def bind(name: str) -> None:
        def rule(input: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
            numbers = _uniform(input, name.rpartition(".")[2]).dequantize()
            return again(input, _call(name, numbers, args, kwargs))

        _rule(name)(rule)

    for name in names:
        bind(name)


_POOLS = tuple(f"{kind}_pool{n}d" for kind in ("avg", "adaptive_avg") for n in (1, 2, 3))
_MOST = tuple(f"{kind}_pool{n}d" for kind in ("max", "adaptive_max") for n in (1, 2, 3))
_rounded_again("mean", "leaky_relu", "threshold", "hardswish", "elu", "celu", "gelu")
_rounded_again(NN + "leaky_relu", NN + "threshold", NN + "hardswish", NN + "elu", NN + "celu", NN + "gelu")
_rounded_again(NN + "interpolate", NN + "upsample", *_POOLS, *(NN + n for n in _POOLS))
_rounded_again(*_MOST, *(NN + n for n in _MOST))


@_rule("dropout", NN + "dropout", NN + "dropout2d", NN + "dropout1d", NN + "dropout3d")
def _dropout(input: QuantizedTensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if training and p:
        raise UnsupportedError(f"dropout: codes are not trained; call eval(), or {input._advice}")
    return input


def _bounded(names: Sequence[str], unsigned: tuple[float, int], signed: tuple[float, int]) -> None:
    """Functions with a range of their own, whose results have the scale of that range."""

    def bind(name: str) -> None:
        def rule(input: QuantizedTensor, *args: Any) -> Any:
            from .quantized_functions import quantize_per_tensor

            scale, zero = signed if input._kind_of.is_signed else unsigned
            return quantize_per_tensor(_call(name, input.dequantize(), args, {}), scale, zero, input._kind_of)

        _rule(name)(rule)

    for name in names:
        bind(name)


_bounded(("sigmoid", NN + "sigmoid"), (1 / 256, 0), (1 / 256, -128))
_bounded(("tanh", NN + "tanh"), (1 / 128, 128), (1 / 128, 0))
_bounded(("hardsigmoid", NN + "hardsigmoid"), (1 / 256, 0), (1 / 256, -128))


def _asked(*names: str) -> None:
    """Questions about numbers, which have truth values as answers."""

    def bind(name: str) -> None:
        def rule(*args: Any, **kwargs: Any) -> Any:
            first, *rest = (v.dequantize() if isinstance(v, QuantizedTensor) else v for v in args)
            return _call(name, first, tuple(rest), kwargs)

        _rule(name)(rule)

    for name in names:
        bind(name)


_asked("eq", "ne", "lt", "le", "gt", "ge", "isfinite", "isnan", "isinf", "isclose", "allclose")


for _number in (dt.float64, dt.float32, *dt.HALF):
    _named = next((alias for alias, d in dt.ALIASES.items() if d is _number), _number.name)
    _rule(_named)(lambda input, memory_format=None, number=_number: input.dequantize().to(number))


@_rule("is_floating_point", "is_complex")
def _no(input: QuantizedTensor) -> bool:
    return False


@_rule("is_tensor")
def _yes(input: Any) -> bool:
    return True


@_rule("is_signed")
def _signed(input: QuantizedTensor) -> bool:
    return bool(input._kind_of.is_signed)


@_rule("numel")
def _numel(input: QuantizedTensor) -> int:
    return input._spec.numel


@_rule("element_size")
def _element_size(input: QuantizedTensor) -> int:
    return input._codes.element_size()
