"""`votive.backends.miopen`: AMD's MIOpen is not used; its switch is kept for programs that set it."""

from __future__ import annotations

import contextlib
from typing import Any

from . import switches
from .switches import Switch


def set_flags(_immediate: bool | None = None) -> tuple[Any, ...]:
    """Set the switch and return what it was.

    >>> votive.backends.miopen.set_flags()
    (False,)
    """
    return switches.put(__name__, {"immediate": _immediate})


def flags(immediate: bool = False) -> contextlib.AbstractContextManager[None]:
    """Set the switch for a block.

    >>> with votive.backends.miopen.flags(immediate=True):
    ...     votive.backends.miopen.immediate
    True
    """
    return switches.switched(__name__, {"immediate": immediate})


switches.install(__name__, {"immediate": Switch(False, (bool,))})
