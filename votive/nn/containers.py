"""Modules that hold modules: Sequential, ModuleList, ModuleDict. Know names and order, no layer."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import Any, Self, SupportsIndex

from ..tensor import Tensor
from .module import Module, indented


def position(index: SupportsIndex, size: int) -> int:
    """A list index counted from the front."""
    i = operator.index(index)
    if not -size <= i < size:
        raise IndexError(f"index {i} is out of range")
    return i % size


def pairs(owner: str, items: object) -> Iterator[tuple[Any, Any]]:
    """Key-value pairs from an iterable of them, checked one by one."""
    if not isinstance(items, Iterable):
        raise TypeError(
            f"{owner}.update should be called with an iterable of key/value pairs, but got {type(items).__name__}"
        )
    for i, pair in enumerate(items):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{owner} update sequence element #{i} should be Iterable; is {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{owner} update sequence element #{i} has length {len(pair)}; 2 is required")
        yield pair


class Container(Module):
    """Modules given by keyword; deprecated, since any module does this.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     votive.nn.Container(a=votive.nn.Identity()).a
    Identity()
    """

    def __init__(self, **kwargs: Module | None) -> None:
        warnings.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in "
            "`nn.Module`. Subclass that instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Listed(Module):
    """What a list of modules and a sequence of them share: places that are numbers."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _key(self, index: SupportsIndex) -> str:
        """The name at a position; names need not be numbers."""
        return list(self._modules)[position(index, len(self))]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: int | slice) -> None:
        keys = list(self._modules)[idx] if isinstance(idx, slice) else [self._key(idx)]
        for key in keys:
            delattr(self, key)
        self._renumber(list(self._modules.values()))

    def _renumber(self, modules: list[Module]) -> None:
        self._modules.clear()
        self._modules.update({str(i): m for i, m in enumerate(modules)})

    def append(self, module: Module) -> Self:
        """Add a module at the end.

        >>> len(votive.nn.Sequential().append(votive.nn.Identity()))
        1
        """
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Take a module out; those behind it move up.

        >>> votive.nn.Sequential(votive.nn.Identity()).pop(0)
        Identity()
        """
        taken = self[key]  # type: ignore[index]
        del self[key]
        return taken


class Sequential(_Listed):
    """Modules called one after the other, each with the result of the one before.

    >>> votive.nn.Sequential(votive.nn.Identity(), votive.nn.Identity())(3)
    3
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named: Iterable[tuple[str, Any]] = args[0].items()
        else:
            named = ((str(i), m) for i, m in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Tensor) -> Tensor:
        """The result of the last module."""
        for module in self:
            input = module(input)
        return input

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other: Any) -> Self:
        return self.extend(list(_sequential(other)))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*(list(self) * _times(self, other)))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (_times(self, other) - 1))

    def insert(self, index: int, module: Module) -> Self:
        """Put a module before a position; those behind it move on.

        >>> m = votive.nn.Sequential(votive.nn.Identity()).insert(0, votive.nn.Sequential())
        >>> m[0]
        Sequential()
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end.

        >>> len(votive.nn.Sequential().extend([votive.nn.Identity()]))
        1
        """
        for module in sequential:
            self.append(module)
        return self


def _sequential(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
    return other


def _times(left: Any, factor: Any) -> int:
    if not isinstance(factor, int):
        raise TypeError(f"unsupported operand type(s) for *: {type(left)} and {type(factor)}")
    if factor <= 0:
        raise ValueError(f"Non-positive multiplication factor {factor} for {type(left)}")
    return factor


class ModuleList(_Listed):
    """A list whose modules are registered.

    >>> votive.nn.ModuleList([votive.nn.Identity() for _ in range(3)])
    ModuleList(
      (0-2): 3 x Identity()
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(position(idx, len(self)))]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def insert(self, index: int, module: Module) -> None:
        """Put a module before a position; those behind it move on.

        >>> m = votive.nn.ModuleList([votive.nn.Identity()])
        >>> m.insert(0, votive.nn.Sequential())
        >>> m[0]
        Sequential()
        """
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end.

        >>> len(votive.nn.ModuleList().extend([votive.nn.Identity()]))
        1
        """
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        """Equal neighbours share a line."""
        runs: list[tuple[int, str]] = []
        for i, text in enumerate(map(repr, self)):
            if not runs or runs[-1][1] != text:
                runs.append((i, text))
        if not runs:
            return f"{self._get_name()}()"
        lines = ""
        for (start, text), end in zip(runs, [*(s for s, _ in runs[1:]), len(self)]):
            n = end - start
            line = f"({start}): {text}" if n == 1 else f"({start}-{end - 1}): {n} x {text}"
            lines += "\n  " + indented(line)
        return f"{self._get_name()}({lines}\n)"


class ModuleDict(Module):
    """A dictionary whose modules are registered.

    >>> m = votive.nn.ModuleDict({"skip": votive.nn.Identity()})
    >>> list(m), m["skip"](1)
    (['skip'], 1)
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all.

        >>> votive.nn.ModuleDict({"a": votive.nn.Identity()}).clear()
        """
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out.

        >>> votive.nn.ModuleDict({"a": votive.nn.Identity()}).pop("a")
        Identity()
        """
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """The names.

        >>> list(votive.nn.ModuleDict({"a": votive.nn.Identity()}).keys())
        ['a']
        """
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """Names and modules.

        >>> list(votive.nn.ModuleDict({"a": votive.nn.Identity()}).items())
        [('a', Identity())]
        """
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """The modules.

        >>> list(votive.nn.ModuleDict({"a": votive.nn.Identity()}).values())
        [Identity()]
        """
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping or from pairs.

        >>> m = votive.nn.ModuleDict()
        >>> m.update([("a", votive.nn.Identity())])
        >>> "a" in m
        True
        """
        mapping = isinstance(modules, (Mapping, ModuleDict))
        for key, module in modules.items() if mapping else pairs("ModuleDict", modules):
            self[key] = module
