"""`votive.backends.nnpack`: NNPACK is not used; its switch is kept for programs that set it."""

from __future__ import annotations

import contextlib
from typing import Any

from . import switches
from .switches import Switch


def is_available() -> bool:
    """Whether NNPACK computes: no.

    >>> votive.backends.nnpack.is_available()
    False
    """
    return False


def set_flags(_enabled: bool) -> tuple[Any, ...]:
    """Set the switch and return what it was.

    >>> votive.backends.nnpack.set_flags(True)
    (True,)
    """
    return switches.put(__name__, {"enabled": _enabled})


def flags(enabled: bool = False) -> contextlib.AbstractContextManager[None]:
    """Set the switch for a block.

    >>> with votive.backends.nnpack.flags(enabled=False):
    ...     votive.backends.nnpack.enabled
    False
    """
    return switches.switched(__name__, {"enabled": enabled})


switches.install(__name__, {"enabled": Switch(True, (bool,))})
