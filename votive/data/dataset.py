"""Datasets: what has samples, by index or as a stream, and ways to combine them.

Knows nothing of batches' order (samplers) and of processes (the loader).
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, Protocol, TypeVar

from ..core.rng import Generator
from ..ops.registry import F
from ..random import default_generator
from ..tensor import Tensor

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Indexed(Protocol):
    """What has samples by index and knows how many: a dataset, a list, an array."""

    def __getitem__(self, index: Any, /) -> Any: ...

    def __len__(self) -> int: ...


class Dataset(Generic[T_co]):
    """Samples by index: define `__getitem__`, and `__len__` for samplers to know how many.

    A dataset may also define `__getitems__(indices)`, which returns the samples of a batch.

    >>> class Squares(votive.utils.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return index**2
    ...     def __len__(self):
    ...         return 3
    >>> list(votive.utils.data.DataLoader(Squares(), batch_size=3))
    [tensor([0, 1, 4])]
    """

    def __getitem__(self, index: int) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Samples as a stream: define `__iter__`.

    Each worker of a loader has its own copy; `get_worker_info()` says which part is its own.

    >>> class Numbers(votive.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(4))
    >>> list(votive.utils.data.DataLoader(Numbers(), batch_size=2))
    [tensor([0, 1]), tensor([2, 3])]
    """

    def __add__(self, other: Dataset[Any]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Rows of tensors that have equally many of them.

    >>> data = votive.utils.data.TensorDataset(votive.arange(3), votive.zeros(3, 2))
    >>> data[1]
    (tensor(1), tensor([0., 0.]))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def _batch(self, indices: list[int]) -> list[Any]:
        """What collating these samples gives, gathered once per tensor."""
        return [t[indices] for t in self.tensors]

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Samples of several datasets side by side: a tuple, or a dict when given by name.

    >>> data = votive.utils.data.StackDataset(x=[1, 2], y=["a", "b"])
    >>> data[1]
    {'x': 2, 'y': 'b'}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Indexed, **kwargs: Indexed) -> None:
        if args and kwargs:
            raise ValueError("StackDataset takes datasets by position or by name, not both.")
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        sizes = [len(d) for d in self._members()]
        if len(set(sizes)) != 1:
            raise ValueError(f"Size mismatch between datasets: {sizes}")
        self._length = sizes[0]

    def _members(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def _assemble(self, parts: Iterable[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, parts, strict=True))
        return tuple(parts)

    def __getitem__(self, index: int) -> Any:
        return self._assemble(d[index] for d in self._members())

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = []
        for dataset in self._members():
            column = samples(dataset, indices)
            if len(column) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(column)}")
            columns.append(column)
        return [self._assemble(row) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other.

    >>> data = votive.utils.data.ConcatDataset([[1, 2], [3]])
    >>> len(data), data[2], data[-3]
    (3, 3, 1)
    """

    datasets: list[Any]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The running total of the lengths."""
        return list(accumulate(len(d) for d in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other.

    >>> class Numbers(votive.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(2))
    >>> list(votive.utils.data.ChainDataset([Numbers(), Numbers()]))
    [0, 1, 0, 1]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for d in self.datasets:
            if not isinstance(d, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield d

    def __iter__(self) -> Iterator[Any]:
        for d in self._streams():
            yield from d

    def __len__(self) -> int:
        return sum(len(d) for d in self._streams())


class Subset(Dataset[T_co]):
    """The samples of a dataset at the given indices.

    >>> list(votive.utils.data.Subset("abcd", [3, 0]))
    ['d', 'a']
    """

    def __init__(self, dataset: Indexed, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__, which loaders call "
                "for batches; add\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self[i] for i in indices]"
            )

    def __getitem__(self, idx: int | list[int]) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return samples(self.dataset, [self.indices[i] for i in indices])

    def _batch(self, indices: list[int]) -> Any:
        return gathered(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Indexed, lengths: Sequence[float], generator: Generator | None = default_generator
) -> list[Subset[Any]]:
    """Split into random, disjoint parts of the given lengths, or fractions that sum up to 1.

    What rounding down leaves of fractions goes to the first parts, one sample each.

    >>> parts = votive.utils.data.random_split(range(10), [0.7, 0.3])
    >>> [len(p) for p in parts]
    [7, 3]
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _lengths_of(lengths, len(dataset))
    if sum(lengths) != len(dataset):
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"{list(lengths)} sum to {sum(lengths)}, the dataset has {len(dataset)} samples."
        )
    order = F.randperm(len(dataset), generator=generator).tolist()
    ends = list(accumulate(int(n) for n in lengths))
    return [Subset(dataset, order[end - int(n) : end]) for n, end in zip(lengths, ends)]


def _lengths_of(fractions: Sequence[float], n: int) -> list[int]:
    for i, fraction in enumerate(fractions):
        if not 0 <= fraction <= 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    lengths = [math.floor(n * fraction) for fraction in fractions]
    for i in range(n - sum(lengths)):
        lengths[i % len(lengths)] += 1
    for i, length in enumerate(lengths):
        if length == 0:
            warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=3)
    return lengths


def samples(dataset: Indexed, indices: list[Any]) -> list[Any]:
    """The samples at these indices, all at once where the dataset can."""
    get_batch = getattr(dataset, "__getitems__", None)
    if callable(get_batch):
        return get_batch(indices)
    return [dataset[i] for i in indices]


def gathered(dataset: Indexed, indices: list[Any]) -> Any:
    """The collated batch in one go where the dataset can, else None.

    A subclass that defines how single samples look must not be bypassed, so `_batch` counts only
    in the class that also has the last word on `__getitem__`.
    """
    kind = type(dataset)
    if not hasattr(kind, "_batch"):
        return None
    for base in kind.__mro__:
        own = vars(base)
        if "__getitem__" in own or "__getitems__" in own or "_batch" in own:
            if "_batch" not in own or not all(type(i) is int for i in indices):
                return None
            return kind._batch(dataset, indices)
    return None
