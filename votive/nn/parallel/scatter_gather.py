"""Arguments cut into pieces for several devices, and results put together: tensors inside lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...tensor import Tensor
from . import comm


def _is_named(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Pieces of the tensors in `inputs`, one of each per device; other things go to all of them.

    >>> votive.nn.parallel.scatter([votive.arange(4), "x"], ["cpu", "cpu"])
    [[tensor([0, 1]), 'x'], [tensor([2, 3]), 'x']]
    """

    def pieces(x: Any) -> list[Any]:
        if isinstance(x, Tensor):
            return list(comm.scatter(x, target_gpus, dim=dim))
        if _is_named(x):
            return [type(x)(*args) for args in zip(*(pieces(i) for i in x), strict=False)]
        if isinstance(x, tuple) and x:
            return list(zip(*(pieces(i) for i in x), strict=False))
        if isinstance(x, list) and x:
            return [list(i) for i in zip(*(pieces(i) for i in x), strict=False)]
        if isinstance(x, dict) and x:
            keys = list(x)
            return [type(x)(zip(keys, i, strict=True)) for i in zip(*(pieces(x[k]) for k in keys), strict=False)]
        return [x for _ in target_gpus]

    return pieces(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Pieces of positional and keyword arguments, equally many of both.

    >>> scatter_kwargs = votive.nn.parallel.scatter_gather.scatter_kwargs
    >>> scatter_kwargs((votive.arange(2),), {"n": 1}, ["cpu", "cpu"])[1]
    ({'n': 1}, {'n': 1})
    """
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(args), len(named)) if args and named else len(args) or len(named)
    args += [() for _ in range(count - len(args))]
    named += [{} for _ in range(count - len(named))]
    return tuple(args), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Results of several devices put together on one: tensors are joined, containers entry by entry.

    >>> votive.nn.parallel.gather([{"y": votive.zeros(1)}, {"y": votive.ones(1)}], "cpu")
    {'y': tensor([0., 1.])}
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        if all(t.ndim == 0 for t in outputs):
            outputs = [t.unsqueeze(0) for t in outputs]  # as torch does, and warns of
        return comm.gather(list(outputs), dim, target_device)
    if first is None:
        return None
    if isinstance(first, Mapping):
        if not all(len(first) == len(one) for one in outputs):
            raise ValueError("All dicts must have the same number of keys")
        kind: Any = type(first)
        return kind((k, gather([one[k] for one in outputs], target_device, dim)) for k in first)
    parts = [gather(group, target_device, dim) for group in zip(*outputs, strict=True)]
    return type(first)(*parts) if _is_named(first) else type(first)(parts)
