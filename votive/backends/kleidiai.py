"""`votive.backends.kleidiai`: Arm's KleidiAI is not used."""

from __future__ import annotations


def is_available() -> bool:
    """Whether Arm's KleidiAI computes: no.

    >>> votive.backends.kleidiai.is_available()
    False
    """
    return False
