"""Numbers as options take them, with their bounds in words. Knows text only."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def whole(low: int | None = None, high: int | None = None) -> Callable[[str], int]:
    """A whole number from `low` to `high`, for an option's `type`.

    >>> from votive.cli.numbers import whole
    >>> whole(1)("7")
    7
    >>> whole(1)("0")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: takes a whole number of at least 1, not '0'.
    """

    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or not _within(value, low, high):
            raise argparse.ArgumentTypeError(_asked("a whole number", text, low, high))
        return value

    return read


def number(
    low: float | None = None, high: float | None = None, *, above: float | None = None
) -> Callable[[str], float]:
    """A finite number from `low` to `high`, or one above `above`, for an option's `type`.

    >>> from votive.cli.numbers import number
    >>> number(0, 1)("0.5")
    0.5
    >>> number(above=0, high=1)("0")
    Traceback (most recent call last):
    argparse.ArgumentTypeError: takes a number above 0 and up to 1, not '0'.
    """

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        outside = above is not None and value <= above
        if not math.isfinite(value) or outside or not _within(value, low, high):
            raise argparse.ArgumentTypeError(_asked("a number", text, low, high, above))
        return value

    return read


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _asked(kind: str, text: str, low: float | None, high: float | None, above: float | None = None) -> str:
    if above is not None:
        bounds = f" above {above:,}" + (f" and up to {high:,}" if high is not None else "")
    elif low is not None and high is not None:
        bounds = f" from {low:,} to {high:,}"
    elif low is not None:
        bounds = f" of at least {low:,}"
    else:
        bounds = f" of at most {high:,}" if high is not None else ""
    return f"takes {kind}{bounds}, not {text!r}."
