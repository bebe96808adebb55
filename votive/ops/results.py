"""Named results: tuples whose items also have names, like torch.return_types. Knows names only."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from ..core import spelled

# Every kind of result by its operator's name; the public namespace `return_types` shows them.
TYPES: dict[str, type[Results]] = {}


class Results(tuple[Any, ...]):
    """What an operator with several results returns: unpack it, index it, or read it by name."""

    _fields: tuple[str, ...] = ()
    __slots__ = ()

    def __new__(cls, *values: Any) -> Results:
        if len(values) != len(cls._fields):
            raise TypeError(
                f"{cls.__name__}: takes {len(cls._fields)} values ({', '.join(cls._fields)}), got {len(values)}."
            )
        return tuple.__new__(cls, values)

    def __repr__(self) -> str:
        items = ",\n".join(f"{n}={v!r}" for n, v in zip(self._fields, self, strict=True))
        return f"{spelled.package}.return_types.{type(self).__name__}(\n{items})"

    def __reduce__(self) -> Any:
        # By name, because the classes are made while operators are declared, not written out.
        return (_rebuild, (type(self).__name__, self._fields, tuple(self)))


def _rebuild(name: str, fields: tuple[str, ...], values: tuple[Any, ...]) -> Results:
    return results(name, *fields)(*values)


def results(name: str, *fields: str) -> type[Results]:
    """The class of an operator's results, made once per name."""
    found = TYPES.get(name)
    if found is None:
        items = {field: property(itemgetter(i)) for i, field in enumerate(fields)}
        body = {"__slots__": (), "__module__": "votive.return_types", "_fields": fields}
        found = type(name, (Results,), {**body, "__match_args__": fields, **items})
        TYPES[name] = found
    elif found._fields != fields:
        raise ValueError(f"results {name!r} have fields {found._fields}, asked for {fields}.")
    return found


def named(kind: type[Results], values: tuple[Any, ...]) -> Results:
    """Results of an operator as `kind`, whose number of fields they are known to have."""
    return tuple.__new__(kind, values)
