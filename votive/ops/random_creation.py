"""New random tensors by size, and like others. Reads arguments; `random.py` draws."""

from __future__ import annotations

from typing import Any

from ..core import dtype as dt
from ..core.device import resolve
from ..core.memory_format import preserve_format
from .copy import format_strides
from .creation import sizes
from .options import check_layout, finish
from .random import draw, integer, make, target
from .registry import F, composite


def _shape(op: str, size: tuple[Any, ...], named: Any) -> tuple[int, ...]:
    if named is not None:
        size = (*size, named)
    if not size:
        raise TypeError(f"{op}: give a size, as in {op}(2, 3).")
    return sizes(op, size)


@composite(method=False)
def rand(
    *args: Any,
    size: Any = None,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Uniform random numbers of [0, 1).

    >>> _ = votive.manual_seed(0)
    >>> votive.rand(2)
    tensor([0.3990, 0.8805])
    """
    check_layout("rand", layout)
    shape = _shape("rand", args, size)
    if out is None:
        kind = dtype or dt.get_default_dtype()
        return finish(make("uniform", shape, kind, device, generator, 0, 1), requires_grad, pin_memory)
    return finish(
        draw("uniform", target("rand", shape, out, dtype, device), generator, 0, 1), requires_grad, pin_memory
    )


@composite(method=False)
def randn(
    *args: Any,
    size: Any = None,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Normal random numbers with mean 0 and variance 1.

    >>> _ = votive.manual_seed(0)
    >>> votive.randn(2)
    tensor([ 0.9911, -0.9247])
    """
    check_layout("randn", layout)
    shape = _shape("randn", args, size)
    if out is None:
        kind = dtype or dt.get_default_dtype()
        return finish(make("normal", shape, kind, device, generator, 0, 1), requires_grad, pin_memory)
    return finish(
        draw("normal", target("randn", shape, out, dtype, device), generator, 0, 1), requires_grad, pin_memory
    )


def _range(op: str, args: tuple[Any, ...], named: dict[str, Any], last: tuple[str, ...]) -> Any:
    """Read `(high, *last)` or `(low, high, *last)`, some of it given by name."""
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
def randint(
    *args: Any,
    low: Any = None,
    high: Any = None,
    size: Any = None,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """Random integers of [low, high): `randint(high, size)` or `randint(low, high, size)`.

    >>> _ = votive.manual_seed(0)
    >>> votive.randint(10, (5,))
    tensor([8, 6, 3, 0, 3])
    """
    check_layout("randint", layout)
    named = {"low": low, "high": high, "size": size}
    first, end, shape = _range("randint", args, named, ("size",))
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"randint: size must be a tuple of ints, got {type(shape).__name__}.")
    wanted = sizes("randint", (shape,))
    if out is None and -(1 << 63) <= first <= end <= 1 << 63:
        kind = dtype or dt.int64
        return finish(make("random", wanted, kind, device, generator, first, end), requires_grad, pin_memory)
    if out is None and dtype is None:
        dtype = dt.int64
    memory = target("randint", wanted, out, dtype, device)
    return finish(draw("random", memory, generator, first, end), requires_grad, pin_memory)


@composite(method=False)
def randperm(
    n: int,
    *,
    generator: Any = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A random order of the integers 0 .. n-1.

    >>> _ = votive.manual_seed(0)
    >>> votive.randperm(4)
    tensor([3, 2, 1, 0])
    """
    check_layout("randperm", layout)
    length = integer("randperm", "n", n)
    shape = sizes("randperm", (length,))
    if out is None:
        return finish(make("randperm", shape, dtype or dt.int64, device, generator), requires_grad, pin_memory)
    memory = target("randperm", shape, out, dtype, device)
    return finish(draw("randperm", memory, generator), requires_grad, pin_memory)


def _like(op: str, x: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    spec = x._spec
    strides = format_strides(op, spec, memory_format)
    return F._empty(spec.shape, strides, dtype or spec.dtype, resolve(device or spec.device))


@composite(method=False)
def rand_like(
    input: Any,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """Uniform random numbers of [0, 1) in the shape, dtype and device of `input`.

    >>> _ = votive.manual_seed(0)
    >>> votive.rand_like(votive.zeros(2))
    tensor([0.3990, 0.8805])
    """
    check_layout("rand_like", layout)
    memory = _like("rand_like", input, dtype, device, memory_format)
    return finish(draw("uniform", memory, generator, 0, 1), requires_grad, pin_memory)


@composite(method=False)
def randn_like(
    input: Any,
    *,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """Normal random numbers with mean 0 and variance 1 in the shape, dtype and device of `input`.

    >>> _ = votive.manual_seed(0)
    >>> votive.randn_like(votive.zeros(2))
    tensor([ 0.9911, -0.9247])
    """
    check_layout("randn_like", layout)
    memory = _like("randn_like", input, dtype, device, memory_format)
    return finish(draw("normal", memory, generator, 0, 1), requires_grad, pin_memory)


@composite(method=False)
def randint_like(
    input: Any,
    *args: Any,
    low: Any = None,
    high: Any = None,
    generator: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = preserve_format,
) -> Any:
    """Random integers of [0, high) or [low, high) in the shape, dtype and device of `input`.

    >>> _ = votive.manual_seed(0)
    >>> votive.randint_like(votive.zeros(3), 10)
    tensor([8., 6., 3.])
    """
    check_layout("randint_like", layout)
    first, end, _ = _range("randint_like", args, {"low": low, "high": high}, ())
    memory = _like("randint_like", input, dtype, device, memory_format)
    return finish(draw("random", memory, generator, first, end), requires_grad, pin_memory)
