"""Distributions: what is drawn, from which counters. Knows shapes, not how words are made.

Every distribution is one operator that overwrites its first argument. The key and the first counter
of a draw are reserved at the call and passed as run-time numbers, so a plan made once draws anew
each time. Elements are drawn in row-major order, whatever the strides of the tensor.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..backends.common.sampling import counters, multinomial_draws
from ..core import dtype as dt
from ..core import rng
from ..core.device import resolve
from ..core.errors import DtypeError, ShapeError, UnsupportedError, fail
from ..core.layout import Layout, Spec, broadcast_shapes, contiguous_strides
from ..core.mode import mode
from ..core.remembered import remembered
from .options import check_options, finish, tensor_options
from .registry import OPS, F, Op, composite, structured
from .schema import is_tensor
from .sizes import new_shape

if TYPE_CHECKING:
    from .types import (
        Context,
        Device,
        DeviceLike,
        Generator,
        Ints,
        Number,
        Operand,
        Tensor,
        TensorOptions,
        Unpack,
        dtype,
    )


def _zero(c: Context, g: Tensor) -> Any:
    """A sample does not depend on what was there before, nor smoothly on its parameters."""
    return F.zeros_like(g)


def _distribution(name: str, parameters: str, doc: str, **options: Any) -> None:
    schema = f"_{name}(Tensor input, Scalar key, Scalar counter{parameters and ', '}{parameters})"
    options.setdefault("infer", lambda x, *rest: x.dense_like())
    options.setdefault("grad", {"input": _zero})
    structured(schema, doc=doc, placement="" if name == "randperm" else "random", **options)


def _infer_bernoulli(x: Spec, key: int, counter: int, p: Spec | Number) -> Spec:
    if isinstance(p, Spec):
        if not p.dtype.is_floating_point:
            fail(UnsupportedError, "bernoulli", f"p must be floating-point, got {p.dtype}.")
        if broadcast_shapes("bernoulli", x.shape, p.shape) != x.shape:
            fail(ShapeError, "bernoulli", f"p of shape {p.shape} does not fit into {x.shape}.")
    return x.dense_like()


_distribution("uniform", "Scalar low, Scalar high", "Uniform on [low, high).")
_distribution("log_normal", "Scalar mean, Scalar std", "The exponential of a normal number.")
_distribution("exponential", "Scalar lambd", "Exponential with rate lambd.")
_distribution("cauchy", "Scalar median, Scalar sigma", "Cauchy around the median.")
_distribution("geometric", "Scalar p", "Trials up to the first success.")
_distribution("random", "Scalar low, Scalar? high", "Integers of [low, high).")
_distribution("randperm", "", "A random order of 0 .. n-1.")
_distribution(
    "normal", "Operand mean, Operand std", "Normal numbers.", grad={"input": _zero, "mean": _zero, "std": _zero}
)
_distribution(
    "bernoulli",
    "Operand p",
    "One with probability p, else zero.",
    infer=_infer_bernoulli,
    grad={"input": _zero, "p": _zero},
)
_distribution("poisson", "Tensor rate", "Poisson numbers.", grad={"input": _zero, "rate": _zero})
# torch defines no derivative by a binomial's parameters, so there is none here either.
_distribution("binomial", "Tensor count, Tensor prob", "Successes in count trials.")


def _fresh(name: str, parameters: str, doc: str) -> None:
    """The same drawn into new memory, in one step."""
    schema = "int[] size, dtype dtype, any device, Scalar key, Scalar counter"
    structured(
        f"_new_{name}({schema}{parameters and ', '}{parameters})",
        infer=lambda size, dtype, device, *rest: Spec(Layout(size), dtype, device),
        differentiable=False,
        doc=doc,
    )


_fresh("uniform", "Scalar low, Scalar high", "Uniform on [low, high).")
_fresh("normal", "Scalar mean, Scalar std", "Normal numbers.")
_fresh("random", "Scalar low, Scalar high", "Integers of [low, high).")
_fresh("randperm", "", "A random order of 0 .. n-1.")

structured(
    "_multinomial(Tensor input, Scalar key, Scalar counter, int num_samples, bool replacement)",
    infer=lambda x, key, counter, num_samples, replacement: x.like((*x.shape[:-1], num_samples), dtype=dt.int64),
    differentiable=False,
    doc="Positions drawn with chances proportional to weights.",
)


def _reserve(op: str, generator: Generator | None, device: Device, n: int) -> tuple[int, int]:
    """Take `n` counters of the given generator, or of the device's own."""
    if mode.levels:  # under vmap each example may draw for itself
        mode.drawn = n
        n *= mode.draws
    if generator is None:
        return rng.default_generator(device).reserve(n)
    if not isinstance(generator, rng.Generator):
        kind = type(generator).__name__
        raise TypeError(f"{op}: generator must be a votive.Generator, got {kind}.")
    if generator.device.type != device.type:
        fail(RuntimeError, op, f"expected a generator on {device.type!r}, got one on {generator.device.type!r}.")
    return generator.reserve(n)


@remembered(1024)
def _counters_of(op: str, shape: tuple[int, ...], dtype: dtype) -> int:
    return counters(op, math.prod(shape), dtype.np)


