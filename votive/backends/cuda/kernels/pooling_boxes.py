"""The elements that a result of a pool is made of, along one dimension, as text of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..programs.index_space import IndexSpace
from ..programs.types import Ints
from .pooling_windows import longest_window


@dataclass(frozen=True)
class Box:
    """The elements along one dimension that a result is made of.

    `low` and `high` give the text of the range of source coordinates for the text of a result's
    coordinate; `most` is how long a range can be; `count` the text of what a source element (seen
    `from_source`) or the result is divided by along this dimension; `far` the largest number that
    these make.
    """

    low: Callable[[IndexSpace, str, str], str]
    high: Callable[[IndexSpace, str, str], str]
    most: int
    count: Callable[[IndexSpace, str, str], str] | None = None
    far: int = 0


def span(i: int, o: int, k: int, s: int, p: int, d: int = 1) -> int:
    """A bound for all coordinates of o windows, those in the padding included."""
    return i + (o + 1) * s + 2 * p + d * k


def window(i: int, o: int, k: int, s: int, p_: int, include_pad: bool) -> Box:
    """The boxes of an average over windows."""

    def start(p: IndexSpace, o: str, t: str) -> str:
        return f"({o} * {p.arg(f'{t}_s', s)} - {p.arg(f'{t}_p', p_)})"

    def low(p: IndexSpace, o: str, t: str) -> str:
        return f"tl.maximum({start(p, o, t)}, 0)"

    def end(p: IndexSpace, o: str, t: str) -> str:
        room = p.arg(f"{t}_room", i + p_)
        return f"tl.minimum({start(p, o, t)} + {p.arg(f'{t}_k', k)}, {room})"

    def high(p: IndexSpace, o: str, t: str) -> str:
        return f"tl.minimum({end(p, o, t)}, {p.arg(f'{t}_i', i)})"

    def count(p: IndexSpace, o: str, t: str) -> str:
        if include_pad:
            return f"({end(p, o, t)} - {start(p, o, t)})"
        return f"({high(p, o, t)} - {low(p, o, t)})"

    return Box(low, high, min(k, i), count, span(i, o, k, s, p_))


def held_by(i: int, places: int, k: int, s: int, p_: int, count: Any) -> Box:
    """Which windows hold an element: those that start no later, and end after it."""

    def low(p: IndexSpace, e: str, t: str) -> str:
        step = p.arg(f"{t}_s", s)
        back = p.arg(f"{t}_back", k - 1 - p_) if k - 1 - p_ >= 0 else f"-{p.arg(f'{t}_ahead', p_ - k + 1)}"
        return (
            f"tl.maximum(({e} - ({back}) + {step} - 1) // {step}, 0)" if s > 1 else (f"tl.maximum({e} - ({back}), 0)")
        )

    def high(p: IndexSpace, e: str, t: str) -> str:
        step = p.arg(f"{t}_s", s)
        last = f"({e} + {p.arg(f'{t}_p', p_)}) // {step} + 1"
        return f"tl.minimum({last}, {p.arg(f'{t}_o', places)})"

    return Box(low, high, min(-(-k // s) + 1, places), count, span(i, places, k, s, p_))


def range_of(size: int, places: int) -> Box:
    """The inputs of each place; neighbours may share one."""
    if size % places == 0:
        return _even(size // places)

    def low(p: IndexSpace, o: str, t: str) -> str:
        return f"({o} * {p.arg(f'{t}_i', size)} // {p.arg(f'{t}_o', places)})"

    def high(p: IndexSpace, o: str, t: str) -> str:
        i, n = p.arg(f"{t}_i", size), p.arg(f"{t}_o", places)
        return f"((({o} + 1) * {i} + {n} - 1) // {n})"

    count = lambda p, o, t: f"({high(p, o, t)} - {low(p, o, t)})"
    return Box(low, high, longest_window(size, places), count, size * (places + 1))


def _even(each: int) -> Box:
    """Windows side by side, as long as each other."""

    def low(p: IndexSpace, o: str, t: str) -> str:
        return f"({o} * {p.arg(f'{t}_e', each)})"

    def high(p: IndexSpace, o: str, t: str) -> str:
        return f"({low(p, o, t)} + {p.arg(f'{t}_e', each)})"

    return Box(low, high, each, lambda p, o, t: f"(r * 0 + n * 0 + {p.arg(f'{t}_e', each)})")


def places_of(size: int, places: int) -> Box:
    """The places whose windows (`range_of`) hold an input."""
    there = range_of(size, places)
    if size % places:
        # They are the inputs of a place with the sizes exchanged.
        back = range_of(places, size)
        count = lambda p, c, t: there.count(p, c, f"{t}_there")  # type: ignore[misc]
        return Box(back.low, back.high, back.most, count, max(there.far, back.far))
    each = size // places

    def low(p: IndexSpace, o: str, t: str) -> str:
        return f"({o} // {p.arg(f'{t}_e', each)})"

    return Box(low, lambda p, o, t: f"({low(p, o, t)} + 1)", 1, there.count)


def covering(size: Ints, places: Ints, windows: Ints) -> list[Box]:
    """For each element the windows that hold it, given as in `ops.pooling.put_back`."""
    n = len(size)
    if len(windows) == 1:
        return [places_of(*pair) for pair in zip(size, places, strict=True)]
    kernel, stride, padding, dilation = (windows[k * n : (k + 1) * n] for k in range(4))
    wholes = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    return [held_by(*numbers, None) for numbers in zip(size, places, wholes, stride, padding, strict=True)]
