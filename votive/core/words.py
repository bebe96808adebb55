"""Lists of names, written as one text: a formatter would give each name a line of its own."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """The names in a text.

    >>> from votive.core.words import words
    >>> words("sin cos tan")
    ('sin', 'cos', 'tan')
    """
    return tuple(text.split())
