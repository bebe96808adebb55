"""Numbers with a name for each dimension and a label for each place in it. Knows numbers and names only."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import votive

from ..tensor import Tensor
from .heatmap import Heatmap
from .plots import Bars, Plottable


@dataclass(frozen=True)
class Labelled(Plottable):
    """A tensor whose dimensions are named and labelled.

    >>> found = votive.glass.Labelled(votive.tensor([[1.0, 2.0]]), {"layer": ["0"], "head": ["a", "b"]}, "score")
    >>> found.sel(head="b").values
    tensor([2.])
    >>> found.top(1)
    [(('0', 'b'), 2.0)]
    """

    values: Any
    dims: dict[str, list[Any]]
    name: str = "value"

    def __post_init__(self) -> None:
        sizes = tuple(len(labels) for labels in self.dims.values())
        if tuple(self.values.shape) != sizes:
            raise ValueError(f"Labelled: values {tuple(self.values.shape)} do not have the labels' sizes {sizes}.")

    def sel(self, **chosen: Any) -> Labelled:
        """What stands at these labels; a list keeps the dimension."""
        values, dims = self.values, dict(self.dims)
        for name, wanted in chosen.items():
            if name not in dims:
                raise KeyError(f"sel: there is no dimension {name!r}; there are {', '.join(dims)}.")
            several = isinstance(wanted, (list, tuple)) and wanted not in dims[name]
            labels = list(wanted) if several else [wanted]
            missing = [w for w in labels if w not in dims[name]]
            if missing:
                raise KeyError(f"sel: {missing} are not labels of {name!r}: {dims[name][:8]}.")
            at = votive.tensor([dims[name].index(w) for w in labels], device=values.device)
            dim = list(dims).index(name)
            values = values.index_select(dim, at)
            if several:
                dims[name] = labels
            else:
                values = values.squeeze(dim)
                del dims[name]
        return Labelled(values, dims, self.name)

    def mean(self, dim: str) -> Labelled:
        """The mean along a named dimension."""
        if dim not in self.dims:
            raise KeyError(f"mean: there is no dimension {dim!r}; there are {', '.join(self.dims)}.")
        rest = {n: labels for n, labels in self.dims.items() if n != dim}
        return Labelled(self.values.mean(list(self.dims).index(dim)), rest, self.name)

    def top(self, k: int = 10) -> list[tuple[tuple[Any, ...], float]]:
        """The `k` numbers that are furthest from zero, with their labels."""
        flat = self.values.flatten()
        order = flat.abs().nan_to_num(-1.0).argsort(descending=True)[:k].tolist()
        sizes = [len(labels) for labels in self.dims.values()]
        found = []
        for at in order:
            rest, index = at, []
            for size in reversed(sizes):
                rest, i = divmod(rest, size)
                index.append(i)
            labels = tuple(ls[i] for ls, i in zip(self.dims.values(), reversed(index), strict=True))
            found.append((labels, float(flat[at])))
        return found

    def to_pandas(self) -> Any:
        """A pandas Series with an index of all dimensions, or a DataFrame of the two there are."""
        pandas = _library("pandas")
        numbers = self.values.detach().cpu().numpy()
        if len(self.dims) == 2:
            (rows, down), (columns, across) = self.dims.items()
            return pandas.DataFrame(
                numbers, index=pandas.Index(down, name=rows), columns=pandas.Index(across, name=columns)
            )
        if len(self.dims) == 1:
            ((name, labels),) = self.dims.items()
            return pandas.Series(numbers, index=pandas.Index(labels, name=name), name=self.name)
        index = pandas.MultiIndex.from_product(list(self.dims.values()), names=list(self.dims))
        return pandas.Series(numbers.reshape(-1), index=index, name=self.name)

    def to_xarray(self) -> Any:
        """An xarray DataArray."""
        array = _library("xarray")
        return array.DataArray(
            self.values.detach().cpu().numpy(), coords=self.dims, dims=list(self.dims), name=self.name
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain lists."""
        return {"name": self.name, "dims": {n: list(x) for n, x in self.dims.items()}, "values": self.values.tolist()}

    def figure(self) -> Any:
        """Bars of one dimension, a heat map of two; of more, choose with `sel` or take the `mean`."""
        names = list(self.dims)
        if len(names) == 1:
            return Bars(self.values.tolist(), [str(x) for x in self.dims[names[0]]], title=self.name, x_name=names[0])
        if len(names) != 2:
            raise ValueError(f"Labelled: {len(names)} dimensions cannot be drawn; choose with sel(), or take mean().")
        down, across = ([str(x) for x in labels] for labels in self.dims.values())
        signed = bool((self.values < 0).any())
        return Heatmap(
            self.values.tolist(), down, across, title=self.name, x_name=names[1], y_name=names[0], signed=signed
        )

    def plot(self) -> Any:
        """The figure, which notebooks show and `.save("x.svg")` writes."""
        return self.figure()

    def __repr__(self) -> str:
        sizes = ", ".join(f"{n} {len(x)}" for n, x in self.dims.items())
        return f"<{self.name}: {sizes}>"


def labels_of(names: Sequence[Any], count: int) -> list[Any]:
    """The names if there are enough, else numbers.

    >>> from votive.glass.labelled import labels_of
    >>> labels_of(["a"], 1), labels_of(["a"], 2)
    (['a'], [0, 1])
    """
    return list(names) if len(names) == count else list(range(count))


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(f"to_{name} needs {name}, which is not installed: pip install {name}.") from None


def rounded(values: Tensor, digits: int = 4) -> list[Any]:
    """Numbers as lists, rounded for people.

    >>> from votive.glass.labelled import rounded
    >>> rounded(votive.tensor([0.123456]), 2)
    [0.12]
    """
    found = values.detach().double().cpu().numpy().round(digits)
    return found.tolist()
