"""Sizes of a compiled version at run time: where they are found among arguments, what expressions of them give."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.layout import Layout, Spec
from ..ops.region import Region, RowRegion
from .guards import Place
from .integers import Size
from .symbols import Symbols, is_symbolic, plain, text_of

_KNOWN = 1024  # combinations of sizes that are remembered


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An argument with sizes that may change: where it is, and its spec, or the integer that it is."""

    place: Place
    form: Any


class Found(tuple[Any, ...]):
    """Results of a graph, with the sizes that it ran for."""

    sizes: tuple[int, ...] = ()
    of: Any = None  # how to compute with them


class Sizes:
    """Finds sizes in arguments and computes with them."""

    def __init__(self, symbols: Symbols, leaves: list[Leaf], sources: list[str]) -> None:
        """`sources` say where each symbol is found: Python text of the leaves `a0`, `a1` and so on."""
        self.symbols, self.leaves, self.sources = symbols, leaves, sources
        self.names = [s.name for s in symbols.symbols]
        self._made: dict[str, Callable[..., Any]] = {}
        self._known: dict[Any, Any] = {}

    def close(self) -> None:
        """From here on no more is asked of sizes."""
        self.symbols.closed = True
        self.tests = self._tests()
        self._solve = self._compiled()

    # --- finding ---------------------------------------------------------------------------------

    def _tests(self) -> list[tuple[str, str]]:
        """Conditions as Python text, and how they are told."""
        found: list[tuple[str, str]] = []
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf.form, Spec):
                spec = leaf.form
                found.append((f"a{i}.dtype is d{i}", f"{leaf.place} has another dtype"))
                found.append((f"a{i}.device is e{i}", f"{leaf.place} is on another device"))
                found.append((f"len(a{i}.shape) == {spec.ndim}", f"{leaf.place} has another number of dimensions"))
        return found

    def _forms(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for s in self.symbols.symbols:
            found.append((f"{s.name} >= 2", f"{s.label} is less than 2"))
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf.form, Spec):
                for d, n in enumerate(leaf.form.shape):
                    if not _is_symbol(n):
                        found.append((f"a{i}.shape[{d}] == {n!r}", f"{leaf.place}.shape[{d}] is not {n!r}"))
        found += [(c, f"{c} does not hold") for c in self.symbols.conditions]
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf.form, Spec):
                strides = "".join(f"{_written(s)}, " for s in leaf.form.strides)
                found.append((f"a{i}.strides == ({strides})", f"{leaf.place} lies in memory in another way"))
        return found

    def _compiled(self) -> Callable[..., Any]:
        scope: dict[str, Any] = {"math": math}
        for i, leaf in enumerate(self.leaves):
            if isinstance(leaf.form, Spec):
                scope[f"d{i}"], scope[f"e{i}"] = leaf.form.dtype, leaf.form.device
        lines = [f"def solve({', '.join(f'a{i}' for i in range(len(self.leaves)))}):"]
        lines += [f" if not ({test}): return {told!r}" for test, told in self._tests()]
        lines += [f" {name} = {source}" for name, source in zip(self.names, self.sources, strict=True)]
        lines += [f" if not ({test}): return {told!r}" for test, told in self._forms()]
        lines.append(f" return ({''.join(f'{n}, ' for n in self.names)})")
        exec("\n".join(lines), scope)
        return scope["solve"]

    def of(self, *found: Any) -> tuple[int, ...] | None:
        """The sizes of the specs and integers of the leaves; None where something does not fit."""
        known = self._known.get(found)
        if known is None:
            if any(
                f.__class__ is not (Spec if isinstance(x.form, Spec) else int)
                for f, x in zip(found, self.leaves, strict=True)
            ):
                return None
            if len(self._known) >= _KNOWN:
                self._known.clear()
            known = self._known[found] = self._solve(*found)
        return None if known.__class__ is str else known

    def why(self, flat: tuple[Any, ...]) -> str:
        """What does not fit, in one line; empty where all does."""
        found = []
        for leaf in self.leaves:
            now = leaf.place.get(flat)
            if isinstance(leaf.form, Spec):
                now = getattr(now, "_spec", None)
            if now.__class__ is not (Spec if isinstance(leaf.form, Spec) else int):
                return f"{leaf.place} is of another kind"
            found.append(now)
        known = self._solve(*found)
        if known.__class__ is not str:
            return ""
        now = [
            f"{leaf.place} is {f.shape if isinstance(f, Spec) else f}"
            for leaf, f in zip(self.leaves, found, strict=True)
        ]
        where = "; ".join(f"{s.name} = {s.label}" for s in self.symbols.symbols if s.name in known)
        return f"{known}" + (f", where {where}" if where else "") + f" ({', '.join(now[:3])})"

    # --- computing -------------------------------------------------------------------------------

    def function(self, value: object) -> Callable[..., Any]:
        """A function of the sizes that gives a value with numbers in place of expressions."""
        text = _written(value)
        found = self._made.get(text)
        if found is None:
            found = self._made[text] = eval(f"lambda {', '.join(self.names)}: {text}", {"math": math})
        return found

    def spec(self, spec: Spec, sizes: tuple[int, ...]) -> Spec:
        """A spec for given sizes."""
        if not is_symbolic(spec.shape) and not is_symbolic(spec.strides):
            return spec
        return Spec(Layout(*self.function((spec.shape, spec.strides))(*sizes)), spec.dtype, spec.device)


def _is_symbol(n: Any) -> bool:
    return (
        n.__class__ is Size
        and len(n.poly) == 1
        and next(iter(n.poly.items())) in [((s.name,), 1) for s in n.symbols.symbols]
    )


def _written(value: object) -> str:
    if value.__class__ is tuple or value.__class__ is list:
        return "(" + "".join(f"{_written(v)}, " for v in value) + ")"
    return text_of(value)


class SizedRegion:
    """A region for any sizes: a region for each combination of them, all with the same kernel."""

    def __init__(self, region: Region | RowRegion, sizes: Sizes) -> None:
        self.region, self.sizes = region, sizes
        self.known: dict[tuple[int, ...], Any] = {}

    def __call__(self, *sizes: int) -> Any:
        found = self.known.get(sizes)
        if found is None:
            if len(self.known) >= _KNOWN:
                self.known.clear()
            outs = tuple([self.sizes.spec(s, sizes) for s in self.region.outs])
            more = {}
            if isinstance(self.region, RowRegion):
                more["shape"] = self.sizes.function(self.region.shape)(*sizes)
            found = self.known[sizes] = dataclasses.replace(self.region, outs=outs, **more)
        return found


def sized(value: object) -> bool:
    """Whether an argument of a call depends on sizes."""
    if isinstance(value, (Region, RowRegion)):
        return is_symbolic(value.shape) or any(is_symbolic(s.shape) or is_symbolic(s.strides) for s in value.outs)
    return is_symbolic(value)


def symbolic_specs(specs: Sequence[Spec]) -> bool:
    """Whether any spec depends on sizes."""
    return any(is_symbolic(s.shape) or is_symbolic(s.strides) for s in specs)


__all__ = ["Found", "Leaf", "SizedRegion", "Sizes", "plain", "sized", "symbolic_specs"]
