"""Running results of an associative function along a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....ops.registry import F
from ....tensor import Tensor
from ..utils._pytree_spec import tree_flatten

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """`xs[0]`, `f(xs[0], xs[1])`, … along `dim`, for a tensor or a tree of tensors of one length there.

    Slices are combined one after the other, so that `combine_fn` may be any function of them.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("associative_scan: xs must hold at least one tensor, and nothing else.")
    length = leaves[0].shape[dim]
    if any(leaf.shape[dim] != length for leaf in leaves):
        raise ValueError(f"associative_scan: all tensors must be equally long in dim={dim}.")
    if length == 0:
        return xs
    order = range(length - 1, -1, -1) if reverse else range(length)
    parts: list[list[Any]] = []
    for place in order:
        given = [leaf.select(dim, place) for leaf in leaves]
        if parts:
            made = combine_fn(spec.unflatten(parts[-1]), spec.unflatten(given))
            given = spec.flatten_up_to(made)
            if any(g.shape != p.shape or g.dtype != p.dtype for g, p in zip(given, parts[-1], strict=True)):
                raise RuntimeError("associative_scan: combine_fn must keep shapes and types.")
        parts.append(given)
    if reverse:
        parts.reverse()
    return spec.unflatten(F.stack(list(rows), dim) for rows in zip(*parts, strict=True))
