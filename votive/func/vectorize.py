"""vmap: a function of one example becomes a function of a batch of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from ..core.mode import mode
from ..dispatch import refresh
from ..ops.registry import F
from ..tensor import Tensor
from . import interpret as _interpret  # noqa: F401 - tells the dispatcher what becomes of wrapped tensors
from .tree import Structure, broadcast, flatten, unflatten
from .wrapped import Batched, Level, batched, inside, next_level

Fn = Callable[..., Any]


def vmap(
    func: Fn, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Fn:
    """A function that maps `func` over a dimension of its inputs, all examples at once.

    >>> votive.func.vmap(votive.dot)(votive.ones(2, 3), votive.ones(2, 3))
    tensor([3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not (chunk_size == int(chunk_size) and chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        size, leaves, dims, structure = _inputs(func, in_dims, args)
        if chunk_size is None or size <= chunk_size:
            return _run(func, leaves, dims, structure, kwargs, size, out_dims, randomness)
        parts = []
        for start in range(0, size, chunk_size):
            n = min(chunk_size, size - start)
            part = [x if d is None else F.narrow(x, d, start, n) for x, d in zip(leaves, dims, strict=True)]
            parts.append(_run(func, part, dims, structure, kwargs, n, out_dims, randomness))
        return _concatenated(parts, out_dims)

    return mapped


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", repr(func))


def _inputs(func: Fn, in_dims: Any, args: tuple[Any, ...]) -> tuple[int, list[Any], list[Any], Structure]:
    """The number of examples, the leaves of the inputs and the dimension of each, None where it is no batch."""
    head = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>):"
    if isinstance(in_dims, bool) or not isinstance(in_dims, (int, tuple, list)):
        raise ValueError(
            f"{head} expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    leaves, structure = flatten(args)
    dims = broadcast(tuple(in_dims) if isinstance(in_dims, list) else in_dims, structure)
    if dims is None:
        raise ValueError(
            f"{head} in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{flatten(in_dims)[1]} but inputs has structure {structure}."
        )
    found: list[Any] = []
    for x, d in zip(leaves, dims, strict=True):
        if d is None:
            found.append(None)
            continue
        if isinstance(d, bool) or not isinstance(d, int):
            raise ValueError(
                f"{head} Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
            )
        if not isinstance(x, Tensor):
            raise ValueError(
                f"{head} Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -x.ndim <= d < x.ndim:
            raise ValueError(
                f"{head} Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.ndim} so "
                f"expected in_dim to satisfy -{x.ndim} <= in_dim < {x.ndim}."
            )
        found.append(d % x.ndim)
    sizes = [x.shape[d] for x, d in zip(leaves, found, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: at least one input must be mapped over; every in_dim is None.")
    if any(s != sizes[0] for s in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0], leaves, found, structure


def _run(
    func: Fn,
    leaves: list[Any],
    dims: list[Any],
    structure: Structure,
    kwargs: dict[str, Any],
    size: int,
    out_dims: Any,
    randomness: str,
) -> Any:
    level = next_level(size, randomness)
    wrapped = [x if d is None else batched(x, d, level.number) for x, d in zip(leaves, dims, strict=True)]
    refresh(levels=1)
    try:
        with inside((*mode.levels, level)):
            out = func(*unflatten(wrapped, structure), **kwargs)
    finally:
        refresh(levels=-1)
    return _outputs(func, out, out_dims, level)


def _outputs(func: Fn, out: Any, out_dims: Any, level: Level) -> Any:
    leaves, structure = flatten(out)
    dims = broadcast(out_dims, structure)
    name = _name(func)
    if dims is None and structure.kind is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = list(out_dims)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {flatten(out_dims)[1]} but outputs has structure {structure}."
        )
    results = []
    for y, d in zip(leaves, dims, strict=True):
        if d is not None and (isinstance(d, bool) or not isinstance(d, int)):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
                "ints representing where in the outputs the vmapped dimension should appear."
            )
        if not isinstance(y, Tensor):
            if d is None:
                results.append(y)
                continue
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(y)}. Did you mean to set "
                "out_dims= to None for output?"
            )
        results.append(_unwrapped(name, y, d, level))
    return unflatten(results, structure)


def _unwrapped(name: str, y: Any, dim: int | None, level: Level) -> Any:
    mine = y.__class__ is Batched and y._level == level.number
    if dim is None:
        if mine:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return y
    assert level.size is not None
    value = y._value if mine else F.expand(F.unsqueeze(y, 0), (level.size, *y.shape))
    at = y._bdim if mine else 0
    if not -value.ndim <= dim < value.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-value.ndim}, {value.ndim - 1}], but got {dim})"
        )
    return value if at == dim % value.ndim else F.movedim(value, at, dim)


def _concatenated(parts: list[Any], out_dims: Any) -> Any:
    flat = [flatten(p) for p in parts]
    structure = flat[0][1]
    dims = broadcast(out_dims, structure) or [0] * structure.leaves
    rows: Iterator[tuple[Any, ...]] = zip(*(leaves for leaves, _ in flat), strict=True)
    joined = [row[0] if d is None else F.cat(list(row), d) for row, d in zip(rows, dims, strict=True)]
    return unflatten(joined, structure)
