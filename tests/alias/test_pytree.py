"""Trees of containers are taken apart and rebuilt as torch does it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest

from votive.torch.overlays.utils import _pytree as ours

Point = namedtuple("Point", "x y")
TREES: list[Any] = [
    Point(1, [2]),
    OrderedDict(a=1, b=(2, 3)),
    deque([1, 2], maxlen=3),
    defaultdict(list, a=1),
    None,
    [],
    {"a": [1, (2, 3)], "b": None},
]


def both() -> Any:
    torch = pytest.importorskip("torch")
    return torch.utils._pytree


@pytest.mark.parity
@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_leaves_paths_and_specs_are_those_of_torch(tree: Any) -> None:
    theirs = both()
    leaves, spec = ours.tree_flatten(tree)
    want, want_spec = theirs.tree_flatten(tree)
    assert leaves == want
    assert repr(spec) == repr(want_spec)
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (
        want_spec.num_leaves,
        want_spec.num_nodes,
        want_spec.num_children,
    )
    rebuilt = spec.unflatten([str(leaf) for leaf in leaves])
    assert rebuilt == theirs.tree_unflatten([str(leaf) for leaf in leaves], want_spec)
    assert type(rebuilt) is type(theirs.tree_map(str, tree))
    paths = [ours.keystr(path) for path, _ in ours.tree_flatten_with_path(tree)[0]]
    assert paths == [theirs.keystr(path) for path, _ in theirs.tree_flatten_with_path(tree)[0]]


def test_maps_of_several_trees_go_by_keys_and_refuse_other_shapes() -> None:
    assert ours.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4}) == {"a": (1, 4), "b": (2, 3)}
    with pytest.raises(ValueError, match="arity"):
        ours.tree_map(lambda a, b: a, [1, 2], [1])
    with pytest.raises(ValueError, match="keys"):
        ours.tree_map(lambda a, b: a, {"a": 1}, {"b": 1})
    assert ours._broadcast_to_and_flatten([1, 2], ours.tree_structure([1, (3, 4)])) == [1, 2, 2]
    assert ours._broadcast_to_and_flatten([1], ours.tree_structure((1,))) is None


def test_registered_classes_are_taken_apart_and_others_are_leaves() -> None:
    @dataclass
    class Pair:
        first: Any
        second: Any = None

    pair = Pair(1, [2])
    assert ours.tree_leaves(pair) == [pair]
    ours.register_dataclass(Pair)
    try:
        assert ours.tree_leaves(pair) == [1, 2]
        assert ours.tree_map(lambda x: x + 1, [pair, Pair(5)]) == [Pair(2, [3]), Pair(6)]
        assert ours.keystr(ours.tree_leaves_with_path(pair)[1][0]) == ".second[0]"
        with pytest.raises(ValueError, match="already registered"):
            ours.register_dataclass(Pair)
    finally:
        ours._deregister_pytree_node(Pair)
    assert ours.tree_leaves(pair) == [pair]
