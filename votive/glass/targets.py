"""Which modules of a model a pattern can mean, and what to say when there are none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from ..nn import Module
from .address import Address, Pattern, Patterns, any_call
from .probe_hub import HUB

_MOST_PATHS = 1_000_000


class NoMatch(LookupError):
    """A pattern that matches nothing in the model."""


def patterns(given: Patterns) -> list[Pattern]:
    """One pattern or several, as patterns.

    >>> from votive.glass.targets import patterns
    >>> patterns(["layers.*", "norm"])
    [Pattern('layers.*'), Pattern('norm')]
    """
    if isinstance(given, Pattern):
        return [given]
    if isinstance(given, (str, Address, re.Pattern)) or callable(given):
        return [Pattern(given)]
    return [p for one in given for p in patterns(one)]


def uncompiled(model: Any) -> Any:
    """The module that a compiled one runs: addresses are those of its parts."""
    return getattr(model, "_modules", {}).get("_orig_mod", model)


def modules_for(model: Module, wanted: Iterable[Pattern]) -> list[Any] | None:
    """The modules to watch for these patterns; None when only a run can tell.

    A text that means modules and matches none is an error here, before anything has run.
    """
    model = uncompiled(model)
    names = [*_paths(model), *_guests(model)]
    found: dict[int, Any] = {}
    open_ended = False
    for pattern in wanted:
        if pattern.predicate is not None or pattern.wants_ops:
            open_ended = True
            continue
        assert pattern.regex is not None
        hits = _named(pattern, names)
        if not hits:
            # A module that is made in forward has no name yet; but a text names what is known.
            if pattern.wants_sites:
                hits = [m for _, m in names if getattr(m, "runs_through_points", False)]
            if not hits:
                raise no_match(pattern, [name for name, _ in names])
        found.update((id(m), m) for m in hits)
    return None if open_ended else list(found.values())


def _paths(model: Module) -> list[tuple[str, Any]]:
    """Every path below a model with its module, also where one module has several.

    As named_modules tells them; but a capture around each step of a loop must cost next to nothing.
    """
    found: list[tuple[str, Any]] = [("", model)]
    for path, module in found:
        prefix = f"{path}." if path else ""
        found += [(prefix + n, m) for n, m in module._modules.items() if m is not None]
        if len(found) > _MOST_PATHS:
            raise RecursionError("the model holds itself; modules must form a tree.")
    return found


def _guests(model: Module) -> list[tuple[str, Any]]:
    """The paths inside of modules that attached patches swap in, each with the module in whose
    place they run.
    """
    found: list[tuple[str, Any]] = []
    for probe in HUB.probes:
        for edit, guest in getattr(probe, "swapped_in", list)():
            for place, module in _paths(model) if probe.model is model else ():
                if edit.pattern.regex is not None and _may_match(edit.pattern, place):
                    inner = [path for path, _ in _paths(guest) if path]
                    found += [(f"{place}.{path}" if place else path, module) for path in inner]
    return found


def _named(pattern: Pattern, names: list[tuple[str, Any]]) -> list[Any]:
    """The modules whose calls a pattern may match."""
    plain = pattern.text.removeprefix("^")
    if re.fullmatch(r"[\w.]+", plain):
        # A path without wildcards, as programs write it: no need to ask a regular expression.
        ending = None if pattern.text.startswith("^") else f".{plain}"
        return [m for n, m in names if n == plain or (ending is not None and n.endswith(ending))]
    return [m for name, m in names if _may_match(pattern, name)]


def _may_match(pattern: Pattern, name: str) -> bool:
    """Whether some call of the module with this name matches."""
    assert pattern.regex is not None
    # Globs are made for addresses with their numbers, regular expressions for those without.
    if pattern.regex.fullmatch(f"{name}#0") or pattern.regex.fullmatch(name):
        return True
    if "#" not in pattern.text:
        return False
    # How often a module will be called nobody knows before the run.
    whichever = any_call(pattern)
    return whichever is not None and whichever.fullmatch(f"{name}#0") is not None


def no_match(pattern: Pattern, known: Iterable[str]) -> NoMatch:
    """The error for a pattern that matches nothing, with what was perhaps meant."""
    text = pattern.text
    names = sorted({n for n in known if n})
    if pattern.regex is not None and any(_may_match(pattern, n) for n in names):
        return NoMatch(
            f"{text!r} matches no call: the module is there, but was not called. A module around "
            "it may be skipped or swapped, or the model uses it in other runs only."
        )
    near = difflib.get_close_matches(text, names, 4, 0.5)
    hint = f" Did you mean {', '.join(map(repr, near))}?" if near else ""
    if not near and names:
        hint = f" There are {', '.join(map(repr, names[:6]))}{', …' if len(names) > 6 else ''}."
    return NoMatch(f"{text!r} matches no call.{hint}")
