"""Dtypes of torch that have a name here and no arithmetic: programs list them in tables without using them."""

from __future__ import annotations

from typing import Any, NoReturn

from ..core import dtype as dt


class NamedType(dt.dtype):
    """A dtype that can be named, compared and asked for its size, and nothing else."""

    __slots__ = ()

    def __init__(self, name: str, itemsize: int, category: int, signed: bool) -> None:
        self.name, self.itemsize = name, itemsize
        self.category, self.is_signed = category, signed

    @property
    def np(self) -> NoReturn:  # type: ignore[override]
        raise TypeError(f"{self!r} has no arithmetic in votive; use int8, uint8, float8_e4m3fn or float8_e5m2.")

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (named, (self.name,))


def named(name: str) -> NamedType:
    """The type of a name."""
    return TYPES[name]


def _make() -> dict[str, NamedType]:
    found = {}
    for bits in range(1, 8):
        found[f"int{bits}"] = NamedType(f"int{bits}", 1, dt.INT, True)
        found[f"uint{bits}"] = NamedType(f"uint{bits}", 1, dt.INT, False)
    for name, size in (("bits1x8", 1), ("bits2x4", 1), ("bits4x2", 1), ("bits8", 1), ("bits16", 2)):
        found[name] = NamedType(name, size, dt.INT, False)
    for name, size in (("quint4x2", 1), ("quint2x4", 1)):
        found[name] = NamedType(name, size, dt.INT, False)
    for name in ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"):
        found[name] = NamedType(name, 1, dt.FLOAT, name != "float8_e8m0fnu")
    return found


TYPES = _make()
