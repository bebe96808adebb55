"""Devices that votive has no backend for: their modules answer questions and refuse the rest. Knows no tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class AbsentDeviceError(RuntimeError):
    """Something was asked of a device that votive has no backend for."""


def refusal(module: str, what: str, names: tuple[str, ...]) -> Callable[[str], Any]:
    """`__getattr__` of such a module: functions raise when they are called, classes when they are made."""

    def refuse(name: str) -> Any:
        text = f"{module}.{name}: votive has no backend for {what}; use the device 'cpu' or 'cuda'."

        def function(*args: Any, **kwargs: Any) -> Any:
            raise AbsentDeviceError(text)

        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"{what} cannot be used: votive has no backend for them."
        if name[:1].isupper() or name in ("device", "device_of", "graph"):
            return type(name, (), {"__init__": function, "__doc__": function.__doc__, "__module__": module})
        return function

    def found(name: str) -> Any:
        if name in names:
            return refuse(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return found
