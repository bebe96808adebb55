"""The table of kinds of work: how a case of a kind is drawn and how it is built. Knows no operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from .draw import Draw
from .side import Side, Work
from .spec import Param, Spec

USUAL = ("float32",) * 10 + ("bfloat16",) * 7 + ("float16", "float64")
Drawn = tuple[str, dict[str, Param]]


@dataclass(frozen=True)
class Family:
    """A kind: `draw` gives an operator and parameters, `build` the work in one framework."""

    kind: str
    draw: Callable[[Draw], Drawn]
    build: Callable[[Side], Work]
    dtypes: Sequence[str] = USUAL
    gradient: float = 0.4  # how often with gradients
    compared: Callable[[Any], Any] | None = lambda result: result  # what must agree; None: random numbers
    weight: int = 1
    ties: Sequence[str] = ()  # operators whose gradient goes to either of two equal values


FAMILIES: dict[str, Family] = {}


def family(kind: str, draw: Callable[[Draw], Drawn], **options: Any) -> Callable[[Callable[[Side], Work]], Any]:
    """Enter a kind; decorates `build`."""

    def enter(build: Callable[[Side], Work]) -> Callable[[Side], Work]:
        FAMILIES[kind] = Family(kind, draw, build, **options)
        return build

    return enter


def families() -> dict[str, Family]:
    """Every kind of `families/`."""
    for found in iter_modules([str(Path(__file__).parent / "families")]):
        import_module(f"{__package__}.families.{found.name}")
    return FAMILIES


def case(number: int, seed: int, scale: str) -> Spec:
    """Case `number` of a seed: kinds take turns in a shuffled order, so that each gets its share early."""
    deck = [f for f in families().values() for _ in range(f.weight)]
    turn, place = divmod(number, len(deck))
    Draw(f"{seed} deck {turn}", scale).random.shuffle(deck)
    chosen = deck[place]
    d = Draw(f"{seed} case {number}", scale)
    dtype, grad = d.pick(chosen.dtypes), d.chance(chosen.gradient)
    op, params = chosen.draw(d)
    return Spec(chosen.kind, op, dtype, grad, tuple(params.items()))
