"""Trees of containers: flattened to leaves and a spec, rebuilt, mapped. What libraries register their classes with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import _pytree_keys, _pytree_nodes, _pytree_spec
from ._pytree_keys import GetAttrKey, KeyPath
from ._pytree_spec import (
    CONSTANT_NODES,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    FlattenFunc,
    FlattenWithKeysFunc,
    IsLeaf,
    NodeDef,
    TreeSpec,
    UnflattenFunc,
    _node_type,
    tree_flatten,
    tree_is_leaf,
)


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: FlattenWithKeysFunc | None = None,
    **later: Any,
) -> None:
    """Let objects of a class be taken apart: `flatten_fn` gives children and context, `unflatten_fn` joins them."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        SUPPORTED_SERIALIZED_TYPES[cls] = serialized_type_name
        SERIALIZED_TYPE_TO_PYTHON_TYPE[serialized_type_name] = cls


def _register_pytree_node(
    cls: type, flatten_fn: FlattenFunc, unflatten_fn: UnflattenFunc, *_: Any, **options: Any
) -> None:
    register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


_private_register_pytree_node = _register_pytree_node


def _deregister_pytree_node(cls: type) -> None:
    SUPPORTED_NODES.pop(cls, None)
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(SUPPORTED_SERIALIZED_TYPES.pop(cls, ""), None)
    CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None, **options: Any
) -> None:
    """Let objects of a dataclass be taken apart into their fields."""
    if field_names is None:
        dropped = set(drop_field_names or ())
        field_names = [f.name for f in dataclasses.fields(cls) if f.init and f.name not in dropped]
    names = field_names

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        there = [n for n in names if getattr(obj, n) is not None]
        return [getattr(obj, n) for n in there], (there, [n for n in names if n not in there])

    def with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
        values, context = flatten(obj)
        return [(GetAttrKey(n), v) for n, v in zip(context[0], values, strict=True)], context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(context[0], values, strict=True)), **dict.fromkeys(context[1]))

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=with_keys, **options)


def register_constant(cls: type) -> None:
    """Let objects of a class be part of a tree's shape, not leaves."""
    if "__eq__" not in {name for base in cls.__mro__[:-1] for name in vars(base)}:
        raise TypeError(
            f"register_constant(cls) expects `cls` to have a non-default `__eq__` implementation; got {cls}."
        )
    register_pytree_node(cls, lambda obj: ([], obj), lambda _, obj: obj, flatten_with_keys_fn=lambda obj: ([], obj))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether objects of a class are part of a tree's shape."""
    return cls in CONSTANT_NODES


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for part in SUPPORTED_NODES[_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(part, is_leaf)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments of a call."""
    return [leaf for part in (*args, *kwargs.values()) for leaf in tree_iter(part)]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """The shape alone."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree whose leaves are `func` of the leaves of these trees."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call `func` for each leaf, and give the tree back as it is."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for given in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests), strict=True):
        func(*given)
    return tree


def map_only(types: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is for leaves of these types (or that a predicate takes), others stay."""
    if not isinstance(types, type) and not isinstance(types, tuple) and not callable(types):
        types = tuple(types.__args__)

    def fits(value: Any) -> bool:
        return isinstance(value, types) if isinstance(types, type | tuple) else bool(types(value))

    return lambda func: lambda value: func(value) if fits(value) else value


def tree_map_only(types: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map` for leaves of these types; others stay."""
    return tree_map(map_only(types)(func), tree, is_leaf=is_leaf)


def tree_map_only_(types: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map_` for leaves of these types."""
    return tree_map_(map_only(types)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves fulfil a condition."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether any leaf fulfils a condition."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves of these types fulfil a condition."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, types))


def tree_any_only(types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether any leaf of these types fulfils a condition."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, types))


def _with_paths(tree: Any, path: KeyPath, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[_node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn to "
            "register_pytree_node."
        )
    for key, part in node.flatten_with_keys_fn(tree)[0]:
        yield from _with_paths(part, (*path, key), is_leaf)


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves with the keys that lead to them, and the shape."""
    return list(_with_paths(tree, (), is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves with the keys that lead to them."""
    return list(_with_paths(tree, (), is_leaf))


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map` whose function also gets the keys that lead to a leaf."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = [path for path, _ in found], [leaf for _, leaf in found]
    return spec.unflatten(map(func, paths, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """The leaves of a tree, one standing for all below it where the spec goes deeper; None where the shapes differ."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _node_type(tree) is not treespec.type:
        return None
    parts, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(parts) != treespec.num_children or context != treespec.context:
        return None
    out: list[Any] = []
    for part, child in zip(parts, treespec.children(), strict=True):
        found = _broadcast_to_and_flatten(part, child, is_leaf)
        if found is None:
            return None
        out += found
    return out


# Torch has all of this in one file; libraries reach for the helpers of single containers, too.
for _part in (_pytree_keys, _pytree_nodes, _pytree_spec):
    globals().update({name: value for name, value in vars(_part).items() if not name.startswith("__")})

__all__ = [name for name in dir() if not name.startswith("__")]
