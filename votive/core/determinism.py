"""Whether the same program must give the same bits each time. Knows no operators."""

from __future__ import annotations

import warnings

_OFF, _WARN, _RAISE = range(3)
_mode = _OFF


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask operators for the same bits each time. One that adds in any order on a GPU, and has no
    other way, raises a RuntimeError, or warns with `warn_only`. The CPU always adds in one order.

    >>> votive.use_deterministic_algorithms(True)
    >>> votive.are_deterministic_algorithms_enabled()
    True
    >>> votive.use_deterministic_algorithms(False)
    """
    global _mode
    _mode = (_WARN if warn_only else _RAISE) if mode else _OFF


def are_deterministic_algorithms_enabled() -> bool:
    """Whether operators are asked for the same bits each time.

    >>> votive.are_deterministic_algorithms_enabled()
    False
    """
    return _mode != _OFF


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether an operator that cannot give the same bits each time warns instead of raising.

    >>> votive.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return _mode == _WARN


def alert(op: str) -> None:
    """Tell that an operator adds in any order, where that is not wanted."""
    if _mode == _OFF:
        return
    text = (
        f"{op} adds in any order on a GPU, but use_deterministic_algorithms(True) asks for the "
        "same bits each time; compute it on the CPU, or pass warn_only=True."
    )
    if _mode == _RAISE:
        raise RuntimeError(text)
    warnings.warn(text, stacklevel=4)
