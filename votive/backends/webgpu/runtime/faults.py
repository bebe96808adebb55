"""Errors that kernels find while they run, such as an index out of range. They are raised when the host next waits.

A kernel writes (which message, the value, a size) over the first words of a buffer; the first one stays.
"""

from __future__ import annotations

from typing import NoReturn

_MESSAGES: list[tuple[type[Exception], str]] = []


def message(kind: type[Exception], text: str) -> int:
    """The number under which kernels report an error; `{value}` and `{size}` are filled in."""
    entry = (kind, text)
    if entry not in _MESSAGES:
        _MESSAGES.append(entry)
    return _MESSAGES.index(entry) + 1


def raise_for(number: int, value: int, size: int) -> NoReturn:
    """Raise what a kernel reported."""
    kind, text = _MESSAGES[number - 1]
    raise kind(text.format(value=value, size=size))
