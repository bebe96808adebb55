"""Arguments from outside, checked against the annotations of a function. Knows no actions."""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin


class BadArgument(ValueError):
    """An argument that an action does not take."""


@dataclass(frozen=True)
class Bounds:
    """Bounds of a number, or of the length of a text or list.

    `message` is what a person at the page reads instead of the argument's name.
    """

    low: float
    high: float
    message: str = ""


# What most actions share.
Index = Annotated[int, Bounds(0, 1 << 31)]
Address = Annotated[str, Bounds(0, 500)]
Text = Annotated[str, Bounds(0, 500_000)]
Window = Annotated[list[Index], Bounds(2, 2)]


@dataclass(frozen=True)
class Signature:
    """The arguments of a function after its first one."""

    name: str
    arguments: Mapping[str, Any]
    required: frozenset[str]
    rest: bool  # whether it takes any others

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments in the types the function wants."""
        unknown = sorted(set(given) - set(self.arguments))
        if unknown and not self.rest:
            known = ", ".join(self.arguments) or "none"
            raise BadArgument(f"{self.name}: unknown argument {unknown[0]!r:.60}; it has {known}.")
        missing = sorted(self.required - set(given))
        if missing:
            raise BadArgument(f"{self.name}: the argument {missing[0]!r} is missing.")
        return {
            k: checked(f"{self.name}: {k}", v, self.arguments[k]) if k in self.arguments else v
            for k, v in given.items()
        }


def signature_of(name: str, fn: Callable[..., Any]) -> Signature:
    """What a function takes; an argument `at_` is called "at" outside, as `with_` is "with".

    >>> from votive.studio.arguments import signature_of
    >>> def step(job, n: int = 1): ...
    >>> signature_of("session.step", step).check({"n": 2.0})
    {'n': 2}
    """
    hints = typing.get_type_hints(fn, include_extras=True)
    parameters = list(inspect.signature(fn).parameters.values())[1:]
    named = [p for p in parameters if p.kind is not p.VAR_KEYWORD]
    return Signature(
        name,
        {p.name.rstrip("_"): hints.get(p.name, Any) for p in named},
        frozenset(p.name.rstrip("_") for p in named if p.default is p.empty),
        len(named) < len(parameters),
    )


def checked(name: str, value: object, wanted: Any) -> Any:
    """The value, if it is what is wanted."""
    if wanted is Any:
        return value
    origin = get_origin(wanted)
    if origin is Annotated:
        kind, *bounds = get_args(wanted)
        value = checked(name, value, kind)
        for bound in bounds:
            _bounded(name, value, bound)
        return value
    if origin in (types.UnionType, typing.Union):
        return _one_of(name, value, get_args(wanted))
    if origin is Literal:
        if value not in get_args(wanted) or isinstance(value, bool):
            allowed = ", ".join(repr(v) for v in get_args(wanted))
            raise BadArgument(f"{name} must be one of {allowed}; got {value!r:.80}.")
        return value
    if origin is list:
        if not isinstance(value, list):
            raise BadArgument(f"{name} must be an array, got {value!r:.80}.")
        (inner,) = get_args(wanted)
        return [checked(f"{name}[{i}]", v, inner) for i, v in enumerate(value)]
    return _plain(name, value, wanted)


def _plain(name: str, value: Any, wanted: Any) -> Any:
    if wanted is int and isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)  # JSON knows one kind of number
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise BadArgument(f"{name} is too large a number.") from None
    if isinstance(value, bool) != (wanted is bool) or not isinstance(value, wanted):
        names = {
            int: "a whole number",
            float: "a number",
            str: "a text",
            bool: "true or false",
            dict: "an object",
            type(None): "null",
        }
        raise BadArgument(f"{name} must be {names.get(wanted, wanted)}, got {value!r:.80}.")
    if wanted is int and abs(value) >= 2**63:
        raise BadArgument(f"{name} is too large a number.")
    if wanted is float and not math.isfinite(value):
        raise BadArgument(f"{name} must be finite.")
    if wanted is str and any("\ud800" <= c <= "\udfff" for c in value):
        raise BadArgument(f"{name} holds half a character (a lone surrogate).")
    return value


def _one_of(name: str, value: object, choices: tuple[Any, ...]) -> Any:
    if value is None and type(None) in choices:
        return None
    last: BadArgument | None = None
    for choice in choices:
        if choice is type(None):
            continue
        try:
            return checked(name, value, choice)
        except BadArgument as e:
            last = e
    assert last is not None
    raise last


def _bounded(name: str, value: Any, bound: Bounds) -> None:
    sized = isinstance(value, (str, list))
    size = len(value) if sized else value
    if bound.low <= size <= bound.high:
        return
    if bound.message:
        raise BadArgument(bound.message.format(low=bound.low, high=bound.high, got=size))
    has = "have {:,} to {:,} elements" if sized else "be from {:,} to {:,}"
    raise BadArgument(f"{name} must {has.format(bound.low, bound.high)}, got {size:,}.")
