"""What tensors can do in torch and not in votive: legacy methods, views of storage; lent while the alias is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..core.layout import Size
from ..core.memory_format import channels_last, channels_last_3d, contiguous_format
from ..nested.convert import to_padded_tensor
from ..surface import quantized_functions
from ..tensor import Tensor
from . import aten
from .storage import untyped_storage
from .tensor_types import from_storage, new
from .typed_storage import storage

_set = Tensor.set_


def _only_cpu(x: Tensor, name: str) -> None:
    if x.device.type != "cpu":
        raise TypeError(f"{name}: runs Python for each number and takes tensors on the CPU, got one on {x.device}.")
    if x.requires_grad:
        raise RuntimeError(f"{name}: can't be recorded; use it on x.detach() or without requires_grad.")


def _each(x: Tensor, function: Callable[..., Any], *others: Tensor) -> Tensor:
    wide = [o.expand(x.shape).reshape(-1).tolist() for o in others]
    numbers = [function(*values) for values in zip(x.reshape(-1).tolist(), *wide, strict=True)]
    made = Tensor.new_tensor(x, numbers).reshape(x.shape) if numbers else x
    x.copy_(made)
    return x


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each number by what a Python function makes of it."""
    _only_cpu(self, "apply_")
    return _each(self, callable)


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each number by what a Python function makes of it and of another tensor's."""
    _only_cpu(self, "map_")
    return _each(self, callable, tensor)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each number by what a Python function makes of it and of two other tensors'."""
    _only_cpu(self, "map2_")
    return _each(self, callable, x, y)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


_ORDERS: dict[Any, Callable[[int], tuple[int, ...]]] = {
    contiguous_format: lambda n: tuple(range(n)),
    channels_last: lambda n: (0, 2, 3, 1),
    channels_last_3d: lambda n: (0, 2, 3, 4, 1),
}


