"""`votive.backends.mha`: torch's second way through encoder layers. votive has one way, so the switch is only kept."""

from __future__ import annotations

_enabled = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` set.

    >>> votive.backends.mha.get_fastpath_enabled()
    True
    """
    return _enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid torch's fast path; layers have one way here, and nothing changes.

    >>> votive.backends.mha.set_fastpath_enabled(True)
    """
    global _enabled
    _enabled = bool(value)
