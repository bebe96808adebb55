"""Calling an operator without the native module."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any


class PlainOperator:
    """What the native module's class of operators offers, in Python: all there is when nothing was compiled."""

    function: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self.function or self._make())(*args, **kwargs)

    def _make(self) -> Callable[..., Any]:
        self.function = function = self.compiled()
        function.__wrapped__ = self  # type: ignore[attr-defined]
        return function

    def compiled(self) -> Callable[..., Any]:
        """The function that calls lead to; made when first called."""
        return lambda *args, **kwargs: self.general(*args, **kwargs)  # type: ignore[attr-defined]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def as_method(self, owner: type, name: str) -> Callable[..., Any]:
        """The method of a class: a function that puts the compiled one in its place when it is first called. Python
        binds functions faster than objects.
        """

        def first(*args: Any, **kwargs: Any) -> Any:
            function = self.function or self._make()
            if getattr(owner, name) is first:
                setattr(owner, name, function)
            return function(*args, **kwargs)

        first.__wrapped__ = self  # type: ignore[attr-defined]
        return first

    def apply(self, args: tuple[Any, ...]) -> Any:
        """Run on arguments in schema order."""
        return self.apply_general(args)  # type: ignore[attr-defined]
