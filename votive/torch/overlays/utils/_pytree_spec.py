"""The shape of a tree of containers, the classes that are taken apart, and the way to leaves and back."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ._pytree_nodes import (
    _defaultdict_flatten,
    _defaultdict_flatten_with_keys,
    _defaultdict_unflatten,
    _deque_flatten,
    _deque_flatten_with_keys,
    _deque_unflatten,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _namedtuple_flatten,
    _namedtuple_flatten_with_keys,
    _namedtuple_unflatten,
    _ordereddict_unflatten,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
)

PyTree = Any
Context = Any
FlattenFunc = Callable[[Any], tuple[list[Any], Any]]
UnflattenFunc = Callable[[Iterable[Any], Any], Any]
FlattenWithKeysFunc = Callable[[Any], tuple[list[tuple[Any, Any]], Any]]
IsLeaf = Callable[[Any], bool] | None


class NodeDef(NamedTuple):
    """How one class is taken apart and put together."""

    type: type
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: FlattenWithKeysFunc | None


SUPPORTED_NODES: dict[type, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[type, str] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, type] = {}
CONSTANT_NODES: set[type] = set()


class TreeSpec:
    """The shape of a tree: the class of its root, what else that class needs, and the specs of the children."""

    __slots__ = ("_children", "context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children: list[TreeSpec] | None = None) -> None:
        self.type = type
        self.context = context
        self._children = list(children or ())
        self.num_children = len(self._children)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in self._children)
        self.num_leaves: int = 1 if self.is_leaf() else sum(child.num_leaves for child in self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        """The specs of the children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The spec of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether the tree is one leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this shape with these leaves."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(given)} but the spec refers to a pytree "
                f"that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(given))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.is_leaf():
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([child._build(leaves) for child in self._children], self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of a tree that stand where this spec has leaves."""
        if self.is_leaf():
            return [tree]
        kind = _node_type(tree)
        if kind is not self.type and not (kind in _DICTS and self.type in _DICTS):
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if kind in _DICTS:
            ours = self.context[1] if self.type is defaultdict else self.context
            if set(ours) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {list(ours)!r}, but got {list(tree)!r}.")
            parts = [tree[key] for key in ours]
        elif len(parts) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(parts)}.")
        elif kind is not deque and context != self.context:
            raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        return [leaf for part, child in zip(parts, self._children, strict=True) for leaf in child.flatten_up_to(part)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self.context, self._children) == (other.type, other.context, other._children)

    def __hash__(self) -> int:
        return hash((self.type, self.num_children, self.num_leaves))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.is_leaf():
            return "*"
        inner = [child._text(indent + 2) for child in self._children]
        joined = f",\n{' ' * (indent + 2)}".join(inner)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{joined}])"


def LeafSpec() -> TreeSpec:
    """The spec of a tree that is one leaf."""
    return TreeSpec(None, None, [])


treespec_leaf = LeafSpec


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class was made by `namedtuple` or derives from one."""
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_namedtuple(obj: Any) -> bool:
    """Whether something is a named tuple, or the class of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether something is a named tuple."""
    return is_namedtuple_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def _node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind not in SUPPORTED_NODES and is_namedtuple_class(kind):
        return namedtuple
    return kind


_get_node_type = _node_type


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether nothing is taken apart here."""
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


def _leaves(tree: Any, is_leaf: IsLeaf, out: list[Any]) -> TreeSpec:
    if tree_is_leaf(tree, is_leaf):
        out.append(tree)
        return LeafSpec()
    kind = _node_type(tree)
    parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_leaves(part, is_leaf, out) for part in parts])


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree, and its shape."""
    out: list[Any] = []
    spec = _leaves(tree, is_leaf, out)
    return out, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a shape with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be a TreeSpec, got {type(treespec)}."
        )
    return treespec.unflatten(leaves)


_DICTS = (dict, OrderedDict, defaultdict)
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
STANDARD_DICT_TYPES = frozenset(_DICTS)
SUPPORTED_NODES.update(
    {
        tuple: NodeDef(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
        list: NodeDef(list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
        dict: NodeDef(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
        OrderedDict: NodeDef(OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_flatten_with_keys),
        defaultdict: NodeDef(defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys),
        deque: NodeDef(deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
    }
)
# All named tuples share the entry of the function that makes them.
SUPPORTED_NODES[namedtuple] = NodeDef(  # type: ignore[index]
    namedtuple,  # type: ignore[arg-type]
    _namedtuple_flatten,
    _namedtuple_unflatten,
    _namedtuple_flatten_with_keys,
)
