"""Copies, casts, moves and tensors like others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import dtype as dt
from ...core.layout import Size
from ...core.memory_format import strided
from ...ops.registry import F
from ...tensor import Tensor
from ..construct import empty_like
from ..convert import convert, to_sparse
from ..tensor import BLOCKED, CompressedTensor, CooTensor, SparseTensor, compressed_tensor, coo, like, values_of
from .table import refuse, rule

if TYPE_CHECKING:
    from ...core.device import DeviceLike
    from ...core.dtype import dtype as Dtype


@rule("clone")
def _clone(input: SparseTensor, *, memory_format: Any = None) -> Any:
    values = values_of(input).clone()
    if isinstance(input, CooTensor):
        return coo(input._at.clone(), values, input.shape, input._coalesced)
    assert isinstance(input, CompressedTensor)
    return compressed_tensor(input._layout, input._starts.clone(), input._plain.clone(), values, input.shape)


def moved(x: SparseTensor, device: DeviceLike) -> Any:
    """On another device."""
    values = values_of(x).to(device)
    if values.device == x.device:
        return x
    if isinstance(x, CooTensor):
        return coo(x._at.to(device), values, x.shape, x._coalesced)
    assert isinstance(x, CompressedTensor)
    return compressed_tensor(x._layout, x._starts.to(device), x._plain.to(device), values, x.shape)


@rule("to")
def _to(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(input, SparseTensor):  # only the other argument is sparse: x.to(other)
        other = args[0]
        return input.to(device=other.device, dtype=other.dtype)
    args = tuple(v for a in args for v in ((a.device, a.dtype) if isinstance(a, Tensor) else (a,)))
    layout = kwargs.pop("layout", None)
    probe = F.empty((0,), dtype=input.dtype, device=input.device).to(*args, **kwargs)
    out = input if probe.dtype is input.dtype else like(input, values_of(input).to(probe.dtype))
    if probe.device != input.device:
        out = moved(out, probe.device)
    if layout is not None and layout is not input._layout:
        out = convert(out, layout)
    copy = kwargs.get("copy", False) or (len(args) > 3 and args[3] is True)
    return out.clone() if out is input and copy else out


@rule("_to_dtype")
def _to_dtype(input: SparseTensor, dtype: Dtype) -> Any:
    return _to(input, dtype)


def _cast(name: str) -> None:
    rule(name)(lambda input, memory_format=None: _to(input, getattr(dt, "bool_" if name == "bool" else _CASTS[name])))


_CASTS = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "char": "int8",
    "bool": "bool_",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
for _name in _CASTS:
    _cast(_name)
rule("byte")(lambda input, memory_format=None: _to(input, dt.uint8))


@rule("cpu")
def _cpu(input: SparseTensor, memory_format: Any = None) -> Any:
    return moved(input, "cpu")


@rule("cuda")
def _cuda(
    input: SparseTensor, device: DeviceLike | None = None, non_blocking: bool = False, memory_format: Any = None
) -> Any:
    return moved(input, "cuda" if device is None else device)


@rule("type_as")
def _type_as(input: Tensor, other: Tensor) -> Any:
    return _to(input, other.dtype) if isinstance(input, SparseTensor) else input.to(other.dtype)


def _like() -> Any:
    def make(
        input: SparseTensor,
        *,
        dtype: Dtype | None = None,
        layout: Any = None,
        device: DeviceLike | None = None,
        **options: Any,
    ) -> Any:
        options.pop("memory_format", None)
        requires_grad = options.pop("requires_grad", False)
        if layout is not None and layout is not input._layout:
            made: Any = F.zeros(input.shape, dtype=dtype or input.dtype, device=device or input.device)
            if layout is not strided:
                block = input._block if isinstance(input, CompressedTensor) and layout in BLOCKED else None
                made = to_sparse(made, layout=layout, blocksize=block, dense_dim=input.dense_dim())
        else:
            made = empty_like(input, dtype=dtype, device=device)
        return made.requires_grad_() if requires_grad else made

    return make


rule("zeros_like")(_like())
rule("empty_like")(_like())


@rule("ones_like")
def _ones_like(input: SparseTensor, **options: Any) -> Any:
    return _filled("ones_like", input, 1, options)


@rule("full_like")
def _full_like(input: SparseTensor, fill_value: Any, **options: Any) -> Any:
    return _filled("full_like", input, fill_value, options)


def _drawn(name: str) -> None:
    """Random numbers at the indices of a compressed tensor."""

    def make(input: SparseTensor, **options: Any) -> Any:
        if isinstance(input, CooTensor) or options.pop("layout", None) not in (None, input._layout):
            refuse(name, input)
        options.pop("memory_format", None)
        requires_grad = options.pop("requires_grad", False)
        made = like(input.detach(), getattr(F, name)(input._held, **options))
        return made.requires_grad_() if requires_grad else made

    rule(name)(make)


_drawn("rand_like")
_drawn("randn_like")


def _filled(name: str, input: SparseTensor, value: Any, options: dict[str, Any]) -> Any:
    if isinstance(input, CooTensor):
        refuse(name, input)
    options.pop("memory_format", None)
    return like(input.detach(), F.full_like(input._held, value, **options))


def _new(name: str) -> None:
    """`new_zeros` and kin give strided tensors where a layout of elements would make no sense."""

    def make(input: SparseTensor, *args: Any, **kwargs: Any) -> Any:
        if name in ("new_zeros", "new_empty") and isinstance(input, CooTensor):
            sizes = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list, Size)) else args
            at = F.zeros((len(sizes), 0), dtype=dt.int64, device=input.device)
            held = input._held.new_zeros((0,), **kwargs)
            return CooTensor.make(at, held, sizes, True)
        return getattr(input._held, name)(*args, **kwargs)

    rule(name)(make)


_new("new_zeros")
_new("new_empty")
_new("new_ones")
_new("new_full")
_new("new_tensor")


@rule("copy_")
def _copy_(input: Tensor, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(input, SparseTensor) or not isinstance(src, SparseTensor) or input._layout is not src._layout:
        raise RuntimeError(
            "copy_() between dense and sparse Tensors, or between sparse layouts, is not implemented; use "
            "to_dense() or to_sparse()."
        )
    if tuple(src.shape) != tuple(input.shape):
        refuse("copy_", input, f" of shapes {tuple(input.shape)} and {tuple(src.shape)}")
    return input._become(moved(_clone(src).to(input.dtype), input.device))


@rule("zero_")
def _zero_(input: SparseTensor) -> Any:
    if isinstance(input, CooTensor):
        made = empty_like(input)
    else:
        made = like(input.detach(), F.zeros_like(input._held))
    return input._become(made)


@rule("fill_")
def _fill_(input: SparseTensor, value: Any) -> Any:
    if isinstance(input, CooTensor):
        refuse("fill_", input)
    return input._become(like(input.detach(), F.full_like(input._held, value)))


@rule("contiguous")
def _contiguous(input: SparseTensor, memory_format: Any = None) -> Any:
    raise RuntimeError("contiguous: sparse tensors have no strides; use .to_dense().contiguous().")


@rule("resize_as_")
def _resize_as_(input: Tensor, the_template: Any, *, memory_format: Any = None) -> Any:
    if isinstance(input, CooTensor) and isinstance(the_template, CooTensor):
        return input.resize_as_sparse_(the_template)
    if tuple(input.shape) != tuple(the_template.shape):
        refuse("resize_as_", the_template if isinstance(the_template, SparseTensor) else input)
    return input


@rule("is_nonzero")
def _is_nonzero(input: SparseTensor) -> bool:
    from ..convert import dense

    return bool(F.is_nonzero(dense(input)))


def _fact(name: str) -> None:
    rule(name)(lambda input: getattr(input._spec.dtype, name))


_fact("is_floating_point")
_fact("is_complex")
_fact("is_signed")
rule("numel")(lambda input: input._spec.numel)
rule("is_tensor")(lambda obj: True)
rule("is_inference")(lambda input: input._inference)
rule("is_same_size")(lambda input, other: tuple(input.shape) == tuple(other.shape))
rule("is_conj", "is_neg")(lambda input: False)
rule("resolve_conj", "resolve_neg")(lambda input: input)


@rule("result_type")
def _result_type(tensor: Any, other: Any) -> Any:
    plain = [v._held if isinstance(v, SparseTensor) else v for v in (tensor, other)]
    return F.result_type(*plain)


@rule("equal")
def _equal(input: Any, other: Any) -> bool:
    if not isinstance(input, SparseTensor) or not isinstance(other, SparseTensor) or input._layout is not other._layout:
        refuse("equal", other if isinstance(other, SparseTensor) else input, " and other layouts")
    if tuple(input.shape) != tuple(other.shape):
        return False
    if isinstance(input, CooTensor):
        input, other = input.coalesce(), other.coalesce()
    pairs = zip(input._parts(), other._parts(), strict=True)
    return all(tuple(a.shape) == tuple(b.shape) and bool(F.equal(a, b)) for a, b in pairs)


@rule("_amp_foreach_non_finite_check_and_unscale_")
def _unscale(grads: Any, found_inf: Tensor, inverse: Tensor) -> Any:
    """A GradScaler looks at, and divides, the values of sparse gradients."""
    plain = [g._held if isinstance(g, SparseTensor) else g for g in grads]
    return F._amp_foreach_non_finite_check_and_unscale_(plain, found_inf, inverse)
