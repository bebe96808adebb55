"""The same program gives the same result with torch and with votive: datasets to loaders."""

from __future__ import annotations

import warnings
from collections import OrderedDict, UserDict, UserList, namedtuple
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import votive
import votive.utils.data

Point = namedtuple("Point", ["x", "y"])
Program = Callable[[Any, Any], Any]
PROGRAMS: dict[str, Program] = {}


def program(fn: Program) -> Program:
    PROGRAMS[fn.__name__] = fn
    return fn


def plain(value: Any) -> Any:
    """A value without a trace of which library made it."""
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        kind = "array" if isinstance(value, np.ndarray) else "tensor"
        return kind, str(value.dtype).split(".")[-1], tuple(value.shape), value.tolist()
    if isinstance(value, (UserDict, dict)):
        return type(value).__name__, [(k, plain(v)) for k, v in value.items()]
    if isinstance(value, (tuple, list, UserList, range)):
        return type(value).__name__, [plain(v) for v in value]
    return type(value).__name__, value


def outcome(fn: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            result = plain(fn())
        except Exception as e:
            # Errors of votive's own derive from the one torch raises.
            kinds = [k for k in type(e).__mro__ if k.__module__ in ("builtins", "torch")]
            result = "raises", kinds[0].__name__
    return result, sorted({w.category.__name__ for w in seen})


def each(*fns: Callable[[], Any]) -> list[Any]:
    return [outcome(fn) for fn in fns]


@program
def datasets(t: Any, d: Any) -> Any:
    x, y = t.arange(6).view(3, 2), t.arange(3)
    return each(
        lambda: [d.TensorDataset(x, y)[i] for i in (0, -1)],
        lambda: d.TensorDataset(x, y)[1:],
        lambda: d.TensorDataset(x, t.arange(2)),
        lambda: d.TensorDataset(x, y)[3],
        lambda: d.Dataset()[0],
        lambda: d.IterableDataset(),
        lambda: len(d.Dataset()),
        lambda: d.ConcatDataset([range(3), range(10, 12)])[3],
        lambda: d.ConcatDataset([range(3), range(10, 12)])[-5],
        lambda: d.ConcatDataset([range(3)])[-4],
        lambda: d.ConcatDataset([range(3)])[3],
        lambda: d.ConcatDataset([]),
        lambda: d.ConcatDataset([range(2), range(3)]).cumulative_sizes,
        lambda: len(d.TensorDataset(x) + d.TensorDataset(x)),
        lambda: d.StackDataset([1, 2], ["a", "b"])[1],
        lambda: d.StackDataset(p=[1, 2], q=["a", "b"]).__getitems__([1, 0]),
        lambda: d.StackDataset([1], p=[1]),
        lambda: d.StackDataset(),
        lambda: d.StackDataset([1], [1, 2]),
        lambda: d.Subset("abcd", [3, 1])[0],
        lambda: d.Subset("abcd", [3, 1])[2],
        lambda: d.Subset(d.TensorDataset(x), [2, 1])[[0, 1]],
        lambda: d.Subset(d.StackDataset("abc"), [2, 0]).__getitems__([0, 1]),
        lambda: list(d.Subset(range(10), range(2, 5))),
    )


@program
def subclasses_of_subset(t: Any, d: Any) -> Any:
    class OnlyOne(d.Subset):  # type: ignore[misc, name-defined]
        def __getitem__(self, i: Any) -> Any:
            return -1

    class Both(OnlyOne):
        def __getitems__(self, indices: Any) -> Any:
            return [self[i] for i in indices]

    class Doubled(d.TensorDataset):  # type: ignore[misc, name-defined]
        def __getitem__(self, i: Any) -> Any:
            return tuple(2 * x for x in super().__getitem__(i))

    return each(
        lambda: OnlyOne(range(3), [0]),
        lambda: list(d.DataLoader(Both(range(3), [0, 1]), 2)),
        lambda: list(d.DataLoader(Doubled(t.arange(4)), 2)),
        lambda: list(d.DataLoader(d.Subset(Doubled(t.arange(4)), [3, 1]), 2)),
        lambda: list(d.DataLoader(d.Subset(d.TensorDataset(t.arange(4)), [3, 1]), 2)),
    )


@program
def chained_streams(t: Any, d: Any) -> Any:
    class Stream(d.IterableDataset):  # type: ignore[misc, name-defined]
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Any:
            return iter(range(self.n))

    class Sized(Stream):
        def __len__(self) -> int:
            return self.n

    both = Stream(3) + Stream(2)
    return each(
        lambda: type(both).__name__,
        lambda: list(both),
        lambda: len(both),
        lambda: len(d.ChainDataset([Sized(2), Sized(3)])),
        lambda: list(d.ChainDataset([range(3)])),
        lambda: len(d.ChainDataset([range(3)])),
        lambda: d.ConcatDataset([Stream(1)]),
        lambda: list(d.DataLoader(Stream(5), 2)),
        lambda: list(d.DataLoader(Stream(5), 2, drop_last=True)),
        lambda: list(d.DataLoader(Stream(3), None)),
        lambda: len(d.DataLoader(Sized(5), 2)),
        lambda: len(d.DataLoader(Sized(5), 2, drop_last=True)),
        lambda: len(d.DataLoader(Sized(5), None)),
        lambda: len(d.DataLoader(Stream(5))),
        lambda: d.DataLoader(Stream(5), shuffle=True),
        lambda: d.DataLoader(Stream(5), sampler=[1]),
        lambda: d.DataLoader(Stream(5), batch_sampler=[[1]]),
    )


@program
def a_stream_longer_than_it_says(t: Any, d: Any) -> Any:
    class Liar(d.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Any:
            return iter(range(3))

        def __len__(self) -> int:
            return 2

    loader = d.DataLoader(Liar(), None)
    len(loader)
    return each(lambda: list(loader))


@program
def splits(t: Any, d: Any) -> Any:
    def sizes(n: int, parts: Any) -> Any:
        split = d.random_split(range(n), parts, generator=t.Generator().manual_seed(1))
        everything = sorted(i for p in split for i in p)
        return [len(p) for p in split], everything

    return each(
        lambda: sizes(10, [3, 7]),
        lambda: sizes(10, [0.5, 0.25, 0.25]),
        lambda: sizes(11, [0.3, 0.3, 0.4]),
        lambda: sizes(106, [0.1, 0.2, 0.3, 0.4]),
        lambda: sizes(3, [0.1, 0.1, 0.8]),
        lambda: sizes(1, [0.5, 0.5]),
        lambda: sizes(10, [3, 8]),
        lambda: sizes(10, [1.5, -0.5]),
        lambda: sizes(1, [1]),
        lambda: type(d.random_split(range(4), [2, 2])[0]).__name__,
    )


@program
def samplers(t: Any, d: Any) -> Any:
    return each(
        lambda: list(d.SequentialSampler("abc")),
        lambda: len(d.RandomSampler(range(5))),
        lambda: sorted(d.RandomSampler(range(5))),
        lambda: sorted(d.RandomSampler(range(3), num_samples=6)),
        lambda: len(list(d.RandomSampler(range(3), num_samples=4))),
        lambda: len(list(d.RandomSampler(range(3), True, 70))),
        lambda: set(d.RandomSampler(range(1), True, 3)),
        lambda: d.RandomSampler([]),
        lambda: d.RandomSampler(range(3), num_samples=0),
        lambda: d.RandomSampler(range(3), num_samples=1.5),
        lambda: d.RandomSampler(range(3), replacement="yes"),
        lambda: sorted(d.SubsetRandomSampler([7, 3, 9])),
        lambda: list(d.WeightedRandomSampler([0, 0, 2.5], 4)),
        lambda: sorted(d.WeightedRandomSampler([0.5, 1, 2], 3, replacement=False)),
        lambda: list(d.WeightedRandomSampler([0.5, 1], 3, replacement=False)),
        lambda: d.WeightedRandomSampler([[1.0]], 1),
        lambda: d.WeightedRandomSampler([1.0], 0),
        lambda: d.WeightedRandomSampler([1.0], True),
        lambda: d.WeightedRandomSampler([1.0], 1, replacement=1),
        lambda: list(d.BatchSampler(range(5), 2, False)),
        lambda: list(d.BatchSampler(range(5), 2, True)),
        lambda: list(d.BatchSampler(iter(range(4)), 2, True)),
        lambda: [len(d.BatchSampler(range(5), 2, drop)) for drop in (True, False)],
        lambda: d.BatchSampler(range(5), 0, True),
        lambda: d.BatchSampler(range(5), True, True),
        lambda: d.BatchSampler(range(5), 2, 1),
        lambda: list(d.Sampler()),
        lambda: len(d.Sampler()),
    )


@program
def shares_of_replicas(t: Any, d: Any) -> Any:
    def shares(n: int, replicas: int, **options: Any) -> Any:
        each = [d.DistributedSampler(range(n), replicas, r, **options) for r in range(replicas)]
        return [len(s) for s in each], [list(s) for s in each]

    def mixed(n: int, replicas: int, **options: Any) -> Any:
        lengths, lists = shares(n, replicas, shuffle=True, **options)
        return lengths, sorted(i for part in lists for i in part) == sorted((list(range(n)) * 2)[: sum(lengths)])

    return each(
        lambda: shares(10, 3, shuffle=False),
        lambda: shares(10, 3, shuffle=False, drop_last=True),
        lambda: shares(2, 5, shuffle=False),
        lambda: shares(9, 3, shuffle=False, drop_last=True),
        lambda: mixed(9, 3),
        lambda: d.DistributedSampler(range(3), 2, 2),
        lambda: d.DistributedSampler(range(3), 2, -1),
    )


@program
def collating(t: Any, d: Any) -> Any:
    c = d.default_collate
    return each(
        lambda: c([1, 2]),
        lambda: c([True, False]),
        lambda: c([0.5, 1]),
        lambda: c([1, 0.5]),
        lambda: c(["a", "b"]),
        lambda: c([b"a"]),
        lambda: c([t.zeros(2), t.ones(2)]),
        lambda: c([t.zeros(2), t.ones(3)]),
        lambda: c([np.zeros(2, np.float32), np.ones(2, np.float32)]),
        lambda: c([np.int16(1), np.int16(2)]),
        lambda: c([np.float64(1), np.float64(2)]),
        lambda: c([np.bool_(True)]),
        lambda: c([np.array("a")]),
        lambda: c([np.array([None])]),
        lambda: c([np.str_("a")]),
        lambda: c([(1, "a"), (2, "b")]),
        lambda: c([[1, "a"], [2, "b"]]),
        lambda: c([[1, 2], [3]]),
        lambda: c([Point(1, 2.0), Point(3, 4.0)]),
        lambda: c([{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}]),
        lambda: c([OrderedDict(a=1), OrderedDict(a=2)]),
        lambda: c([UserDict({"a": 1}), UserDict({"a": 2})]),
        lambda: c([UserList([1, 2]), UserList([3, 4])]),
        lambda: c([range(2), range(2, 4)]),
        lambda: c([{"a": 1}, {"b": 1}]),
        lambda: c([{"a": 1}, {"a": 2, "b": 1}]),
        lambda: c([None]),
        lambda: c([{1, 2}]),
        lambda: c([object()]),
        lambda: c([[object()], [object()]]),
        lambda: c([]),
        lambda: c([1 + 2j]),
        lambda: c([[], []]),
        lambda: c([{}, {}]),
    )


@program
def converting(t: Any, d: Any) -> Any:
    c = d.default_convert
    return each(
        lambda: c(0),
        lambda: c("a"),
        lambda: c(np.array([1, 2])),
        lambda: c(np.array(["a"])),
        lambda: c(np.float32(1.5)),
        lambda: c(np.str_("a")),
        lambda: c((np.zeros(1), 1)),
        lambda: c([np.zeros(1), "a"]),
        lambda: c(Point(np.array(0), 1)),
        lambda: c({"a": {"b": np.ones(2, np.int8)}}),
        lambda: c(range(2)),
        lambda: c(UserList([np.zeros(1)])),
        lambda: c(None),
        lambda: c(t.zeros(2)),
    )


@program
def loaders(t: Any, d: Any) -> Any:
    x, y = t.arange(10).view(5, 2), t.arange(5.0)
    data = d.TensorDataset(x, y)
    return each(
        lambda: list(d.DataLoader(data)),
        lambda: list(d.DataLoader(data, 2)),
        lambda: list(d.DataLoader(data, 2, drop_last=True)),
        lambda: list(d.DataLoader(data, batch_size=None)),
        lambda: list(d.DataLoader(data, sampler=[3, 1, 1], batch_size=2)),
        lambda: list(d.DataLoader(data, batch_sampler=[[0, 4], [2]])),
        lambda: list(d.DataLoader(data, batch_size=None, sampler=[[0, 4], [2]])),
        lambda: list(d.DataLoader(data, 2, collate_fn=len)),
        lambda: list(d.DataLoader({"a": 1, "b": 2}, sampler=["b", "a"], batch_size=2)),
        lambda: list(d.DataLoader([np.arange(2)], batch_size=None)),
        lambda: [len(d.DataLoader(data, b)) for b in (1, 2, 5, 9)],
        lambda: len(d.DataLoader(data, 2, drop_last=True)),
        lambda: sorted(d.DataLoader(range(6), None, shuffle=True)),
        lambda: [len(b) for b in d.DataLoader(range(6), 4, shuffle=True)],
        lambda: type(d.DataLoader(range(6), shuffle=True).sampler).__name__,
        lambda: type(d.DataLoader(range(6)).sampler).__name__,
        lambda: d.DataLoader(range(6), None).batch_sampler,
        lambda: list(d.DataLoader(range(3), sampler=[7])),
        lambda: list(d.DataLoader(range(3), pin_memory=True)),
        lambda: next(iter(d.DataLoader([]))),
        lambda: d.DataLoader([], shuffle=True),
    )


@program
def refused_arguments(t: Any, d: Any) -> Any:
    loader = d.DataLoader(range(3))
    return each(
        lambda: d.DataLoader(range(3), num_workers=-1),
        lambda: d.DataLoader(range(3), timeout=-1),
        lambda: d.DataLoader(range(3), prefetch_factor=2),
        lambda: d.DataLoader(range(3), num_workers=1, prefetch_factor=-1),
        lambda: d.DataLoader(range(3), persistent_workers=True),
        lambda: d.DataLoader(range(3), sampler=[0], shuffle=True),
        lambda: d.DataLoader(range(3), batch_sampler=[[0]], batch_size=2),
        lambda: d.DataLoader(range(3), batch_sampler=[[0]], drop_last=True),
        lambda: d.DataLoader(range(3), batch_sampler=[[0]], shuffle=True),
        lambda: d.DataLoader(range(3), batch_size=None, drop_last=True),
        lambda: d.DataLoader(range(3), batch_size=0),
        lambda: d.DataLoader(range(3), batch_size=1.5),
        lambda: d.DataLoader(range(3), multiprocessing_context="fork"),
        lambda: d.DataLoader(range(3), num_workers=1, multiprocessing_context="thread"),
        lambda: d.DataLoader(range(3), num_workers=1, multiprocessing_context=3),
        lambda: d.DataLoader(range(3), num_workers=1).prefetch_factor,
        lambda: setattr(loader, "batch_size", 2),
        lambda: setattr(loader, "dataset", 2),
        lambda: setattr(loader, "collate_fn", len),
        lambda: d.get_worker_info(),
    )


@program
def names(t: Any, d: Any) -> Any:
    from importlib import import_module

    modules = {
        "dataset": ["Dataset", "IterableDataset", "TensorDataset", "Subset", "random_split"],
        "sampler": ["Sampler", "RandomSampler", "BatchSampler", "WeightedRandomSampler"],
        "dataloader": ["DataLoader", "default_collate", "get_worker_info"],
        "distributed": ["DistributedSampler"],
    }
    found = []
    for module, members in modules.items():
        space: ModuleType = import_module(f"{d.__name__}.{module}")
        found += [getattr(space, name).__name__ for name in members]
    return found


@pytest.mark.parity
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_a_program_gives_what_it_gives_with_torch(name: str) -> None:
    torch = pytest.importorskip("torch")  # brings torch.utils.data along
    fn = PROGRAMS[name]
    mine = fn(votive, votive.utils.data)
    theirs = fn(torch, torch.utils.data)
    for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        assert a == b, f"{name}, case {i}"