def dim_order(self: Tensor, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost."""
    order = sorted(range(self.ndim), key=lambda d: (-self.stride(d), -self.shape[d] if self.stride(d) else 0))
    strides, sizes = self.stride(), self.shape
    # Dimensions of size 1 lie anywhere: they stay where the shape has them.
    if any(size == 1 for size in sizes) or len(set(strides)) < len(strides):
        fits = [f for f in ambiguity_check if self.is_contiguous(memory_format=f)] if _is_list(ambiguity_check) else []
        if len(fits) == 1:
            return _ORDERS[fits[0]](self.ndim)
        if ambiguity_check is not False:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
        order = sorted(range(self.ndim), key=lambda d: -strides[d])
    return tuple(order)


def module_load(self: Tensor, other: Any, assign: bool = False) -> Any:
    """How `load_state_dict` puts a value into this parameter where swapping is on."""
    if assign:
        return other.detach() if isinstance(other, Tensor) else other
    self.detach().copy_(other)
    return self.detach()


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Look at the memory of another tensor or storage from now on."""
    if isinstance(source, Tensor) and size is None:
        return _set(self, source)
    if source is None:
        return _set(self, self.new_empty(0))
    flat = from_storage(source, self.dtype) if not isinstance(source, Tensor) else _flat(source)
    if size is None:
        return _set(self, flat)
    shape = Size(size)
    steps = stride if stride else self.new_empty(0).expand(0).as_strided(shape, _dense(shape)).stride()
    return _set(self, flat.as_strided(shape, steps, storage_offset))


def _flat(source: Tensor) -> Tensor:
    return from_storage(storage(source), source.dtype)


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    from ..core.layout import contiguous_strides

    return contiguous_strides(tuple(shape))


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """The same numbers in another shape; `reshape` in newer programs."""
    return self.reshape(*sizes)


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """The same numbers in the shape of another tensor."""
    return self.reshape(tensor.shape)


def storage_type(self: Tensor) -> Any:
    """The legacy class of this tensor's storage."""
    from .overlays import storages_by_dtype

    return storages_by_dtype(self.dtype)


def reinforce(self: Tensor, reward: Any) -> NoReturn:
    """Removed from torch."""
    raise RuntimeError("reinforce() was removed: take log_prob of torch.distributions and weigh it with the reward.")


def _removed(name: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(*args: object, **options: object) -> NoReturn:
        raise RuntimeError(f"{name} was deprecated since version 1.9 and is now removed; use {instead}.")

    refuse.__name__ = name
    refuse.__doc__ = f"Removed from torch: {instead} does it."
    return refuse


_ONCE = (
    _removed("eig", "torch.linalg.eig"),
    _removed("lstsq", "torch.linalg.lstsq"),
    _removed("matrix_rank", "torch.linalg.matrix_rank"),
    _removed("solve", "torch.linalg.solve"),
    _removed("symeig", "torch.linalg.eigh"),
)
REMOVED = {function.__name__: function for function in _ONCE}


def _no_device(kind: str) -> Callable[..., NoReturn]:
    def refuse(self: Tensor, *args: object, **options: object) -> NoReturn:
        raise RuntimeError(f"votive has no {kind} devices; use .cuda() or .to('cpu').")

    return refuse


def _of_codes(name: str) -> Callable[..., Any]:
    """A method of quantized tensors, which says so on others."""

    def ask(self: Tensor) -> Any:
        return getattr(quantized_functions, name)(self)

    ask.__name__ = name
    return ask


def _qscheme(self: Tensor) -> Any:
    return quantized_functions.quantized("qscheme", self).qscheme()


def _index(self: Tensor, indices: Any) -> Any:
    """`x.index([None, i])`: the elements at indices, None for all of a dimension."""
    return self[tuple(slice(None) if i is None else i for i in indices)]


def _lent() -> dict[str, Any]:
    found: dict[str, Any] = {
        "apply_": apply_,
        "map_": map_,
        "map2_": map2_,
        "dim_order": dim_order,
        "module_load": module_load,
        "new": new,
        "resize": resize,
        "resize_as": resize_as,
        "index": _index,
        "to_padded_tensor": to_padded_tensor,
        "set_": set_,
        "storage": storage,
        "storage_type": storage_type,
        "untyped_storage": untyped_storage,
        "reinforce": reinforce,
        "const_data_ptr": Tensor.data_ptr,
        "is_distributed": aten.is_distributed,
        "hash_tensor": aten.hash_tensor,
        "nonzero_static": aten.nonzero_static,
        "slice_inverse": aten.slice_inverse,
        "volatile": property(lambda self: False, lambda self, value: None),
        "name": property(lambda self: None),
        "grad_dtype": property(lambda self: self.dtype if self.is_leaf else None),
        "dequantize": lambda self: self.float(),
        "ipu": _no_device("IPU"),
        "xpu": _no_device("XPU"),
        "mtia": _no_device("MTIA"),
        **{name: value for name, value in REMOVED.items() if name != "matrix_rank"},
    }
    for kind in ("ipu", "maia", "mkldnn", "mps", "mtia", "vulkan", "xla", "xpu", "hpu"):
        found[f"is_{kind}"] = property(lambda self: False)
    for name in ("int_repr", "q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points"):
        found[name] = _of_codes(name)
    found |= {"q_scale": _of_codes("q_scale"), "q_zero_point": _of_codes("q_zero_point"), "qscheme": _qscheme}
    return found


_before: dict[str, Any] = {}
_ALWAYS = {"set_", "untyped_storage"}


def enter() -> None:
    """Lend tensors what they lack; what votive has by now stays its own."""
    for name, value in _lent().items():
        own = Tensor.__dict__.get(name)
        if name in _ALWAYS or not hasattr(Tensor, name):
            _before[name] = own
            setattr(Tensor, name, value)


def leave() -> None:
    """Take it back."""
    for name, own in _before.items():
        if own is None:
            delattr(Tensor, name)
        else:
            setattr(Tensor, name, own)
    _before.clear()