def draw(op: str, x: Tensor, generator: Generator | None, *parameters: Operand | None, fresh: bool = True) -> Tensor:
    """Overwrite x with samples of the distribution `op`; `fresh`: nobody else has seen it."""
    spec = x._spec
    key, counter = _reserve(op, generator, spec.device, _counters_of(op, spec.shape, spec.dtype))
    if fresh and mode.levels:  # the result may have to hold more than x, under vmap a draw for each example
        return OPS[f"_{op}"](x, key, counter, *parameters)
    return Op.write(OPS[f"_{op}"], (x, key, counter, *parameters))


def make(
    op: str, shape: tuple[int, ...], dtype: dtype, device: DeviceLike, generator: Generator | None, *rest: float
) -> Tensor:
    """New memory with samples of the distribution `op`."""
    place = resolve(device)
    n = _counters_of(op, shape, dtype)
    return OPS[f"_new_{op}"](shape, dtype, place, *_reserve(op, generator, place, n), *rest)


def target(op: str, shape: tuple[int, ...], out: Any, dtype: dtype | None, device: DeviceLike) -> Tensor:
    """Memory to be drawn into: new, or `out` brought to the shape."""
    if out is None:
        dtype = dtype or dt.get_default_dtype()
        return F._empty(shape, contiguous_strides(shape), dtype, resolve(device))
    if dtype is not None and dtype is not out.dtype:
        fail(DtypeError, op, f"dtype {dtype} does not match the dtype of out, {out.dtype}.")
    return out.resize_(shape)


def integer(op: str, name: str, value: Operand) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{op}: {name} must be an int, got {type(value).__name__}.")
    return value.__index__()


@composite
def bernoulli(
    input: Tensor, p: Operand | None = None, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Ones and zeros: one with the probability that stands in `input`, or with probability p.

    >>> votive.bernoulli(votive.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    dtype = input.dtype if out is None else None
    memory = target("bernoulli", tuple(input.shape), out, dtype, input.device)
    return draw("bernoulli", memory, generator, input if p is None else p)


@composite
def multinomial(
    input: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Positions of `input` drawn with chances proportional to its values, for each row.

    >>> votive.multinomial(votive.tensor([0.0, 3.0, 0.0]), 2, replacement=True)
    tensor([1, 1])
    """
    number = integer("multinomial", "num_samples", num_samples)
    spec = input._spec
    if not spec.dtype.is_floating_point:
        fail(DtypeError, "multinomial", f"weights must be floating-point, got {spec.dtype}.")
    if out is not None and out.dtype is not dt.int64:
        fail(DtypeError, "multinomial", f"out must be int64, got {out.dtype}.")
    if spec.ndim not in (1, 2):
        fail(ShapeError, "multinomial", f"weights must have 1 or 2 dimensions, got {spec.shape}.")
    if number <= 0:
        fail(RuntimeError, "multinomial", f"num_samples must be positive, got {number}.")
    if not replacement and number > spec.shape[-1]:
        fail(RuntimeError, "multinomial", f"cannot draw {number} of {spec.shape[-1]} positions without replacement.")
    n = counters("multinomial", multinomial_draws(spec.shape, number, replacement))
    key, counter = _reserve("multinomial", generator, spec.device, n)
    drawn = F._multinomial(input, key, counter, number, bool(replacement))
    return drawn if out is None else out.resize_(drawn.shape).copy_(drawn)


@composite(method=False)
@tensor_options()
def normal(
    mean: Operand,
    std: Operand = 1.0,
    size: Ints | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    **given: Unpack[TensorOptions],
) -> Tensor:
    """Normal random numbers; `mean` and `std` are tensors that broadcast, or numbers with a size.

    >>> votive.normal(votive.tensor([1.0, 2.0]), votive.tensor([0.0, 0.0]))
    tensor([1., 2.])
    """
    check_options("normal", given)
    dtype, device = given.get("dtype"), given.get("device")
    tensors = [v for v in (mean, std) if is_tensor(v)]
    if tensors and not (size is None and dtype is None and device is None):
        raise TypeError("normal: size, dtype and device go with numbers; tensors bring their own.")
    if is_tensor(std) and std.dtype.is_complex:
        fail(DtypeError, "normal", "std must not be complex.")
    if tensors:
        shape = broadcast_shapes("normal", *(tuple(v.shape) for v in tensors))
        if out is None:
            dtype, device = tensors[0].dtype, tensors[0].device
    else:
        if not isinstance(size, (tuple, list)):
            raise TypeError("normal: give a size, as in normal(0.0, 1.0, (2, 3)).")
        shape = new_shape("normal", (size,))
    memory = target("normal", shape, out, dtype, device)
    return finish(draw("normal", memory, generator, mean, std), given)


@composite(method=False)
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson random numbers with the rates that stand in `input`.

    >>> votive.poisson(votive.zeros(2))
    tensor([0., 0.])
    """
    memory = target("poisson", tuple(input.shape), None, input.dtype, input.device)
    return draw("poisson", memory, generator, input)


@composite(method=False)
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """The number of successes in `count` trials that each succeed with probability `prob`.

    >>> votive.binomial(votive.tensor([5.0, 5.0]), votive.tensor([0.0, 1.0]))
    tensor([0., 5.])
    """
    if not count.dtype.is_floating_point:
        raise ValueError(f"binomial: count must be floating-point, got {count.dtype}.")
    if prob.dtype is not count.dtype:
        fail(DtypeError, "binomial", f"prob must be {count.dtype} like count, got {prob.dtype}.")
    shape = broadcast_shapes("binomial", tuple(count.shape), tuple(prob.shape))
    memory = target("binomial", shape, None, count.dtype, count.device)
    return draw("binomial", memory, generator, count, prob)
