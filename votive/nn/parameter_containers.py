"""Modules that hold parameters: ParameterList and ParameterDict. Other values may stand among them
and are kept as they are.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping
from typing import Any, NoReturn, Self

from ..tensor import Tensor
from .containers import pairs, position
from .module import Module, typename
from .parameter import Parameter


def _as_parameter(value: object) -> object:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _line(key: int | str, value: Any, kind_of: Callable[[Tensor], object]) -> str:
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    sizes = "x".join(map(str, value.shape))
    where = f" ({value.device})" if value.is_cuda else ""
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({key}): {kind} containing: [{kind_of(value)} of size {sizes}{where}]"


class ParameterList(Module):
    """A list whose tensors are registered as parameters.

    >>> votive.nn.ParameterList([votive.ones(2, 3)])
    ParameterList(  (0): Parameter containing: [votive.float32 of size 2x3])
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(self[i] for i in range(len(self))[idx])
        return getattr(self, str(position(idx, len(self))))

    def __setitem__(self, idx: int, param: object) -> None:
        setattr(self, str(position(idx, len(self))), _as_parameter(param))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: object) -> Self:
        """Add a value at the end.

        >>> len(votive.nn.ParameterList().append(votive.ones(2)))
        1
        """
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end.

        >>> len(votive.nn.ParameterList().extend([votive.ones(2), votive.ones(3)]))
        2
        """
        # A tensor can be iterated over, but nobody means its rows.
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line per value."""
        return "\n".join(_line(i, v, lambda t: t.dtype) for i, v in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary whose tensors are registered as parameters.

    >>> d = votive.nn.ParameterDict({"scale": votive.ones(2)})
    >>> d["scale"].requires_grad, list(d)
    (True, ['scale'])
    """

    def __init__(self, parameters: Mapping[str, Any] | Iterable[Any] | None = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _attribute(self, key: object) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: object) -> None:
        self._keys[self._attribute(key)] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """A second dictionary of the same parameters.

        >>> list(votive.nn.ParameterDict({"a": votive.ones(1)}).copy())
        ['a']
        """
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, set to `default` if it was not there.

        >>> votive.nn.ParameterDict().setdefault("a", 3)
        3
        """
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all.

        >>> votive.nn.ParameterDict({"a": votive.ones(1)}).clear()
        """
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a value out.

        >>> votive.nn.ParameterDict({"a": 1}).pop("a")
        1
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take out the pair that came last.

        >>> votive.nn.ParameterDict([("a", 1), ("b", 2)]).popitem()
        ('b', 2)
        """
        if not self._keys:
            raise KeyError("popitem(): dictionary is empty")
        key = next(reversed(self))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default`.

        >>> votive.nn.ParameterDict({"a": 1}).get("b", 0)
        0
        """
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A new dictionary with one value for all keys.

        >>> list(votive.nn.ParameterDict().fromkeys(["a", "b"]).items())
        [('a', None), ('b', None)]
        """
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> KeysView[str]:
        """The names.

        >>> list(votive.nn.ParameterDict({"a": 1}).keys())
        ['a']
        """
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and values.

        >>> list(votive.nn.ParameterDict({"a": 1}).items())
        [('a', 1)]
        """
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """The values.

        >>> list(votive.nn.ParameterDict({"a": 1}).values())
        [1]
        """
        return (self[key] for key in self._keys)

    def update(self, parameters: Mapping[str, Any] | Iterable[Any]) -> None:
        """Add values from a mapping or from pairs; a plain mapping is taken in sorted order.

        >>> d = votive.nn.ParameterDict()
        >>> d.update({"b": 1, "a": 2})
        >>> list(d)
        ['a', 'b']
        """
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            given: Iterable[tuple[Any, Any]] = list(parameters.items())
        elif isinstance(parameters, Mapping):
            given = sorted(parameters.items())
        else:
            given = pairs("ParameterDict", parameters)
        for key, value in given:
            self[key] = value

    def extra_repr(self) -> str:
        """One line per value."""
        return "\n".join(_line(k, v, typename) for k, v in self.items())

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        merged = other.copy()
        merged.update(self)
        return merged

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("ParameterDict should not be called.")
