"""New random tensors by size, and like others. Reads arguments; `random.py` draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..core import dtype as dt
from ..core.device import resolve
from ..core.memory_format import memory_format, preserve_format
from .copy import format_strides
from .options import check_options, finish, tensor_options
from .random import draw, integer, make, target
from .registry import F, composite
from .sizes import new_shape

if TYPE_CHECKING:
    from .types import Generator, Ints, Shape, Tensor, TensorOptions, Unpack


def _shape(op: str, size: tuple[Any, ...], named: Ints | None) -> Shape:
    if named is not None:
        size = (*size, named)
    if not size:
        raise TypeError(f"{op}: give a size, as in {op}(2, 3).")
    return new_shape(op, size)


def _drawn(
    op: str,
    sampler: str,
    shape: Shape,
    kind: dt.dtype,
    generator: Generator | None,
    out: Tensor | None,
    given: TensorOptions,
    *parameters: float,
) -> Tensor:
    """A new tensor of samples, of type `kind` unless another was asked for, or `out` overwritten with them."""
    check_options(op, given)
    dtype, device = given.get("dtype"), given.get("device")
    if out is None:
        return finish(make(sampler, shape, dtype or kind, device, generator, *parameters), given)
    return finish(draw(sampler, target(op, shape, out, dtype, device), generator, *parameters), given)


@composite(method=False)
@tensor_options()
def rand(
    *args: Ints,
    size: Ints | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """Uniform random numbers of [0, 1).

    >>> _ = votive.manual_seed(0)
    >>> votive.rand(2)
    tensor([0.3990, 0.8805])
    """
    shape = _shape("rand", args, size)
    return _drawn("rand", "uniform", shape, dt.get_default_dtype(), generator, out, given, 0, 1)


@composite(method=False)
@tensor_options()
def randn(
    *args: Ints,
    size: Ints | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """Normal random numbers with mean 0 and variance 1.

    >>> _ = votive.manual_seed(0)
    >>> votive.randn(2)
    tensor([ 0.9911, -0.9247])
    """
    shape = _shape("randn", args, size)
    return _drawn("randn", "normal", shape, dt.get_default_dtype(), generator, out, given, 0, 1)


def _range(op: str, args: tuple[Any, ...], named: dict[str, Any], last: tuple[str, ...]) -> tuple[int, int, Any]:
    """Read `(high, *last)` or `(low, high, *last)`, some of it given by name."""
    if (
        len(args) == 2 + len(last)
        and args[0].__class__ is args[1].__class__ is int
        and not any(value is not None for value in named.values())
    ):
        return args[0], args[1], args[2] if last else None
    named = {name: value for name, value in named.items() if value is not None}
    total = len(args) + len(named)
    names = ("high", *last) if total == 1 + len(last) else ("low", "high", *last)
    values = dict(zip(names, args, strict=False))
    if len(args) > len(names) or set(values) & set(named) or {*values, *named} != set(names):
        raise TypeError(f"{op}: takes (high{', size' * len(last)}) or a low in front of it.")
    values.update(named)
    low = integer(op, "low", values.get("low", 0))
    return low, integer(op, "high", values["high"]), values.get("size")


@composite(method=False)
@tensor_options()
def randint(
    *args: Ints,
    low: int | None = None,
    high: int | None = None,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """Random integers of [low, high): `randint(high, size)` or `randint(low, high, size)`.

    >>> _ = votive.manual_seed(0)
    >>> votive.randint(10, (5,))
    tensor([8, 6, 3, 0, 3])
    """
    first: int
    if low is None and high is None and size is None and len(args) in (2, 3):
        bounds: tuple[Any, ...] = args
        shape: Any = bounds[-1]
        first = integer("randint", "low", bounds[0]) if len(args) == 3 else 0
        end = integer("randint", "high", bounds[-2])
    else:
        first, end, shape = _range("randint", args, {"low": low, "high": high, "size": size}, ("size",))
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"randint: size must be a tuple of ints, got {type(shape).__name__}.")
    wanted = new_shape("randint", (shape,))
    if out is None and not -(1 << 63) <= first <= end <= 1 << 63:
        # Drawing into memory says which of the bounds its type cannot hold.
        out = target("randint", wanted, None, given.get("dtype") or dt.int64, given.get("device"))
    return _drawn("randint", "random", wanted, dt.int64, generator, out, given, first, end)


@composite(method=False)
@tensor_options()
def randperm(
    n: int, *, generator: Generator | None = None, out: Tensor | None = None, **given: Unpack[TensorOptions]
) -> Tensor:
    """A random order of the integers 0 .. n-1.

    >>> _ = votive.manual_seed(0)
    >>> votive.randperm(4)
    tensor([3, 2, 1, 0])
    """
    shape = new_shape("randperm", (integer("randperm", "n", n),))
    return _drawn("randperm", "randperm", shape, dt.int64, generator, out, given)


def _like(
    op: str,
    sampler: str,
    x: Tensor,
    generator: Generator | None,
    order: memory_format,
    given: TensorOptions,
    *parameters: float,
) -> Tensor:
    """Samples in the shape, and unless others were asked for the dtype and on the device, of `x`."""
    check_options(op, given)
    spec = x._spec
    place = resolve(given.get("device") or spec.device)
    memory = F._empty(spec.shape, format_strides(op, spec, order), given.get("dtype") or spec.dtype, place)
    return finish(draw(sampler, memory, generator, *parameters), given)


@composite(method=False)
@tensor_options()
def rand_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    memory_format: memory_format = preserve_format,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """Uniform random numbers of [0, 1) in the shape, dtype and device of `input`.

    >>> _ = votive.manual_seed(0)
    >>> votive.rand_like(votive.zeros(2))
    tensor([0.3990, 0.8805])
    """
    return _like("rand_like", "uniform", input, generator, memory_format, given, 0, 1)


@composite(method=False)
@tensor_options()
def randn_like(
    input: Tensor,
    *,
    generator: Generator | None = None,
    memory_format: memory_format = preserve_format,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """Normal random numbers with mean 0 and variance 1 in the shape, dtype and device of `input`.

    >>> _ = votive.manual_seed(0)
    >>> votive.randn_like(votive.zeros(2))
    tensor([ 0.9911, -0.9247])
    """
    return _like("randn_like", "normal", input, generator, memory_format, given, 0, 1)


@composite(method=False)
@tensor_options()
def randint_like(
    input: Tensor,
    *args: int,
    low: int | None = None,
    high: int | None = None,
    generator: Generator | None = None,
    memory_format: memory_format = preserve_format,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """Random integers of [0, high) or [low, high) in the shape, dtype and device of `input`.

    >>> _ = votive.manual_seed(0)
    >>> votive.randint_like(votive.zeros(3), 10)
    tensor([8., 6., 3.])
    """
    first, end, _ = _range("randint_like", args, {"low": low, "high": high}, ())
    return _like("randint_like", "random", input, generator, memory_format, given, first, end)
