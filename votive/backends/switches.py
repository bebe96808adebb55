"""Modules whose attributes are switches, as torch has them under `torch.backends`. Knows no kernel.

Each switch has the values that it takes; anything else raises, and so does a name that is no switch: a misspelt
`cudnn.benchmrk = True` would otherwise be silent.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

PRECISIONS = ("none", "ieee", "tf32", "bf16")


class Switch:
    """One switch: its default, the values it takes, and what is called when it changes."""

    def __init__(self, default: Any, kinds: tuple[Any, ...], changed: Callable[[Any], None] | None = None) -> None:
        self.default, self.kinds, self.changed = default, kinds, changed

    def takes(self, value: Any) -> bool:
        return any(type(value) is kind if isinstance(kind, type) else value == kind for kind in self.kinds)


class SwitchModule(ModuleType):
    """A module with `switches`, which are read and set as attributes."""

    _switches: dict[str, Switch]
    _values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__.get("_values", {})
        if name in values:
            return values[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        switches = self.__dict__.get("_switches", {})
        if name not in switches:
            if name.startswith("_") or isinstance(value, ModuleType):
                super().__setattr__(name, value)
                return
            raise AttributeError(f"{self.__name__} has no switch {name!r}; it has {', '.join(switches)}.")
        switch = switches[name]
        if not switch.takes(value):
            words = " or ".join(k.__name__ if isinstance(k, type) else repr(k) for k in switch.kinds)
            raise RuntimeError(f"{self.__name__}.{name}: expected {words}, got {value!r}.")
        self._values[name] = value
        if switch.changed is not None:
            switch.changed(value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._switches})


def install(name: str, switches: dict[str, Switch]) -> None:
    """Make the switches attributes of the module of this name."""
    module = sys.modules[name]
    module.__class__ = SwitchModule
    module.__dict__.update(_switches=switches, _values={key: s.default for key, s in switches.items()})


@contextlib.contextmanager
def switched(name: str, values: dict[str, Any]) -> Iterator[None]:
    """Set switches of a module for a block; those given as None stay as they are."""
    module = sys.modules[name]
    before = {key: getattr(module, key) for key in values}
    try:
        for key, value in values.items():
            if value is not None:
                setattr(module, key, value)
        yield
    finally:
        for key, value in before.items():
            setattr(module, key, value)


def put(name: str, values: dict[str, Any]) -> tuple[Any, ...]:
    """Set those switches of a module that are not None, and return what all were before."""
    module = sys.modules[name]
    before = tuple(getattr(module, key) for key in values)
    for key, value in values.items():
        if value is not None:
            setattr(module, key, value)
    return before


class Precision:
    """`fp32_precision` of one kind of operator; votive multiplies float32 in full precision unless
    `votive.backends.cuda.matmul.allow_tf32` allows a GPU to do otherwise.

    >>> votive.backends.cudnn.conv.fp32_precision
    'none'
    """

    __slots__ = ("_value",)

    def __init__(self) -> None:
        self._value = "none"

    @property
    def fp32_precision(self) -> str:
        return self._value

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in PRECISIONS:
            raise RuntimeError(f"fp32_precision: expected one of {', '.join(PRECISIONS)}, got {value!r}.")
        self._value = value
