"""Trees of containers as exported programs take them apart: what `torch.utils._pytree` knows, under typed names."""

from __future__ import annotations

from ..overlays.utils._pytree import tree_flatten_with_path, tree_leaves, tree_map, tree_structure
from ..overlays.utils._pytree_spec import TreeSpec, tree_flatten, tree_is_leaf, tree_unflatten

__all__ = [
    "TreeSpec",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_leaves",
    "tree_map",
    "tree_structure",
    "tree_unflatten",
]
